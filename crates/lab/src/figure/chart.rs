//! Line charts over time.

use std::ops::Range;

use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

use super::axis::{axis_number, nice_step};
use super::canvas::{
    AXIS, Area, FAINT, FigureError, GRID, INK, LEFT, RIGHT, WIDTH, draw, fine, px, stroke, text_style,
    text_width,
};
use super::{Colour, decimate};

/// Space above the plot: title and legend.
const TOP: i32 = 34;
/// Space below the plot: the x axis's numbers.
const BOTTOM: i32 = 24;
/// Buckets of a decimated line: one per two pixels of the plot.
const BUCKETS: usize = 450;

/// A line chart: time in seconds on the x axis, one quantity on the y axis.
#[derive(Clone, Debug, Default)]
pub struct Chart {
    /// What is shown.
    pub title: String,
    /// Unit of the y axis.
    pub unit: String,
    /// Length of the x axis in seconds.
    pub seconds: f64,
    /// Lowest value of the y axis, zero by default; made a round number.
    pub bottom: f64,
    /// Highest value of the y axis; by default what the data needs.
    pub top: Option<f64>,
    /// Height of the whole figure in CSS pixels.
    pub height: i32,
    /// The lines.
    pub series: Vec<Series>,
    /// Shaded stretches of time, behind the lines.
    pub bands: Vec<Band>,
    /// Horizontal lines that data is compared with.
    pub guides: Vec<Guide>,
    /// Single moments on a line.
    pub marks: Vec<Mark>,
}

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub colour: Colour,
    /// Seconds and value, in order of time. Values that are not finite interrupt the line.
    pub points: Vec<(f64, f64)>,
}

/// A shaded stretch of time.
#[derive(Clone, Copy, Debug)]
pub struct Band {
    /// From and to, in seconds.
    pub span: (f64, f64),
    /// Its colour; drawn almost transparent.
    pub colour: Colour,
}

/// A horizontal line with its name.
#[derive(Clone, Debug)]
pub struct Guide {
    /// Where it lies.
    pub value: f64,
    /// What it means.
    pub label: String,
}

/// A dot at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// Seconds and value.
    pub at: (f64, f64),
    /// Its colour.
    pub colour: Colour,
}

impl Chart {
    /// The figure as SVG.
    pub fn svg(&self) -> Result<String, FigureError> {
        let height = if self.height > 0 { self.height } else { 210 };
        draw(
            height,
            &format!("{} ({}) over time", self.title, self.unit),
            |area| self.paint(area, height),
        )
    }

    fn paint(&self, area: &Area<'_>, height: i32) -> Result<(), FigureError> {
        let (step, bottom, top) = self.y_axis();
        let x_end = if self.seconds > 0.0 { self.seconds } else { 1.0 };
        let plot = Range {
            start: px(TOP),
            end: px(height - BOTTOM),
        };
        let inner = ChartBuilder::on(area)
            .margin_left(px(LEFT))
            .margin_right(px(RIGHT))
            .margin_top(plot.start)
            .margin_bottom(px(BOTTOM))
            .build_cartesian_2d(0.0..x_end, bottom..top)?
            .plotting_area()
            .clone();

        for band in &self.bands {
            let style = RGBColor::from(band.colour).mix(0.13).filled();
            let (from, to) = (band.span.0.max(0.0), band.span.1.min(x_end));
            if to > from {
                inner.draw(&Rectangle::new([(from, top), (to, bottom)], style))?;
            }
        }
        let number = text_style(11.0, FAINT, HPos::Right);
        let mut tick = bottom;
        while tick <= top * 1.000_001 {
            let y = inner.map_coordinate(&(0.0, tick)).1;
            let style = if tick > bottom { GRID } else { AXIS }.stroke_width(stroke(1.0));
            area.draw(&PathElement::new(
                vec![(px(LEFT), y), (px(WIDTH - RIGHT), y)],
                style,
            ))?;
            area.draw_text(&axis_number(tick, step), &number, (px(LEFT - 8), y))?;
            tick += step;
        }
        x_axis(area, x_end, height, |x| inner.map_coordinate(&(x, bottom)).0)?;

        for guide in &self.guides {
            let y = inner.map_coordinate(&(0.0, guide.value.clamp(bottom, top))).1;
            dashed(area, y)?;
        }
        for series in &self.series {
            let style = RGBColor::from(series.colour).stroke_width(stroke(1.7));
            for piece in series.points.split(|point| !point.1.is_finite()) {
                let points = decimate(piece, BUCKETS)
                    .into_iter()
                    .map(|(x, y)| (x.clamp(0.0, x_end), y.clamp(bottom, top)));
                inner.draw(&PathElement::new(points.collect::<Vec<_>>(), style))?;
            }
        }
        for mark in &self.marks {
            if (0.0..=x_end).contains(&mark.at.0) {
                let at = (mark.at.0, mark.at.1.clamp(bottom, top));
                inner.draw(&Circle::new(at, px(4), WHITE.filled()))?;
                inner.draw(&Circle::new(at, px(3), RGBColor::from(mark.colour).filled()))?;
            }
        }
        self.name_guides(area, |value| {
            inner.map_coordinate(&(0.0, value.clamp(bottom, top))).1
        })?;
        self.heading(area)
    }

    /// Distance between lines of the grid, bottom and top of the axis.
    fn y_axis(&self) -> (f64, f64, f64) {
        let highest = self.top.unwrap_or_else(|| {
            let lines = self
                .series
                .iter()
                .flat_map(|series| series.points.iter().map(|p| p.1));
            let guides = self.guides.iter().map(|guide| guide.value);
            let finite = lines.chain(guides).filter(|value| value.is_finite());
            finite.fold(0.0, f64::max) * 1.04
        });
        let step = nice_step((highest - self.bottom) / 4.0);
        let bottom = (self.bottom / step).floor() * step;
        (
            step,
            bottom,
            (highest / step).ceil().max(bottom / step + 1.0) * step,
        )
    }

    /// The names of horizontal lines, right of the plot; close ones are moved apart.
    fn name_guides(&self, area: &Area<'_>, place: impl Fn(f64) -> i32) -> Result<(), FigureError> {
        let mut guides: Vec<(i32, &str)> = self
            .guides
            .iter()
            .map(|guide| (place(guide.value), guide.label.as_str()))
            .collect();
        guides.sort_by_key(|guide| guide.0);
        let name = text_style(11.0, FAINT, HPos::Left);
        let mut free = 0;
        for (y, label) in guides {
            let y = y.max(free);
            area.draw_text(label, &name, (px(WIDTH - RIGHT + 6), y))?;
            free = y + px(14);
        }
        Ok(())
    }

    /// Title at the left, legend at the right.
    fn heading(&self, area: &Area<'_>) -> Result<(), FigureError> {
        let y = px(14);
        let title = text_style(14.0, INK, HPos::Left);
        let bold = TextStyle {
            font: title.font.style(FontStyle::Bold),
            ..title
        };
        area.draw_text(&self.title, &bold, (px(4), y))?;
        let after = 4.0 + text_width(&self.title, 14.0) * 1.2 + 10.0;
        area.draw_text(&self.unit, &text_style(12.0, FAINT, HPos::Left), (fine(after), y))?;

        let mut right = f64::from(WIDTH - RIGHT);
        for series in self.series.iter().rev() {
            area.draw_text(
                &series.name,
                &text_style(12.5, INK, HPos::Right),
                (fine(right), y),
            )?;
            right -= text_width(&series.name, 12.5) + 8.0;
            let swatch = RGBColor::from(series.colour).stroke_width(stroke(3.0));
            area.draw(&PathElement::new(
                vec![(fine(right - 20.0), y), (fine(right), y)],
                swatch,
            ))?;
            right -= 40.0;
        }
        Ok(())
    }
}

/// Numbers and ticks of the time axis, its unit behind the last number. `place` gives a moment's x in drawing units.
pub(super) fn x_axis(
    area: &Area<'_>,
    end: f64,
    height: i32,
    place: impl Fn(f64) -> i32,
) -> Result<(), FigureError> {
    let step = nice_step(end / 9.0);
    let base = px(height - BOTTOM);
    let number = text_style(11.0, FAINT, HPos::Center);
    let mut tick = 0.0;
    while tick <= end * 1.000_001 {
        let x = place(tick);
        let line = AXIS.stroke_width(stroke(1.0));
        area.draw(&PathElement::new(vec![(x, base), (x, base + px(4))], line))?;
        let text = format!("{} s", axis_number(tick, step));
        area.draw_text(&text, &number, (x, base + px(14)))?;
        tick += step;
    }
    Ok(())
}

/// A thin dashed line across the plot.
fn dashed(area: &Area<'_>, y: i32) -> Result<(), FigureError> {
    let style = FAINT.stroke_width(stroke(1.0));
    for x in (LEFT..WIDTH - RIGHT).step_by(7) {
        let end = (x + 4).min(WIDTH - RIGHT);
        area.draw(&PathElement::new(vec![(px(x), y), (px(end), y)], style))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn chart() -> Chart {
        let points = |scale: f64| {
            (0..=400)
                .map(|i| (f64::from(i) / 10.0, f64::from(i % 50) * scale))
                .collect()
        };
        Chart {
            title: "Congestion window".into(),
            unit: "kB".into(),
            seconds: 40.0,
            series: vec![
                Series {
                    name: "reno".into(),
                    colour: Colour(0, 0x72, 0xB2),
                    points: points(1.0),
                },
                Series {
                    name: "a<b".into(),
                    colour: Colour(0xD5, 0x5E, 0),
                    points: points(2.0),
                },
            ],
            bands: vec![Band {
                span: (5.0, 7.5),
                colour: Colour(0, 0x72, 0xB2),
            }],
            guides: vec![Guide {
                value: 60.0,
                label: "BDP".into(),
            }],
            marks: vec![Mark {
                at: (10.0, 49.0),
                colour: Colour(0, 0x72, 0xB2),
            }],
            ..Chart::default()
        }
    }

    #[test]
    fn every_line_band_guide_and_mark_is_drawn_in_its_colour() {
        let svg = chart().svg().unwrap();
        let lines = svg.matches("<polyline").count();
        assert!(svg.contains("stroke=\"#0072B2\" stroke-width=\"7\""), "{svg}");
        assert!(svg.contains("stroke=\"#D55E00\" stroke-width=\"7\""));
        assert!(svg.contains("opacity=\"0.13\" fill=\"#0072B2\""));
        assert!(svg.contains("BDP"));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(lines > 100, "axes, dashes and lines: {lines}");
    }

    #[test]
    fn the_same_data_gives_the_same_bytes() {
        assert_eq!(chart().svg(), chart().svg());
    }

    #[test]
    fn names_are_escaped() {
        let svg = chart().svg().unwrap();
        assert!(svg.contains("a&lt;b") && !svg.contains("a<b"));
    }

    #[test]
    fn a_value_that_is_no_number_interrupts_the_line() {
        let mut chart = chart();
        chart.series.truncate(1);
        let whole = chart.svg().unwrap().matches("<polyline").count();
        chart.series[0].points[200].1 = f64::NAN;
        assert_eq!(chart.svg().unwrap().matches("<polyline").count(), whole + 1);
    }

    #[test]
    fn an_axis_may_begin_above_zero_at_a_round_number() {
        let mut chart = chart();
        chart.bottom = 23.0;
        assert_eq!(chart.y_axis(), (20.0, 20.0, 120.0));
        chart.bottom = 60.0;
        assert_eq!(chart.y_axis(), (20.0, 60.0, 120.0));
        assert!(chart.svg().is_ok());
    }

    #[test]
    fn an_empty_chart_still_has_its_axes() {
        let svg = Chart {
            title: "RTT".into(),
            unit: "ms".into(),
            ..Chart::default()
        }
        .svg()
        .unwrap();
        assert!(svg.contains("RTT") && svg.contains(">\n0\n<"), "{svg}");
    }

    #[test]
    fn ten_thousand_points_do_not_make_a_huge_file() {
        let mut chart = chart();
        chart.series[0].points = (0..100_000)
            .map(|i| (f64::from(i) / 2_500.0, f64::from(i % 997)))
            .collect();
        assert!(chart.svg().unwrap().len() < 80_000);
    }

    #[rstest]
    #[case(0.0, 1.0)]
    #[case(0.9, 1.0)]
    #[case(1.1, 2.0)]
    #[case(22.0, 25.0)]
    #[case(30.0, 50.0)]
    #[case(0.03, 0.05)]
    fn grid_lines_lie_at_round_numbers(#[case] least: f64, #[case] step: f64) {
        assert!((nice_step(least) - step).abs() < 1e-9, "{}", nice_step(least));
    }

    #[rstest]
    #[case(2.5, 2.5, "2.5")]
    #[case(40.0, 10.0, "40")]
    #[case(0.05, 0.05, "0.05")]
    fn axis_numbers_have_the_decimals_they_need(#[case] value: f64, #[case] step: f64, #[case] text: &str) {
        assert_eq!(axis_number(value, step), text);
    }
}
