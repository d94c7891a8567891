//! Time series and events of a run as CSV files, for figures and for other tools.

use std::fmt::{Display, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};
use video_client::dash::DashReport;

use super::row::ResultKey;
use crate::rounding::seconds;
use crate::sim::{QueueSample, Simulated, SimulatedViewer, Span};

/// Directory of time series.
pub(crate) const SERIES: &str = "series";

/// File of the series `kind` of a flow, such as `viewer0` or `bulk2`.
pub(crate) fn series_file(directory: &Path, key: &ResultKey, flow: &str, kind: &str) -> PathBuf {
    directory.join(SERIES).join(name(key, flow, kind))
}

/// Path of a series below the `series` directory.
fn name(key: &ResultKey, flow: &str, kind: &str) -> String {
    let (scenario, controller) = (slug(&key.scenario), slug(&key.controller));
    let case = if key.case.is_empty() {
        String::new()
    } else {
        format!("/{}", slug(&key.case))
    };
    format!("{scenario}{case}/{controller}-seed{}-{flow}-{kind}.csv", key.seed)
}

/// The files of a run: path below the `series` directory, and content.
pub(crate) fn files(key: &ResultKey, run: &Simulated) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut add = |flow: &str, kind, text| files.push((name(key, flow, kind), text));
    for (number, viewer) in run.viewers.iter().enumerate() {
        let flow = format!("viewer{number}");
        add(&flow, "transport", transport(&viewer.transport));
        add(&flow, "playout", playout(viewer));
        add(&flow, "queue", queue(&viewer.queue));
        add(&flow, "events", events(viewer));
        if let Some(dash) = &viewer.report.dash {
            add(&flow, "segments", segments(dash));
        }
    }
    for (number, broadcast) in run.broadcasts.iter().enumerate() {
        add(
            &format!("broadcast{number}"),
            "transport",
            transport(&broadcast.transport),
        );
    }
    for (number, bulk) in run.bulk.iter().enumerate() {
        add(&format!("bulk{number}"), "transport", transport(&bulk.transport));
    }
    if !run.bulk.is_empty() {
        let flows: Vec<&[Sample]> = run.bulk.iter().map(|bulk| bulk.transport.as_slice()).collect();
        add("viewer0", "downloads", downloads(&flows));
    }
    files
}

/// A text as part of a file name: replaces everything but letters, digits, `-` and `.` with `_`.
pub(crate) fn slug(text: &str) -> String {
    let kept = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
    text.chars().map(|c| if kept(c) { c } else { '_' }).collect()
}

/// A number, or an empty cell.
fn cell(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A table with one line per item.
fn csv<T>(head: &str, items: impl IntoIterator<Item = T>, line: impl Fn(T) -> String) -> String {
    let mut text = format!("{head}\n");
    for item in items {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", line(item));
    }
    text
}

fn transport(samples: &[Sample]) -> String {
    let head = "at_s,window_bytes,ssthresh_bytes,srtt_s,rtt_s,capacity_bps";
    csv(head, samples, |sample| {
        format!(
            "{},{},{},{},{},{}",
            seconds(sample.at),
            sample.snapshot.window.as_u64(),
            cell(sample.snapshot.ssthresh.map(Bytes::as_u64)),
            cell(sample.smoothed_rtt.map(seconds)),
            cell(sample.latest_rtt.map(seconds)),
            cell(sample.snapshot.capacity.map(Bitrate::as_bits_per_second)),
        )
    })
}

/// Sampling interval of the series of downloads.
const DOWNLOADS: Duration = Duration::from_millis(250);

/// Bytes acknowledged to all downloads of a run together, at regular times.
///
/// `flows` contains the samples of each download.
fn downloads(flows: &[&[Sample]]) -> String {
    let last = flows
        .iter()
        .filter_map(|samples| samples.last())
        .map(|sample| sample.at);
    let steps = last.max().unwrap_or_default().as_nanos() / DOWNLOADS.as_nanos();
    let delivered = |samples: &&[Sample], at: Duration| {
        let seen = samples.partition_point(|sample| sample.at <= at);
        seen.checked_sub(1)
            .map_or(0, |latest| samples[latest].delivered.as_u64())
    };
    let times = (0..=u32::try_from(steps).unwrap_or(u32::MAX)).map(|step| DOWNLOADS * step);
    csv("at_s,delivered_bytes", times, |at| {
        let sum: u64 = flows.iter().map(|samples| delivered(samples, at)).sum();
        format!("{},{sum}", seconds(at))
    })
}

fn playout(viewer: &SimulatedViewer) -> String {
    csv("at_s,held_s,received_bytes", &viewer.report.series, |point| {
        let received = point.received.as_u64();
        format!("{},{},{received}", seconds(point.at), seconds(point.held_time))
    })
}

fn queue(samples: &[QueueSample]) -> String {
    csv("at_s,max_queue_bytes", samples, |sample| {
        format!("{},{}", seconds(sample.at), sample.queued.as_u64())
    })
}

/// The times of a session without a new frame, in chronological order: start-up, stalls, discarded frames.
fn events(viewer: &SimulatedViewer) -> String {
    let playback = &viewer.report.playback;
    let end = playback.ended.unwrap_or(viewer.report.network.ended);
    let startup = Span {
        from: Duration::ZERO,
        to: playback.startup_delay.unwrap_or(end),
    };
    let stalls = viewer.spans.stalls.iter().map(|span| ("stall", *span));
    let discards = viewer.spans.discards.iter().map(|span| ("discarded", *span));
    let mut spans: Vec<(&str, Span)> = stalls.chain(discards).collect();
    spans.sort_by_key(|(_, span)| span.from);
    spans.insert(0, ("startup", startup));
    csv("kind,from_s,to_s", spans, |(kind, span)| {
        format!("{kind},{},{}", seconds(span.from), seconds(span.to))
    })
}

/// The segments of an adaptive player, in playing order.
fn segments(report: &DashReport) -> String {
    let head = "at_s,requested_s,first_byte_s,representation,bytes,held_s,instant_bps,counted,smoothed_bps";
    csv(head, &report.segments, |segment| {
        format!(
            "{},{},{},{},{},{},{},{},{}",
            seconds(segment.transfer.finished),
            seconds(segment.transfer.requested),
            seconds(segment.transfer.first_byte),
            segment.representation,
            segment.transfer.bytes.as_u64(),
            seconds(segment.held),
            segment.instantaneous.as_bits_per_second(),
            u8::from(segment.counted),
            segment.smoothed.as_bits_per_second(),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_are_added_up_at_regular_times_with_what_each_had_by_then() {
        let sample = |millis: u64, delivered: u64| {
            let mut sample = Sample::default();
            sample.at = Duration::from_millis(millis);
            sample.delivered = Bytes::new(delivered);
            sample
        };
        let one = [sample(100, 10), sample(300, 30), sample(700, 70)];
        let other = [sample(400, 5)];
        let text = downloads(&[&one, &other, &[]]);
        assert_eq!(text, "at_s,delivered_bytes\n0,0\n0.25,10\n0.5,35\n");
        assert_eq!(downloads(&[]), "at_s,delivered_bytes\n0,0\n");
    }
}
