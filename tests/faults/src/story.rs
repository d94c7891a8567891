//! One session as a text with a time line, or as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use playrate_units::rounded::grouped;
use serde_json::{Value, json};

use crate::campaign::Verdict;
use crate::plan::FaultPlan;
use crate::run::{Event, SessionRecord};
use crate::words::wrapped;

/// Minimum time without a byte that the time line mentions.
const GAP: Duration = Duration::from_secs(1);

/// All events, in chronological order.
fn time_line(plan: &FaultPlan, record: &SessionRecord) -> Vec<Event> {
    let mut events = record.events.clone();
    for fault in &plan.faults {
        events.push((fault.at, format!("begins: {}", fault.kind)));
        if let Some(ends) = fault.ends().filter(|ends| *ends > fault.at) {
            events.push((ends, format!("has ended: {}", fault.kind.name())));
        }
    }
    let mut received = 0;
    let mut before: Option<Duration> = None;
    for (at, piece) in &record.taken {
        if before.is_none_or(|before| at.saturating_sub(before) >= GAP) {
            if let Some(before) = before {
                let text = format!("the viewer has {} B; a pause begins", grouped(received));
                events.push((before, text));
            }
            events.push((*at, "bytes arrive".to_owned()));
        }
        received += piece.len() as u64;
        before = Some(*at);
    }
    if let Some(before) = before {
        let text = format!("the viewer has {} B; the last bytes", grouped(received));
        events.push((before, text));
    }
    events.sort_by_key(|(at, _)| *at);
    events
}

/// The session with its plan, a time line and the verdict, within 80 columns.
pub(crate) fn text(plan: &FaultPlan, record: Option<&SessionRecord>, verdict: &Verdict) -> String {
    let mut text = plan.text();
    text.push('\n');
    if let Some(record) = record {
        for (at, event) in time_line(plan, record) {
            let mark = format!("{:>9.3} s  ", at.as_secs_f64());
            text.push_str(&wrapped(&mark, &event));
        }
        let server = match &record.server {
            None => "no server ran at the end".to_owned(),
            Some(server) => {
                let freed = match server.freed.map(|freed| freed.as_secs_f64()) {
                    None => "still had a connection".to_owned(),
                    Some(freed) => format!("was without connections {freed:.2} s after the client's end"),
                };
                let shutdown = server.shutdown.as_secs_f64();
                format!("the server {freed}, and shut down in {shutdown:.2} s")
            }
        };
        let _ = write!(text, "\n{}", wrapped("", &server));
        let ahead = grouped(record.most_ahead);
        let ahead = format!("most bytes that a server had read ahead of the viewer: {ahead}");
        text.push_str(&wrapped("", &ahead));
    }
    let _ = write!(text, "wire hash {:016x}\n\n", verdict.wire_hash);
    let _ = writeln!(text, "ending      {}", verdict.ending.name());
    if verdict.violations.is_empty() {
        text.push_str("verdict     every invariant holds\n");
    }
    for known in &verdict.known {
        let _ = writeln!(text, "known       {}", known.page());
    }
    for violation in &verdict.violations {
        text.push_str(&wrapped("violated    ", &violation.to_string()));
    }
    text
}

/// The violations of one session as JSON objects.
pub(crate) fn violations_json(verdict: &Verdict) -> Vec<Value> {
    let violations = verdict.violations.iter();
    violations
        .map(|it| json!({ "seed": verdict.seed, "invariant": it.invariant.name(), "text": it.text }))
        .collect()
}

/// The session as one JSON object.
pub(crate) fn json(plan: &FaultPlan, record: Option<&SessionRecord>, verdict: &Verdict) -> Value {
    let faults = plan.faults.iter().map(|fault| {
        json!({ "at_s": fault.at.as_secs_f64(), "fault": fault.kind.name(), "text": fault.kind.to_string() })
    });
    let events = record.map_or_else(Vec::new, |record| time_line(plan, record));
    let events = events
        .iter()
        .map(|(at, text)| json!({ "at_s": at.as_secs_f64(), "text": text }));
    json!({
        "seed": plan.seed,
        "controller": plan.controller.to_string(),
        "faults": faults.collect::<Vec<_>>(),
        "events": events.collect::<Vec<_>>(),
        "ending": verdict.ending.name(),
        "error": record.and_then(|record| record.error.clone()),
        "wire_hash": format!("{:016x}", verdict.wire_hash),
        "known": verdict.known.iter().map(|known| known.page()).collect::<Vec<_>>(),
        "violations": violations_json(verdict),
    })
}
