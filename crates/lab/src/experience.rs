//! The table of what each viewer experienced: one source for the terminal, the report and their marks.

use crate::facts::Facts;
use crate::metric::Better;
use crate::record::{Comparison, Outcome, RunRecord};
use crate::words::{grouped, percent, rate, size, time};

/// A row: one quantity, a value for each run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// What is measured.
    pub label: &'static str,
    /// What it means, in a few words.
    pub meaning: String,
    /// The values as text, in the order of the runs.
    pub values: Vec<String>,
    /// Which values are the best; empty if they do not differ or if neither is better.
    pub best: Vec<bool>,
    /// Whose experience it is.
    pub group: Group,
}

/// Which part of the table a row stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// What the viewer notices.
    Viewer,
    /// What the network notices.
    Transport,
}

impl Group {
    /// Its title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Viewer => "What the viewer noticed",
            Self::Transport => "What the network noticed",
        }
    }
}

/// The rows for all runs of `comparison`.
pub fn rows(comparison: &Comparison) -> Vec<Row> {
    let runs = &comparison.runs;
    let facts: Vec<Facts> = runs.iter().map(|run| Facts::of(run, comparison)).collect();
    let viewer = |label, meaning: &str, better, value: &dyn Fn(&RunRecord) -> (f64, String)| {
        let values: Vec<_> = runs.iter().map(value).collect();
        row(Group::Viewer, label, meaning.to_owned(), better, &values)
    };
    let transport = |label, meaning: &str, better, value: &dyn Fn(&RunRecord, &Facts) -> (f64, String)| {
        let values: Vec<_> = runs
            .iter()
            .zip(&facts)
            .map(|(run, facts)| value(run, facts))
            .collect();
        row(Group::Transport, label, meaning.to_owned(), better, &values)
    };
    let optional = |value: Option<std::time::Duration>| {
        value.map_or_else(
            || (f64::INFINITY, "never".to_owned()),
            |value| (value.as_secs_f64(), time(value)),
        )
    };
    vec![
        viewer(
            "Start-up delay",
            "from the request to the first picture",
            Better::Lower,
            &|run| optional(run.viewer.startup),
        ),
        viewer(
            "Freezes",
            "underflow events of the playout buffer",
            Better::Lower,
            &|run| (run.viewer.underflows as f64, grouped(run.viewer.underflows)),
        ),
        viewer("Time frozen", "the picture stood still", Better::Lower, &|run| {
            (run.viewer.frozen.as_secs_f64(), time(run.viewer.frozen))
        }),
        viewer(
            "Pictures discarded",
            "their data came too late to show them",
            Better::Lower,
            &|run| {
                let text = format!(
                    "{} of {}",
                    grouped(run.viewer.discarded),
                    grouped(run.viewer.pictures)
                );
                (run.viewer.discarded as f64, text)
            },
        ),
        viewer("How it ended", "", Better::Neither, &|run| {
            let text = match &run.viewer.outcome {
                Outcome::Played => "played to the end".to_owned(),
                Outcome::Stopped => format!("stopped after {}", time(run.viewer.length)),
                Outcome::Failed(reason) => format!("failed: {reason}"),
            };
            (0.0, text)
        }),
        transport(
            "Throughput",
            "of the title's bytes, while data was coming",
            Better::Higher,
            &|_, facts| (facts.throughput.as_mbps(), rate(facts.throughput)),
        ),
        transport("Mean congestion window", "", Better::Neither, &|_, facts| {
            (0.0, size(facts.mean_window))
        }),
        transport(
            "Median RTT",
            &format!("{} of it is propagation", time(comparison.path.rtt)),
            Better::Lower,
            &|_, facts| optional(facts.median_rtt),
        ),
        transport("95 % of RTTs below", "", Better::Lower, &|_, facts| {
            optional(facts.high_rtt)
        }),
        transport(
            "Packets sent again",
            "declared lost by the sender",
            Better::Lower,
            &|run, facts| {
                let text = format!("{} ({})", grouped(run.sender.lost), percent(facts.lost_share));
                (facts.lost_share, text)
            },
        ),
        transport(
            "Window cuts",
            "after a congestion signal",
            Better::Neither,
            &|_, facts| (0.0, facts.cuts.to_string()),
        ),
    ]
}

fn row(group: Group, label: &'static str, meaning: String, better: Better, values: &[(f64, String)]) -> Row {
    let numbers = || values.iter().map(|value| value.0);
    let best = match better {
        Better::Lower => Some(numbers().fold(f64::INFINITY, f64::min)),
        Better::Higher => Some(numbers().fold(f64::NEG_INFINITY, f64::max)),
        Better::Neither => None,
    };
    let texts: Vec<String> = values.iter().map(|value| value.1.clone()).collect();
    // What reads the same is the same.
    let differ = texts.iter().any(|text| *text != texts[0]);
    Row {
        label,
        meaning,
        best: match best.filter(|_| differ) {
            Some(best) => values
                .iter()
                .map(|value| value.0.total_cmp(&best).is_eq())
                .collect(),
            None => Vec::new(),
        },
        values: texts,
        group,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::comparison;

    fn find(rows: &[Row], label: &str) -> Row {
        rows.iter().find(|row| row.label == label).cloned().unwrap()
    }

    #[test]
    fn the_better_value_is_marked() {
        let rows = rows(&comparison());
        let freezes = find(&rows, "Freezes");
        assert_eq!(
            (freezes.values, freezes.best),
            (vec!["3".into(), "0".into()], vec![false, true])
        );
        let throughput = find(&rows, "Throughput");
        assert_eq!(throughput.best, [false, true], "{throughput:?}");
    }

    #[test]
    fn equal_values_and_neutral_rows_have_no_mark() {
        let rows = rows(&comparison());
        assert!(find(&rows, "Start-up delay").best.is_empty());
        assert!(find(&rows, "Mean congestion window").best.is_empty());
    }

    #[test]
    fn a_viewer_who_never_saw_a_picture_does_not_win() {
        let mut none = comparison();
        none.runs[0].viewer.startup = None;
        let startup = find(&rows(&none), "Start-up delay");
        assert_eq!(
            (startup.values[0].as_str(), startup.best),
            ("never", vec![false, true])
        );
    }

    #[test]
    fn no_runs_give_rows_without_values() {
        let mut empty = comparison();
        empty.runs.clear();
        assert!(
            rows(&empty)
                .iter()
                .all(|row| row.values.is_empty() && row.best.is_empty())
        );
    }
}
