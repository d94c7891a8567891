//! The time series of runs as curves on the page.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use super::ReportArgs;
use super::decimate::{Point, decimate};
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
    let several = rows.iter().any(|row| row.key.scenario != rows[0].key.scenario);
    let line = |row: &Row, kind: &str, column: &str| {
        let text = fs::read_to_string(flows.file(directories, row, kind)?).ok()?;
        let kept = decimate(&samples(&text, column), points / 4);
        let flow = format!("{} {}", row.role, row.viewer);
        let part = |place: usize| kept.iter().map(|point| point[place]).collect();
        (!kept.is_empty()).then(|| Line {
            controller: short_name(&row.key.controller),
            flow: if several {
                format!("{} {flow}", row.key.scenario)
            } else {
                flow
            },
            trial: row.key.trial,
            t: part(0),
            v: part(1),
            sum: part(2),
        })
    };
    let curves = QUANTITIES.map(|(quantity, label, unit, kind, column)| Curve {
        quantity,
        label,
        unit,
        lines: rows.iter().filter_map(|row| line(row, kind, column)).collect(),
    });
    curves
        .into_iter()
        .filter(|curve| !curve.lines.is_empty())
        .collect()
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
}

/// Time, value, and sum of value × time so far of each line with a value in `column`; a value holds until the next one.
fn samples(text: &str, column: &str) -> Vec<Point> {
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let Some(place) = head.split(',').position(|name| name == column) else {
        return Vec::new();
    };
    let mut samples: Vec<Point> = Vec::new();
    for line in lines {
        let cell = |place: usize| line.split(',').nth(place)?.parse::<f64>().ok();
        if let (Some(at), Some(value)) = (cell(0), cell(place)) {
            let sum = samples
                .last()
                .map_or(0.0, |[before, held, sum]| sum + held * (at - before));
            samples.push([at, value, sum]);
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_mean_of_a_curve_with_spikes() {
        let spike = |number: i32| if number % 1_000 == 0 { 1_000.0 } else { 0.0 };
        let lines: Vec<String> = (0..=10_000)
            .map(|number| format!("{number},{}", spike(number)))
            .collect();
        let thinned = decimate(&samples(&format!("at_s,v\n{}", lines.join("\n")), "v"), 50);
        assert!(thinned.len() < 250);
        let sums: Vec<f64> = thinned.iter().map(|point| point[2]).collect();
        assert_eq!((sums.first(), sums.last()), (Some(&0.0), Some(&10_000.0)));
        assert!(sums.is_sorted());
    }

    #[test]
    fn a_column_is_read_by_its_name_and_empty_cells_are_left_out() {
        let text = "at_s,window_bytes,rtt_s\n0,12000,\n0.5,24000,0.05\n";
        let window = [[0.0, 12_000.0, 0.0], [0.5, 24_000.0, 6_000.0]];
        assert_eq!(samples(text, "window_bytes"), window);
        assert_eq!(samples(text, "rtt_s"), [[0.5, 0.05, 0.0]]);
        assert_eq!(samples(text, "capacity_bps"), [[0.0; 3]; 0]);
    }
}
