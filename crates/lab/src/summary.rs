//! Summaries of rows: for each controller, the mean of every metric with its 95 % confidence interval, and the
//! difference from a baseline, trial by trial.
//!
//! All controllers run with the same seeds, so trials with the same seed form pairs. With generated paths, runs on the
//! same path form pairs, and the paths of a family are summarised together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use indexmap::{IndexMap, IndexSet};
use serde::Serialize;
use serde_json::json;

use crate::controllers::short_name;
use crate::metric::{METRICS, Metric};
use crate::result::{BROADCAST, BULK, IDEAL, Row, SessionOutcome, VIEWER};
use crate::scenario::generated;
use crate::statistics::{Interval, Spread, paired};
use crate::words::{count, stacked_tables};

/// The metrics of the table, with the roles of the flows that show them.
const COLUMNS: [(&str, &[&str]); 15] = [
    ("impaired_share", &[VIEWER]),
    ("mean_representation_bps", &[VIEWER]),
    ("frames_discarded", &[VIEWER]),
    ("underflow_events", &[VIEWER]),
    ("frozen_s", &[VIEWER]),
    ("startup_delay_s", &[VIEWER]),
    ("frames_on_time_share", &[BROADCAST]),
    ("frame_latency_p50_s", &[BROADCAST]),
    ("frame_latency_p95_s", &[BROADCAST]),
    ("frame_latency_p99_s", &[BROADCAST]),
    ("encoded_rate_bps", &[BROADCAST]),
    ("srtt_p50_s", &[BROADCAST]),
    ("lost_packets", &[VIEWER, BROADCAST, BULK]),
    ("rtt_mean_s", &[VIEWER, BROADCAST, BULK]),
    ("throughput_bps", &[VIEWER, BROADCAST, BULK]),
];

/// The results of a scenario or case, or of all generated paths in a family.
#[derive(Debug, Serialize)]
pub(crate) struct Group<'a> {
    /// Scenario and case, or the family of generated paths.
    pub(crate) name: String,
    /// Number of paths; 1 for a scenario.
    pub(crate) paths: usize,
    /// Canonical specs in the order of the rows.
    pub(crate) controllers: Vec<String>,
    pub(crate) summaries: Vec<Summary>,
    #[serde(skip)]
    pub(crate) rows: Vec<&'a Row>,
}

/// One metric of one controller.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) metric: &'static str,
    pub(crate) role: String,
    pub(crate) controller: String,
    /// Controller of the flow; differs from `controller` for a bulk flow with its own controller.
    pub(crate) flow_controller: String,
    #[serde(flatten)]
    pub(crate) values: Interval,
    pub(crate) min: f64,
    pub(crate) max: f64,
    /// Present for all controllers but the baseline and the ideal sender.
    pub(crate) difference: Option<Difference>,
}

/// A controller's values minus those of the baseline in the same trials.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Difference {
    pub(crate) baseline: String,
    #[serde(flatten)]
    pub(crate) values: Interval,
}

/// Mean and interval in units of `1 / scale`.
fn ends(values: &Interval, scale: f64) -> String {
    let mean = number(values.mean * scale);
    match (values.low, values.high) {
        (Some(low), Some(high)) if low < high => {
            format!("{mean}\n({} to {})", number(low * scale), number(high * scale))
        }
        _ => mean,
    }
}

/// About three digits, or all digits of a whole number.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || (value - value.round()).abs() < 1e-9 => 0,
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        size if size >= 0.01 => 3,
        _ => 4,
    };
    let text = format!("{value:.decimals$}");
    if text.trim_matches(['-', '0', '.']).is_empty() {
        "0".to_owned()
    } else {
        text
    }
}

/// A trial: scenario, case and seed.
type Trial<'a> = (&'a str, &'a str, u64);

/// The flows of one role under one controller, trial by trial.
struct Flows<'a> {
    controller: &'a str,
    role: &'a str,
    trials: BTreeMap<Trial<'a>, Vec<&'a Row>>,
}

impl<'a> Flows<'a> {
    /// The metric in each trial that has it. If a session failed, only the impaired share and the score count, which
    /// are then 1: all other numbers describe a session that ended early.
    fn values(&self, metric: &Metric) -> BTreeMap<Trial<'a>, f64> {
        let counts_failures = FAILURES.contains(&metric.name);
        let is_whole = |row: &&Row| counts_failures || row.outcome != SessionOutcome::Failed;
        let of_trial = |(trial, rows): (&Trial<'a>, &Vec<&'a Row>)| {
            let value = rows
                .iter()
                .all(is_whole)
                .then(|| metric.pooled(rows.iter().copied()))??;
            Some((*trial, value))
        };
        self.trials.iter().filter_map(of_trial).collect()
    }
}

/// Metrics that are meaningful for a failed session.
const FAILURES: [&str; 2] = ["impaired_share", "score"];

/// Name of the group of a row.
fn group_name(row: &Row) -> String {
    generated::family(&row.key.scenario).map_or_else(|| row.key.full_name(), str::to_owned)
}

/// Summarises `rows`, in their order. `baseline` is a canonical spec.
pub(crate) fn groups<'a>(rows: &'a [Row], baseline: Option<&str>) -> Vec<Group<'a>> {
    let mut by_group: IndexMap<String, Vec<&Row>> = IndexMap::new();
    for row in rows {
        by_group.entry(group_name(row)).or_default().push(row);
    }
    by_group
        .into_iter()
        .map(|(name, rows)| group(name, rows, baseline))
        .collect()
}

fn group<'a>(name: String, rows: Vec<&'a Row>, baseline: Option<&str>) -> Group<'a> {
    let flows = flows(&rows);
    let controllers: IndexSet<&str> = flows.iter().map(|flow| flow.controller).collect();
    let paths = rows.iter().map(|row| (&row.key.scenario, &row.key.case));
    let paths = paths.collect::<BTreeSet<_>>().len();
    let summaries = METRICS
        .iter()
        .flat_map(|metric| {
            flows
                .iter()
                .filter_map(|one| summary(metric, one, &flows, baseline))
        })
        .collect();
    Group {
        name,
        paths,
        controllers: controllers.into_iter().map(str::to_owned).collect(),
        summaries,
        rows,
    }
}

/// Groups rows by controller and role, ordered by first appearance.
fn flows<'a>(rows: &[&'a Row]) -> Vec<Flows<'a>> {
    let mut all = IndexMap::new();
    for row in rows {
        let (controller, role) = (row.key.controller.as_str(), row.role.as_str());
        let flows = all.entry((controller, role)).or_insert_with(|| Flows {
            controller,
            role,
            trials: BTreeMap::new(),
        });
        let trial = (row.key.scenario.as_str(), row.key.case.as_str(), row.key.seed);
        flows.trials.entry(trial).or_default().push(*row);
    }
    all.into_values().collect()
}

/// The summary of a metric; `None` if no trial has it.
fn summary(metric: &Metric, flows: &Flows<'_>, all: &[Flows<'_>], baseline: Option<&str>) -> Option<Summary> {
    let own = flows.values(metric);
    let list: Vec<f64> = own.values().copied().collect();
    let (values, spread) = (Interval::of(&list)?, Spread::of(list.iter().copied())?);
    let compared = baseline.filter(|baseline| *baseline != flows.controller && flows.controller != IDEAL);
    let difference = compared.and_then(|baseline| {
        let theirs = all
            .iter()
            .find(|one| (one.controller, one.role) == (baseline, flows.role))?
            .values(metric);
        let pairs: Vec<(f64, f64)> = own
            .iter()
            .filter_map(|(trial, value)| Some((*value, *theirs.get(trial)?)))
            .collect();
        Some(Difference {
            baseline: baseline.to_owned(),
            values: paired(&pairs)?,
        })
    });
    let first = flows.trials.values().flatten().next();
    Some(Summary {
        metric: metric.name,
        role: flows.role.to_owned(),
        controller: flows.controller.to_owned(),
        flow_controller: first.map_or_else(String::new, |row| row.flow_controller.clone()),
        values,
        min: spread.min,
        max: spread.max,
        difference,
    })
}

impl Group<'_> {
    /// Summary of a metric.
    pub(crate) fn find(&self, metric: &str, controller: &str, role: &str) -> Option<&Summary> {
        self.of(controller, role).find(|one| one.metric == metric)
    }

    /// Summaries of the flows with a role under a controller.
    fn of(&self, controller: &str, role: &str) -> impl Iterator<Item = &Summary> {
        let is = move |one: &&Summary| one.controller == controller && one.role == role;
        self.summaries.iter().filter(is)
    }

    /// The group's tables for a terminal.
    fn text(&self) -> String {
        let controllers = self.controllers.iter();
        let lines = controllers
            .flat_map(|controller| [VIEWER, BROADCAST, BULK].map(|role| (controller.as_str(), role)));
        let lines: Vec<_> = lines
            .filter(|line| self.of(line.0, line.1).next().is_some())
            .collect();
        let has_values = |(name, roles): &&(&str, &[&str])| {
            let shown = |(controller, role): &(&str, &str)| {
                roles.contains(role) && self.find(name, controller, role).is_some()
            };
            lines.iter().any(shown)
        };
        let columns: Vec<(&Metric, &[&str])> = COLUMNS
            .iter()
            .filter(has_values)
            .filter_map(|(name, roles)| Some((Metric::find(name)?, *roles)))
            .collect();
        let mut head = vec!["controller".to_owned(), "runs".to_owned()];
        head.extend(columns.iter().map(|(metric, _)| match metric.unit.axis() {
            ("", _) => metric.label.to_owned(),
            (unit, _) => format!("{} [{unit}]", metric.label),
        }));
        let cells = |line: &(&str, &str)| -> Vec<String> {
            let (name, role) = (short_name(line.0), line.1);
            let label = match self.of(line.0, role).next() {
                Some(flow) if role == BULK => {
                    format!("  beside {name}: {}", short_name(&flow.flow_controller))
                }
                _ => name,
            };
            let runs = self.of(line.0, role).map(|one| one.values.count).max();
            let mut cells = vec![label, runs.unwrap_or_default().to_string()];
            cells.extend(columns.iter().map(|(metric, roles)| {
                let summary = self.find(metric.name, line.0, role);
                let shown = summary.filter(|_| roles.contains(&role));
                shown.map_or_else(|| "–".to_owned(), |summary| cell(summary, metric.unit.axis().1))
            }));
            cells
        };
        let rows: Vec<Vec<String>> = lines.iter().map(cells).collect();
        let paths = match self.paths {
            1 => String::new(),
            paths => format!(", {}", count(paths as u64, "path", "paths")),
        };
        format!("{}{paths}\n{}\n", self.name, stacked_tables(&head, &rows, 2, 3))
    }
}

/// Mean with its interval and, below, the difference from the baseline.
fn cell(summary: &Summary, scale: f64) -> String {
    let mut text = ends(&summary.values, scale);
    if let Some(difference) = &summary.difference {
        let values = ends(&difference.values, scale);
        let sign = if values.starts_with(['-', '0']) && !values.starts_with("0.") {
            ""
        } else {
            "+"
        };
        // Writing to a String cannot fail.
        let _ = write!(text, "\nΔ {sign}{values}");
    }
    text
}

/// Tables for a terminal, one per group: means with 95 % intervals, and below them the difference Δ from the baseline.
pub(crate) fn text(groups: &[Group<'_>]) -> String {
    let mut text: String = groups.iter().map(Group::text).collect();
    let all = || groups.iter().flat_map(|group| &group.summaries);
    // Writing to a String cannot fail, here and below.
    if all().any(|one| one.values.low.is_some()) {
        let _ = writeln!(text, "Parentheses: 95 % interval of the mean.");
    }
    if let Some(difference) = all().find_map(|one| one.difference.as_ref()) {
        let name = short_name(&difference.baseline);
        let _ = writeln!(text, "Δ: difference from {name}, trial by trial.");
    }
    text
}

/// All metrics of all groups as one JSON object; `directory` contains the rows.
pub(crate) fn json(groups: &[Group<'_>], directory: &Path) -> String {
    let value = json!({
        "format": "lab-summary",
        "version": 1,
        "program": env!("CARGO_PKG_VERSION"),
        "results": directory.display().to_string(),
        "groups": groups,
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    /// The rows of two controllers in three trials; the first trial of `cubic` failed.
    fn rows() -> Vec<Row> {
        let mut rows: Vec<Row> = (1..4)
            .flat_map(|trial| ["reno", "cubic"].map(|name| tests::row(name, trial)))
            .collect();
        for (number, row) in (0..).zip(&mut rows) {
            row.playback.frames_discarded = number * number;
        }
        rows[1].outcome = SessionOutcome::Failed;
        rows
    }

    #[test]
    fn a_failed_session_counts_as_impaired_and_for_nothing_else() {
        let rows = rows();
        let group = groups(&rows, None).remove(0);
        let of = |metric: &str| group.find(metric, "cubic", VIEWER).unwrap().values;
        assert_eq!((of("impaired_share").count, of("frames_discarded").count), (3, 2));
        assert!(group.find("impaired_share", "cubic", VIEWER).unwrap().max >= 1.0);
    }

    #[test]
    fn a_difference_is_that_of_the_trials_which_both_have() {
        let rows = rows();
        let group = groups(&rows, Some("reno")).remove(0);
        let cubic = group.find("frames_discarded", "cubic", VIEWER).unwrap();
        let difference = cubic.difference.as_ref().unwrap();
        // 9 − 4 and 25 − 16.
        assert_eq!((difference.values.count, difference.values.mean), (2, 7.0));
        let reno = group.find("frames_discarded", "reno", VIEWER).unwrap();
        assert_eq!(reno.difference, None);
    }
}
