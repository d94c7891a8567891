//! The table of each scenario that `lab run` prints.

use std::fmt::Write as _;

use super::Job;
use crate::figure::short_name;
use crate::metric::{Metric, Unit};
use crate::result::{BULK, IDEAL, Row, VIEWER};
use crate::scenario::full_name;
use crate::statistics::Spread;
use crate::words::stacked_tables;

/// The metrics of the table, and true for those that a bulk flow has too.
const COLUMNS: [(&str, bool); 6] = [
    ("frames_discarded", false),
    ("underflow_events", false),
    ("frozen_s", false),
    ("startup_delay_s", false),
    ("lost_packets", true),
    ("throughput_bps", true),
];

fn columns() -> impl Iterator<Item = (&'static Metric, bool)> {
    let columns = COLUMNS.iter();
    columns.filter_map(|(name, of_bulk)| Some((Metric::find(name)?, *of_bulk)))
}

/// Rows of one controller in one scenario or case: of its viewers, or of the bulk flows beside them.
struct FlowGroup<'a> {
    scenario: &'a str,
    case: &'a str,
    controller: &'a str,
    role: &'a str,
    rows: Vec<&'a Row>,
}

impl<'a> FlowGroup<'a> {
    fn name(&self) -> (&'a str, &'a str, &'a str, &'a str) {
        (self.scenario, self.case, self.controller, self.role)
    }

    fn label(&self) -> String {
        if self.role == VIEWER {
            return short_name(self.controller);
        }
        let flow = self.rows.first().map_or("", |row| row.flow_controller.as_str());
        format!("  beside {}: {}", short_name(self.controller), short_name(flow))
    }

    fn line(&self) -> Vec<String> {
        let count = match self.controller {
            IDEAL => "–".to_owned(),
            _ => self.rows.len().to_string(),
        };
        let cells = columns().map(|(metric, of_bulk)| {
            let (_, scale) = metric.unit.axis();
            let rows = self.rows.iter().filter(|_| of_bulk || self.role == VIEWER);
            let values = rows.filter_map(|row| Some(metric.value(row)? * scale));
            let decimals = if metric.unit == Unit::Count { 0 } else { 2 };
            Spread::of(values).map_or_else(|| "–".to_owned(), |spread| folded(&spread.text(decimals)))
        });
        [self.label(), count].into_iter().chain(cells).collect()
    }
}

/// The range of a spread in a line of its own.
fn folded(spread: &str) -> String {
    spread.replace(" (", "\n(")
}

/// Tables of mean ± standard deviation (smallest to largest), one for each scenario or case, controllers in the
/// order of `plan`.
pub(super) fn tables<'a>(plan: &'a [Job], rows: impl Fn(&Job) -> Option<&'a [Row]>) -> String {
    let mut groups: Vec<FlowGroup<'_>> = Vec::new();
    for job in plan {
        let found = rows(job).unwrap_or_default();
        for role in [VIEWER, BULK] {
            let group = FlowGroup {
                scenario: &job.key.scenario,
                case: &job.key.case,
                controller: &job.key.controller,
                role,
                rows: found.iter().filter(|row| row.role == role).collect(),
            };
            match groups.iter_mut().find(|known| known.name() == group.name()) {
                Some(known) => known.rows.extend(group.rows),
                None if role == BULK && group.rows.is_empty() => {}
                None => groups.push(group),
            }
        }
    }
    let head = columns().map(|(metric, _)| match metric.unit.axis() {
        ("", _) => metric.label.to_owned(),
        (unit, _) => format!("{} [{unit}]", metric.label),
    });
    let head: Vec<String> = ["controller", "runs"]
        .map(str::to_owned)
        .into_iter()
        .chain(head)
        .collect();
    let mut text = String::new();
    for scenario in groups.chunk_by(|one, other| (one.scenario, one.case) == (other.scenario, other.case)) {
        let Some(first) = scenario.first() else { continue };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", full_name(first.scenario, first.case));
        let lines: Vec<_> = scenario.iter().map(FlowGroup::line).collect();
        text.push_str(&stacked_tables(&head, &lines, 2, 3));
        text.push('\n');
    }
    text
}
