//! The report as JSON. The format is stable: fields are added, never renamed or removed, within one `version`.
//! `docs/video-client.md` lists them.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};
use serde::Serialize;

use super::cmsd::CmsdJson;
use super::segments_form::DashJson;
use super::{Interruption, Outcome, QualityReport};
use crate::playout::{ClockKind, PlaybackReport, PlayoutEvent, SeriesPoint};

const FORMAT: &str = "video-client-play";
const VERSION: u32 = 1;

impl QualityReport {
    /// The report as one JSON object, with the time series if `series`. `docs/video-client.md` describes it.
    pub fn to_json(&self, series: bool) -> serde_json::Result<String> {
        serde_json::to_string_pretty(&ReportJson::new(self, series))
    }
}

#[derive(Serialize)]
struct ReportJson<'a> {
    format: &'static str,
    version: u32,
    url: &'a str,
    outcome: &'static str,
    error: Option<&'a str>,
    title: Option<TitleJson<'a>>,
    player: PlayerJson,
    viewer: ViewerJson<'a>,
    network: NetworkJson<'a>,
    dash: Option<DashJson<'a>>,
    cmsd: Option<CmsdJson>,
    notes: &'a [String],
    events: Vec<EventLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<SeriesJson>,
}

#[derive(Serialize)]
struct TitleJson<'a> {
    codecs: &'a str,
    width: u32,
    height: u32,
    has_audio: bool,
    duration_s: Option<f64>,
    average_rate_bps: Option<u64>,
}

#[derive(Serialize)]
struct PlayerJson {
    clock: ClockKind,
    playout_buffer_bytes: u64,
    receive_buffer_bytes: u64,
}

#[derive(Serialize)]
struct ViewerJson<'a> {
    #[serde(flatten)]
    playback: &'a PlaybackReport,
    frames_remaining: u64,
    shown_s: f64,
}

#[derive(Serialize)]
struct NetworkJson<'a> {
    connected_s: Option<f64>,
    first_byte_s: Option<f64>,
    ended_s: f64,
    received_bytes: u64,
    promised_bytes: Option<u64>,
    throughput_mean_bps: Option<u64>,
    throughput_p5_bps: Option<u64>,
    throughput_p50_bps: Option<u64>,
    throughput_p95_bps: Option<u64>,
    /// Always `null`: only the sender knows it.
    retransmissions: Option<u64>,
    reconnects: u64,
    disconnected_s: f64,
    interruption_count: u64,
    interruptions: Vec<InterruptionJson<'a>>,
}

#[derive(Serialize)]
struct InterruptionJson<'a> {
    began_s: f64,
    connected_s: Option<f64>,
    resumed_s: Option<f64>,
    reason: &'a str,
}

#[derive(Serialize)]
struct EventLine {
    at_s: f64,
    what: &'static str,
}

/// Columns, since the field names of points would be most of the file.
#[derive(Serialize)]
struct SeriesJson {
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

impl<'a> ReportJson<'a> {
    fn new(report: &'a QualityReport, series: bool) -> Self {
        let (outcome, error) = match &report.outcome {
            Outcome::Complete => ("complete", None),
            Outcome::Stopped => ("stopped", None),
            Outcome::Failed(reason) => ("failed", Some(reason.as_str())),
        };
        let network = &report.network;
        Self {
            format: FORMAT,
            version: VERSION,
            url: &report.url,
            outcome,
            error,
            title: report.title.as_ref().map(|title| TitleJson {
                codecs: &title.codecs,
                width: title.width,
                height: title.height,
                has_audio: title.has_audio,
                duration_s: title.duration.map(seconds),
                average_rate_bps: rate(report.average_rate),
            }),
            player: PlayerJson {
                clock: report.clock,
                playout_buffer_bytes: report.playout_buffer.as_u64(),
                receive_buffer_bytes: report.receive_buffer.as_u64(),
            },
            viewer: ViewerJson {
                playback: &report.playback,
                frames_remaining: report.playback.frames_remaining(),
                shown_s: seconds(report.shown_time),
            },
            network: NetworkJson {
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
                reconnects: network.interruptions.reconnects,
                disconnected_s: seconds(network.interruptions.disconnected),
                interruption_count: network.interruptions.count,
                interruptions: network
                    .interruptions
                    .recorded
                    .iter()
                    .map(InterruptionJson::new)
                    .collect(),
            },
            dash: report.dash.as_ref().map(DashJson::new),
            cmsd: CmsdJson::new(&report.cmsd),
            notes: &report.notes,
            events: report.events.iter().map(EventLine::new).collect(),
            series: series.then(|| SeriesJson::new(&report.series)),
        }
    }
}

impl<'a> InterruptionJson<'a> {
    fn new(interruption: &'a Interruption) -> Self {
        Self {
            began_s: seconds(interruption.began),
            connected_s: interruption.connected.map(seconds),
            resumed_s: interruption.resumed.map(seconds),
            reason: &interruption.reason,
        }
    }
}

impl EventLine {
    fn new(event: &PlayoutEvent) -> Self {
        Self {
            at_s: seconds(event.at),
            what: event.kind.name(),
        }
    }
}

impl SeriesJson {
    fn new(points: &[SeriesPoint]) -> Self {
        fn column<T>(points: &[SeriesPoint], value: impl Fn(&SeriesPoint) -> T) -> Vec<T> {
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
