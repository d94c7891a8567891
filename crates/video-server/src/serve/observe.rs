//! [`Observer`]: notifications about a server's connections.

use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playrate_cc::Playback;
use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_transport::telemetry::{Sample, Sink};
use playrate_units::{Bitrate, Bytes};
use serde_json::{Value, json};

/// Name of the protocol of every connection whose state is known, as `http::Version` writes it.
const PROTOCOL: &str = "HTTP/3.0";

/// A connection at its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// Number of the connection, counted from 0. Failed handshakes use up numbers as well.
    pub id: u64,
    /// Address of the client at the beginning of the connection.
    pub peer: SocketAddr,
    /// Spec of the controller at the beginning of the connection.
    pub controller: String,
}

/// Present state of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionState {
    /// Number, as in [`ConnectionInfo`].
    pub id: u64,
    /// Address of the client at the beginning of the connection.
    pub peer: SocketAddr,
    /// Arm chosen for it; `None` without arms, or if no request has chosen one.
    pub arm: Option<String>,
    /// Spec of its present controller.
    pub controller: String,
    /// Time since the end of the handshake.
    pub age: Duration,
    /// Number of requests that arrived whole.
    pub requests: u64,
    /// Number of responses that the client acknowledged whole.
    pub responses: u64,
    /// Number of responses that were aborted.
    pub aborted: u64,
    /// Last sample of its congestion control; `None` until the first acknowledgement.
    pub sample: Option<Sample>,
    /// Rate that the path carried: its estimate, or the delivery rate of the last seconds with enough to send if a
    /// transfer was too short for an estimate.
    pub delivery_rate: Option<Bitrate>,
    /// Rate of the video on it, if its controller knows it.
    pub video_rate: Option<Bitrate>,
    /// Lowest buffer level that its players reported last.
    pub buffered: Option<Duration>,
    /// Worst state that its players reported last.
    pub playback: Option<Playback>,
    /// Reports of its players so far (CMCD), if any.
    pub player: Option<PlayerReport>,
}

impl ConnectionState {
    /// The state as JSON, without the connection's number and the client's address: the client itself may read it.
    /// Rates are in bit/s, sizes in bytes; unknown values are null.
    pub fn to_json(&self) -> Value {
        let sample = self.sample.as_ref();
        let snapshot = sample.map(|sample| &sample.snapshot);
        let estimate = sample.and_then(|sample| sample.estimate);
        let bytes = |get: fn(&Sample) -> Bytes| sample.map(|sample| get(sample).as_u64());
        json!({
            "protocol": PROTOCOL,
            "arm": self.arm,
            "controller": self.controller,
            "age_s": self.age.as_secs_f64(),
            "requests": self.requests,
            "responses": self.responses,
            "phase": snapshot.map(|snapshot| snapshot.phase.to_string()),
            "reason": snapshot.map(|snapshot| snapshot.reason.to_string()),
            "waiting_for": snapshot.map(|snapshot| snapshot.waiting_for.to_string()),
            "window": snapshot.map(|snapshot| snapshot.window.as_u64()),
            "ssthresh": snapshot.and_then(|snapshot| snapshot.ssthresh).map(Bytes::as_u64),
            "in_flight": bytes(|sample| sample.bytes_in_flight),
            "rtt_ms": milliseconds(sample.and_then(|sample| sample.smoothed_rtt)),
            "min_rtt_ms": milliseconds(snapshot.and_then(|snapshot| snapshot.min_rtt)),
            "sent": bytes(|sample| sample.sent).unwrap_or(0),
            "delivered": bytes(|sample| sample.delivered).unwrap_or(0),
            "lost": bytes(|sample| sample.lost).unwrap_or(0),
            "congestion_events": sample.map_or(0, |sample| sample.congestion_events),
            "delivery_rate": self.delivery_rate.map(Bitrate::as_bits_per_second),
            "estimate": estimate.map(|estimate| estimate.rate.as_bits_per_second()),
            "estimate_source": estimate.map(|estimate| estimate.source.name()),
            "video_rate": self.video_rate.map(Bitrate::as_bits_per_second),
            "buffer_s": self.buffered.map(|time| time.as_secs_f64()),
            "playback": self.playback.and_then(playback_name),
            "starvations": self.player.as_ref().map_or(0, |player| player.stalls),
        })
    }
}

fn milliseconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64() * 1e3)
}

/// Name of the state of a player in JSON and metrics.
pub fn playback_name(playback: Playback) -> Option<&'static str> {
    match playback {
        Playback::Playing => Some("playing"),
        Playback::Starting => Some("starting"),
        Playback::Starved => Some("starved"),
        _ => None,
    }
}

/// Reason for the end of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The client closed the connection, on its own or at the server's request.
    Orderly,
    /// Any other reason, as text.
    Lost(String),
}

impl fmt::Display for SessionEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Orderly => f.pad("in good order"),
            Self::Lost(why) => f.pad(why),
        }
    }
}

/// Summary of a connection that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Number, client and first controller of the connection.
    pub connection: ConnectionInfo,
    /// State at its end.
    pub state: ConnectionState,
    /// Number of requests that named an arm other than the connection's.
    pub other_arm_requests: u64,
    /// Number of responses that were aborted.
    pub aborted: u64,
    /// Bytes of content handed to the transport.
    pub bytes: Bytes,
    /// Counters of the transport, as quinn counts them.
    pub transport: quinn::ConnectionStats,
    /// Reason for the end of the connection.
    pub end: SessionEnd,
}

/// Reports of the players on one connection (CMCD, CTA-5004).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PlayerReport {
    /// Number of requests with a report.
    pub requests: u64,
    /// Number of playback sessions (`sid`) that began.
    pub viewings: u64,
    /// Number of requests that report an empty buffer since the previous request (`bs`), not counting a player that has
    /// only started up so far.
    pub stalls: u64,
    /// Lowest buffer level after playback started (`bl`).
    pub lowest_buffer: Option<Duration>,
    /// Identifiers of the playback sessions (`sid`), in order of their beginning; only the first eight.
    pub sessions: Vec<String>,
    /// Last throughput that a player measured (`mtp`).
    pub measured_throughput: Option<Bitrate>,
    /// Number of unknown or invalid CMCD pairs.
    pub ignored: u64,
    /// Sum of rate (`br`) times duration (`d`) over the requested video, in bits, and the sum of these durations.
    bits: f64,
    time: Duration,
    /// Sum of the buffer levels reported during playback (`bl`), and their number.
    buffered: Duration,
    buffer_reports: u32,
}

/// Maximum number of session identifiers in a report.
const MAX_SESSION_IDS: usize = 8;

impl PlayerReport {
    /// Mean encoded rate of the requested video, weighted by duration.
    pub fn mean_bitrate(&self) -> Option<Bitrate> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes, not negative"
        )]
        let bytes = Bytes::new((self.bits / 8.0) as u64);
        bytes.per(self.time)
    }

    /// Mean of the buffer levels reported during playback.
    pub fn mean_buffer(&self) -> Option<Duration> {
        self.buffered.checked_div(self.buffer_reports)
    }

    /// Adds the report of one request; `known` says whether its playback session is known.
    pub(super) fn add(&mut self, cmcd: &Cmcd, known: bool) {
        self.requests += 1;
        self.viewings += u64::from(!known);
        if let Some(session) = cmcd.session.as_ref().filter(|_| !known)
            && self.sessions.len() < MAX_SESSION_IDS
            && !self.sessions.contains(session)
        {
            self.sessions.push(session.clone());
        }
        self.ignored += cmcd.ignored as u64;
        if !cmcd.startup
            && let Some(level) = cmcd.buffer_length
        {
            self.lowest_buffer = Some(self.lowest_buffer.map_or(level, |lowest| lowest.min(level)));
            self.buffered = self.buffered.saturating_add(level);
            self.buffer_reports = self.buffer_reports.saturating_add(1);
        }
        self.measured_throughput = cmcd.measured_throughput.or(self.measured_throughput);
        let is_video = matches!(
            cmcd.object_type,
            None | Some(ObjectType::Video | ObjectType::Muxed)
        );
        if let (true, Some(rate), Some(time)) = (is_video, cmcd.bitrate, cmcd.object_duration) {
            self.bits += rate.as_bits_per_second() as f64 * time.as_secs_f64();
            self.time += time;
        }
    }
}

/// Receives notifications about a server's connections. Called on their tasks, so it must not block.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use playrate_transport::telemetry::{Sink, TimeSeries};
/// use video_server::serve::{ConnectionInfo, Observer};
///
/// /// Keeps the series of every connection, at most 4096 samples each.
/// #[derive(Debug, Default)]
/// struct Recording(Mutex<Vec<(u64, Arc<TimeSeries>)>>);
///
/// impl Observer for Recording {
///     fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
///         let series = Arc::new(TimeSeries::new(4096));
///         self.0.lock().unwrap().push((connection.id, Arc::clone(&series)));
///         vec![series]
///     }
/// }
/// ```
pub trait Observer: fmt::Debug + Send + Sync {
    /// A handshake begins. The returned sinks receive the samples of the connection's congestion control.
    fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        let _ = connection;
        Vec::new()
    }

    /// A connection has ended after a successful handshake.
    fn finished(&self, session: &SessionSummary) {
        let _ = session;
    }
}
