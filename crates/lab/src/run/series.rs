//! Time series of a run as CSV files, for figures and for other tools.

use std::fmt::Write as _;
use std::time::Duration;

use super::row::Key;
use crate::record::{RunRecord, TransportSample};
use crate::sim::Simulated;

/// What the files of a viewer begin with, below the `series` directory.
pub fn series_stem(key: &Key, viewer: usize) -> String {
    format!(
        "{}/{}-seed{}-viewer{viewer}",
        directory(key),
        slug(&key.controller),
        key.seed
    )
}

/// The files of a run: path below the `series` directory, and content.
pub(super) fn files(key: &Key, run: &Simulated) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let run_stem = format!("{}/{}-seed{}", directory(key), slug(&key.controller), key.seed);
    for (number, viewer) in run.viewers.iter().enumerate() {
        let stem = series_stem(key, number);
        let record = &viewer.record;
        files.push((format!("{stem}-transport.csv"), transport(&record.transport)));
        files.push((format!("{stem}-playout.csv"), playout(record)));
        files.push((format!("{stem}-queue.csv"), queue(record)));
        if let Some(dash) = &viewer.report.dash {
            files.push((format!("{stem}-segments.csv"), super::dash::segments(dash)));
        }
    }
    for (number, bulk) in run.bulk.iter().enumerate() {
        let name = format!("{run_stem}-bulk{number}-transport.csv");
        files.push((name, transport(&bulk.transport)));
    }
    files
}

/// The directory of a scenario's files; that of a case is in it.
fn directory(key: &Key) -> String {
    if key.case.is_empty() {
        slug(&key.scenario)
    } else {
        format!("{}/{}", slug(&key.scenario), slug(&key.case))
    }
}

/// A text as part of a file name: what is not a letter, a digit, `-` or `.` becomes `_`.
pub(crate) fn slug(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "-.".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect()
}

fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

/// A number, or nothing.
fn cell<T: std::fmt::Display>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

// Writing to a String cannot fail, hence the ignored results below.

fn transport(samples: &[TransportSample]) -> String {
    let mut text = String::from("at_s,window_bytes,ssthresh_bytes,srtt_s,rtt_s,capacity_bps\n");
    for sample in samples {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{}",
            seconds(sample.at),
            sample.window.as_u64(),
            cell(sample.ssthresh.map(playrate_units::Bytes::as_u64)),
            cell(sample.rtt.map(seconds)),
            cell(sample.latest_rtt.map(seconds)),
            cell(sample.capacity.map(playrate_units::Bitrate::as_bits_per_second)),
        );
    }
    text
}

fn playout(record: &RunRecord) -> String {
    let mut text = String::from("at_s,held_s,received_bytes\n");
    for sample in &record.playout {
        let _ = writeln!(
            text,
            "{},{},{}",
            seconds(sample.at),
            seconds(sample.ahead),
            sample.delivered.as_u64()
        );
    }
    text
}

fn queue(record: &RunRecord) -> String {
    let mut text = String::from("at_s,max_queue_bytes\n");
    for sample in &record.queue {
        let _ = writeln!(text, "{},{}", seconds(sample.at), sample.queued.as_u64());
    }
    text
}
