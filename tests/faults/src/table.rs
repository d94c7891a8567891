//! [`Row`]: sessions of a campaign with one kind of fault, as lines of at most 80 columns and as JSON.

use std::collections::BTreeMap;

use playrate_units::rounded::grouped;
use serde_json::{Map, Value, json};

use crate::campaign::Verdict;
use crate::ending::Ending;
use crate::kind::FaultKind;
use crate::words::wrapped;

/// Label of sessions without any fault.
const NONE: &str = "no fault";
/// Label of the last row of the table.
const ALL: &str = "all sessions";

/// Sessions with one kind of fault. A session with several kinds of faults counts in each of their rows.
#[derive(Clone, Debug)]
struct Row {
    name: &'static str,
    sessions: u64,
    endings: BTreeMap<Ending, u64>,
    violating: u64,
}

/// Rows of the faults that occurred, in table order.
fn rows(verdicts: &[Verdict]) -> impl Iterator<Item = Row> {
    let names = [NONE].into_iter().chain(FaultKind::NAMES).chain([ALL]);
    let row = move |name| {
        let (mut sessions, mut endings, mut violating) = (0, BTreeMap::new(), 0);
        for verdict in verdicts {
            if name == ALL || verdict.faults.contains(&name) || (name == NONE && verdict.faults.is_empty()) {
                sessions += 1;
                *endings.entry(verdict.ending).or_default() += 1;
                violating += u64::from(!verdict.violations.is_empty());
            }
        }
        Row {
            name,
            sessions,
            endings,
            violating,
        }
    };
    names.map(row).filter(|row| row.sessions > 0)
}

/// The table, with the endings of each row by name.
pub(crate) fn table(verdicts: &[Verdict]) -> String {
    let mut text = format!("{:16} sessions violating  endings\n", "");
    for row in rows(verdicts) {
        let endings = row.endings.iter();
        let endings = endings.map(|(ending, count)| format!("{} {}", grouped(*count), ending.name()));
        let (name, [sessions, violating]) = (row.name, [row.sessions, row.violating].map(grouped));
        let mark = format!("{name:16} {sessions:>8} {violating:>9}  ");
        text += &wrapped(&mark, &endings.collect::<Vec<_>>().join(", "));
    }
    text
}

pub(crate) fn json(verdicts: &[Verdict]) -> Value {
    let rows = rows(verdicts).map(|row| {
        let endings = row.endings.iter();
        let endings: Map<_, _> = endings
            .map(|(ending, count)| (ending.name().to_owned(), json!(count)))
            .collect();
        json!({ "fault": row.name, "sessions": row.sessions, "endings": endings, "violating": row.violating })
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_many_endings_fits_and_loses_no_session() {
        let endings = [
            Ending::Completed,
            Ending::TimedOut,
            Ending::Cancelled,
            Ending::GivenUp,
            Ending::Unended,
        ];
        let mut verdicts = Vec::new();
        for (ending, sessions) in endings.into_iter().zip([1_200, 3, 40, 500, 1]) {
            let verdict = Verdict {
                seed: 1,
                faults: FaultKind::NAMES.to_vec(),
                ending,
                violations: Vec::new(),
                known: Vec::new(),
                wire_hash: 0,
            };
            verdicts.extend(vec![verdict; sessions]);
        }
        let indent = " ".repeat(37);
        let row = format!(
            "   1,744         0  1,200 completed, 3 timed out, 40 cancelled,\n{indent}500 given up, 1 unended\n"
        );
        let names = FaultKind::NAMES.into_iter().chain([ALL]);
        let rows: Vec<_> = names.map(|name| format!("{name:16} {row}")).collect();
        let rows = rows.concat();
        assert_eq!(
            table(&verdicts),
            format!("{:16} sessions violating  endings\n{rows}", "")
        );
        assert!(rows.lines().all(|line| line.len() <= 80));
    }
}
