//! [`CongestionController`]: the one trait.

use core::fmt::Debug;

use playrate_units::{Bitrate, Bytes, Probability};

use crate::Snapshot;
use crate::events::{AckFrame, Congestion, Sent};

/// Decides how many bytes may be in flight.
///
/// Implementations are deterministic: the same events give the same windows, on every machine. They neither
/// block nor allocate in any `on_…` method, keep bounded state, and never panic.
pub trait CongestionController: Debug + Send + Sync {
    /// A burst of packets left.
    fn on_sent(&mut self, _event: &Sent) {}

    /// An ACK frame has been read to its end. Returns the new [`window`](Self::window).
    fn on_ack_frame(&mut self, _event: &AckFrame<'_>) -> Bytes {
        self.window()
    }

    /// The path signalled congestion.
    fn on_congestion(&mut self, _event: &Congestion) {}

    /// All the packets that the transport declared lost have arrived, so the last [congestion](Self::on_congestion) was
    /// spurious (RFC 9438 §4.9). Called before the ACK frame that shows this.
    /// Transports that cannot detect spurious losses never call it.
    fn on_spurious_congestion(&mut self) {}

    /// From now on, the largest UDP payload that the path carries is `mtu`; this crate uses it wherever TCP says MSS or
    /// SMSS. The window stays at least at the controller's minimum for the new MTU.
    fn on_mtu_change(&mut self, _mtu: Bytes) {}

    /// The path delivered this share of the connection's data in the last second. It is 1 while the connection has one
    /// path, and before this is called. The facts of the video are those of the whole connection.
    fn on_path_share(&mut self, _share: Probability) {}

    /// Bytes that may be in flight: never zero, never above `u32::MAX` (above that quinn would stop pacing).
    fn window(&self) -> Bytes;

    /// The window that a connection starts with on this path: the current one, unless it changes.
    fn initial_window(&self) -> Bytes {
        self.window()
    }

    /// Rate for the pacer of a transport that [paces by it](crate::Path::paced); others ignore it. `None` leaves pacing
    /// to the transport, which spreads a window over a round trip (RFC 9002 §7.7). It is called for every packet.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }

    /// The controller's state for telemetry; by default, only its window. Not called per packet.
    fn snapshot(&self) -> Snapshot {
        Snapshot::of_window(self.window())
    }

    /// Number of packets for which the peer is asked to send one acknowledgement. `None` leaves the choice to the peer,
    /// which waits for two (RFC 9000 §13.2.2). The controller must also work, if less well, when the peer does not
    /// comply.
    fn packets_per_ack(&self) -> Option<u32> {
        None
    }

    /// Returns true if every burst has to be reported, because the controller uses them for a measurement such as the
    /// path's capacity.
    ///
    /// If false, a burst that leaves while something is in flight ([`AckFrame::in_flight`] less later losses) need not
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
