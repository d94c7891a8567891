//! One client's connection, as its exchanges share it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use playrate_transport::ConnectionController;

use super::arms::{ArmChoice, Arms};
use super::observe::ConnectionState;
use super::playback::PlaybackTracker;
use super::throughput::Throughput;
use crate::admission::AdmissionSlot;

/// State and counters of one connection, shared by its exchanges.
#[derive(Debug)]
pub(super) struct ActiveConnection {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) began: Instant,
    pub(super) control: ConnectionController,
    pub(super) arm: ArmChoice,
    pub(super) quinn: quinn::Connection,
    pub(super) playback: Arc<PlaybackTracker>,
    pub(super) throughput: Arc<Throughput>,
    pub(super) admission: AdmissionSlot,
    /// Objects that its player is going to request.
    #[cfg(feature = "object-store")]
    pub(super) ahead: playrate_origin::ReadAhead,
    pub(super) requests: AtomicU64,
    pub(super) responses: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) bytes: AtomicU64,
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
