//! [`ControllerComparison`]: a controller's live run compared with its virtual runs.

use playrate_netsim::{RelayFlaw, RelayReport};
use serde::{Deserialize, Serialize};

use crate::controllers::short_name;
use crate::metric::{Metric, Unit};
use crate::result::Row;
use crate::rounding::ratio;
use crate::statistics::Spread;

/// Maximum relative difference in throughput between a live run and its virtual reference run, and the tolerance at
/// both ends of the range in [`SeedsVerdict`].
const TOLERANCE: f64 = 0.05;

/// The metrics of [`SeedsVerdict`], with true if the tolerance is relative. The impaired share is already a
/// ratio of two times.
const VERDICT: [(&str, bool); 2] = [("throughput_bps", true), ("impaired_share", false)];

/// Condition under which a live run agrees with its virtual runs in a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It differs from the virtual reference run, which has the same seed, by at most `TOLERANCE`.
    Tolerance,
    /// It is between the smallest and the largest value of the virtual runs.
    Range,
    /// Always agrees: the metric is only shown.
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
    ("impaired_share", Rule::Shown),
];

/// One metric of the live run and of the virtual runs, in the units of `docs/runs.md`; the mean if there are several
/// viewers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MetricComparison {
    /// Name of the metric.
    pub name: String,
    /// Value in the live run; `None` if it has none, such as the start-up delay of a playback that never started.
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
    /// Compares the metric called `name`; `None` if no run has a value. `live` contains the rows of one run,
    /// `virtual_runs` those of each virtual run, with the reference run first.
    pub(crate) fn of(name: &str, rule: Rule, live: &[Row], virtual_runs: &[Vec<Row>]) -> Option<Self> {
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

    /// The smallest and the largest value of the virtual runs with the tolerance. A tolerance that is not `relative`
    /// applies to a share.
    fn tolerated(&self, relative: bool) -> Option<[f64; 2]> {
        let (min, max) = self.virtual_min.zip(self.virtual_max)?;
        Some(if relative {
            [min * (1.0 - TOLERANCE), max * (1.0 + TOLERANCE)]
        } else {
            [(min - TOLERANCE).max(0.0), (max + TOLERANCE).min(1.0)]
        })
    }

    /// A value of this metric for people.
    fn text(&self, value: Option<f64>) -> String {
        let unit = Metric::find(&self.name).map_or(Unit::Count, |metric| metric.unit);
        value.map_or_else(|| "none".to_owned(), |value| unit.text(value))
    }

    /// The mean of the virtual runs with their range: `30.0 s (23.5 s to 45.6 s)`; the mean only if all are equal.
    pub(crate) fn spread(&self) -> String {
        let mean = self.text(self.virtual_mean);
        let (min, max) = (self.text(self.virtual_min), self.text(self.virtual_max));
        if min == max {
            mean
        } else {
            format!("{mean} ({min} to {max})")
        }
    }

    /// Heading of the metric for people.
    fn label(&self) -> &'static str {
        Metric::find(&self.name).map_or("", |metric| metric.label)
    }

    /// Cells of the table: live, virtual reference run, difference, all virtual runs, verdict.
    fn cells(&self) -> [String; 5] {
        let text = |value: Option<f64>| self.text(value);
        let difference = match (self.live, self.reference) {
            (Some(live), Some(reference)) if self.rule == Rule::Tolerance && reference > 0.0 => {
                format!("{:+.1} %", (live / reference - 1.0) * 100.0)
            }
            (Some(live), Some(reference)) => text(Some(live - reference)),
            _ => "–".to_owned(),
        };
        let verdict = match (self.rule, self.agrees) {
            (Rule::Shown, _) => String::new(),
            (Rule::Tolerance, true) => format!("agrees, within {:.0} %", TOLERANCE * 100.0),
            (Rule::Tolerance, false) => format!("DIFFERS by more than {:.0} %", TOLERANCE * 100.0),
            (Rule::Range, true) => "agrees, in the range".to_owned(),
            (Rule::Range, false) => "OUT OF RANGE".to_owned(),
        };
        [
            text(self.live),
            text(self.reference),
            difference,
            self.spread(),
            verdict,
        ]
    }
}

/// Validity of one live attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Largest lateness of the relay in seconds.
    pub lateness_max_s: f64,
    /// Mean lateness of the relay over all packets in seconds.
    pub lateness_mean_s: f64,
    /// Reasons why the attempt is invalid; empty if it is valid.
    pub flaws: Vec<String>,
}

impl Attempt {
    /// The validity of a run over the relay with this report.
    pub(crate) fn of(relay: &RelayReport) -> Self {
        let lateness = relay.totals.lateness;
        Self {
            lateness_max_s: lateness.max.as_secs_f64(),
            lateness_mean_s: lateness.mean.as_secs_f64(),
            flaws: relay.flaws().iter().map(RelayFlaw::to_string).collect(),
        }
    }
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
    /// The live attempts; the last one is compared.
    pub attempts: Vec<Attempt>,
    /// Rows of the last live run, without a wire hash.
    pub live: Vec<Row>,
    /// Rows of the virtual runs, run by run, with the reference run first.
    #[serde(rename = "virtual")]
    pub virtual_runs: Vec<Row>,
}

impl ControllerComparison {
    /// Compares a controller's last live run with its virtual runs.
    pub(crate) fn new(
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

    /// The comparison of the metric called `name`.
    pub(crate) fn measured(&self, name: &str) -> Option<&MetricComparison> {
        self.measures.iter().find(|measured| measured.name == name)
    }

    /// The metrics of the verdict whose live value is outside the tolerated range, in words.
    fn differences(&self) -> impl Iterator<Item = String> {
        VERDICT.iter().filter_map(|&(name, relative)| {
            let measured = self.measured(name)?;
            let [min, max] = measured.tolerated(relative).unwrap_or([f64::NAN; 2]);
            let agrees = measured.live.is_some_and(|live| (min..=max).contains(&live));
            (!agrees).then(|| {
                format!(
                    "{} had {} of {}, the seeds {}, with the tolerance {} to {}",
                    short_name(&self.controller),
                    measured.label().to_lowercase(),
                    measured.text(measured.live),
                    measured.spread(),
                    measured.text(Some(min)),
                    measured.text(Some(max)),
                )
            })
        })
    }

    /// Label and cells of each line of the table; no verdicts if the live run is invalid.
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

/// Verdict about live runs, compared with the virtual runs of many seeds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SeedsVerdict {
    /// True if throughput and impaired share of all live runs are in the range of the seeds, widened by `TOLERANCE`.
    pub(crate) agrees: bool,
    /// One sentence: the rule, or the metrics that differ.
    pub(crate) sentence: String,
}

impl SeedsVerdict {
    /// The verdict about `comparisons`; `None` if there are none.
    pub(crate) fn of(comparisons: &[ControllerComparison]) -> Option<Self> {
        let compared = comparisons.iter();
        let differ: Vec<String> = compared.flat_map(ControllerComparison::differences).collect();
        let agrees = differ.is_empty();
        let sentence = if agrees {
            format!(
                "Agrees with virtual time: throughput and impaired share are in the range of its seeds, widened by \
                 {:.0} % because other seeds may lie beyond it.",
                TOLERANCE * 100.0
            )
        } else {
            format!("Differs from virtual time: {}.", differ.join("; "))
        };
        (!comparisons.is_empty()).then_some(Self { agrees, sentence })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::row;
    use playrate_test_support::assert_contains;

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
        compare(live).measured(name).unwrap().agrees
    }

    #[test]
    fn throughput_may_differ_by_five_percent_from_the_reference_run_whatever_other_seeds_give() {
        let agree = [949, 951, 1_050, 1_051].map(|kbps| agrees(rows(kbps * 1_000, 5), "throughput_bps"));
        assert_eq!(agree, [false, true, true, false]);
    }

    #[test]
    fn discards_must_be_in_the_range_of_the_virtual_runs() {
        let agree = [2, 3, 9, 10].map(|discarded| agrees(rows(1_000_000, discarded), "frames_discarded"));
        assert_eq!(agree, [false, true, true, false]);
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
            let verdicts: Vec<_> = compared.lines().map(|(_, [.., verdict])| verdict).collect();
            assert_eq!(verdicts[0], "invalid run");
            assert!(verdicts.iter().all(|verdict| !verdict.contains("agrees")));
        }
    }

    #[test]
    fn the_verdict_agrees_in_the_range_of_the_seeds_and_five_percent_beyond_it() {
        let verdict = |live| SeedsVerdict::of(&[compare(live)]).unwrap();
        // The seeds have 1.00 and 1.30 Mbit/s.
        for bps in [951_000, 1_000_000, 1_150_000, 1_300_000, 1_364_000] {
            assert!(verdict(rows(bps, 3)).agrees, "{bps}");
        }
        for bps in [949_000, 1_366_000] {
            assert!(!verdict(rows(bps, 3)).agrees, "{bps}");
        }
        let said = "Differs from virtual time: reno had throughput of 0.80 Mbit/s, the seeds 1.15 Mbit/s (1.00 \
                    Mbit/s to 1.30 Mbit/s), with the tolerance 0.95 Mbit/s to 1.36 Mbit/s.";
        assert_eq!(verdict(rows(800_000, 3)).sentence, said);
        let mut stalled = rows(1_000_000, 3);
        stalled[0].playback.stalled_time += std::time::Duration::from_secs(20);
        let stalled = verdict(stalled);
        assert!(!stalled.agrees);
        assert_contains(&stalled.sentence, &["reno had impaired share of"]);
        let mut failed = rows(1_000_000, 3);
        failed[0].throughput_bps = None;
        assert_contains(&verdict(failed).sentence, &["throughput of none"]);
        assert_eq!(SeedsVerdict::of(&[]), None);
    }

    #[test]
    fn every_compared_metric_is_one() {
        let compared = compare(rows(1_000_000, 5));
        assert_eq!(compared.measures.len(), COMPARED.len());
        assert!(compared.lines().all(|(label, _)| !label.is_empty()));
    }
}
