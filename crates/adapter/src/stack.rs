//! [`QuicStack`]: the part of a QUIC stack that this crate uses, and the events that a stack reports.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use playrate_cc::events::Signal;
use playrate_units::{Bitrate, Bytes};

use crate::{AckRequest, ConnectionController};

/// A QUIC stack, as its adapter presents it to this crate. Besides implementing it, an adapter makes the stack's paths
/// call a [`PathController`](crate::PathController).
pub trait QuicStack: Copy + Debug + PartialEq + Send + Sync + 'static {
    /// Configuration of a connection.
    type TransportConfig;
    /// Handle of a connection.
    type Connection;
    /// The stack's estimator of a path's RTT.
    type Rtt: Copy + Send + Sync;
    /// Name of one of the stack's own controllers.
    type Baseline: Copy + Debug + PartialEq + Send + Sync;
    /// One of the stack's own controllers.
    type BaselineController: Clone + Send + Sync;

    /// The stack's own controllers, in the order of listings.
    const BASELINES: &'static [Self::Baseline];
    /// True if the stack sends a packet only while `in_flight + mtu` is less than the window, false if both may be
    /// equal.
    const IS_STRICT: bool;
    /// True if the stack paces by [`PathController::pacing_rate`](crate::PathController::pacing_rate).
    const PACES_BY_RATE: bool = false;
    /// True if a connection can send on several paths at once. Otherwise, the controllers of a connection before and
    /// after a migration are not coupled.
    const IS_MULTIPATH: bool = false;

    /// Name of `baseline` in a [`ControllerChoice`](crate::ControllerChoice).
    fn name(baseline: Self::Baseline) -> &'static str;

    /// Builds `baseline` for a path that begins at `now` with an MTU of `mtu` bytes.
    fn build(baseline: Self::Baseline, now: Instant, mtu: u16) -> Self::BaselineController;

    /// The window of `controller`.
    fn window(controller: &Self::BaselineController) -> Bytes;

    /// The window that a connection starts with under `controller`.
    fn initial_window(controller: &Self::BaselineController) -> Bytes;

    /// The other state that `controller` reports.
    fn metrics(controller: &Self::BaselineController) -> BaselineMetrics;

    /// Smoothed RTT and smallest RTT.
    fn smoothed_and_min(rtt: &Self::Rtt) -> (Duration, Duration);

    /// Makes connections that use `transport` use `control`. Everything else in `transport` stays.
    fn install(control: ConnectionController<Self>, transport: &mut Self::TransportConfig);

    /// Makes connections that use `transport` send `request` to their peer, in place of any request in `transport`.
    fn request_acks(request: AckRequest, transport: &mut Self::TransportConfig);

    /// Takes and releases the lock under which `connection` calls its controllers.
    fn synchronize(connection: &Self::Connection);
}

/// State of one of a stack's own controllers. Fields that it does not report are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BaselineMetrics {
    /// Slow start threshold; also `None` while it is infinite.
    pub ssthresh: Option<Bytes>,
    /// Pacing rate of a controller that sets one.
    pub pacing_rate: Option<Bitrate>,
}

/// A packet that an ACK frame acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an adapter makes one for every packet")]
pub struct AckedPacket {
    /// Departure of its burst.
    pub sent: Instant,
    /// Arrival of the ACK frame.
    pub acked: Instant,
    /// Size, without UDP and IP headers.
    pub bytes: Bytes,
    /// True if the application or flow control limited the sender at its last attempt to send before this frame.
    pub app_limited: bool,
}

/// A congestion signal, as reported by the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an adapter makes one for every signal")]
pub struct CongestionReport {
    /// Time when the stack noticed it.
    pub now: Instant,
    /// Departure of the newest affected packet.
    pub newest_sent: Instant,
    /// The kind of signal.
    pub signal: Signal,
}

impl CongestionReport {
    /// Bytes of packets declared lost.
    pub fn lost(&self) -> Bytes {
        match self.signal {
            Signal::Loss { bytes, .. } => bytes,
            _ => Bytes::ZERO,
        }
    }
}
