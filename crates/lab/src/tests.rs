//! Made-up titles and rows with known properties, and parsed command lines, only for tests.

use std::time::Duration;

use clap::{Args, Command};
use playrate_media::{FrameTrace, TraceSource};

use crate::result::{IDEAL, Row};
use crate::sim::ServedTitle;

/// The arguments of a command in `line`, or the error message.
pub(crate) fn arguments<A: Args>(line: &str) -> Result<A, String> {
    let command = A::augment_args(Command::new("lab").no_binary_name(true));
    let matches = command.try_get_matches_from(line.split_whitespace());
    let read = matches.and_then(|matches| A::from_arg_matches(&matches));
    read.map_err(|error| error.to_string())
}

/// A title of 25 equal frames per second at 1 Mbit/s.
pub(crate) fn title(seconds: u64) -> ServedTitle {
    let lines: Vec<_> = (0..25)
        .map(|n| format!("{:.2},5000,K", f64::from(n) * 0.04))
        .collect();
    let trace: FrameTrace = lines.join("\n").parse().unwrap();
    let trace = trace.repeat_to(Duration::from_secs(seconds)).unwrap();
    ServedTitle::trace("film", TraceSource::new(&trace))
}

/// A viewer's row with all groups of fields; the ideal row has no sender and no link.
pub(crate) fn row(controller: &str, trial: u32) -> Row {
    let mut rows = include_str!("../tests/rows/samples.jsonl").lines();
    let line = rows.nth(usize::from(controller != IDEAL)).unwrap();
    let mut row: Row = serde_json::from_str(line).unwrap();
    controller.clone_into(&mut row.key.controller);
    (row.key.trial, row.key.seed) = (trial, trial.into());
    row
}
