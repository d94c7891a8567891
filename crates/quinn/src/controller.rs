//! [`QuinnController`]: passes quinn's calls to a [`PathController`].
//!
//! Everything specific to quinn's calls is here: integers become [`Bytes`], and "zero bytes lost" becomes
//! [`Signal::EcnCe`].

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use playrate_adapter::{AckedPacket, CongestionReport, PathController, ReplayHistory};
use playrate_cc::Snapshot;
use playrate_cc::events::Signal;
use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use crate::ConnectionController;
use crate::stack::Quinn;

/// The controller of one path under quinn. [`quinn::Connection::congestion_state`] returns a copy, and
/// `into_any().downcast::<QuinnController>()` turns it into this type, unless the controller is quinn's own: that one
/// is downcast to its own type, as without telemetry.
///
/// A copy is independent: it receives, counts and samples its own events.
#[derive(Clone, Debug)]
pub struct QuinnController {
    path: PathController<Quinn>,
}

impl QuinnController {
    /// The controller of a path that begins at `now` with an MTU of `mtu` bytes.
    pub fn new(control: Arc<ConnectionController>, now: Instant, mtu: u16) -> Self {
        Self {
            path: PathController::new(control, now, mtu),
        }
    }

    /// The congestion control of the path's connection.
    pub fn control(&self) -> &ConnectionController {
        self.path.control()
    }

    /// Makes this copy take no sample when it is dropped, because the original takes it.
    pub(crate) fn leave_samples_to_original(&mut self) {
        self.path.leave_samples_to_original();
    }

    /// State of the controller for telemetry.
    pub fn snapshot(&self) -> Snapshot {
        self.path.snapshot()
    }

    /// [`on_sent`](Controller::on_sent) for a path that is not [plain](PathController::is_plain). It is not inlined:
    /// equal arguments make the call a jump, so a plain path saves no registers for the calls in here.
    #[inline(never)]
    fn on_sent_slow(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        if let Some(history) = self.path.replace_if_switched() {
            self.replay(&history);
        }
        self.path
            .call_baseline(|baseline| baseline.0.on_sent(now, bytes, last_packet_number));
        self.path.on_sent(now, Bytes::new(bytes));
    }

    /// [`on_ack`](Controller::on_ack) for a packet that [`add_to_run`](PathController::add_to_run) does not take. It
    /// is not inlined for the same reason as [`on_sent_slow`](Self::on_sent_slow).
    #[inline(never)]
    #[expect(clippy::too_many_arguments, reason = "those of quinn's trait")]
    fn on_ack_slow(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.path
            .call_baseline(|baseline| baseline.0.on_ack(now, sent, bytes, app_limited, rtt));
        self.path.add_run(&acked(now, sent, bytes, app_limited), rtt);
    }

    /// Reports what happened before this controller replaced another one.
    #[cold]
    fn replay(&mut self, history: &ReplayHistory<RttEstimator>) {
        if let Some((packet, rtt)) = &history.acked {
            let bytes = packet.bytes.as_u64();
            self.on_sent(packet.sent, bytes, 0);
            self.on_ack(packet.acked, packet.sent, bytes, packet.app_limited, rtt);
            self.on_end_acks(packet.acked, 0, true, None);
        }
        if let Some(report) = history.congestion {
            let persistent = matches!(report.signal, Signal::Loss { persistent: true, .. });
            let lost = report.lost().as_u64();
            self.on_congestion_event(report.now, report.newest_sent, persistent, lost);
        }
        if history.in_flight > Bytes::ZERO {
            self.on_sent(history.last_sent, history.in_flight.as_u64(), 0);
        }
    }
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        if self.path.is_plain() {
            self.path.on_sent(now, Bytes::new(bytes));
        } else {
            self.on_sent_slow(now, bytes, last_packet_number);
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let packet = acked(now, sent, bytes, app_limited);
        if !self.path.add_to_run(&packet, rtt) {
            self.on_ack_slow(now, sent, bytes, app_limited, rtt);
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.path.call_baseline(|baseline| {
            let baseline = &mut baseline.0;
            baseline.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        });
        self.path.on_end_acks(now, Bytes::new(in_flight), app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.path.call_baseline(|baseline| {
            let baseline = &mut baseline.0;
            baseline.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
        });
        let signal = if lost_bytes == 0 && !is_persistent_congestion {
            Signal::EcnCe
        } else {
            Signal::Loss {
                bytes: Bytes::new(lost_bytes),
                persistent: is_persistent_congestion,
            }
        };
        self.path.on_congestion(&CongestionReport {
            now,
            newest_sent: sent,
            signal,
        });
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.path
            .call_baseline(|baseline| baseline.0.on_mtu_update(new_mtu));
        self.path.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.path.window().as_u64()
    }

    fn metrics(&self) -> ControllerMetrics {
        if let Some(baseline) = self.path.baseline() {
            return baseline.0.metrics();
        }
        let mut metrics = ControllerMetrics::default();
        // Not the window that `window` returns, which is lifted while a connection is being closed.
        let snapshot = self.snapshot();
        metrics.congestion_window = snapshot.window.as_u64();
        metrics.ssthresh = snapshot.ssthresh.map(Bytes::as_u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.path.initial_window().as_u64()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        match self.path.baseline() {
            Some(baseline) => baseline.0.clone_box().into_any(),
            None => self,
        }
    }
}

#[inline]
fn acked(acked: Instant, sent: Instant, bytes: u64, app_limited: bool) -> AckedPacket {
    AckedPacket {
        sent,
        acked,
        bytes: Bytes::new(bytes),
        app_limited,
    }
}
