//! The time series of runs as curves on the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use super::ReportArgs;
use super::decimate::decimate;
use crate::controllers::short_name;
use crate::metric::Unit;
use crate::result::{BULK, ResultKey, Row, series_file};

/// Maximum number of points of all curves on a page, about 20 bytes each.
const BUDGET: usize = 400_000;
/// Minimum and maximum number of points per curve.
const POINTS: (usize, usize) = (200, 2_000);

/// A quantity over time: name, heading, unit, series, and its column after the time.
const QUANTITIES: [(&str, &str, Unit, &str, &str); 6] = [
    (
        "window",
        "Congestion window",
        Unit::Bytes,
        "transport",
        "window_bytes",
    ),
    ("rtt", "RTT sample", Unit::Seconds, "transport", "rtt_s"),
    (
        "capacity",
        "Capacity estimate",
        Unit::BitsPerSecond,
        "transport",
        "capacity_bps",
    ),
    (
        "buffer",
        "Playing time in the buffer",
        Unit::Seconds,
        "playout",
        "held_s",
    ),
    (
        "received",
        "Bytes received",
        Unit::Bytes,
        "playout",
        "received_bytes",
    ),
    ("queue", "Largest queue", Unit::Bytes, "queue", "max_queue_bytes"),
];

/// One quantity of all runs with its series.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    quantity: &'static str,
    label: &'static str,
    unit: Unit,
    lines: Vec<Line>,
}

/// The values of one flow over time.
#[derive(Debug, PartialEq, Serialize)]
struct Line {
    controller: String,
    /// Scenario, if a group has several, and number of the flow.
    flow: String,
    trial: u32,
    t: Vec<f64>,
    v: Vec<f64>,
    /// Sum of value × time up to each point, over all samples, so that thinning does not affect the page's means.
    sum: Vec<f64>,
}

/// Maximum number of points per line, so that the page stays small however many lines it has.
pub(super) fn points_per_line(args: &ReportArgs, rows: &[Row]) -> usize {
    let flows = Flows::of(rows);
    let has = |row: &&Row| flows.file(&args.directories, row, "transport").is_some();
    let lines = rows.iter().filter(has).count() * QUANTITIES.len();
    (BUDGET / lines.max(1)).clamp(POINTS.0, POINTS.1)
}

/// The curves of `rows` whose time series are in one of `directories`, with at most about `points` points per line.
pub(super) fn read(directories: &[PathBuf], rows: &[&Row], points: usize) -> Vec<Curve> {
    let flows = Flows::of(rows.iter().copied());
    let mut curves: BTreeMap<usize, Vec<Line>> = BTreeMap::new();
    let several = rows.iter().any(|row| row.key.scenario != rows[0].key.scenario);
    for row in rows {
        for (kind, text) in flows.texts(directories, row) {
            for (place, (_, _, _, of, column)) in QUANTITIES.iter().enumerate() {
                let found = if *of == kind {
                    values(&text, column)
                } else {
                    Vec::new()
                };
                if found.is_empty() {
                    continue;
                }
                let (t, v): (Vec<f64>, Vec<f64>) = decimate(&found, points / 4).into_iter().unzip();
                let flow = format!("{} {}", row.role, row.viewer);
                curves.entry(place).or_default().push(Line {
                    controller: short_name(&row.key.controller),
                    flow: if several {
                        format!("{} {flow}", row.key.scenario)
                    } else {
                        flow
                    },
                    trial: row.key.trial,
                    sum: sums(&found, &t),
                    t,
                    v,
                });
            }
        }
    }
    let curve = |(place, lines): (usize, Vec<Line>)| {
        let (quantity, label, unit, ..) = QUANTITIES[place];
        Curve {
            quantity,
            label,
            unit,
            lines,
        }
    };
    curves.into_iter().map(curve).collect()
}

/// Number of each run's first bulk flow, if any: series of bulk flows and of viewers are numbered separately.
struct Flows<'a>(BTreeMap<&'a ResultKey, u32>);

impl<'a> Flows<'a> {
    fn of(rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let mut first = BTreeMap::new();
        for row in rows.into_iter().filter(|row| row.role == BULK) {
            let number = first.entry(&row.key).or_insert(row.viewer);
            *number = row.viewer.min(*number);
        }
        Self(first)
    }

    /// The file of the series `kind` of a flow, if one of `directories` has it.
    fn file(&self, directories: &[PathBuf], row: &Row, kind: &str) -> Option<PathBuf> {
        let first = self.0.get(&row.key).filter(|_| row.role == BULK);
        let flow = match first {
            Some(first) => format!("bulk{}", row.viewer - first),
            None => format!("viewer{}", row.viewer),
        };
        let mut files = directories
            .iter()
            .map(|directory| series_file(directory, &row.key, &flow, kind));
        files.find(|file| file.exists())
    }

    /// Kind and text of each series of a flow.
    fn texts(&self, directories: &[PathBuf], row: &Row) -> Vec<(&'static str, String)> {
        let kinds = ["transport", "playout", "queue"].into_iter();
        let text = |kind| Some((kind, fs::read_to_string(self.file(directories, row, kind)?).ok()?));
        kinds.filter_map(text).collect()
    }
}

/// Time and value of each line with a value in `column`.
fn values(text: &str, column: &str) -> Vec<(f64, f64)> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let Some(place) = head.split(',').position(|name| name == column) else {
        return Vec::new();
    };
    let point = |line: &str| {
        let cell = |place: usize| line.split(',').nth(place)?.parse().ok();
        Some((cell(0)?, cell(place)?))
    };
    lines.filter_map(point).collect()
}

/// Sum of value × time of `samples` up to each of `times`; a value holds until the next sample.
fn sums(samples: &[(f64, f64)], times: &[f64]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = BTreeMap::new();
    for (number, (at, _)) in samples.iter().enumerate() {
        if let Some((before, value)) = number.checked_sub(1).and_then(|before| samples.get(before)) {
            sum += value * (at - before);
        }
        sums.insert(at.to_bits(), sum);
    }
    times
        .iter()
        .map(|at| sums.get(&at.to_bits()).copied().unwrap_or(sum))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_mean_of_a_curve_with_spikes() {
        let spike = |number: i32| if number % 1_000 == 0 { 1_000.0 } else { 0.0 };
        let samples: Vec<(f64, f64)> = (0..=10_000)
            .map(|number| (f64::from(number), spike(number)))
            .collect();
        let thinned = decimate(&samples, 50);
        assert!(thinned.len() < 250);
        let times: Vec<f64> = thinned.iter().map(|point| point.0).collect();
        let sums = sums(&samples, &times);
        assert_eq!((sums.first(), sums.last()), (Some(&0.0), Some(&10_000.0)));
        assert!(sums.is_sorted());
    }

    #[test]
    fn a_column_is_read_by_its_name_and_empty_cells_are_left_out() {
        let text = "at_s,window_bytes,rtt_s\n0,12000,\n0.5,24000,0.05\n";
        assert_eq!(values(text, "window_bytes"), [(0.0, 12_000.0), (0.5, 24_000.0)]);
        assert_eq!(values(text, "rtt_s"), [(0.5, 0.05)]);
        assert_eq!(values(text, "capacity_bps"), []);
    }
}
