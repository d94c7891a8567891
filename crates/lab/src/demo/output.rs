//! What the demo leaves: a table on stdout, and files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use super::DemoError;
use crate::experience::{Group, rows};
use crate::explain::Explanation;
use crate::record::{Comparison, LinkCounts, PathFacts, RunRecord, Sender, TitleFacts, Viewer};
use crate::report;

/// Name of the report in the output directory.
pub(super) const REPORT: &str = "report.html";
/// Length of a line of text on stdout.
const LINE: usize = 100;
/// Name of the records in the output directory.
pub(super) const RECORDS: &str = "demo.json";

/// Makes the output directory, before anything is run whose results would be lost.
pub(super) fn prepare(directory: &Path) -> Result<(), DemoError> {
    std::fs::create_dir_all(directory).map_err(|source| DemoError::Directory {
        path: directory.to_owned(),
        source,
    })
}

/// Writes report, records and figures into `directory`. Gives the report's path.
pub(super) fn save(comparison: &Comparison, directory: &Path) -> Result<PathBuf, DemoError> {
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        match std::fs::write(&path, text) {
            Ok(()) => Ok(path),
            Err(source) => Err(DemoError::Save { path, source }),
        }
    };
    write(RECORDS, &serde_json::to_string(comparison)?)?;
    for (name, svg) in report::figures(comparison)? {
        write(&name, &svg)?;
    }
    write(REPORT, &report::html(comparison)?)
}

/// Prints the table and the explanation.
pub(super) fn print(comparison: &Comparison, out: &mut impl Write) -> io::Result<()> {
    let explanation = Explanation::of(comparison);
    for line in table(comparison).lines() {
        writeln!(out, "{}", line.trim_end())?;
    }
    writeln!(
        out,
        "\n* the better value, where they differ\n\n{}\n",
        wrap(&explanation.headline, "", LINE)
    )?;
    for reason in &explanation.reasons {
        writeln!(out, "{}", wrap(reason, "- ", LINE))?;
    }
    if let Some(warning) = &explanation.warning {
        writeln!(out, "\n{}", wrap(warning, "WARNING: ", LINE))?;
    }
    Ok(())
}

fn table(comparison: &Comparison) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    let specs = comparison.runs.iter().map(|run| run.spec.clone());
    table.set_header(std::iter::once(String::new()).chain(specs));
    let rows = rows(comparison);
    for group in [Group::Viewer, Group::Transport] {
        table.add_row(vec![String::new()]);
        table.add_row(vec![group.title().to_uppercase()]);
        for row in rows.iter().filter(|row| row.group == group) {
            let values = row.values.iter().enumerate().map(|(i, value)| {
                let mark = if row.best.get(i).copied().unwrap_or(false) {
                    "* "
                } else {
                    ""
                };
                format!("{mark}{value}")
            });
            table.add_row(std::iter::once(row.label.to_owned()).chain(values));
        }
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

/// `lead` and `text`, broken between words into lines of at most `width` characters where words allow it; later lines
/// are indented as far as `lead` goes.
fn wrap(text: &str, lead: &str, width: usize) -> String {
    let indent = " ".repeat(lead.chars().count());
    let mut lines = vec![lead.to_owned()];
    let mut is_new = true;
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if !is_new && used + 1 + word.chars().count() > width {
            lines.push(indent.clone());
            is_new = true;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if is_new { "" } else { " " });
            line.push_str(word);
        }
        is_new = false;
    }
    lines.join("\n")
}

/// What `--json` prints: everything but the time series. Times are seconds, sizes bytes, rates bit/s.
#[derive(Serialize)]
struct Summary<'a> {
    version: &'a str,
    title: &'a TitleFacts,
    path: &'a PathFacts,
    playout_buffer: playrate_units::Bytes,
    headline: String,
    reasons: Vec<String>,
    warning: Option<String>,
    runs: Vec<RunSummary<'a>>,
    report: String,
}

#[derive(Serialize)]
struct RunSummary<'a> {
    spec: &'a str,
    valid: bool,
    throughput: playrate_units::Bitrate,
    viewer: &'a Viewer,
    sender: &'a Sender,
    link: &'a LinkCounts,
}

impl<'a> RunSummary<'a> {
    fn of(run: &'a RunRecord) -> Self {
        Self {
            spec: &run.spec,
            valid: run.link.is_valid(),
            throughput: run.viewer.throughput(),
            viewer: &run.viewer,
            sender: &run.sender,
            link: &run.link,
        }
    }
}

/// Prints the comparison as one JSON object.
pub(super) fn print_json(comparison: &Comparison, report: &Path, out: &mut impl Write) -> io::Result<()> {
    let Explanation {
        headline,
        reasons,
        warning,
    } = Explanation::of(comparison);
    let summary = Summary {
        version: &comparison.version,
        title: &comparison.title,
        path: &comparison.path,
        playout_buffer: comparison.playout_buffer,
        headline,
        reasons,
        warning,
        runs: comparison.runs.iter().map(RunSummary::of).collect(),
        report: report.display().to_string(),
    };
    writeln!(out, "{}", serde_json::to_string_pretty(&summary)?)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::comparison;

    #[test]
    fn the_table_has_a_column_for_each_run_and_marks_the_better_value() {
        let text = table(&comparison()).to_string();
        let freezes = text.lines().find(|line| line.contains("Freezes")).unwrap();
        assert!(freezes.contains('3') && freezes.contains("* 0"), "{text}");
        assert!(
            text.lines()
                .next()
                .is_some_and(|head| head.contains("reno") && head.contains("cubic")),
            "{text}"
        );
    }

    #[test]
    fn saved_records_read_back_to_the_same() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path().join("new/deep");
        prepare(&directory).unwrap();
        let report = save(&comparison(), &directory).unwrap();
        assert!(std::fs::read_to_string(&report).unwrap().contains("</html>"));
        let records = std::fs::read_to_string(report.with_file_name(RECORDS)).unwrap();
        assert_eq!(
            serde_json::from_str::<Comparison>(&records).unwrap(),
            comparison()
        );
        assert!(report.with_file_name("rtt.svg").exists());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("taken");
        std::fs::write(&file, "").unwrap();
        let error = prepare(&file.join("out")).unwrap_err();
        assert!(error.to_string().contains("taken/out"), "{error}");
        assert!(error.is_bad_input());
    }

    #[test]
    fn json_has_both_runs_and_no_series() {
        let mut text = Vec::new();
        print_json(&comparison(), Path::new("x/report.html"), &mut text).unwrap();
        let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(value["runs"][0]["spec"], "reno");
        assert_eq!(value["runs"][0]["viewer"]["frozen"], 5.5);
        assert_eq!(value["path"]["rtt"], 0.2);
        assert!(value["runs"][0].get("transport").is_none());
    }

    #[test]
    fn long_texts_are_broken_between_words() {
        assert_eq!(wrap("one two three four", "- ", 9), "- one two\n  three\n  four");
        assert_eq!(wrap("incomprehensibilities", "", 5), "incomprehensibilities");
    }
}
