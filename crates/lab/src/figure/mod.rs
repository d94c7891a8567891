//! Figures as SVG: a small chart toolkit with one style for every figure of the lab.
//!
//! What belongs here: turning plain numbers into pictures. What does not: deciding what to show, which is the
//! report's. The same input gives the same bytes. Needs no font at run time: the viewer's own is used.

mod axis;
mod bars;
mod canvas;
mod chart;
mod decimate;
mod diagram;
mod grouped;
mod heat;
mod legend;
mod palette;
mod panels;
mod pen;
mod style;
mod timeline;

pub use bars::{BarColumn, Bars};
pub use canvas::FigureError;
pub(crate) use canvas::escape;
pub use chart::{Band, Chart, Guide, Mark, Series};
pub use decimate::decimate;
pub use diagram::{PathDiagram, path_diagram};
pub use grouped::{Grouped, GroupedSeries};
pub use heat::{HeatCell, HeatMap, heat_colour, text_on};
pub use palette::{Colour, colours};
pub use panels::{Line, Panel, Panels, distribution};
pub use style::{IDEAL_STYLE, Style, short_name, styles};
pub use timeline::{Lane, Part, PartKind, timeline};

/// Width of every figure in CSS pixels; the page scales it.
const WIDTH_PX: f64 = canvas::WIDTH as f64;
