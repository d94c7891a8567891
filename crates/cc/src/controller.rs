//! [`CongestionController`]: the one trait; [`CoreController`]: the same for this crate's own controllers.

use core::fmt::Debug;

use core::time::Duration;

use playrate_units::Bytes;

use crate::Snapshot;
use crate::events::{AckBatch, Acked, Congestion, MtuChange, Sent};
use crate::state::Core;

/// Decides how many bytes may be in flight.
///
/// Implementations are deterministic: the same events give the same windows, on every machine. They neither
/// block nor allocate in any `on_…` method, keep bounded state, and never panic.
pub trait CongestionController: Debug + Send + Sync {
    /// A burst of packets left.
    fn on_sent(&mut self, _event: &Sent) {}

    /// Packets of one burst were newly acknowledged.
    fn on_acked(&mut self, _event: &Acked) {}

    /// An ACK frame has been read to its end.
    fn on_ack_batch(&mut self, _event: &AckBatch) {}

    /// An ACK frame whose packets are one run, as nearly all are: [`on_acked`](Self::on_acked),
    /// [`on_ack_batch`](Self::on_ack_batch) and [`window`](Self::window) in one call.
    fn on_ack_frame(&mut self, acked: &Acked, batch: &AckBatch) -> Bytes {
        self.on_acked(acked);
        self.on_ack_batch(batch);
        self.window()
    }

    /// The path signalled congestion.
    fn on_congestion(&mut self, _event: &Congestion) {}

    /// The path's MTU changed. The window stays at least at the controller's minimum for the new MTU.
    fn on_mtu_change(&mut self, _event: &MtuChange) {}

    /// Bytes that may be in flight: never zero, never above `u32::MAX` (above that quinn would stop pacing).
    fn window(&self) -> Bytes;

    /// The window that a connection starts with on this path: the present one, unless it changes.
    fn initial_window(&self) -> Bytes {
        self.window()
    }

    /// The controller's state for telemetry: its window, unless there is more. Not called per packet.
    fn snapshot(&self) -> Snapshot {
        Snapshot::of_window(self.window())
    }

    /// Packets that the peer is asked to acknowledge at once. `None` leaves the choice to the peer, which waits for two
    /// (RFC 9000 §13.2.2). The controller must also work, if less well, when the peer does not comply.
    fn packets_per_ack(&self) -> Option<u32> {
        None
    }

    /// Returns true if every burst has to be reported, because the controller uses them for a measurement such as the
    /// path's capacity.
    ///
    /// If false, a burst that leaves while something is in flight ([`AckBatch::in_flight`] less later losses) need not
    /// be reported. The last burst since the last ACK frame, however, has to be reported before the next congestion
    /// event.
    fn requires_every_burst(&self) -> bool {
        true
    }

    /// A copy, for a path change that keeps what was learnt.
    fn clone_box(&self) -> Box<dyn CongestionController>;
}

impl Clone for Box<dyn CongestionController> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// A controller around a [`Core`], like all of this crate: the parts of a [`CongestionController`] that they implement
/// themselves.
pub(crate) trait CoreController: Clone + Debug + Send + Sync + 'static {
    fn core(&self) -> &Core;

    /// The window that the transport gets, bytes.
    fn published(&self) -> u64;

    fn sent(&mut self, event: &Sent);

    /// Packets of one burst were acknowledged. Not called for the last run of nearly every frame.
    fn run_acked(&mut self, event: &Acked);

    /// An ACK frame has been read to its end. Its `last_run` is `None` if [`run_acked`](Self::run_acked) received it.
    fn frame_ended(&mut self, last_run: Option<&Acked>, event: &AckBatch);

    fn congested(&mut self, event: &Congestion);

    fn mtu_changed(&mut self, mtu: Bytes);

    /// Adds to a snapshot what the core does not know.
    fn describe(&self, snapshot: &mut Snapshot);

    /// Answers [`CongestionController::packets_per_ack`] for the transport.
    fn asked_packets_per_ack(&self) -> Option<u32> {
        None
    }

    /// Answers [`CongestionController::requires_every_burst`] for the transport.
    fn needs_every_burst(&self) -> bool {
        true
    }
}

impl<T: CoreController> CongestionController for T {
    fn on_sent(&mut self, event: &Sent) {
        self.sent(event);
    }

    fn on_acked(&mut self, event: &Acked) {
        self.run_acked(event);
    }

    fn on_ack_batch(&mut self, event: &AckBatch) {
        self.frame_ended(None, event);
    }

    fn on_ack_frame(&mut self, acked: &Acked, batch: &AckBatch) -> Bytes {
        self.frame_ended(Some(acked), batch);
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.congested(event);
    }

    fn on_mtu_change(&mut self, event: &MtuChange) {
        self.mtu_changed(event.mtu);
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.published())
    }

    fn initial_window(&self) -> Bytes {
        Bytes::new(self.core().initial_window())
    }

    fn snapshot(&self) -> Snapshot {
        let core = self.core();
        let mut snapshot = Snapshot {
            phase: core.phase(),
            window: self.window(),
            smoothed_rtt: core.rtt.smoothed_ns().map(Duration::from_nanos),
            min_rtt: core.rtt.min_ns().map(Duration::from_nanos),
            max_rtt: core.rtt.max_ns().map(Duration::from_nanos),
            reason: core.reason,
            waiting_for: core.known.unknown_of(core.needs.knowledge),
            ..Snapshot::default()
        };
        self.describe(&mut snapshot);
        snapshot
    }

    fn packets_per_ack(&self) -> Option<u32> {
        self.asked_packets_per_ack()
    }

    fn requires_every_burst(&self) -> bool {
        self.needs_every_burst()
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}
