//! What came out, as a table for each scenario.

use comfy_table::{CellAlignment, Table, presets};

use super::plan::Job;
use super::row::{IDEAL, Row};
use crate::scenario::full_name;

/// Mean, standard deviation of the sample, smallest and largest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// How many values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation (n − 1); zero for a single value.
    pub sd: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` if there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Self {
            count,
            mean,
            sd,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// `12.3 ± 1.4 (11 to 14)`, with so many decimals; a single value alone.
    fn text(self, decimals: usize) -> String {
        if self.min >= self.max {
            return format!("{:.decimals$}", self.mean);
        }
        let more = decimals.max(1);
        format!(
            "{:.more$} ± {:.more$} ({:.decimals$} to {:.decimals$})",
            self.mean, self.sd, self.min, self.max
        )
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_that_of_a_sample() {
        let spread = Spread::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert!((spread.mean - 5.0).abs() < 1e-12);
        assert!((spread.sd - (32.0_f64 / 7.0).sqrt()).abs() < 1e-12);
        assert_eq!((spread.min, spread.max, spread.count), (2.0, 9.0, 8));
        assert_eq!(spread.text(0), "5.0 ± 2.1 (2 to 9)");
        assert_eq!(Spread::of([3.0]).unwrap().text(2), "3.00");
        assert_eq!(Spread::of([]), None);
    }
}
