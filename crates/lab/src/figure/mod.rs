//! The kinds of figures: each turns plain numbers into one SVG.
//!
//! The choice of numbers is made elsewhere (`report`, `matrix`, `scenario`).

mod band;
mod bars;
mod decimate;
mod grouped;
mod heat;
mod landscape;
mod legend;
mod panels;
mod path_diagram;
mod style;
mod timeline;

pub(crate) use band::Band;
pub(crate) use bars::{BarColumn, Bars};
pub(crate) use grouped::{Grouped, GroupedSeries};
pub(crate) use heat::{HeatCell, HeatMap};
pub(crate) use landscape::{Landscape, LandscapeChoice, LandscapeUnknown};
pub(crate) use panels::{Line, Panel, Panels, distribution};
pub(crate) use path_diagram::PathDiagram;
pub(crate) use style::{IDEAL_STYLE, Style, short_name, styles, world_style};
pub(crate) use timeline::{Lane, Span, SpanKind, Timeline};

use crate::statistics::Spread;
use crate::svg::{INK, Point, Stroke, SvgWriter};

/// Width of every figure in CSS pixels; the page scales it.
const WIDTH_PX: f64 = 960.0;

/// Mean and spread of the trials that have a value.
fn spread(trials: &[f64]) -> Option<Spread> {
    Spread::of(trials.iter().copied().filter(|value| value.is_finite()))
}

/// Smallest to largest as a thin line with ends, one standard deviation as a thick one. `place` gives the position of
/// a value, `across` is half of the line at each end. Nothing is drawn if all trials have the same value.
fn whiskers(svg: &mut SvgWriter, spread: Spread, across: Point, place: impl Fn(f64) -> Point) {
    if spread.max <= spread.min {
        return;
    }
    svg.line(place(spread.min), place(spread.max), Stroke::solid(INK, 0.9));
    for (x, y) in [place(spread.min), place(spread.max)] {
        let ends = ((x - across.0, y - across.1), (x + across.0, y + across.1));
        svg.line(ends.0, ends.1, Stroke::solid(INK, 0.9));
    }
    let deviation = (place(spread.mean - spread.sd), place(spread.mean + spread.sd));
    svg.line(deviation.0, deviation.1, Stroke::solid(INK, 2.4));
}
