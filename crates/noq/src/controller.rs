//! [`NoqController`]: passes noq's calls to a [`PathController`].
//!
//! Everything specific to noq's calls is here: integers become [`Bytes`], and noq's pacer receives a rate in bytes per
//! second and the size of a burst.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};
use playrate_adapter::{AckedPacket, CongestionReport, PathController, ReplayHistory};
use playrate_cc::Snapshot;
use playrate_cc::events::Signal;
use playrate_units::{Bitrate, Bytes};

use crate::ConnectionController;
use crate::stack::Noq;

/// Time of a burst at the pacing rate, and its largest size (`C.send_quantum`, draft-ietf-ccwg-bbr-06 §5.6.3).
const BURST_TIME: Duration = Duration::from_millis(1);
const LARGEST_BURST: u64 = 64 * 1024;

/// The controller of one path under noq.
///
/// A copy is independent: it receives, counts and samples its own events.
#[derive(Clone, Debug)]
pub struct NoqController {
    path: PathController<Noq>,
    /// True if a loss has not led to a congestion event: noq reports none if only acknowledgements were lost.
    unanswered: bool,
}

impl NoqController {
    /// The controller of a path that begins at `now` with an MTU of `mtu` bytes.
    pub fn new(control: Arc<ConnectionController>, now: Instant, mtu: u16) -> Self {
        Self {
            path: PathController::new(control, now, mtu),
            unanswered: false,
        }
    }

    /// The controller behind a path's `state`, which is a copy; `congestion_state` of noq's and of iroh's connections
    /// returns it. `None` for noq's own controllers, which keep their type, and for those of other crates.
    pub fn of(state: Box<dyn Controller>) -> Option<Self> {
        let mut copy: Self = *state.into_any().downcast().ok()?;
        copy.path.leave_samples_to_original();
        Some(copy)
    }

    /// The congestion control of the path's connection: its knowledge and its samples.
    pub fn control(&self) -> &ConnectionController {
        self.path.control()
    }

    /// State of the controller for telemetry.
    pub fn snapshot(&self) -> Snapshot {
        self.path.snapshot()
    }

    fn call_baseline(&mut self, call: impl FnOnce(&mut dyn Controller)) {
        self.path.call_baseline(|baseline| call(&mut *baseline.0));
    }

    /// Replaces the controller after a switch, and reports to the new one what happened before.
    fn replace_if_switched(&mut self) {
        if let Some(history) = self.path.replace_if_switched() {
            self.replay(&history);
        }
    }

    #[cold]
    fn replay(&mut self, history: &ReplayHistory<RttEstimator>) {
        if let Some((packet, rtt)) = &history.acked {
            let bytes = packet.bytes.as_u64();
            self.on_packet_sent(packet.sent, u16::try_from(bytes).unwrap_or(u16::MAX), 0);
            self.on_sent(packet.sent, bytes, 0);
            self.on_ack(packet.acked, packet.sent, bytes, 0, packet.app_limited, rtt);
            self.on_end_acks(packet.acked, 0, true, None);
        }
        if let Some(report) = history.congestion {
            let persistent = matches!(report.signal, Signal::Loss { persistent: true, .. });
            let (is_ecn, lost) = (report.signal == Signal::EcnCe, report.lost().as_u64());
            self.on_congestion_event(report.now, report.newest_sent, persistent, is_ecn, lost, 0);
        }
        if history.in_flight > Bytes::ZERO {
            self.on_sent(history.last_sent, history.in_flight.as_u64(), 0);
        }
    }
}

impl Controller for NoqController {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        if !self.path.is_plain() {
            self.replace_if_switched();
            self.call_baseline(|baseline| baseline.on_packet_sent(now, bytes, pn));
        }
    }

    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        if !self.path.is_plain() {
            self.replace_if_switched();
            self.call_baseline(|baseline| baseline.on_sent(now, bytes, largest_pn));
        }
        self.path.on_sent(now, Bytes::new(bytes));
    }

    fn on_cwnd_limited(&mut self) {
        self.call_baseline(|baseline| baseline.on_cwnd_limited());
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let packet = AckedPacket {
            sent,
            acked: now,
            bytes: Bytes::new(bytes),
            app_limited,
        };
        if !self.path.is_plain() {
            self.call_baseline(|baseline| baseline.on_ack(now, sent, bytes, pn, app_limited, rtt));
        }
        self.path.on_ack(&packet, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.call_baseline(|baseline| {
            baseline.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        });
        self.path.on_end_acks(now, Bytes::new(in_flight), app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        self.unanswered = false;
        self.call_baseline(|baseline| {
            let persistent = is_persistent_congestion;
            baseline.on_congestion_event(now, sent, persistent, is_ecn, lost_bytes, largest_lost_pn);
        });
        let signal = if is_ecn {
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

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.unanswered = true;
        self.call_baseline(|baseline| baseline.on_packet_lost(lost_bytes, pn, now));
    }

    fn on_spurious_congestion_event(&mut self) {
        self.call_baseline(|baseline| baseline.on_spurious_congestion_event());
        // Without a congestion event, the last one may have been genuine.
        if !self.unanswered {
            self.path.on_spurious_congestion();
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.call_baseline(|baseline| baseline.on_mtu_update(new_mtu));
        self.path.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, requested_max_ack_delay: Duration) {
        self.call_baseline(|baseline| {
            baseline.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
        });
    }

    fn window(&self) -> u64 {
        self.path.window().as_u64()
    }

    /// noq calls this for every datagram, so the values that only a snapshot has are those of the last sample.
    fn metrics(&self) -> ControllerMetrics {
        if let Some(baseline) = self.path.baseline() {
            return baseline.0.metrics();
        }
        let (rate, sampled) = (self.path.pacing_rate(), self.path.last_snapshot());
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.pacing_rate = rate.map(Bitrate::as_bytes_per_second);
        metrics.send_quantum = rate.map(|rate| self.burst(rate));
        metrics.ssthresh = sampled.and_then(|sampled| sampled.ssthresh).map(Bytes::as_u64);
        let capacity = sampled.and_then(|sampled| sampled.capacity);
        crate::show_capacity(&mut metrics, capacity);
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

impl NoqController {
    /// Bytes that may leave at once under this pacing rate, at least two packets.
    fn burst(&self, rate: Bitrate) -> u64 {
        let least = 2 * u64::from(self.path.mtu());
        (rate * BURST_TIME).as_u64().min(LARGEST_BURST).max(least)
    }
}
