//! [`ConnectionState`]: present state of a connection, for dashboards.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use playrate_cc::Playback;
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};

use super::arms::Arms;
use super::connection::ActiveConnection;
use super::observe::PlayerReport;

/// Present state of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionState {
    /// Number, as in [`ConnectionInfo`](super::ConnectionInfo).
    pub id: u64,
    /// Address of the client at the beginning of the connection.
    pub peer: SocketAddr,
    /// Arm that was chosen for it; `None` without arms, or if no request chose one.
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
    /// Last sample of its congestion control; `None` before the first acknowledgement.
    pub sample: Option<Sample>,
    /// Delivery rate while there was enough to send, over the last seconds of such time.
    pub delivery_rate: Option<Bitrate>,
    /// Rate of the video on it, if its controller knows it.
    pub video_rate: Option<Bitrate>,
    /// Lowest buffer level that its players reported last.
    pub buffered: Option<Duration>,
    /// Worst state that its players reported last.
    pub playback: Option<Playback>,
    /// Reports of its players so far (CMCD), if there were any.
    pub player: Option<PlayerReport>,
}

impl ActiveConnection {
    pub(super) fn state(&self, now: Instant, arms: Option<&Arms>) -> ConnectionState {
        let knowledge = self.control.knowledge();
        ConnectionState {
            id: self.id,
            peer: self.peer,
            arm: arms.and_then(|arms| self.arm.name(arms)),
            controller: self.control.to_string(),
            age: now.saturating_duration_since(self.began),
            requests: self.requests.load(Relaxed),
            responses: self.responses.load(Relaxed),
            aborted: self.aborted.load(Relaxed),
            sample: self.control.monitor().latest(),
            delivery_rate: self.throughput.estimate(),
            video_rate: knowledge.average_rate(),
            buffered: knowledge.buffered(),
            playback: self.playback.reported(),
            player: self.playback.report(),
        }
    }
}

/// Totals over the life of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTotals {
    /// Number of connections that have ended.
    pub sessions: u64,
    /// Number of responses that arrived whole.
    pub responses: u64,
    /// Bytes of content of responses that have ended.
    pub bytes: Bytes,
}
