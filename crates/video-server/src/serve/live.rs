//! [`ConnectionState`]: what goes on on a connection now, for whoever wants to look.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playrate_cc::Playback;
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};

use super::arms::Arms;
use super::connection::Tally;
use super::observe::PlayerReport;

/// A connection, as it is now.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionState {
    /// Its number, as in [`ConnectionInfo`](super::ConnectionInfo).
    pub id: u64,
    /// The client's address as the connection began.
    pub peer: SocketAddr,
    /// The arm that was chosen for it, if one was.
    pub arm: Option<String>,
    /// The spec of the controller that it has.
    pub controller: String,
    /// Since the end of the handshake.
    pub age: Duration,
    /// Requests that arrived whole.
    pub requests: u64,
    /// Responses that the client acknowledged whole.
    pub responses: u64,
    /// The last sample of its congestion control; `None` before the first acknowledgement.
    pub sample: Option<Sample>,
    /// The delivery rate while there was enough to send, as far as it was measured.
    pub delivery_rate: Option<Bitrate>,
    /// The rate of the video that it carries, as far as its controller knows.
    pub video_rate: Option<Bitrate>,
    /// What the emptiest player's buffer held when it was last said.
    pub buffered: Option<Duration>,
    /// What the player that is worst off was doing when it last said so.
    pub playback: Option<Playback>,
    /// What its players said so far.
    pub player: Option<PlayerReport>,
}

/// The connections that there are.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<BTreeMap<u64, Arc<Tally>>>);

impl Connections {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Tally>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begin(&self, tally: &Arc<Tally>) {
        self.lock().insert(tally.id, Arc::clone(tally));
    }

    pub(super) fn end(&self, tally: &Tally) {
        self.lock().remove(&tally.id);
    }

    /// All, the oldest first.
    pub(super) fn now(&self, now: Instant, arms: Option<&Arms>) -> Vec<ConnectionState> {
        // Not under the lock: connections that begin and end need it.
        let tallies: Vec<_> = self.lock().values().cloned().collect();
        tallies.iter().map(|tally| tally.state(now, arms)).collect()
    }
}

impl Tally {
    fn state(&self, now: Instant, arms: Option<&Arms>) -> ConnectionState {
        let knowledge = self.control.knowledge();
        ConnectionState {
            id: self.id,
            peer: self.peer,
            arm: arms.and_then(|arms| self.arm.arm(arms)),
            controller: self.control.to_string(),
            age: now.saturating_duration_since(self.began),
            requests: self.requests.load(Relaxed),
            responses: self.responses.load(Relaxed),
            sample: self.control.monitor().latest(),
            delivery_rate: self.throughput.estimate(),
            video_rate: knowledge.average_rate(),
            buffered: knowledge.buffered(),
            playback: knowledge.playback(),
            player: self.watching.report(),
        }
    }
}

/// Totals over the life of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTotals {
    /// Connections that have ended.
    pub sessions: u64,
    /// Responses that arrived whole.
    pub responses: u64,
    /// Bytes of content of responses that have ended.
    pub bytes: Bytes,
}
