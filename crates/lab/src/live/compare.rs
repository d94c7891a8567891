//! One controller live beside its virtual runs: what differs, and whether that is noise.

use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Unit};
use crate::run::{Row, Spread};

/// By how much the throughput of a live run may differ from that of its virtual twin.
pub const TOLERANCE: f64 = 0.05;

/// When a live run agrees with its virtual ones in a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// It differs from its twin, the virtual run with the same seed, by at most [`TOLERANCE`].
    Tolerance,
    /// It is no smaller than the smallest of them and no larger than the largest.
    Range,
    /// Always: it is shown for what it is.
    Shown,
}

/// What is compared, in the order of the table.
pub const COMPARED: &[(&str, Rule)] = &[
    ("throughput_bps", Rule::Tolerance),
    ("frames_discarded", Rule::Range),
    ("underflow_events", Rule::Range),
    ("startup_delay_s", Rule::Shown),
    ("frozen_s", Rule::Shown),
    ("lost_packets", Rule::Shown),
    ("mean_queue_delay_s", Rule::Shown),
];

/// One metric of the live run beside that of the virtual ones, in the units of `docs/runs.md`. Several viewers count by
/// their mean.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The metric's name.
    pub name: String,
    /// In the live run; absent if it has none, as a start that never came.
    pub live: Option<f64>,
    /// In its twin, the virtual run with the same seed, whose path makes the same random choices.
    pub twin: Option<f64>,
    /// Mean of all virtual runs that have it.
    pub virtual_mean: Option<f64>,
    /// The smallest of them.
    pub virtual_min: Option<f64>,
    /// The largest.
    pub virtual_max: Option<f64>,
    /// When they agree.
    pub rule: Rule,
    /// Whether they do.
    pub agrees: bool,
}

impl Measured {
    /// Of the metric called `name`; `None` if no run has it. `live` has the rows of one run, `virtual_runs` those of each
    /// virtual one, its twin first.
    fn of(name: &str, rule: Rule, live: &[Row], virtual_runs: &[Vec<Row>]) -> Option<Self> {
        let metric = Metric::find(name)?;
        let live = metric.pooled(live);
        let twin = virtual_runs.first().and_then(|rows| metric.pooled(rows));
        let spread = Spread::of(virtual_runs.iter().filter_map(|rows| metric.pooled(rows)));
        if live.is_none() && spread.is_none() {
            return None;
        }
        Some(Self {
            name: name.to_owned(),
            live,
            twin,
            virtual_mean: spread.map(|spread| spread.mean),
            virtual_min: spread.map(|spread| spread.min),
            virtual_max: spread.map(|spread| spread.max),
            rule,
            agrees: match rule {
                Rule::Shown => true,
                Rule::Tolerance => live
                    .zip(twin)
                    .is_some_and(|(live, twin)| (live - twin).abs() <= TOLERANCE * twin),
                Rule::Range => live
                    .zip(spread)
                    .is_some_and(|(live, spread)| (spread.min..=spread.max).contains(&live)),
            },
        })
    }

    /// What people call it.
    pub fn label(&self) -> &'static str {
        Metric::find(&self.name).map_or("", |metric| metric.label)
    }

    fn unit(&self) -> Unit {
        Metric::find(&self.name).map_or(Unit::Count, |metric| metric.unit)
    }

    /// The cells of its line in the table: live, twin, difference, all virtual runs, verdict.
    pub fn cells(&self) -> [String; 5] {
        let unit = self.unit();
        let text = |value: Option<f64>| value.map_or_else(|| "none".to_owned(), |value| unit.text(value));
        let spread = format!(
            "{} ({} to {})",
            text(self.virtual_mean),
            text(self.virtual_min),
            text(self.virtual_max)
        );
        let difference = match (self.live, self.twin) {
            (Some(live), Some(twin)) if self.rule == Rule::Tolerance && twin > 0.0 => {
                format!("{:+.1} %", (live / twin - 1.0) * 100.0)
            }
            (Some(live), Some(twin)) => unit.text(live - twin),
            _ => "–".to_owned(),
        };
        let verdict = match (self.rule, self.agrees) {
            (Rule::Shown, _) => String::new(),
            (Rule::Tolerance, true) => format!("agrees, within {:.0} %", TOLERANCE * 100.0),
            (Rule::Tolerance, false) => format!("DIFFERS by more than {:.0} %", TOLERANCE * 100.0),
            (Rule::Range, true) => "agrees, in the range".to_owned(),
            (Rule::Range, false) => "OUT OF RANGE".to_owned(),
        };
        [text(self.live), text(self.twin), difference, spread, verdict]
    }
}

/// How one live attempt went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The relay's worst lateness.
    pub lateness_max_s: f64,
    /// Its mean lateness over all packets.
    pub lateness_mean_s: f64,
    /// Why it cannot be believed; empty if it can.
    pub flaws: Vec<String>,
}

/// One controller, live and virtual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Its canonical spec.
    pub controller: String,
    /// Whether they agree; absent if no live attempt can be believed.
    pub agrees: Option<bool>,
    /// What is compared.
    pub measures: Vec<Measured>,
    /// The live attempts, the last being the one that is compared.
    pub attempts: Vec<Attempt>,
    /// The viewers of the last live run, as rows of `runs.jsonl` without hash.
    pub live: Vec<Row>,
    /// The viewers of the virtual runs, run by run; the first is the twin of the live one.
    #[serde(rename = "virtual")]
    pub virtual_runs: Vec<Row>,
}

impl Comparison {
    /// Of one controller's last live run with its virtual ones.
    pub(super) fn new(
        controller: String,
        attempts: Vec<Attempt>,
        live: Vec<Row>,
        virtual_runs: Vec<Vec<Row>>,
    ) -> Self {
        let measures: Vec<_> = COMPARED
            .iter()
            .filter_map(|(name, rule)| Measured::of(name, *rule, &live, &virtual_runs))
            .collect();
        let counts = attempts.last().is_some_and(|last| last.flaws.is_empty());
        let broken = live.iter().any(|row| row.error.is_some());
        Self {
            controller,
            agrees: counts.then(|| !broken && measures.iter().all(|measured| measured.agrees)),
            measures,
            attempts,
            live,
            virtual_runs: virtual_runs.into_iter().flatten().collect(),
        }
    }

    /// The cells of each line of its table, with no verdict where the live run does not count.
    pub fn lines(&self) -> impl Iterator<Item = (&'static str, [String; 5])> {
        self.measures.iter().map(|measured| {
            let mut cells = measured.cells();
            if self.agrees.is_none() && measured.rule != Rule::Shown {
                "does not count".clone_into(&mut cells[4]);
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
        row.seen.frames_discarded = discarded;
        vec![row]
    }

    fn compare(live: Vec<Row>) -> Comparison {
        after(&[], live)
    }

    /// Of a live run with these flaws.
    fn after(flaws: &[&str], live: Vec<Row>) -> Comparison {
        let virtual_runs = vec![rows(1_000_000, 3), rows(1_300_000, 9)];
        let attempt = Attempt {
            lateness_max_s: 0.001,
            lateness_mean_s: 0.0,
            flaws: flaws.iter().map(ToString::to_string).collect(),
        };
        Comparison::new("reno".to_owned(), vec![attempt], live, virtual_runs)
    }

    fn agrees(live: Vec<Row>, name: &str) -> bool {
        let compared = compare(live);
        let measured = compared.measures.iter().find(|measured| measured.name == name);
        measured.unwrap().agrees
    }

    #[test]
    fn throughput_may_differ_by_five_percent_from_the_twin_whatever_other_seeds_have() {
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
    fn a_live_run_that_does_not_count_is_shown_without_a_verdict() {
        for discarded in [5, 10] {
            let compared = after(&["6 ms late"], rows(1_000_000, discarded));
            assert_eq!(compared.agrees, None);
            let verdicts: Vec<_> = compared.lines().map(|(_, cells)| cells.last().cloned()).collect();
            assert_eq!(verdicts.first(), Some(&Some("does not count".to_owned())));
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
