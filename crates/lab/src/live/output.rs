//! [`LiveReport`]: the results of `lab demo scenario`, as tables on stdout and as a file.

use std::path::{Path, PathBuf};

use askama::Template;
use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use super::compare::ControllerComparison;
use crate::controllers::short_name;
use crate::error::CommandError;
use crate::scenario::full_name;
use crate::words::{self, folded};

/// Name of the report's format.
pub(super) const FORMAT: &str = "lab-live";
/// Version of the format: within one, fields are added, never renamed or removed.
pub(super) const VERSION: u32 = 1;
/// Name of the report in the output directory.
const FILE: &str = "live.json";

/// All controllers of one scenario, live and virtual. `docs/runs.md` describes the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveReport {
    /// Name of the format: `lab-live`.
    pub format: String,
    /// Version of the format.
    pub version: u32,
    /// Version of the program that made the report.
    pub program: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the scenario's case; empty if it has none.
    pub case: String,
    /// Hash of everything in the scenario that affects a run.
    pub scenario_hash: String,
    /// Longest time that a viewer watches, in seconds.
    pub watching_s: f64,
    /// Seed of the live runs, and of the first virtual one of each controller.
    pub seed: u64,
    /// Number of virtual runs of each controller.
    pub trials: u32,
    /// True if every controller ran and agrees with its virtual runs.
    pub agrees: bool,
    /// One comparison per controller, in the order of the arguments.
    pub comparisons: Vec<ControllerComparison>,
    /// Controllers that had not run yet when the user stopped.
    pub not_run: Vec<String>,
}

/// The text of a report, with lines of any length.
#[derive(Template)]
#[template(path = "live.txt", escape = "none")]
struct Comparisons<'a> {
    it: &'a LiveReport,
}

impl LiveReport {
    /// The report as tables.
    pub(super) fn text(&self) -> String {
        // Writing to a String cannot fail.
        let text = Comparisons { it: self }.render().unwrap_or_default();
        folded(text.trim_end())
    }

    /// Returns true if some controller has this verdict.
    fn any(&self, verdict: Option<bool>) -> bool {
        self.comparisons.iter().any(|compared| compared.agrees == verdict)
    }
}

fn table(compared: &ControllerComparison) -> Table {
    let mut table = words::table(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "",
        "live",
        "virtual reference",
        "difference",
        "all virtual runs",
        "",
    ]);
    for (label, cells) in compared.lines() {
        table.add_row(std::iter::once(label.to_owned()).chain(cells));
    }
    words::keep_words_whole(&mut table, 0, compared.lines().map(|(label, _)| label));
    for column in table.column_iter_mut().skip(1).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn failure(compared: &ControllerComparison) -> Option<&String> {
    compared.live.iter().find_map(|row| row.error.as_ref())
}

/// Creates the output directory before any run, so that no results are lost.
pub(super) fn prepare(directory: &Path) -> Result<(), CommandError> {
    std::fs::create_dir_all(directory).map_err(|error| CommandError::cannot_write(directory, &error))
}

/// Writes the report into `directory`. Returns the file's path and content.
pub(super) fn save(report: &LiveReport, directory: &Path) -> Result<(PathBuf, String), CommandError> {
    let path = directory.join(FILE);
    let text =
        serde_json::to_string_pretty(report).map_err(|error| CommandError::cannot_write(&path, &error))?;
    let text = text + "\n";
    std::fs::write(&path, &text).map_err(|error| CommandError::cannot_write(&path, &error))?;
    Ok((path, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_test_support::assert_contains;

    fn report(verdicts: &[Option<bool>]) -> LiveReport {
        let comparisons: Vec<_> = verdicts
            .iter()
            .map(|agrees| ControllerComparison {
                agrees: *agrees,
                ..ControllerComparison::new("reno".to_owned(), Vec::new(), Vec::new(), Vec::new())
            })
            .collect();
        LiveReport {
            format: FORMAT.to_owned(),
            version: VERSION,
            program: String::new(),
            scenario: "p13-9".to_owned(),
            case: String::new(),
            scenario_hash: String::new(),
            watching_s: 45.0,
            seed: 1,
            trials: 40,
            agrees: false,
            comparisons,
            not_run: vec!["cubic".to_owned()],
        }
    }

    #[test]
    fn no_verdict_is_neither_agreement_nor_disagreement() {
        for (verdicts, said) in [
            (&[Some(true), Some(true)][..], "Live and virtual agree."),
            (&[Some(true), None], "agree where a live run is valid"),
            (&[None], "No verdict"),
            (&[Some(true), None, Some(false)], "do NOT agree"),
        ] {
            assert_contains(&report(verdicts).text(), &[said, "Stopped before cubic."]);
        }
    }
}
