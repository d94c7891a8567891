//! [`ControllerComparison`]: a controller's live run beside its virtual runs.

use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Unit};
use crate::result::Row;
use crate::rounding::ratio;
use crate::statistics::Spread;

/// Largest relative difference of throughput between a live run and its virtual reference run.
const TOLERANCE: f64 = 0.05;

/// Condition under which a live run agrees with its virtual runs in a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It differs from the virtual reference run, which has the same seed, by at most `TOLERANCE`.
    Tolerance,
    /// It lies between the smallest and the largest of the virtual runs.
    Range,
    /// Always: the metric is only shown.
    Shown,
}

/// The compared metrics, in the order of the table.
pub const COMPARED: &[(&str, Rule)] = &[
    ("throughput_bps", Rule::Tolerance),
    ("frames_discarded", Rule::Range),
    ("underflow_events", Rule::Range),
    ("startup_delay_s", Rule::Shown),
    ("frozen_s", Rule::Shown),
    ("lost_packets", Rule::Shown),
    ("mean_queue_delay_s", Rule::Shown),
];

/// One metric of the live run and of the virtual runs, in the units of `docs/runs.md`; of several viewers the mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    /// Name of the metric.
    pub name: String,
    /// Value in the live run; `None` if it has none, such as the delay of a playback that never started.
    pub live: Option<f64>,
    /// Value in the virtual reference run, whose path makes the same random choices.
    #[serde(rename = "twin")]
    pub reference: Option<f64>,
    /// Mean over all virtual runs that have a value.
    pub virtual_mean: Option<f64>,
    /// Smallest value of the virtual runs.
    pub virtual_min: Option<f64>,
    /// Largest value of the virtual runs.
    pub virtual_max: Option<f64>,
    /// Condition of the agreement.
    pub rule: Rule,
    /// True if the live run meets the condition.
    pub agrees: bool,
}

impl MetricComparison {
    /// Compares the metric called `name`; `None` if no run has a value. `live` has the rows of one run,
    /// `virtual_runs` those of each virtual run, the reference run first.
    fn of(name: &str, rule: Rule, live: &[Row], virtual_runs: &[Vec<Row>]) -> Option<Self> {
        let metric = Metric::find(name)?;
        let live = metric.pooled(live);
        let reference = virtual_runs.first().and_then(|rows| metric.pooled(rows));
        let spread = Spread::of(virtual_runs.iter().filter_map(|rows| metric.pooled(rows)));
        if live.is_none() && spread.is_none() {
            return None;
        }
        Some(Self {
            name: name.to_owned(),
            live,
            reference,
            virtual_mean: spread.map(|spread| ratio(spread.mean)),
            virtual_min: spread.map(|spread| spread.min),
            virtual_max: spread.map(|spread| spread.max),
            rule,
            agrees: match rule {
                Rule::Shown => true,
                Rule::Tolerance => live
                    .zip(reference)
                    .is_some_and(|(live, reference)| (live - reference).abs() <= TOLERANCE * reference),
                Rule::Range => live
                    .zip(spread)
                    .is_some_and(|(live, spread)| (spread.min..=spread.max).contains(&live)),
            },
        })
    }

    /// Heading of the metric for people.
    fn label(&self) -> &'static str {
        Metric::find(&self.name).map_or("", |metric| metric.label)
    }

    /// Cells of the table: live, virtual reference run, difference, all virtual runs, verdict.
    fn cells(&self) -> [String; 5] {
        let unit = Metric::find(&self.name).map_or(Unit::Count, |metric| metric.unit);
        let text = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| unit.text(value));
        let spread = format!(
            "{} ({} to {})",
            text(self.virtual_mean),
            text(self.virtual_min),
            text(self.virtual_max)
        );
        let difference = match (self.live, self.reference) {
            (Some(live), Some(reference)) if self.rule == Rule::Tolerance && reference > 0.0 => {
                format!("{:+.1} %", (live / reference - 1.0) * 100.0)
            }
            (Some(live), Some(reference)) => unit.text(live - reference),
            _ => "–".to_owned(),
        };
        let verdict = match (self.rule, self.agrees) {
            (Rule::Shown, _) => String::new(),
            (Rule::Tolerance, true) => format!("agrees, within {:.0} %", TOLERANCE * 100.0),
            (Rule::Tolerance, false) => format!("DIFFERS by more than {:.0} %", TOLERANCE * 100.0),
            (Rule::Range, true) => "agrees, in the range".to_owned(),
            (Rule::Range, false) => "OUT OF RANGE".to_owned(),
        };
        [text(self.live), text(self.reference), difference, spread, verdict]
    }
}

/// Validity of one live attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Largest lateness of the relay in seconds.
    pub lateness_max_s: f64,
    /// Mean lateness of the relay over all packets in seconds.
    pub lateness_mean_s: f64,
    /// Reasons why the attempt is invalid; empty if it is valid.
    pub flaws: Vec<String>,
}

/// One controller, live and virtual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ControllerComparison {
    /// Canonical spec of the controller.
    pub controller: String,
    /// True if the live run agrees; `None` if no live attempt is valid.
    pub agrees: Option<bool>,
    /// Metrics that are compared.
    pub measures: Vec<MetricComparison>,
    /// The live attempts, the last being the one that is compared.
    pub attempts: Vec<Attempt>,
    /// Rows of the last live run, which have no wire hash.
    pub live: Vec<Row>,
    /// Rows of the virtual runs, run by run, the reference run first.
    #[serde(rename = "virtual")]
    pub virtual_runs: Vec<Row>,
}

impl ControllerComparison {
    /// Compares a controller's last live run with its virtual runs.
    pub(super) fn new(
        controller: String,
        attempts: Vec<Attempt>,
        live: Vec<Row>,
        virtual_runs: Vec<Vec<Row>>,
    ) -> Self {
        let measures: Vec<_> = COMPARED
            .iter()
            .filter_map(|(name, rule)| MetricComparison::of(name, *rule, &live, &virtual_runs))
            .collect();
        let valid = attempts.last().is_some_and(|last| last.flaws.is_empty());
        let broken = live.iter().any(|row| row.error.is_some());
        Self {
            controller,
            agrees: valid.then(|| !broken && measures.iter().all(|measured| measured.agrees)),
            measures,
            attempts,
            live,
            virtual_runs: virtual_runs.into_iter().flatten().collect(),
        }
    }

    /// Label and cells of each line of the table; without verdicts if the live run is invalid.
    pub(super) fn lines(&self) -> impl Iterator<Item = (&'static str, [String; 5])> {
        self.measures.iter().map(|measured| {
            let mut cells = measured.cells();
            if self.agrees.is_none() && measured.rule != Rule::Shown {
                "invalid run".clone_into(&mut cells[4]);
            }
            (measured.label(), cells)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::row;

    fn rows(throughput: u64, discarded: u64) -> Vec<Row> {
        let mut row = row("reno", 1);
        row.throughput_bps = Some(throughput);
        row.playback.frames_discarded = discarded;
        vec![row]
    }

    fn compare(live: Vec<Row>) -> ControllerComparison {
        after(&[], live)
    }

    /// The comparison of a live run with these flaws.
    fn after(flaws: &[&str], live: Vec<Row>) -> ControllerComparison {
        let virtual_runs = vec![rows(1_000_000, 3), rows(1_300_000, 9)];
        let attempt = Attempt {
            lateness_max_s: 0.001,
            lateness_mean_s: 0.0,
            flaws: flaws.iter().map(ToString::to_string).collect(),
        };
        ControllerComparison::new("reno".to_owned(), vec![attempt], live, virtual_runs)
    }

    fn agrees(live: Vec<Row>, name: &str) -> bool {
        let compared = compare(live);
        let measured = compared.measures.iter().find(|measured| measured.name == name);
        measured.unwrap().agrees
    }

    #[test]
    fn throughput_may_differ_by_five_percent_from_the_reference_run_whatever_other_seeds_give() {
        for (bps, fits) in [
            (951_000, true),
            (1_050_000, true),
            (949_000, false),
            (1_051_000, false),
        ] {
            assert_eq!(agrees(rows(bps, 5), "throughput_bps"), fits, "{bps}");
        }
    }

    #[test]
    fn discards_must_be_in_the_range_of_the_virtual_runs() {
        for (discarded, fits) in [(2, false), (3, true), (9, true), (10, false)] {
            assert_eq!(agrees(rows(1_000_000, discarded), "frames_discarded"), fits);
        }
        assert_eq!(compare(rows(1_000_000, 5)).agrees, Some(true));
        assert_eq!(compare(rows(1_000_000, 10)).agrees, Some(false));
    }

    #[test]
    fn a_session_that_broke_off_agrees_with_nothing() {
        let mut broken = rows(1_000_000, 5);
        broken[0].error = Some("the server fell silent".to_owned());
        assert_eq!(compare(broken).agrees, Some(false));
    }

    #[test]
    fn an_invalid_live_run_is_shown_without_a_verdict() {
        for discarded in [5, 10] {
            let compared = after(&["6 ms late"], rows(1_000_000, discarded));
            assert_eq!(compared.agrees, None);
            let verdicts: Vec<_> = compared.lines().map(|(_, cells)| cells.last().cloned()).collect();
            assert_eq!(verdicts.first(), Some(&Some("invalid run".to_owned())));
            assert!(
                verdicts
                    .iter()
                    .flatten()
                    .all(|verdict| !verdict.contains("agrees"))
            );
        }
    }

    #[test]
    fn every_compared_metric_is_one() {
        let compared = compare(rows(1_000_000, 5));
        assert_eq!(compared.measures.len(), COMPARED.len());
        assert!(
            compared
                .measures
                .iter()
                .all(|measured| !measured.label().is_empty())
        );
    }
}
