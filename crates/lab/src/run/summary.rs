//! What came out, as a table for each scenario.

use comfy_table::{CellAlignment, Table, presets};

use super::plan::Job;
use super::row::{IDEAL, Row};
use crate::scenario::full_name;
use crate::statistics::Spread;

/// A column: head, value of a row, decimals.
type Measure = (&'static str, fn(&Row) -> Option<f64>, usize);

const MEASURES: &[Measure] = &[
    (
        "pictures discarded",
        |row| Some(row.seen.frames_discarded as f64),
        0,
    ),
    ("underflows", |row| Some(row.seen.underflow_events as f64), 0),
    ("frozen [s]", |row| Some(row.seen.frozen_s), 2),
    ("start [s]", |row| row.seen.startup_delay_s, 2),
    (
        "packets lost",
        |row| Some(row.sender.as_ref()?.lost_packets as f64),
        0,
    ),
    (
        "throughput [Mbit/s]",
        |row| Some(row.throughput_bps? as f64 / 1e6),
        2,
    ),
];

/// The rows of one controller in one scenario or case of it.
struct Group<'a> {
    scenario: &'a str,
    case: &'a str,
    controller: &'a str,
    rows: Vec<&'a Row>,
}

/// Tables of mean ± standard deviation (smallest to largest), one for each scenario or case, controllers in the order of `plan`.
pub fn tables<'a>(plan: &'a [Job], rows: impl Fn(&Job) -> Option<&'a [Row]>) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for job in plan {
        let key = &job.key;
        let known = groups.iter_mut().find(|group| {
            (group.scenario, group.case, group.controller)
                == (key.scenario.as_str(), key.case.as_str(), key.controller.as_str())
        });
        let found = rows(job).unwrap_or_default();
        match known {
            Some(group) => group.rows.extend(found),
            None => groups.push(Group {
                scenario: &key.scenario,
                case: &key.case,
                controller: &key.controller,
                rows: found.iter().collect(),
            }),
        }
    }
    let mut text = String::new();
    for scenario in groups.chunk_by(|one, other| (one.scenario, one.case) == (other.scenario, other.case)) {
        let Some(first) = scenario.first() else { continue };
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        let heads = ["controller", "runs"]
            .into_iter()
            .chain(MEASURES.iter().map(|(head, ..)| *head));
        table.set_header(heads);
        for group in scenario {
            table.add_row(line(group));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        text.push_str(&full_name(first.scenario, first.case));
        text.push('\n');
        text.push_str(&table.to_string());
        text.push_str("\n\n");
    }
    text
}

fn line(group: &Group<'_>) -> Vec<String> {
    let count = if group.controller == IDEAL {
        "–".to_owned()
    } else {
        group.rows.len().to_string()
    };
    let mut cells = vec![group.controller.to_owned(), count];
    cells.extend(MEASURES.iter().map(|(_, value, decimals)| {
        Spread::of(group.rows.iter().filter_map(|row| value(row)))
            .map_or_else(|| "–".to_owned(), |spread| spread.text(*decimals))
    }));
    cells
}
