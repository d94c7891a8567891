//! `lab matrix --search`: candidates for the parameters of a controller, drawn from ranges.
//!
//! Values are log-uniform, by the Latin hypercube of the generated paths, and have two significant digits, so that a
//! spec can be typed. A candidate depends on the seed and its number alone: a longer search begins with the shorter.

use std::fmt::Write as _;
use std::time::Duration;

use comfy_table::{CellAlignment, presets};
use playrate_cc::registry::Key;
use playrate_cc::{ControllerSpec, SpecError};
use playrate_netsim::Seed;
use playrate_transport::ControllerChoice;
use playrate_units::{Bytes, duration};

use super::regret;
use super::score::Matrix;
use crate::scenario::generated::Point;
use crate::words;

/// A controller and ranges of its arguments: `video(pace=2..6,queue=2ms..10ms)`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SearchSpace {
    /// The controller without the ranges.
    base: ControllerSpec,
    ranges: Vec<ArgumentRange>,
}

/// The range of an argument: `queue=2ms..10ms`.
#[derive(Clone, Debug, PartialEq)]
struct ArgumentRange {
    name: String,
    quantity: Quantity,
    /// Ends in the smallest unit of the quantity.
    low: f64,
    high: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantity {
    Number,
    Time,
    Size,
}

impl Quantity {
    /// Reads a value in the smallest unit. A percentage is a number.
    fn read(text: &str) -> Option<(Self, f64)> {
        let text = text.trim();
        let number = |text: &str| text.parse().ok().filter(|number: &f64| number.is_finite());
        if let Some(share) = text.strip_suffix('%') {
            return Some((Self::Number, number(share)? / 100.0));
        }
        let time = || Some((Self::Time, duration::parse(text).ok()?.as_nanos() as f64));
        let size = || Some((Self::Size, text.parse::<Bytes>().ok()?.as_u64() as f64));
        let plain = number(text).map(|number| (Self::Number, number));
        plain.or_else(time).or_else(size)
    }

    /// A value as specs have it.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between ends that were whole numbers"
    )]
    fn show(self, value: f64) -> String {
        match self {
            Self::Number => value.to_string(),
            Self::Time => duration::display(Duration::from_nanos(value as u64)).to_string(),
            Self::Size => Bytes::new(value as u64).to_string(),
        }
    }
}

impl ArgumentRange {
    fn read(text: &str) -> Result<Self, String> {
        let wrong = |expected: &str| format!("invalid range `{}`: {expected}", text.trim());
        let form = || wrong("expected NAME=LOW..HIGH, such as pace=2..6 or queue=2ms..10ms");
        let (name, ends) = text.split_once('=').ok_or_else(form)?;
        let (low, high) = ends.split_once("..").ok_or_else(form)?;
        let ends = Quantity::read(low).zip(Quantity::read(high));
        let ((quantity, low), (quantity_of_high, high)) = ends.ok_or_else(form)?;
        if quantity != quantity_of_high {
            return Err(wrong("both ends need units of one kind, such as 2ms..10ms"));
        }
        if low <= 0.0 || high <= low {
            return Err(wrong("LOW must be above 0 and below HIGH"));
        }
        Ok(Self {
            name: name.trim().to_owned(),
            quantity,
            low,
            high,
        })
    }

    /// The value at `place` from 0 to 1, of two significant digits unless that is outside of the range.
    fn at(&self, place: f64) -> String {
        let value = self.low * (self.high / self.low).powf(place);
        let rounded = format!("{value:.1e}").parse().unwrap_or(value);
        self.quantity.show(f64::clamp(rounded, self.low, self.high))
    }
}

impl SearchSpace {
    /// Reads a controller with ranges; both ends of each must be valid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (mut rest, mut ranges) = (String::new(), Vec::<ArgumentRange>::new());
        for (index, piece) in text.split('(').enumerate() {
            let (inside, after) = match piece.split_once(')') {
                Some((inside, after)) if index > 0 => (inside, after),
                _ => ("", piece),
            };
            let (found, fixed): (Vec<&str>, Vec<&str>) =
                inside.split(',').partition(|one| one.contains(".."));
            for one in found {
                let range = ArgumentRange::read(one)?;
                if ranges.iter().any(|known| known.name == range.name) {
                    return Err(format!("duplicate range of `{}`", range.name));
                }
                ranges.push(range);
            }
            // Writing to a String cannot fail.
            let _ = match fixed.join(",") {
                fixed if fixed.is_empty() => write!(rest, "{after}"),
                fixed => write!(rest, "({fixed}){after}"),
            };
        }
        if ranges.is_empty() {
            return Err(format!(
                "`{text}` has no range: write one as in video(pace=2..6,queue=2ms..10ms)"
            ));
        }
        let base = rest.parse().map_err(|error: SpecError| error.to_string())?;
        let space = Self { base, ranges };
        for end in [0.0, 1.0] {
            space.at(|_| end).map_err(|error| error.to_string())?;
        }
        Ok(space)
    }

    /// The controller with each argument at its place from 0 to 1.
    fn at(&self, place: impl Fn(&str) -> f64) -> Result<ControllerSpec, SpecError> {
        let mut ranges = self.ranges.iter();
        ranges.try_fold(self.base.clone(), |spec, range| {
            spec.with_argument(&range.name, &range.at(place(&range.name)))
        })
    }

    /// The controller without the ranges, then `count` candidates.
    ///
    /// # Errors
    /// If a value between the ends of its range is not valid.
    pub(super) fn candidates(&self, seed: u64, count: u32) -> Result<Vec<ControllerChoice>, SpecError> {
        let seed = Seed::new(seed).child("candidates");
        let drawn = (1..=count).map(|number| {
            // Points of odd numbers are one sample.
            let point = Point::new(seed, number.saturating_mul(2).saturating_sub(1));
            self.at(|name| point.at(name))
        });
        let all = [Ok(self.base.clone())].into_iter().chain(drawn);
        all.map(|spec| spec.map(ControllerChoice::Spec)).collect()
    }

    /// The table of a search: all controllers by mean rank, with the values of the searched parameters.
    pub(super) fn text(&self, matrix: &Matrix) -> String {
        let regrets = regret::of(matrix);
        let mut table = words::table(presets::NOTHING);
        let names = self.ranges.iter().map(|range| range.name.as_str());
        table.set_header(
            ["rank", "regret", "worst", "lost", "delay"]
                .into_iter()
                .chain(names)
                .chain([""]),
        );
        let none = || "–".to_owned();
        for standing in &matrix.standings {
            let regret = regrets.iter().find(|one| one.controller == standing.spec);
            let of = |show: fn(&regret::Regret) -> Option<String>| regret.and_then(show).unwrap_or_else(none);
            let spec = standing.spec.parse::<ControllerSpec>().ok();
            let spec = spec.filter(|spec| spec.algorithm().name() == self.base.algorithm().name());
            let value = |range: &ArgumentRange| value(spec.as_ref()?, &range.name);
            let remark = match &spec {
                Some(spec) if *spec == self.base => "default",
                Some(_) => "",
                None => &standing.name,
            };
            let first = [
                standing.mean_rank.map_or_else(none, |rank| format!("{rank:.1}")),
                of(|one| Some(percent(one.mean))),
                of(|one| Some(percent(one.worst.as_ref()?.0))),
                of(|one| Some(percent(one.lost))),
                of(|one| Some(format!("{:.0}", one.queueing_s? * 1e3))),
            ];
            let values = self.ranges.iter().map(|range| value(range).unwrap_or_else(none));
            table.add_row(first.into_iter().chain(values).chain([remark.to_owned()]));
        }
        for column in table.column_iter_mut() {
            column.set_padding((1, 0));
            column.set_cell_alignment(CellAlignment::Right);
        }
        let is_candidate = |spec: &str| {
            let spec = spec.parse::<ControllerSpec>();
            spec.is_ok_and(|spec| spec.algorithm().name() == self.base.algorithm().name())
        };
        let best = matrix.standings.iter().find(|one| is_candidate(&one.spec));
        let best = best.map_or("none", |best| &best.spec);
        let places = matrix.places.len();
        format!(
            "{places} scenarios and cases; where the title fits: regret, worst and lost in %,\n\
             queueing delay in ms\n\n{table}\n\nBest: {best}\n"
        )
    }
}

fn percent(share: f64) -> String {
    format!("{:.2}", share.max(0.0) * 100.0)
}

/// The value of the parameter `name`: the algorithm's, or that of the first component that has it.
fn value(spec: &ControllerSpec, name: &str) -> Option<String> {
    let components = Key::ALL.into_iter().filter_map(|key| spec.component(key));
    let mut all = [spec.algorithm_arguments()]
        .into_iter()
        .chain(components.map(|(_, arguments)| arguments));
    all.find_map(|arguments| arguments.value(name))
        .map(|value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::generated::BLOCK;

    const VIDEO: &str = "video(pace=2..6,queue=2ms..10ms,patience=5s..40s,loss=0.5%..5%)";

    fn specs(text: &str, seed: u64, count: u32) -> Vec<String> {
        let candidates = SearchSpace::parse(text).unwrap().candidates(seed, count).unwrap();
        candidates.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_seed_draws_the_same_candidates_and_a_longer_search_begins_with_the_shorter_one() {
        let all = specs(VIDEO, 1, BLOCK);
        assert_eq!(all.len(), 25);
        assert_eq!(all[0], "video");
        assert_eq!(all[..9], specs(VIDEO, 1, 8));
        assert_ne!(all[1..], specs(VIDEO, 2, BLOCK)[1..]);
    }

    #[test]
    fn every_candidate_is_a_spec_that_can_be_typed_within_its_ranges() {
        for text in specs(VIDEO, 3, BLOCK).iter().skip(1) {
            let spec: ControllerSpec = text.parse().unwrap();
            assert!(
                text.len() <= "video(pace=2.2,patience=5.5s,queue=2.2ms,loss=0.0056)".len(),
                "{text}"
            );
            let arguments = spec.algorithm_arguments();
            assert!((2.0..=6.0).contains(&arguments.number("pace")), "{text}");
            assert!((0.005..=0.05).contains(&arguments.number("loss")), "{text}");
            let queue = arguments.time("queue");
            assert!(
                queue >= Duration::from_millis(2) && queue <= Duration::from_millis(10),
                "{text}"
            );
        }
    }

    #[test]
    fn half_of_the_candidates_lie_below_the_geometric_mean() {
        let values = specs("video(queue=1ms..100ms)", 1, BLOCK);
        let queues = values.iter().skip(1).map(|text| {
            let spec: ControllerSpec = text.parse().unwrap();
            spec.algorithm_arguments().time("queue")
        });
        assert_eq!(
            queues.filter(|queue| *queue < Duration::from_millis(10)).count(),
            12
        );
    }

    #[test]
    fn other_arguments_and_components_stay() {
        let all = specs("cubic(growth=ratelimited)+ceiling=pace(start=1.5..3)", 1, 3);
        let base = "cubic(growth=ratelimited)+ceiling=pace";
        assert_eq!(all[0], base);
        assert!(all[1].starts_with(&format!("{base}(start=")), "{all:?}");
    }

    #[test]
    fn an_invalid_range_is_reported_with_its_correction() {
        for (text, correction) in [
            ("video", "has no range"),
            ("video(2..6)", "NAME=LOW..HIGH"),
            ("video(pace=2..)", "NAME=LOW..HIGH"),
            ("video(pace=6..2)", "LOW must be above 0 and below HIGH"),
            ("video(queue=0ms..2ms)", "LOW must be above 0 and below HIGH"),
            ("video(queue=2..10ms)", "units of one kind"),
            ("video(pace=2..6,pace=3..4)", "duplicate range of `pace`"),
            ("video(fast=2..6)", "pace"),
            ("video(loss=1%..80%)", "from 0 to 0.5"),
            ("vidio(pace=2..6)", "video"),
            ("quinn-cubic(x=1..2)", "quinn-cubic"),
        ] {
            let error = SearchSpace::parse(text).unwrap_err();
            assert!(error.contains(correction), "{text}: {error}");
        }
    }
}
