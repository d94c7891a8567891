//! [`QualityReport`]: what the viewer saw and what the network did, as values, as text and as JSON.

use std::time::Duration;

use playrate_media::TitleInfo;
use playrate_units::{Bitrate, Bytes};

use crate::cmsd::CmsdReport;
use crate::dash::DashReport;
use crate::error::PlayError;
use crate::playout::{Event, PlayoutReport, Point};
use crate::throughput::Throughput;

mod cmsd;
mod dash;
mod json;
#[cfg(test)]
mod tests;
mod text;

/// The whole story of one session, finished or not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QualityReport {
    /// What was asked for.
    pub url: String,
    /// How it went.
    pub outcome: Outcome,
    /// What the title says of itself, once its `moov` box was in.
    pub title: Option<TitleInfo>,
    /// Average rate of the title, λ: video and audio bytes over the playing time, as far as known.
    pub average_rate: Option<Bitrate>,
    /// Size of the playout buffer.
    pub playout_buffer: Bytes,
    /// Bytes held at most before reading pauses.
    pub receive_buffer: Bytes,
    /// What the viewer saw.
    pub playout: PlayoutReport,
    /// What the network did.
    pub network: NetworkReport,
    /// The segments, of an adaptive session.
    pub dash: Option<DashReport>,
    /// What the server said of the way to this client.
    pub cmsd: CmsdReport,
    /// What a reader should know besides, such as what of the title was left out.
    pub notes: Vec<String>,
    /// What happened in the player, single frames left out; the first [`MAX_EVENTS`](Self::MAX_EVENTS).
    pub events: Vec<Event>,
    /// The time series of the playout buffer.
    pub series: Vec<Point>,
}

impl QualityReport {
    /// Events kept at most.
    pub const MAX_EVENTS: usize = 10_000;
}

/// How a session went.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The whole title came.
    Complete,
    /// The user stopped it.
    Stopped,
    /// It broke off, for this reason.
    Failed(String),
}

impl Outcome {
    /// How a session went whose download came to `result`.
    pub(crate) fn of(result: &Result<(), PlayError>) -> Self {
        match result {
            Ok(()) => Self::Complete,
            Err(PlayError::Stopped) => Self::Stopped,
            Err(error) => Self::Failed(error.to_string()),
        }
    }
}

/// What the network did. Times are since the session began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NetworkReport {
    /// When the connection was up.
    pub connected: Option<Duration>,
    /// When the first byte of the title came.
    pub first_byte: Option<Duration>,
    /// When the last byte came, or the session broke off.
    pub ended: Duration,
    /// Bytes of the title received.
    pub received: Bytes,
    /// Bytes the server promised (`Content-Length`).
    pub promised: Option<Bytes>,
    /// How fast they came.
    pub throughput: Rates,
}

/// A distribution of rates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rates {
    /// All bytes over the time from the request to the last byte.
    pub mean: Option<Bitrate>,
    /// 5th percentile of the whole seconds of the download.
    pub p5: Option<Bitrate>,
    /// Median of the whole seconds.
    pub p50: Option<Bitrate>,
    /// 95th percentile of the whole seconds.
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
