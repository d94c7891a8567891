//! [`Counts`]: sessions of a campaign by fault and ending, as a table of at most 80 columns and as JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use playrate_units::rounded::grouped;
use serde_json::{Value, json};

use crate::campaign::Verdict;
use crate::ending::Ending;
use crate::kind::FaultKind;
use crate::words::WIDTH;

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
pub(crate) struct Counts {
    rows: BTreeMap<&'static str, Row>,
}

impl Counts {
    pub(crate) fn add(&mut self, verdict: &Verdict) {
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

    /// Rows in table order.
    fn rows(&self) -> impl Iterator<Item = (&'static str, &Row)> {
        let names = [NONE].into_iter().chain(FaultKind::NAMES).chain([ALL]);
        names.filter_map(|name| Some((name, self.rows.get(name)?)))
    }

    /// The table, with a column for each ending that occurs; the rarest ones share a column if they would not fit.
    pub(crate) fn table(&self) -> String {
        let total = |ending: &Ending| {
            let all = self.rows.get(ALL);
            all.and_then(|row| row.endings.get(ending)).copied().unwrap_or(0)
        };
        let mut shown: Vec<Ending> = Ending::ALL
            .into_iter()
            .filter(|ending| total(ending) > 0)
            .collect();
        let mut columns = self.columns(&shown, false);
        while width(&columns) > WIDTH && !shown.is_empty() {
            let rarest = shown.iter().copied().min_by_key(total);
            shown.retain(|ending| Some(*ending) != rarest);
            columns = self.columns(&shown, true);
        }
        let lines = columns.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for line in 0..lines {
            let mut cells = columns
                .iter()
                .filter_map(|column| Some((column.get(line)?, cells_width(column))));
            if let Some((label, width)) = cells.next() {
                let _ = write!(text, "{label:<width$}");
            }
            for (cell, width) in cells {
                let _ = write!(text, " {cell:>width$}");
            }
            text.push('\n');
        }
        text
    }

    /// Columns of the table from two-line headings to last cells: names, sessions, `shown` endings, all `others`
    /// together, and violating sessions.
    fn columns(&self, shown: &[Ending], others: bool) -> Vec<Vec<String>> {
        let column = |heading: &str, count: &dyn Fn(&Row) -> u64| {
            let counts = self.rows().map(|(_, row)| match count(row) {
                0 => "–".to_owned(),
                count => grouped(count),
            });
            two_lines(heading).into_iter().chain(counts).collect()
        };
        let names = self.rows().map(|(name, _)| name.to_owned());
        let mut columns = vec![[String::new(), String::new()].into_iter().chain(names).collect()];
        columns.push(column("sessions", &|row| row.sessions));
        for ending in shown {
            columns.push(column(ending.name(), &|row| {
                row.endings.get(ending).copied().unwrap_or(0)
            }));
        }
        if others {
            let rest = |row: &Row| {
                row.endings
                    .iter()
                    .filter(|(ending, _)| !shown.contains(ending))
                    .map(|(_, count)| count)
                    .sum()
            };
            columns.push(column("other", &rest));
        }
        columns.push(column("violating", &|row| row.violating));
        columns
    }

    pub(crate) fn json(&self) -> Value {
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

/// Width of a table with these columns, including a space between two of them.
fn width(columns: &[Vec<String>]) -> usize {
    columns
        .iter()
        .map(|column| cells_width(column) + 1)
        .sum::<usize>()
        .saturating_sub(1)
}

/// Width of a column's widest cell.
fn cells_width(column: &[String]) -> usize {
    column.iter().map(|cell| cell.chars().count()).max().unwrap_or(0)
}

/// A heading on two lines, split at its space, or with a hyphen if it is long.
fn two_lines(name: &str) -> [String; 2] {
    match (name.split_once(' '), name.len()) {
        (Some((one, two)), _) => [one.to_owned(), two.to_owned()],
        (None, 7..) => {
            let (one, two) = name.split_at(name.len().div_ceil(2));
            [format!("{one}-"), two.to_owned()]
        }
        (None, _) => [String::new(), name.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(ending: Ending) -> Verdict {
        Verdict {
            seed: 1,
            faults: FaultKind::NAMES.to_vec(),
            ending,
            violations: Vec::new(),
            known: Vec::new(),
            wire_hash: 0,
        }
    }

    #[test]
    fn a_table_of_every_ending_and_large_counts_fits_and_loses_no_session() {
        let mut counts = Counts::default();
        for ending in Ending::ALL {
            counts.add(&verdict(ending));
        }
        for row in counts.rows.values_mut() {
            row.sessions += 123_456;
            for ending in [Ending::Completed, Ending::GivenUp, Ending::Silent] {
                *row.endings.get_mut(&ending).unwrap() += 41_152;
            }
        }
        let table = counts.table();
        assert!(table.lines().all(|line| line.chars().count() <= WIDTH), "{table}");
        for row in table.lines().skip(2) {
            let cells: Vec<u64> = row[16..]
                .split_whitespace()
                .map(|cell| cell.replace(',', "").parse().unwrap_or(0))
                .collect();
            let (sessions, endings) = (cells[0], &cells[1..cells.len() - 1]);
            assert_eq!(endings.iter().sum::<u64>(), sessions, "{table}");
        }
        let common = table.lines().nth(1).unwrap();
        assert!(common.contains("up") && common.contains("other"), "{table}");
    }

    #[test]
    fn a_table_of_few_endings_names_all_of_them() {
        let mut counts = Counts::default();
        counts.add(&verdict(Ending::Completed));
        counts.add(&verdict(Ending::Reset));
        let table = counts.table();
        assert!(table.contains("reset") && !table.contains("other"), "{table}");
    }
}
