//! [`SwitchableController`]: a controller that can be replaced by another early in the connection.
//!
//! The choice of a controller may depend on the connection's first requests, but the handshake is sent earlier, with
//! some other controller. The new controller starts with its own initial window and the path's present MTU, and
//! receives the events that it would otherwise have to wait for: the fastest round trip, the last congestion event, and
//! the bytes in flight.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use crate::connection::ConnectionController;
use crate::telemetry::Sample;

/// Passes all events to the present controller. After [`ConnectionController::switch`], the next departing packet
/// replaces it.
pub(crate) struct SwitchableController {
    control: Arc<ConnectionController>,
    inner: Box<dyn Controller>,
    /// `None` once the controller has been replaced.
    history: Option<ReplayHistory>,
}

/// History of the connection, as far as a new controller needs it.
#[derive(Clone)]
struct ReplayHistory {
    built: Instant,
    mtu: u16,
    totals: Sample,
    in_flight: u64,
    last_sent: Instant,
    fastest: Option<RoundTrip>,
    rtt: Option<RttEstimator>,
    congestion: Option<CongestionCall>,
}

/// Departure and acknowledgement of one packet.
#[derive(Clone, Copy)]
struct RoundTrip {
    sent: Instant,
    acked: Instant,
    bytes: u64,
}

impl RoundTrip {
    fn time(&self) -> std::time::Duration {
        self.acked.saturating_duration_since(self.sent)
    }
}

/// The arguments of [`Controller::on_congestion_event`].
#[derive(Clone, Copy)]
struct CongestionCall {
    now: Instant,
    sent: Instant,
    persistent: bool,
    lost: u64,
}

impl SwitchableController {
    pub(crate) fn new(control: Arc<ConnectionController>, now: Instant, mtu: u16) -> Self {
        let recorder = control.recorder(now);
        let history = ReplayHistory {
            built: now,
            mtu,
            totals: recorder.totals(),
            in_flight: 0,
            last_sent: now,
            fastest: None,
            rtt: None,
            congestion: None,
        };
        Self {
            inner: control.build_present(now, mtu, recorder),
            history: Some(history),
            control,
        }
    }

    /// Replaces the controller if [`ConnectionController::switch`] has been called.
    fn replace_if_switched(&mut self) {
        if self.history.is_none() || self.control.switched_to().is_none() {
            return;
        }
        if let Some(history) = self.history.take() {
            let totals = history.totals_before_replay();
            let recorder = self.control.recorder(history.built).continuing_from(totals);
            // Dropping the old controller takes its last sample.
            self.inner = self.control.build_present(history.built, history.mtu, recorder);
            history.replay(self.inner.as_mut());
        }
    }
}

impl ReplayHistory {
    /// The totals without the events that [`replay`](Self::replay) reports, because these are counted again.
    fn totals_before_replay(&self) -> Sample {
        let mut totals = self.totals;
        totals.sent -= Bytes::new(self.in_flight);
        if let Some((RoundTrip { bytes, .. }, _)) = self.round_trip() {
            totals.sent -= Bytes::new(bytes);
            totals.delivered -= Bytes::new(bytes);
            totals.delivered_packets = totals.delivered_packets.saturating_sub(1);
        }
        if let Some(call) = self.congestion {
            totals.lost -= Bytes::new(call.lost);
            totals.congestion_events = totals.congestion_events.saturating_sub(1);
        }
        totals
    }

    /// The fastest round trip and quinn's RTT estimate.
    fn round_trip(&self) -> Option<(RoundTrip, &RttEstimator)> {
        self.fastest.zip(self.rtt.as_ref())
    }

    /// Reports the history to a new controller. The acknowledged packet counts as application-limited, so that it does
    /// not grow the window.
    fn replay(&self, controller: &mut dyn Controller) {
        let mut now = self.built;
        if let Some((fastest, rtt)) = self.round_trip() {
            controller.on_sent(fastest.sent, fastest.bytes, 0);
            controller.on_ack(fastest.acked, fastest.sent, fastest.bytes, true, rtt);
            controller.on_end_acks(fastest.acked, 0, true, None);
            now = fastest.acked;
        }
        if let Some(call) = self.congestion {
            now = now.max(call.now);
            controller.on_congestion_event(now, call.sent, call.persistent, call.lost);
        }
        if self.in_flight > 0 {
            controller.on_sent(self.last_sent.max(now), self.in_flight, 0);
        }
    }
}

impl Controller for SwitchableController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.replace_if_switched();
        if let Some(history) = &mut self.history {
            history.totals.sent += Bytes::new(bytes);
            history.in_flight = history.in_flight.saturating_add(bytes);
            history.last_sent = now;
        }
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if let Some(history) = &mut self.history {
            history.totals.delivered += Bytes::new(bytes);
            history.totals.delivered_packets += 1;
            history.rtt = Some(*rtt);
            let trip = RoundTrip {
                sent,
                acked: now,
                bytes,
            };
            if history.fastest.is_none_or(|fastest| trip.time() < fastest.time()) {
                history.fastest = Some(trip);
            }
        }
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        if let Some(history) = &mut self.history {
            history.in_flight = in_flight;
        }
        self.inner
            .on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if let Some(history) = &mut self.history {
            history.totals.lost += Bytes::new(lost_bytes);
            history.totals.congestion_events += 1;
            history.in_flight = history.in_flight.saturating_sub(lost_bytes);
            history.congestion = Some(CongestionCall {
                now,
                sent,
                persistent: is_persistent_congestion,
                lost: lost_bytes,
            });
        }
        self.inner
            .on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        if let Some(history) = &mut self.history {
            history.mtu = new_mtu;
        }
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            control: Arc::clone(&self.control),
            inner: self.inner.clone_box(),
            history: self.history.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    /// The present controller, so that code that downcasts to it need not know this wrapper.
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
