//! The segments of an adaptive session as JSON and as text.

use std::collections::BTreeMap;

use playrate_units::{Bitrate, Bytes};
use serde::Serialize;

use super::dash::{DashReport, Estimates};
use super::json::seconds;
use super::text::mbps;

/// `dash` of the JSON report.
#[derive(Serialize)]
pub(super) struct DashJson<'a> {
    representations: Vec<ChoiceJson<'a>>,
    segments: usize,
    segments_fetched: usize,
    first_segment: usize,
    switches: u64,
    switch_share: Option<f64>,
    switch_sizes: BTreeMap<i64, u64>,
    mean_representation_bps: Option<Bitrate>,
    instantaneous: Option<Estimates>,
    smoothed: Option<Estimates>,
    series: SegmentColumns,
}

#[derive(Serialize)]
struct ChoiceJson<'a> {
    name: &'a str,
    rate_bps: Bitrate,
    segments: u64,
}

/// Columns, one value for each segment.
#[derive(Default, Serialize)]
struct SegmentColumns {
    segment: Vec<usize>,
    representation: Vec<usize>,
    requested_s: Vec<f64>,
    first_byte_s: Vec<f64>,
    finished_s: Vec<f64>,
    bytes: Vec<Bytes>,
    held_s: Vec<f64>,
    instantaneous_bps: Vec<Bitrate>,
    counted: Vec<bool>,
    smoothed_bps: Vec<Bitrate>,
}

impl<'a> DashJson<'a> {
    pub(super) fn new(report: &'a DashReport) -> Self {
        let counts = report.segments_by_representation();
        let choices = report.representations.iter().zip(counts);
        let mut series = SegmentColumns::default();
        for segment in &report.segments {
            series.segment.push(segment.segment);
            series.representation.push(segment.representation);
            series.requested_s.push(seconds(segment.transfer.requested));
            series.first_byte_s.push(seconds(segment.transfer.first_byte));
            series.finished_s.push(seconds(segment.transfer.finished));
            series.bytes.push(segment.transfer.bytes);
            series.held_s.push(seconds(segment.held));
            series.instantaneous_bps.push(segment.instantaneous);
            series.counted.push(segment.counted);
            series.smoothed_bps.push(segment.smoothed);
        }
        Self {
            representations: choices
                .map(|((name, rate), segments)| ChoiceJson {
                    name,
                    rate_bps: *rate,
                    segments,
                })
                .collect(),
            segments: report.segment_count,
            segments_fetched: report.segments.len(),
            first_segment: report.first_segment,
            switches: report.switch_count(),
            switch_share: report.switch_share(),
            switch_sizes: report.switches(),
            mean_representation_bps: report.mean_rate(),
            instantaneous: report.instantaneous(),
            smoothed: report.smoothed(),
            series,
        }
    }
}

/// The rows of the text form.
pub(super) fn rows(report: &DashReport) -> Vec<(&'static str, String)> {
    let counts = report.segments_by_representation();
    let choices = report.representations.iter().zip(counts);
    let choices: Vec<_> = choices
        .map(|((name, rate), count)| format!("{count} at {name} ({})", mbps(*rate)))
        .collect();
    let fetched = report.segments.len();
    let begins = match report.first_segment {
        0 => String::new(),
        skipped => format!(", from number {} on", skipped + 1),
    };
    let mut rows = vec![(
        "segments",
        format!(
            "{fetched} of {}{begins}: {}",
            report.segment_count,
            choices.join(", ")
        ),
    )];
    if let (Some(share), Some(rate)) = (report.switch_share(), report.mean_rate()) {
        let sizes: Vec<_> = report
            .switches()
            .into_iter()
            .filter(|(size, _)| *size != 0)
            .map(|(size, count)| format!("{size:+}: {count}"))
            .collect();
        let sizes = if sizes.is_empty() {
            String::new()
        } else {
            format!(" ({})", sizes.join(", "))
        };
        let count = report.switch_count();
        rows.push((
            "switches",
            format!("{count}, {:.1} % of segments{sizes}", share * 100.0),
        ));
        rows.push(("mean representation", mbps(rate)));
    }
    let estimates = [
        ("instantaneous estimate", report.instantaneous()),
        ("smoothed estimate", report.smoothed()),
    ];
    for (name, estimates) in estimates {
        if let Some(estimates) = estimates {
            rows.push((name, spread(&estimates)));
        }
    }
    rows
}

pub(super) fn spread(estimates: &Estimates) -> String {
    format!(
        "{:.2} Mbit/s on average, varying by {:.0} %; 5 % {:.2}, median {:.2}, 95 % {:.2} Mbit/s",
        estimates.mean_bps / 1e6,
        estimates.variation * 100.0,
        estimates.p5_bps as f64 / 1e6,
        estimates.p50_bps as f64 / 1e6,
        estimates.p95_bps as f64 / 1e6,
    )
}
