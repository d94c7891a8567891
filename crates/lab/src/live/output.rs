//! [`LiveReport`]: the results of `lab demo scenario`, as tables on stdout and as a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use super::compare::{ControllerComparison, ReferenceVerdict};
use crate::controllers::short_name;
use crate::error::CommandError;
use crate::scenario::full_name;
use crate::words::{self, WIDTH, wrapped};

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

impl LiveReport {
    /// The report as tables.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for compared in &self.comparisons {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{}, {}",
                full_name(&self.scenario, &self.case),
                short_name(&compared.controller)
            );
            let _ = writeln!(
                text,
                "{}\n{}",
                table(compared),
                wrapped("", &validity(compared), WIDTH).trim_end()
            );
            match ReferenceVerdict::of([compared]) {
                Some(verdict) if compared.agrees.is_some() => {
                    let _ = writeln!(text, "{}\n", wrapped("", &verdict.sentence, WIDTH));
                }
                _ => text.push('\n'),
            }
        }
        let (differ, unknown) = (self.any(Some(false)), self.any(None));
        text.push_str(match (differ, unknown, self.any(Some(true))) {
            (true, ..) => "Live and virtual do NOT agree everywhere.",
            (false, true, true) => "Live and virtual agree where a live run is valid.",
            (false, true, false) => "No verdict: no live run is valid.",
            (false, false, _) => "Live and virtual agree.",
        });
        text.push('\n');
        if !self.not_run.is_empty() {
            let _ = writeln!(text, "Stopped before {}.", self.not_run.join(", "));
        }
        text
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

/// Validity of the last live run, with the relay's lateness.
fn validity(compared: &ControllerComparison) -> String {
    let Some(last) = compared.attempts.last() else {
        return "No live run.".to_owned();
    };
    let punctual = format!(
        "the relay was {:.2} ms late on average, {:.1} ms at worst",
        last.lateness_mean_s * 1e3,
        last.lateness_max_s * 1e3
    );
    let broken = compared.live.iter().find_map(|row| row.error.as_ref());
    match (compared.agrees, broken, compared.attempts.len()) {
        (None, _, tries) => format!(
            "No verdict: none of {tries} live runs is valid ({}). Run it on an idle machine, or with real-time \
             priority: chrt -r 10 lab demo scenario …",
            last.flaws.join("; ")
        ),
        (Some(_), Some(broken), _) => format!("The live session broke off: {broken}"),
        (Some(_), None, 1) => format!("Valid: {punctual}."),
        (Some(_), None, tries) => format!("Valid at attempt {tries}: {punctual}."),
    }
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
