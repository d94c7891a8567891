//! The report as JSON. The format is stable: fields are added, never renamed or removed, within one `version`.
//! `docs/video-client.md` lists them.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};
use serde::Serialize;

use super::cmsd::Cmsd;
use super::dash::Dash;
use super::{Outcome, QualityReport};
use crate::playout::{ClockKind, Event, Happening, Point};

const FORMAT: &str = "video-client-play";
const VERSION: u32 = 1;

impl QualityReport {
    /// The report as one JSON object, with the time series if `series`. `docs/video-client.md` describes it.
    pub fn to_json(&self, series: bool) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&Json::new(self, series))
    }
}

#[derive(Serialize)]
struct Json<'a> {
    format: &'static str,
    version: u32,
    url: &'a str,
    outcome: &'static str,
    error: Option<&'a str>,
    title: Option<Title<'a>>,
    player: Player,
    viewer: Viewer,
    network: Network,
    dash: Option<Dash<'a>>,
    cmsd: Option<Cmsd>,
    notes: &'a [String],
    events: Vec<EventLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<Series>,
}

#[derive(Serialize)]
struct Title<'a> {
    codecs: &'a str,
    width: u32,
    height: u32,
    has_audio: bool,
    duration_s: Option<f64>,
    average_rate_bps: Option<u64>,
}

#[derive(Serialize)]
struct Player {
    clock: ClockKind,
    playout_buffer_bytes: u64,
    receive_buffer_bytes: u64,
}

#[derive(Serialize)]
struct Viewer {
    startup_delay_s: Option<f64>,
    ended_s: Option<f64>,
    frames: u64,
    frames_shown: u64,
    frames_discarded: u64,
    frames_missing: u64,
    frames_remaining: u64,
    underflow_events: u64,
    frozen_s: f64,
    rebases: u64,
    rebuffer_ratio: Option<f64>,
    shown_s: f64,
    mean_bitrate_bps: Option<u64>,
}

#[derive(Serialize)]
struct Network {
    connected_s: Option<f64>,
    first_byte_s: Option<f64>,
    ended_s: f64,
    received_bytes: u64,
    promised_bytes: Option<u64>,
    throughput_mean_bps: Option<u64>,
    throughput_p5_bps: Option<u64>,
    throughput_p50_bps: Option<u64>,
    throughput_p95_bps: Option<u64>,
    /// Known to the sender only.
    retransmissions: Option<u64>,
}

#[derive(Serialize)]
struct EventLine {
    at_s: f64,
    what: &'static str,
}

/// Columns, since a point's field names would be most of the file.
#[derive(Serialize)]
struct Series {
    at_s: Vec<f64>,
    held_bytes: Vec<u64>,
    held_s: Vec<f64>,
    received_bytes: Vec<u64>,
    frames_shown: Vec<u64>,
    frames_discarded: Vec<u64>,
}

pub(super) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

fn rate(rate: Option<Bitrate>) -> Option<u64> {
    rate.map(Bitrate::as_bits_per_second)
}

impl<'a> Json<'a> {
    fn new(report: &'a QualityReport, series: bool) -> Self {
        let (outcome, error) = match &report.outcome {
            Outcome::Complete => ("complete", None),
            Outcome::Stopped => ("stopped", None),
            Outcome::Failed(reason) => ("failed", Some(reason.as_str())),
        };
        let (seen, network) = (&report.playout, &report.network);
        Self {
            format: FORMAT,
            version: VERSION,
            url: &report.url,
            outcome,
            error,
            title: report.title.as_ref().map(|title| Title {
                codecs: &title.codecs,
                width: title.width,
                height: title.height,
                has_audio: title.has_audio,
                duration_s: title.duration.map(seconds),
                average_rate_bps: rate(report.average_rate),
            }),
            player: Player {
                clock: seen.clock,
                playout_buffer_bytes: report.playout_buffer.as_u64(),
                receive_buffer_bytes: report.receive_buffer.as_u64(),
            },
            viewer: Viewer {
                startup_delay_s: seen.startup_delay.map(seconds),
                ended_s: seen.ended.map(seconds),
                frames: seen.frames,
                frames_shown: seen.shown,
                frames_discarded: seen.discarded,
                frames_missing: seen.missing,
                frames_remaining: seen.remaining(),
                underflow_events: seen.underflows,
                frozen_s: seconds(seen.frozen),
                rebases: seen.rebases,
                rebuffer_ratio: seen.rebuffer_ratio,
                shown_s: seconds(seen.shown_time),
                mean_bitrate_bps: rate(seen.mean_bitrate),
            },
            network: Network {
                connected_s: network.connected.map(seconds),
                first_byte_s: network.first_byte.map(seconds),
                ended_s: seconds(network.ended),
                received_bytes: network.received.as_u64(),
                promised_bytes: network.promised.map(Bytes::as_u64),
                throughput_mean_bps: rate(network.throughput.mean),
                throughput_p5_bps: rate(network.throughput.p5),
                throughput_p50_bps: rate(network.throughput.p50),
                throughput_p95_bps: rate(network.throughput.p95),
                retransmissions: None,
            },
            dash: report.dash.as_ref().map(Dash::new),
            cmsd: Cmsd::new(&report.cmsd),
            notes: &report.notes,
            events: report.events.iter().map(EventLine::new).collect(),
            series: series.then(|| Series::new(&report.series)),
        }
    }
}

impl EventLine {
    fn new(event: &Event) -> Self {
        Self {
            at_s: seconds(event.at),
            what: match event.what {
                Happening::Started => "started",
                Happening::Shown { .. } => "shown",
                Happening::Discarded { .. } => "discarded",
                Happening::UnderflowBegan => "underflow-began",
                Happening::UnderflowEnded => "underflow-ended",
                Happening::Rebased => "rebased",
                Happening::Resumed => "resumed",
                Happening::Ended => "ended",
            },
        }
    }
}

impl Series {
    fn new(points: &[Point]) -> Self {
        fn column<T>(points: &[Point], value: impl Fn(&Point) -> T) -> Vec<T> {
            points.iter().map(value).collect()
        }
        Self {
            at_s: column(points, |point| seconds(point.at)),
            held_bytes: column(points, |point| point.held.as_u64()),
            held_s: column(points, |point| seconds(point.held_time)),
            received_bytes: column(points, |point| point.received.as_u64()),
            frames_shown: column(points, |point| point.shown),
            frames_discarded: column(points, |point| point.discarded),
        }
    }
}
