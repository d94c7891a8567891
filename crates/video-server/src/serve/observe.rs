//! [`Observer`]: who wants to know what happens on a server's connections.

use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playrate_transport::telemetry::{Sink, Totals};
use playrate_units::{Bitrate, Bytes};

use crate::cmcd::{Cmcd, ObjectType};

/// A connection, as it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// Counts a server's connections from 0. Handshakes that fail use up a number.
    pub id: u64,
    /// The client's address as the connection begins.
    pub peer: SocketAddr,
    /// The spec of the controller that it begins with.
    pub controller: String,
}

/// Why a session is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionEnd {
    /// The client left, or was told to and did.
    Orderly,
    /// Anything else, in words.
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

/// A connection, looked back at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Which connection.
    pub connection: ConnectionInfo,
    /// The arm that was chosen for it, where there are arms and anything was asked for that chooses one.
    pub arm: Option<String>,
    /// The spec of the controller that it had.
    pub controller: String,
    /// Requests that named another arm than it had.
    pub other_arm_requests: u64,
    /// From the end of the handshake to the end of the connection.
    pub duration: Duration,
    /// Requests that arrived whole.
    pub requests: u64,
    /// Responses that the client acknowledged whole.
    pub responses: u64,
    /// Responses that were broken off.
    pub aborted: u64,
    /// Bytes of content handed to the transport.
    pub bytes: Bytes,
    /// What the transport counted.
    pub totals: Totals,
    /// The delivery rate while there was enough to send, over the last seconds of such time.
    pub delivery_rate: Option<Bitrate>,
    /// What its players said of themselves with CMCD, if they did.
    pub player: Option<PlayerReport>,
    /// Why it is over.
    pub end: SessionEnd,
}

/// What players said of themselves with the requests of one connection (CMCD, CTA-5004).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct PlayerReport {
    /// Requests that said anything.
    pub requests: u64,
    /// Viewings (`sid`) that began.
    pub viewings: u64,
    /// Requests that said that the buffer had run empty since the one before (`bs`).
    pub starvations: u64,
    /// The least that a buffer held once playing had begun (`bl`).
    pub lowest_buffer: Option<Duration>,
    /// The viewings' identifiers (`sid`), in the order in which they began; of many only the first.
    pub sessions: Vec<String>,
    /// The throughput that a player measured last (`mtp`).
    pub measured_throughput: Option<Bitrate>,
    /// Pairs that were not understood.
    pub ignored: u64,
    /// Rates (`br`) of pictures times how long they play (`d`), in bits, and these times.
    bits: f64,
    time: Duration,
    /// Sum of the buffers said while playing (`bl`), and how many they were.
    buffered: Duration,
    buffer_reports: u32,
}

/// How many identifiers of viewings a report keeps.
const SESSIONS: usize = 8;

impl PlayerReport {
    /// Mean encoded rate of the pictures that were asked for, by playing time.
    pub fn mean_bitrate(&self) -> Option<Bitrate> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "bytes, not negative"
        )]
        let bytes = Bytes::new((self.bits / 8.0) as u64);
        bytes.per(self.time)
    }

    /// Mean of what the buffers held while playing, over the requests that said it.
    pub fn mean_buffer(&self) -> Option<Duration> {
        self.buffered.checked_div(self.buffer_reports)
    }

    /// Takes what one request says; `known` if its viewing is.
    pub(super) fn take(&mut self, cmcd: &Cmcd, known: bool) {
        self.requests += 1;
        self.viewings += u64::from(!known);
        if let Some(session) = cmcd.session.as_ref().filter(|_| !known)
            && self.sessions.len() < SESSIONS
            && !self.sessions.contains(session)
        {
            self.sessions.push(session.clone());
        }
        self.starvations += u64::from(cmcd.starved);
        self.ignored += cmcd.ignored as u64;
        if !cmcd.startup
            && let Some(level) = cmcd.buffer_length
        {
            self.lowest_buffer = Some(self.lowest_buffer.map_or(level, |lowest| lowest.min(level)));
            self.buffered = self.buffered.saturating_add(level);
            self.buffer_reports = self.buffer_reports.saturating_add(1);
        }
        self.measured_throughput = cmcd.measured_throughput.or(self.measured_throughput);
        let picture = matches!(
            cmcd.object_type,
            None | Some(ObjectType::Video | ObjectType::Muxed)
        );
        if let (true, Some(rate), Some(time)) = (picture, cmcd.bitrate, cmcd.object_duration) {
            self.bits += rate.as_bits_per_second() as f64 * time.as_secs_f64();
            self.time += time;
        }
    }
}

/// Is told of a server's connections. Called on their tasks: it must not block.
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
    /// A client wants to connect. What is returned takes the samples of its congestion control.
    fn connecting(&self, connection: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        let _ = connection;
        Vec::new()
    }

    /// A connection whose handshake had succeeded is over.
    fn finished(&self, session: &SessionSummary) {
        let _ = session;
    }
}
