//! What came out, as a table for each scenario.

use comfy_table::{CellAlignment, Table, presets};

use super::plan::Job;
use super::row::{BULK, IDEAL, Row, Seen, VIEWER};
use crate::scenario::full_name;
use crate::statistics::Spread;

/// A column: head, value of a row, decimals.
type Measure = (&'static str, fn(&Row) -> Option<f64>, usize);

const MEASURES: &[Measure] = &[
    (
        "pictures discarded",
        |row| seen(row, |seen| seen.frames_discarded as f64),
        0,
    ),
    (
        "underflows",
        |row| seen(row, |seen| seen.underflow_events as f64),
        0,
    ),
    ("frozen [s]", |row| seen(row, |seen| seen.frozen_s), 2),
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

/// What a viewer saw; nobody watches a download.
fn seen(row: &Row, value: fn(&Seen) -> f64) -> Option<f64> {
    (row.role == VIEWER).then(|| value(&row.seen))
}

/// The rows of one controller in one scenario or case of it: of its viewers, or of the downloads beside them.
struct Group<'a> {
    scenario: &'a str,
    case: &'a str,
    controller: &'a str,
    role: &'a str,
    rows: Vec<&'a Row>,
}

impl<'a> Group<'a> {
    fn name(&self) -> (&'a str, &'a str, &'a str, &'a str) {
        (self.scenario, self.case, self.controller, self.role)
    }

    /// What its line is called.
    fn label(&self) -> String {
        if self.role == VIEWER {
            return self.controller.to_owned();
        }
        let flow = self.rows.first().map_or("", |row| row.flow_controller.as_str());
        format!("  beside {}: {flow}", self.controller)
    }
}

/// Tables of mean ± standard deviation (smallest to largest), one for each scenario or case, controllers in the order of `plan`.
pub fn tables<'a>(plan: &'a [Job], rows: impl Fn(&Job) -> Option<&'a [Row]>) -> String {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for job in plan {
        let key = &job.key;
        let found = rows(job).unwrap_or_default();
        for role in [VIEWER, BULK] {
            let rows: Vec<&Row> = found.iter().filter(|row| row.role == role).collect();
            let name = (
                key.scenario.as_str(),
                key.case.as_str(),
                key.controller.as_str(),
                role,
            );
            let known = groups.iter_mut().find(|group| group.name() == name);
            match known {
                Some(group) => group.rows.extend(rows),
                None if role == BULK && rows.is_empty() => {}
                None => groups.push(Group {
                    scenario: name.0,
                    case: name.1,
                    controller: name.2,
                    role,
                    rows,
                }),
            }
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
    let mut cells = vec![group.label(), count];
    cells.extend(MEASURES.iter().map(|(_, value, decimals)| {
        Spread::of(group.rows.iter().filter_map(|row| value(row)))
            .map_or_else(|| "–".to_owned(), |spread| spread.text(*decimals))
    }));
    cells
}
