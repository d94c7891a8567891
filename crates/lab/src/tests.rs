//! Made-up rows with known properties, and parsed command lines.

use clap::{Args, Command};

use crate::result::{IDEAL, Row};

/// The arguments of a command in `line`, or the error message.
pub(crate) fn arguments<A: Args>(line: &str) -> Result<A, String> {
    let command = A::augment_args(Command::new("lab").no_binary_name(true));
    let matches = command.try_get_matches_from(line.split_whitespace());
    let read = matches.and_then(|matches| A::from_arg_matches(&matches));
    read.map_err(|error| error.to_string())
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
