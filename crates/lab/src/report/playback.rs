//! The playback of each viewer over time, from the events that a run with `--series` stores.

use std::fs;

use super::request::{Drawn, file_name};
use super::results::{CaseResults, ControllerResults, Experiment};
use crate::figure::{Lane, Span, SpanKind, Timeline};
use crate::result::VIEWER;

/// Most viewers of one run whose playback is drawn.
const MOST_VIEWERS: u32 = 4;

/// Draws the playback of the viewers of each controller's first trial. `None` if no events were stored.
pub(super) fn playback(experiment: &Experiment, case: &CaseResults) -> Option<Drawn> {
    let lanes: Vec<Lane> = case.controllers.iter().flat_map(lanes).collect();
    if lanes.is_empty() {
        return None;
    }
    let place = crate::scenario::full_name(&experiment.name, &case.name);
    let timeline = Timeline {
        title: format!("{place}: playback of each viewer"),
        lanes,
    };
    Some(Drawn {
        name: file_name(experiment, &case.name, "viewers"),
        svg: timeline.svg(),
        caption:
            "Of each controller's first trial. A player that keeps its clock stalls when a frame is late and \
                  discards frames that are too late; one that waits for every frame only stalls."
                .to_owned(),
    })
}

/// The lanes of a controller's first trial, at most [`MOST_VIEWERS`].
fn lanes(one: &ControllerResults) -> Vec<Lane> {
    let rows = one.trials.first().into_iter().flatten();
    let viewers: Vec<_> = rows
        .filter(|row| row.role == VIEWER && row.viewer < MOST_VIEWERS)
        .collect();
    let lane = |row: &&crate::result::Row| {
        let file = one.series(&row.key, row.viewer as usize, "events");
        let spans = spans(&fs::read_to_string(file).ok()?);
        let ended = row.length_s();
        Some(Lane {
            name: if viewers.len() > 1 {
                format!("{}, viewer {}", one.name, row.viewer + 1)
            } else {
                one.name.clone()
            },
            style: one.style,
            until: spans.iter().map(|span| span.to).fold(ended, f64::max),
            spans,
        })
    };
    viewers.iter().filter_map(lane).collect()
}

/// The lines `kind,from_s,to_s` of a file of events; lines that cannot be read are left out.
fn spans(text: &str) -> Vec<Span> {
    let span = |line: &str| {
        let mut cells = line.split(',');
        Some(Span {
            kind: SpanKind::find(cells.next()?)?,
            from: cells.next()?.parse().ok()?,
            to: cells.next()?.parse().ok()?,
        })
    };
    text.lines().skip(1).filter_map(span).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_unknown_kinds_are_left_out() {
        let text = "kind,from_s,to_s\nstartup,0,1.5\nstall,4,5.25\nhiccup,6,7\ndiscarded,8\n";
        let read = spans(text);
        assert_eq!(read.len(), 2);
        assert_eq!(
            (read[1].kind, read[1].from, read[1].to),
            (SpanKind::Stall, 4.0, 5.25)
        );
    }
}
