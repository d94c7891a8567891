//! `lab rows`: prints the rows of directories, including the metrics computed from several fields, for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;

use crate::error::CommandError;
use crate::metric::METRICS;
use crate::result::{Row, read_directories};

/// Command line of `lab rows`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RowsArgs {
    /// Directories with the results of `lab run`, such as those of all its shards
    #[arg(value_name = "DIR", required = true)]
    pub(crate) directories: Vec<PathBuf>,
}

/// A row with its computed metrics.
#[derive(Serialize)]
struct FullRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    #[serde(flatten)]
    computed: BTreeMap<&'static str, f64>,
}

/// Prints one line of JSON per row to `out`: its fields, and each metric that has a value but is not a field.
///
/// # Errors
/// If a directory has no rows, or two directories differ in a row, or the rows cannot be printed.
pub(crate) fn run(args: &RowsArgs, out: &mut impl Write) -> Result<(), CommandError> {
    for row in &read_directories(&args.directories)? {
        print(row, out).map_err(CommandError::Print)?;
    }
    Ok(())
}

fn print(row: &Row, out: &mut impl Write) -> io::Result<()> {
    let fields = serde_json::to_value(row)?;
    let is_field = |name: &str| matches!(&fields, Value::Object(fields) if fields.contains_key(name));
    let others = METRICS.iter().filter(|metric| !is_field(metric.name));
    let computed = others.filter_map(|metric| Some((metric.name, metric.value(row)?)));
    let full = FullRow {
        row,
        computed: computed.collect(),
    };
    writeln!(out, "{}", serde_json::to_string(&full)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests;

    #[test]
    fn a_row_is_printed_with_its_fields_and_the_metrics_computed_from_them() {
        let row = tests::row("reno", 1);
        let mut printed = Vec::new();
        print(&row, &mut printed).unwrap();
        let printed: serde_json::Map<String, Value> = serde_json::from_slice(&printed).unwrap();
        let fields = serde_json::to_value(&row).unwrap();
        for (name, value) in fields.as_object().unwrap() {
            assert_eq!(printed.get(name), Some(value), "{name}");
        }
        let loss = printed["loss_ratio"].as_f64().unwrap();
        let of = |name: &str| fields[name].as_f64().unwrap();
        assert!((loss - of("lost_packets") / of("sent_packets")).abs() < 1e-12);
        assert!(printed.contains_key("impaired_share"));
    }
}
