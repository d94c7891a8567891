//! What `lab live` leaves: tables on stdout, and a file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use super::LiveError;
use super::compare::Comparison;
use crate::scenario::full_name;

/// Name of the report's format.
pub const FORMAT: &str = "lab-live";
/// Its version: within one, fields are added, never renamed or removed.
pub const VERSION: u32 = 1;
/// Name of the report in the output directory.
const FILE: &str = "live.json";

/// All controllers of one scenario, live and virtual. `docs/runs.md` describes the fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LiveReport {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Version of the program that made it.
    pub program: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Which of its cases; empty if it has none.
    pub case: String,
    /// What of the scenario a run depends on.
    pub scenario_hash: String,
    /// How long a viewer watches at most.
    pub watching_s: f64,
    /// Seed of the live runs, and of the first virtual one of each controller.
    pub seed: u64,
    /// How many virtual runs each controller has.
    pub trials: u32,
    /// Whether every controller agrees with its virtual runs.
    pub agrees: bool,
    /// One for each controller, as asked for.
    pub comparisons: Vec<Comparison>,
    /// Controllers whose turn had not come when somebody stopped it.
    pub not_run: Vec<String>,
}

impl LiveReport {
    /// It as tables.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for compared in &self.comparisons {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{}, {}",
                full_name(&self.scenario, &self.case),
                compared.controller
            );
            let _ = writeln!(text, "{}\n{}\n", table(compared), trust(compared));
        }
        let (differ, unknown) = (self.any(Some(false)), self.any(None));
        text.push_str(match (differ, unknown, self.any(Some(true))) {
            (true, ..) => "Live and virtual do NOT agree everywhere.",
            (false, true, true) => "Live and virtual agree where a live run can be believed.",
            (false, true, false) => "Nothing can be said: no live run can be believed.",
            (false, false, _) => "Live and virtual agree.",
        });
        text.push('\n');
        if !self.not_run.is_empty() {
            let _ = writeln!(text, "Stopped before {}.", self.not_run.join(", "));
        }
        text
    }

    /// Whether some controller has this verdict.
    fn any(&self, verdict: Option<bool>) -> bool {
        self.comparisons.iter().any(|compared| compared.agrees == verdict)
    }
}

fn table(compared: &Comparison) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_HORIZONTAL_ONLY);
    table.set_header([
        "",
        "live",
        "virtual twin",
        "difference",
        "all virtual (smallest to largest)",
        "",
    ]);
    for (label, cells) in compared.lines() {
        table.add_row(std::iter::once(label.to_owned()).chain(cells));
    }
    for column in table.column_iter_mut().skip(1).take(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// How punctual the relay was.
fn trust(compared: &Comparison) -> String {
    let Some(last) = compared.attempts.last() else {
        return "No live run.".to_owned();
    };
    let punctual = format!(
        "the relay was {:.2} ms late on average, {:.1} ms at worst",
        last.lateness_mean_s * 1e3,
        last.lateness_max_s * 1e3
    );
    let broken = compared.live.iter().find_map(|row| row.error.as_ref());
    match (compared.agrees, compared.attempts.len()) {
        (None, tries) => format!(
            "No verdict: none of {tries} live runs can be believed ({}). Run it on an idle machine, or with real-time \
             priority: chrt -r 10 lab live …",
            last.flaws.join("; ")
        ),
        (Some(_), _) if let Some(broken) = broken => format!("The live session broke off: {broken}"),
        (Some(_), 1) => format!("Valid: {punctual}."),
        (Some(_), tries) => format!("Valid at attempt {tries}: {punctual}."),
    }
}

/// Makes the output directory, before anything is run whose results would be lost.
pub(super) fn prepare(directory: &Path) -> Result<(), LiveError> {
    std::fs::create_dir_all(directory).map_err(|source| LiveError::Save {
        path: directory.to_owned(),
        source,
    })
}

/// Writes the report into `directory`, and gives it as text too.
pub(super) fn save(report: &LiveReport, directory: &Path) -> Result<(PathBuf, String), LiveError> {
    let path = directory.join(FILE);
    let mut text = serde_json::to_string_pretty(report).map_err(|error| LiveError::Save {
        path: path.clone(),
        source: error.into(),
    })?;
    text.push('\n');
    match std::fs::write(&path, &text) {
        Ok(()) => Ok((path, text)),
        Err(source) => Err(LiveError::Save { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(verdicts: &[Option<bool>]) -> LiveReport {
        let comparisons: Vec<_> = verdicts
            .iter()
            .map(|agrees| Comparison {
                agrees: *agrees,
                ..Comparison::new("reno".to_owned(), Vec::new(), Vec::new(), Vec::new())
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
            (&[Some(true), None], "agree where a live run can be believed"),
            (&[None], "Nothing can be said"),
            (&[Some(true), None, Some(false)], "do NOT agree"),
        ] {
            let text = report(verdicts).text();
            assert!(
                text.contains(said) && text.contains("Stopped before cubic."),
                "{text}"
            );
        }
    }
}
