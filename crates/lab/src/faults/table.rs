//! [`Counts`]: sessions of a campaign by fault and ending, as a table of at most 80 columns and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::campaign::Verdict;
use super::ending::Ending;
use super::kind::FaultKind;
use crate::words::grouped;

/// Label of sessions without any fault.
const NONE: &str = "no fault";
/// Label of the last row of the table.
const ALL: &str = "all sessions";

/// Sessions with one kind of fault.
#[derive(Clone, Debug, Default)]
struct Row {
    sessions: u64,
    endings: BTreeMap<Ending, u64>,
    violating: u64,
}

impl Row {
    fn add(&mut self, verdict: &Verdict) {
        self.sessions += 1;
        *self.endings.entry(verdict.ending).or_default() += 1;
        self.violating += u64::from(!verdict.violations.is_empty());
    }
}

/// Sessions of a campaign by fault and ending. A session with several kinds of faults counts in each of their rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    rows: BTreeMap<&'static str, Row>,
}

impl Counts {
    pub(super) fn add(&mut self, verdict: &Verdict) {
        let mut names = verdict.faults.clone();
        names.sort_unstable();
        names.dedup();
        if names.is_empty() {
            names.push(NONE);
        }
        for name in names.into_iter().chain([ALL]) {
            self.rows.entry(name).or_default().add(verdict);
        }
    }

    /// Rows in the order of tables.
    fn rows(&self) -> impl Iterator<Item = (&'static str, &Row)> {
        let names = [NONE].into_iter().chain(FaultKind::NAMES).chain([ALL]);
        names.filter_map(|name| Some((name, self.rows.get(name)?)))
    }

    /// The table; a column for each ending that occurs.
    pub(super) fn table(&self) -> String {
        let endings: Vec<Ending> = Ending::ALL
            .into_iter()
            .filter(|ending| {
                self.rows
                    .get(ALL)
                    .is_some_and(|row| row.endings.contains_key(ending))
            })
            .collect();
        let mut head = vec!["sessions".to_owned()];
        head.extend(endings.iter().map(|ending| ending.name().to_owned()));
        head.push("violating".to_owned());
        // Headings are two lines high, so that ten columns fit.
        let split: Vec<(String, String)> = head.iter().map(|name| two_lines(name)).collect();
        let widths: Vec<usize> = split
            .iter()
            .map(|(one, two)| one.len().max(two.len()).max(4) + 1)
            .collect();
        let mut text = String::new();
        for line in 0..2 {
            let _ = write!(text, "{:<16}", "");
            for ((one, two), width) in split.iter().zip(&widths) {
                let part = if line == 0 { one } else { two };
                let _ = write!(text, "{part:>width$}");
            }
            text.push('\n');
        }
        for (name, row) in self.rows() {
            let _ = write!(text, "{name:<16}");
            let counts = endings
                .iter()
                .map(|ending| row.endings.get(ending).copied().unwrap_or(0));
            let counts = [row.sessions].into_iter().chain(counts).chain([row.violating]);
            for (count, width) in counts.zip(&widths) {
                let shown = if count == 0 {
                    "–".to_owned()
                } else {
                    grouped(count)
                };
                let _ = write!(text, "{shown:>width$}");
            }
            text.push('\n');
        }
        text
    }

    pub(super) fn json(&self) -> Value {
        let rows = self.rows().map(|(name, row)| {
            let endings: serde_json::Map<_, _> = row
                .endings
                .iter()
                .map(|(ending, count)| (ending.name().to_owned(), json!(count)))
                .collect();
            json!({ "fault": name, "sessions": row.sessions, "endings": endings, "violating": row.violating })
        });
        rows.collect()
    }
}

/// A heading in two lines: at its space, or cut with a hyphen if it is long.
fn two_lines(name: &str) -> (String, String) {
    match (name.split_once(' '), name.len()) {
        (Some((one, two)), _) => (one.to_owned(), two.to_owned()),
        (None, 7..) => {
            let (one, two) = name.split_at(name.len().div_ceil(2));
            (format!("{one}-"), two.to_owned())
        }
        (None, _) => (String::new(), name.to_owned()),
    }
}
