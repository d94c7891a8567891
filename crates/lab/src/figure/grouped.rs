//! One quantity over cases: bars in groups, or points joined by lines, with a colour for each controller.

use super::legend::{self, Entry};
use super::{Band, Style, WIDTH_PX, band, spread, whiskers};
use crate::statistics::Spread;
use crate::svg::{AXIS, Anchor, Axis, FAINT, GRID, INK, Label, Stroke, SvgWriter, widest};

/// A quantity over cases.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grouped {
    pub(crate) title: String,
    /// Unit of the values.
    pub(crate) unit: String,
    /// Name of the cases' axis.
    pub(crate) cases_name: String,
    /// The cases, from the left.
    pub(crate) cases: Vec<String>,
    pub(crate) series: Vec<GroupedSeries>,
    /// Draws points joined by lines instead of bars.
    pub(crate) joined: bool,
    /// Draws a logarithmic axis of values, without zeros.
    pub(crate) log: bool,
}

/// The values of one controller.
#[derive(Clone, Debug)]
pub(crate) struct GroupedSeries {
    pub(crate) name: String,
    pub(crate) style: Style,
    /// For each case the values of its trials.
    pub(crate) trials: Vec<Vec<f64>>,
    /// Ranges of values behind the bars or points, with the number of the case of each.
    pub(crate) bands: Vec<(usize, Band)>,
}

const TOP: f64 = 34.0;
const PLOT: f64 = 220.0;
const BASE: f64 = TOP + PLOT;
const LEFT: f64 = 66.0;
const WIDTH: f64 = WIDTH_PX - LEFT - 14.0;

impl Grouped {
    pub(crate) fn svg(&self) -> String {
        let mut entries: Vec<Entry> = self
            .series
            .iter()
            .map(|series| {
                let entry = if self.joined { Entry::Line } else { Entry::Block };
                entry(series.name.clone(), series.style)
            })
            .collect();
        entries.extend(band::entries(self.bands().map(|(_, band)| band)));
        let cases = || self.cases.iter().map(String::as_str);
        let turned = widest(cases(), 11.5, 0.0) > self.slot() - 6.0;
        let names = if turned {
            widest(cases(), 11.0, 0.0) * 0.62 + 16.0
        } else {
            20.0
        };
        let below = names + if self.cases_name.is_empty() { 4.0 } else { 20.0 };
        let height = BASE + below + legend::height(&entries, WIDTH) + 8.0;
        let label = format!("{} ({}) over {}", self.title, self.unit, self.cases_name);
        let mut svg = SvgWriter::new((WIDTH_PX, height), &label);
        svg.heading(&self.title, &self.unit);
        let axis = self.axis();
        for (value, text) in axis.ticks() {
            let y = BASE - PLOT * axis.place(value);
            svg.line((LEFT, y), (LEFT + WIDTH, y), Stroke::solid(GRID, 1.0));
            svg.text((LEFT - 7.0, y), Label::new(11.0, FAINT, Anchor::End), &text);
        }
        svg.line((LEFT, BASE), (LEFT + WIDTH, BASE), Stroke::solid(AXIS, 1.0));
        for (index, case) in self.cases.iter().enumerate() {
            let x = self.middle(index);
            if turned {
                let label = Label::new(11.0, INK, Anchor::End).rotated(-38.0);
                svg.text((x, BASE + 9.0), label, case);
            } else {
                svg.text((x, BASE + 13.0), Label::new(11.5, INK, Anchor::Middle), case);
            }
        }
        if !self.cases_name.is_empty() {
            let at = (LEFT + WIDTH / 2.0, BASE + names + 6.0);
            svg.text(at, Label::new(11.0, FAINT, Anchor::Middle), &self.cases_name);
        }
        self.shade_bands(&mut svg, &axis, (&entries, false));
        for number in 0..self.series.len() {
            if self.joined {
                self.line(&mut svg, &axis, number);
            } else {
                self.bars(&mut svg, &axis, number);
            }
        }
        // Bars would hide lines behind them.
        self.shade_bands(&mut svg, &axis, (&entries, true));
        legend::draw(&mut svg, &entries, (LEFT, BASE + below), WIDTH);
        svg.finish()
    }

    /// Width of one case.
    fn slot(&self) -> f64 {
        WIDTH / self.cases.len().max(1) as f64
    }

    fn middle(&self, case: usize) -> f64 {
        LEFT + self.slot() * (case as f64 + 0.5)
    }

    fn axis(&self) -> Axis {
        let trials = || self.series.iter().flat_map(|series| &series.trials);
        let spreads = || trials().filter_map(|trials| spread(trials));
        if self.log {
            let means = spreads().map(|s| s.mean).filter(|mean| *mean > 0.0);
            let least = means.fold(f64::INFINITY, f64::min);
            let most = spreads().map(|s| s.max).fold(0.0, f64::max);
            return Axis::log(if least.is_finite() { least * 0.8 } else { 0.1 }, most.max(1e-9));
        }
        let most = spreads().map(|s| s.max.max(s.mean + s.sd)).fold(0.0, f64::max);
        let least = spreads().map(|s| s.min).fold(0.0, f64::min);
        let ends = self.bands().flat_map(|(_, band)| band.ends());
        Axis::linear(least, ends.fold(most, f64::max), 5.0)
    }

    fn bands(&self) -> impl Iterator<Item = &(usize, Band)> {
        self.series.iter().flat_map(|series| &series.bands)
    }

    /// Distance of the controllers within a case.
    fn spacing(&self) -> f64 {
        let count = self.series.len().max(1) as f64;
        if self.joined {
            (self.slot() * 0.3 / count).min(9.0)
        } else {
            (self.slot() * 0.82 / count).min(46.0)
        }
    }

    /// Shades the bands, those that are `lines` or the others.
    fn shade_bands(&self, svg: &mut SvgWriter, axis: &Axis, (entries, lines): (&[Entry], bool)) {
        let wide = self.spacing();
        for (number, series) in self.series.iter().enumerate() {
            for (case, band) in series.bands.iter().filter(|(_, band)| band.is_line() == lines) {
                let middle = self.middle(*case) + self.aside(number, wide);
                let place = |value: f64| BASE - PLOT * axis.place(value);
                let half = (wide / 2.0).max(4.0);
                let corners = ((middle - half, place(band.y.0)), (middle + half, place(band.y.1)));
                band::shade(svg, corners, band.number(entries));
            }
        }
    }

    /// Case, spread and trials of a controller, wherever it has trials.
    fn measured(&self, number: usize) -> impl Iterator<Item = (usize, Spread, &[f64])> {
        let cases = self.series[number].trials.iter().enumerate();
        cases.filter_map(|(case, trials)| Some((case, spread(trials)?, trials.as_slice())))
    }

    /// Position of the controller `number` from the middle of a case, if each takes `width`.
    fn aside(&self, number: usize, width: f64) -> f64 {
        width * (number as f64 - (self.series.len() as f64 - 1.0) / 2.0)
    }

    fn whiskers(&self, svg: &mut SvgWriter, x: f64, (axis, spread): (&Axis, Spread)) {
        let least = if self.log { spread.min } else { f64::NEG_INFINITY };
        whiskers(svg, spread, (3.0, 0.0), |value| {
            (x, BASE - PLOT * axis.place(value.max(least)))
        });
    }

    fn bars(&self, svg: &mut SvgWriter, axis: &Axis, number: usize) {
        let wide = self.spacing();
        let place = |value: f64| BASE - PLOT * axis.place(value);
        let base = if self.log { BASE } else { place(0.0) };
        for (case, spread, trials) in self.measured(number) {
            if self.log && spread.mean <= 0.0 {
                continue;
            }
            let middle = self.middle(case) + self.aside(number, wide);
            let end = place(spread.mean);
            let size = (wide * 0.84, (base - end).abs().max(0.7));
            let at = (middle - wide * 0.42, end.min(base));
            legend::block(svg, at, size, self.series[number].style);
            self.whiskers(svg, middle, (axis, spread));
            // Dots of single trials, if there is room for them.
            if wide >= 14.0 && spread.max > spread.min {
                for &value in trials.iter().filter(|value| !self.log || **value > 0.0) {
                    svg.dot((middle + wide * 0.24, place(value)), 1.4, INK.with_opacity(0.55));
                }
            }
        }
    }

    fn line(&self, svg: &mut SvgWriter, axis: &Axis, number: usize) {
        let style = self.series[number].style;
        // Side by side, so that whiskers of controllers do not hide each other.
        let aside = self.aside(number, self.spacing());
        let mut points = Vec::new();
        for (case, spread, _) in self.measured(number) {
            let x = self.middle(case) + aside;
            self.whiskers(svg, x, (axis, spread));
            points.push((x, BASE - PLOT * axis.place(spread.mean)));
        }
        svg.path(points.iter().copied(), style.stroke(2.0));
        for point in points {
            svg.dot(point, 3.6, style.colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::styles;
    use crate::samples::assert_has;

    fn grouped(joined: bool, log: bool) -> Grouped {
        let names = ["reno", "stream"];
        let series = names
            .iter()
            .zip(styles(&names))
            .map(|(name, style)| GroupedSeries {
                name: (*name).to_owned(),
                style,
                trials: vec![vec![1.0, 2.0, 3.0], vec![0.0], vec![400.0, 500.0]],
                bands: Vec::new(),
            });
        Grouped {
            title: "Throughput".into(),
            unit: "Mbit/s".into(),
            cases_name: "bulk flows".into(),
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
            assert_has(
                &svg,
                "Throughput|Mbit/s|bulk flows|>reno<|>stream<|>10<|#0072B2|#D55E00",
            );
            assert_eq!(svg, figure.svg());
        }
    }

    #[test]
    fn a_band_stands_at_its_case_and_controller_and_is_within_the_axis() {
        for joined in [false, true] {
            let mut figure = grouped(joined, false);
            let says = "5% in the 5 client case".to_owned();
            let (x, y) = ((f64::NEG_INFINITY, f64::INFINITY), (600.0, 900.0));
            figure.series[1].bands = vec![(1, Band { x, y, says })];
            let svg = figure.svg();
            assert_has(&svg, "paper: 5% in the 5 client case|>1000<");
            assert_eq!(
                svg.matches("opacity=\"0.18\"").count(),
                2,
                "the band and the legend"
            );
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
