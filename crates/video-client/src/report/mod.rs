//! [`QualityReport`]: the viewer's and the network's numbers of a session, as values, as text and as JSON.

use std::time::Duration;

use playrate_media::TitleInfo;
use playrate_units::{Bitrate, Bytes, seconds};
use serde::Serialize;

use crate::cmsd::CmsdReport;
use crate::error::PlayError;
pub use crate::estimates::Estimates;
use crate::playout::{ClockKind, PlaybackReport, PlayoutEvent, SeriesPoint};
use crate::throughput::Throughput;

mod dash;
mod interruption;
mod json;
#[cfg(test)]
mod tests;
mod text;

pub use dash::{DashReport, PassedOver, RepresentationRecord, SegmentRecord};
pub(crate) use interruption::InterruptionLog;
pub use interruption::{Interruption, Interruptions};

/// The report of one session, finished or not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QualityReport {
    /// URL of the title or its manifest.
    pub url: String,
    /// Outcome of the download.
    pub outcome: Outcome,
    /// Description of the title, if its `moov` box arrived.
    pub title: Option<TitleInfo>,
    /// Average rate of the title, λ: video and audio bytes over the playing time, as far as known.
    pub average_rate: Option<Bitrate>,
    /// Settings of the player.
    pub player: PlayerSettings,
    /// The viewer's numbers up to the end of the report.
    pub playback: PlaybackReport,
    /// Playing time of the frames shown.
    pub shown_time: Duration,
    /// Playing time of the known frames: the title's duration once all are known.
    pub known_time: Duration,
    /// Times and rates of the download.
    pub network: NetworkReport,
    /// Segments of an adaptive session.
    pub dash: Option<DashReport>,
    /// The server's descriptions of the path to this client.
    pub cmsd: CmsdReport,
    /// Remarks for the reader, such as parts of the title that were not fetched.
    pub notes: Vec<String>,
    /// Events of the player, except those of single frames; the first [`MAX_EVENTS`](Self::MAX_EVENTS).
    pub events: Vec<PlayoutEvent>,
    /// The time series of the playout buffer.
    pub series: Vec<SeriesPoint>,
}

impl QualityReport {
    /// Largest number of events kept.
    pub const MAX_EVENTS: usize = 10_000;
}

/// Settings of the modelled player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlayerSettings {
    /// The clock of the player.
    pub clock: ClockKind,
    /// Size of the playout buffer.
    #[serde(rename = "playout_buffer_bytes")]
    pub playout_buffer: Bytes,
    /// Bytes held at which reading pauses.
    #[serde(rename = "receive_buffer_bytes")]
    pub receive_buffer: Bytes,
}

/// Outcome of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The whole title arrived.
    Complete,
    /// The whole title arrived, protected by this scheme, so that a player without a key can show none of it.
    Encrypted(String),
    /// The title arrived, except for this number of segments.
    Incomplete(usize),
    /// The caller stopped it.
    Stopped,
    /// It failed for this reason.
    Failed(String),
}

impl Outcome {
    /// The outcome of a session whose download ended with `result`.
    pub(crate) fn of(result: &Result<(), PlayError>) -> Self {
        match result {
            Ok(()) => Self::Complete,
            Err(PlayError::Stopped) => Self::Stopped,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// Times and rates of the download. Times are since the session began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NetworkReport {
    /// End of the handshake.
    #[serde(rename = "connected_s", with = "seconds::optional")]
    pub connected: Option<Duration>,
    /// Arrival of the title's first byte.
    #[serde(rename = "first_byte_s", with = "seconds::optional")]
    pub first_byte: Option<Duration>,
    /// Arrival of the last byte, or the time of the failure.
    #[serde(rename = "ended_s", with = "seconds")]
    pub ended: Duration,
    /// Bytes of the title received.
    #[serde(rename = "received_bytes")]
    pub received: Bytes,
    /// Bytes that the server declared (`Content-Length`).
    #[serde(rename = "promised_bytes")]
    pub promised: Option<Bytes>,
    /// Distribution of the receiving rate.
    #[serde(flatten)]
    pub throughput: Rates,
    /// Always `None`: only the sender knows the number.
    pub retransmissions: Option<u64>,
    /// Times without a connection, or without data after a loss of connection.
    #[serde(flatten)]
    pub interruptions: Interruptions,
}

/// Mean and percentiles of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rates {
    /// All bytes over the time from the request to the last byte.
    #[serde(rename = "throughput_mean_bps")]
    pub mean: Option<Bitrate>,
    /// 5th percentile of the whole seconds of the download.
    #[serde(rename = "throughput_p5_bps")]
    pub p5: Option<Bitrate>,
    /// Median of the whole seconds.
    #[serde(rename = "throughput_p50_bps")]
    pub p50: Option<Bitrate>,
    /// 95th percentile of the whole seconds.
    #[serde(rename = "throughput_p95_bps")]
    pub p95: Option<Bitrate>,
}

impl From<&Throughput> for Rates {
    fn from(throughput: &Throughput) -> Self {
        Self {
            mean: throughput.mean(),
            p5: throughput.percentile(5),
            p50: throughput.percentile(50),
            p95: throughput.percentile(95),
        }
    }
}
