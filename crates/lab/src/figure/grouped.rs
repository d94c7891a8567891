//! One quantity over cases: bars in groups, or points joined by lines, with a colour for each controller.

use super::axis::Axis;
use super::canvas::text_width;
use super::legend::{self, Entry};
use super::pen::{AXIS, Anchor, FAINT, GRID, INK, Pen, Stroke, Type};
use super::{Style, WIDTH_PX};
use crate::statistics::Spread;

/// A quantity over cases.
#[derive(Clone, Debug, Default)]
pub struct Grouped {
    /// What is shown.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// What the cases are.
    pub cases_are: String,
    /// The cases, from the left.
    pub cases: Vec<String>,
    /// The controllers.
    pub series: Vec<GroupedSeries>,
    /// Whether points joined by lines are drawn instead of bars.
    pub joined: bool,
    /// Whether the values' axis is logarithmic. Zeros are then left out.
    pub log: bool,
}

/// One controller's values.
#[derive(Clone, Debug)]
pub struct GroupedSeries {
    /// Its name.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// For each case the value of every trial.
    pub trials: Vec<Vec<f64>>,
}

const TOP: f64 = 34.0;
const PLOT: f64 = 220.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 14.0;

impl Grouped {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let width = WIDTH_PX - LEFT - RIGHT;
        let entries: Vec<Entry> = self
            .series
            .iter()
            .map(|series| {
                let entry = if self.joined { Entry::Line } else { Entry::Block };
                entry(series.name.clone(), series.style)
            })
            .collect();
        let slot = width / self.cases.len().max(1) as f64;
        let turned = self.cases.iter().any(|case| text_width(case, 11.5) > slot - 6.0);
        let names = if turned {
            let widest = self
                .cases
                .iter()
                .map(|case| text_width(case, 11.0))
                .fold(0.0, f64::max);
            widest * 0.62 + 16.0
        } else {
            20.0
        };
        let below = names + if self.cases_are.is_empty() { 4.0 } else { 20.0 };
        let height = TOP + PLOT + below + legend::height(&entries, width) + 8.0;
        let label = format!("{} ({}) over {}", self.title, self.unit, self.cases_are);
        let mut pen = Pen::new(WIDTH_PX, height, &label);
        pen.heading(&self.title, &self.unit);
        let axis = self.axis();
        for (value, text) in axis.ticks() {
            let y = TOP + PLOT * (1.0 - axis.place(value));
            pen.line((LEFT, y), (LEFT + width, y), Stroke::solid(GRID, 1.0));
            pen.text((LEFT - 7.0, y), Type::new(11.0, FAINT, Anchor::End), &text);
        }
        pen.line(
            (LEFT, TOP + PLOT),
            (LEFT + width, TOP + PLOT),
            Stroke::solid(AXIS, 1.0),
        );
        for (index, case) in self.cases.iter().enumerate() {
            let x = LEFT + slot * (index as f64 + 0.5);
            let y = TOP + PLOT + 13.0;
            if turned {
                pen.turned((x, y - 4.0), -38.0, Type::new(11.0, INK, Anchor::End), case);
            } else {
                pen.text((x, y), Type::new(11.5, INK, Anchor::Middle), case);
            }
        }
        if !self.cases_are.is_empty() {
            let at = (LEFT + width / 2.0, TOP + PLOT + names + 6.0);
            pen.text(at, Type::new(11.0, FAINT, Anchor::Middle), &self.cases_are);
        }
        if self.joined {
            self.lines(&mut pen, &axis, slot);
        } else {
            self.bars(&mut pen, &axis, slot);
        }
        legend::draw(&mut pen, &entries, (LEFT, TOP + PLOT + below), width);
        pen.finish()
    }

    fn spreads(&self) -> impl Iterator<Item = Spread> {
        let trials = self.series.iter().flat_map(|series| &series.trials);
        trials.filter_map(|trials| Spread::of(trials.iter().copied().filter(|value| value.is_finite())))
    }

    fn axis(&self) -> Axis {
        if self.log {
            let least = self
                .spreads()
                .map(|spread| spread.mean)
                .filter(|mean| *mean > 0.0)
                .fold(f64::INFINITY, f64::min);
            let most = self.spreads().map(|spread| spread.max).fold(0.0, f64::max);
            return Axis::log(if least.is_finite() { least * 0.8 } else { 0.1 }, most.max(1e-9));
        }
        let most = self
            .spreads()
            .map(|s| s.max.max(s.mean + s.sd))
            .fold(0.0, f64::max);
        let least = self.spreads().map(|s| s.min).fold(0.0, f64::min);
        Axis::linear(least, most, 5.0)
    }

    fn bars(&self, pen: &mut Pen, axis: &Axis, slot: f64) {
        let count = self.series.len().max(1) as f64;
        let wide = (slot * 0.82 / count).min(46.0);
        let place = |value: f64| TOP + PLOT * (1.0 - axis.place(value));
        let base = if self.log { TOP + PLOT } else { place(0.0) };
        for (number, series) in self.series.iter().enumerate() {
            for (case, trials) in series.trials.iter().enumerate() {
                let Some(spread) = Spread::of(trials.iter().copied().filter(|value| value.is_finite()))
                else {
                    continue;
                };
                if self.log && spread.mean <= 0.0 {
                    continue;
                }
                let middle = LEFT + slot * (case as f64 + 0.5) + wide * (number as f64 - (count - 1.0) / 2.0);
                let end = place(spread.mean);
                let at = (middle - wide * 0.42, end.min(base));
                legend::block(pen, at, (wide * 0.84, (base - end).abs().max(0.7)), series.style);
                whiskers(pen, middle, spread, place, self.log);
                // Dots of single trials, where there is room for them.
                if wide >= 14.0 && spread.max > spread.min {
                    for &value in trials.iter().filter(|value| !self.log || **value > 0.0) {
                        pen.dot((middle + wide * 0.24, place(value)), 1.4, INK, 0.55);
                    }
                }
            }
        }
    }

    fn lines(&self, pen: &mut Pen, axis: &Axis, slot: f64) {
        let count = self.series.len().max(1) as f64;
        let place = |value: f64| TOP + PLOT * (1.0 - axis.place(value));
        for (number, series) in self.series.iter().enumerate() {
            // Side by side, so that one's whiskers do not hide another's.
            let aside = (number as f64 - (count - 1.0) / 2.0) * (slot * 0.3 / count).min(9.0);
            let mut points = Vec::new();
            for (case, trials) in series.trials.iter().enumerate() {
                let Some(spread) = Spread::of(trials.iter().copied().filter(|value| value.is_finite()))
                else {
                    continue;
                };
                let x = LEFT + slot * (case as f64 + 0.5) + aside;
                whiskers(pen, x, spread, place, self.log);
                points.push((x, place(spread.mean)));
            }
            let stroke = Stroke::dashed(series.style.colour, 2.0, series.style.dashes());
            pen.path(points.iter().copied(), stroke);
            for point in points {
                pen.dot(point, 3.6, series.style.colour, 1.0);
            }
        }
    }
}

/// Smallest to largest thin, one standard deviation thick.
fn whiskers(pen: &mut Pen, x: f64, spread: Spread, place: impl Fn(f64) -> f64, log: bool) {
    if spread.max <= spread.min {
        return;
    }
    let (low, high) = (place(spread.min), place(spread.max));
    pen.line((x, low), (x, high), Stroke::solid(INK, 0.9));
    for y in [low, high] {
        pen.line((x - 3.0, y), (x + 3.0, y), Stroke::solid(INK, 0.9));
    }
    let least = spread.mean - spread.sd;
    let least = if log { least.max(spread.min) } else { least };
    pen.line(
        (x, place(least)),
        (x, place(spread.mean + spread.sd)),
        Stroke::solid(INK, 2.4),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::styles;

    fn grouped(joined: bool, log: bool) -> Grouped {
        let names = ["reno", "stream"];
        let series = names
            .iter()
            .zip(styles(&names))
            .map(|(name, style)| GroupedSeries {
                name: (*name).to_owned(),
                style,
                trials: vec![vec![1.0, 2.0, 3.0], vec![0.0], vec![400.0, 500.0]],
            });
        Grouped {
            title: "Throughput".into(),
            unit: "Mbit/s".into(),
            cases_are: "bulk flows".into(),
            cases: vec!["0".into(), "5".into(), "10".into()],
            series: series.collect(),
            joined,
            log,
        }
    }

    #[test]
    fn axes_have_units_and_every_controller_stands_in_the_legend() {
        for figure in [grouped(false, false), grouped(true, false), grouped(false, true)] {
            let svg = figure.svg();
            for words in [
                "Throughput",
                "Mbit/s",
                "bulk flows",
                ">reno<",
                ">stream<",
                ">10<",
                "#0072B2",
                "#222222",
            ] {
                assert!(svg.contains(words), "{words} is missing in {svg}");
            }
            assert_eq!(svg, figure.svg());
        }
    }

    #[test]
    fn joined_points_are_one_line_for_each_controller() {
        assert_eq!(grouped(true, false).svg().matches("<path").count(), 2);
        assert_eq!(grouped(false, false).svg().matches("<path").count(), 0);
    }

    #[test]
    fn a_logarithmic_axis_leaves_zeros_out() {
        let blocks = |svg: &str| svg.matches("fill=\"#0072B2\" opacity").count();
        let (linear, log) = (grouped(false, false).svg(), grouped(false, true).svg());
        assert_eq!(blocks(&linear), blocks(&log) + 1);
        assert!(log.contains(">100<") && log.contains(">1,000<"), "{log}");
    }

    #[test]
    fn names_that_do_not_fit_are_turned() {
        let mut wide = grouped(false, false);
        wide.cases = (0..30).map(|i| format!("145 Mbit/s, {i} clients")).collect();
        assert_eq!(wide.svg().matches("rotate(-38").count(), 30);
        assert!(!grouped(false, false).svg().contains("rotate"));
    }
}
