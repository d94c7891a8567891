//! [`Switchable`]: a controller that another one may take the place of while the connection is young.
//!
//! Which controller a connection should have may only be known from its first requests, when the handshake has been sent with
//! some controller or other. The one that takes over starts with a window of its own, on the path's present MTU, and is told what
//! was learnt that it would have to wait for: the fastest round trip, the last congestion, and what is in flight.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use super::ConnectionController;
use crate::telemetry::Sample;

/// Passes everything on to a controller until [`ConnectionController::switch`] names another, which takes over with the next
/// packet that leaves. Then that one gets everything, and nothing is kept any more.
pub(super) struct Switchable {
    control: Arc<ConnectionController>,
    inner: Box<dyn Controller>,
    past: Option<Past>,
}

/// What the one that takes over has to know.
#[derive(Clone)]
struct Past {
    built: Instant,
    mtu: u16,
    /// Totals of all that happened.
    totals: Sample,
    in_flight: u64,
    last_sent: Instant,
    /// The packet that was acknowledged fastest.
    fastest: Option<RoundTrip>,
    rtt: Option<RttEstimator>,
    congestion: Option<Signal>,
}

/// One packet and its acknowledgement.
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
struct Signal {
    now: Instant,
    sent: Instant,
    persistent: bool,
    lost: u64,
}

impl Switchable {
    pub(super) fn new(control: Arc<ConnectionController>, now: Instant, mtu: u16) -> Self {
        let recorder = control.recorder(now);
        let past = Past {
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
            inner: control.build_choice(now, mtu, recorder),
            past: Some(past),
            control,
        }
    }

    /// Puts the chosen controller into place, if there is one by now.
    fn settle(&mut self) {
        if self.past.is_none() || self.control.chosen().is_none() {
            return;
        }
        if let Some(past) = self.past.take() {
            let recorder = self.control.recorder(past.built).going_on_from(past.untold());
            // The one before gives its last sample as it goes.
            self.inner = self.control.build_choice(past.built, past.mtu, recorder);
            past.tell(self.inner.as_mut());
        }
    }
}

impl Past {
    /// The totals without what is going to be told again.
    fn untold(&self) -> Sample {
        let mut totals = self.totals;
        totals.sent -= Bytes::new(self.in_flight);
        if let Some(RoundTrip { bytes, .. }) = self.told() {
            totals.sent -= Bytes::new(bytes);
            totals.delivered -= Bytes::new(bytes);
            totals.delivered_packets = totals.delivered_packets.saturating_sub(1);
        }
        if let Some(signal) = self.congestion {
            totals.lost -= Bytes::new(signal.lost);
            totals.congestion_events = totals.congestion_events.saturating_sub(1);
        }
        totals
    }

    fn told(&self) -> Option<RoundTrip> {
        self.fastest.filter(|_| self.rtt.is_some())
    }

    /// Tells a new controller. What was acknowledged counts as sent by a limited application: it opens no window.
    fn tell(&self, controller: &mut dyn Controller) {
        let mut now = self.built;
        if let (Some(fastest), Some(rtt)) = (self.told(), &self.rtt) {
            controller.on_sent(fastest.sent, fastest.bytes, 0);
            controller.on_ack(fastest.acked, fastest.sent, fastest.bytes, true, rtt);
            controller.on_end_acks(fastest.acked, 0, true, None);
            now = fastest.acked;
        }
        if let Some(Signal {
            now: at,
            sent,
            persistent,
            lost,
        }) = self.congestion
        {
            now = now.max(at);
            controller.on_congestion_event(now, sent, persistent, lost);
        }
        if self.in_flight > 0 {
            controller.on_sent(self.last_sent.max(now), self.in_flight, 0);
        }
    }
}

impl Controller for Switchable {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.settle();
        if let Some(past) = &mut self.past {
            past.totals.sent += Bytes::new(bytes);
            past.in_flight = past.in_flight.saturating_add(bytes);
            past.last_sent = now;
        }
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        if let Some(past) = &mut self.past {
            past.totals.delivered += Bytes::new(bytes);
            past.totals.delivered_packets += 1;
            past.rtt = Some(*rtt);
            let trip = RoundTrip {
                sent,
                acked: now,
                bytes,
            };
            if past.fastest.is_none_or(|fastest| trip.time() < fastest.time()) {
                past.fastest = Some(trip);
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
        if let Some(past) = &mut self.past {
            past.in_flight = in_flight;
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
        if let Some(past) = &mut self.past {
            past.totals.lost += Bytes::new(lost_bytes);
            past.totals.congestion_events += 1;
            past.in_flight = past.in_flight.saturating_sub(lost_bytes);
            past.congestion = Some(Signal {
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
        if let Some(past) = &mut self.past {
            past.mtu = new_mtu;
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
            past: self.past.clone(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    /// The controller in charge, so that code that downcasts to it works as without the possibility of another.
    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
