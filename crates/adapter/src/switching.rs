//! [`ReplayHistory`]: the events for a controller that replaces another one early in the connection.
//!
//! The choice of a controller may depend on the connection's first requests, but the handshake is sent earlier, with
//! some other controller. The new controller starts with its own initial window and the path's current MTU, and
//! receives the events that it would otherwise have to wait for: the fastest round trip, the last congestion event, and
//! the bytes in flight.

use std::time::{Duration, Instant};

use playrate_units::Bytes;

use crate::telemetry::Sample;
use crate::{AckedPacket, CongestionReport};

/// The part of a path's history that a new controller needs. An adapter reports it to the new controller in the order
/// of its fields.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReplayHistory<R> {
    /// The packet with the fastest round trip, and the stack's RTT estimator. It counts as application-limited, so that
    /// it does not grow the window. Report it as sent, as acknowledged, and then as the only packet of an ACK frame
    /// that leaves nothing in flight.
    pub acked: Option<(AckedPacket, R)>,
    /// The last congestion signal.
    pub congestion: Option<CongestionReport>,
    /// Bytes in flight. If there are any, report them as sent in one burst.
    pub in_flight: Bytes,
    /// Departure of that burst.
    pub last_sent: Instant,
}

impl<R: Copy> ReplayHistory<R> {
    pub(crate) fn new(built: Instant) -> Self {
        Self {
            acked: None,
            congestion: None,
            in_flight: Bytes::ZERO,
            last_sent: built,
        }
    }

    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        self.in_flight += bytes;
        self.last_sent = now;
    }

    pub(crate) fn on_ack(&mut self, packet: &AckedPacket, rtt: &R) {
        let mut fastest = AckedPacket {
            app_limited: true,
            ..*packet
        };
        if let Some((before, _)) = self.acked
            && round_trip(&before) <= round_trip(&fastest)
        {
            fastest = before;
        }
        self.acked = Some((fastest, *rtt));
    }

    pub(crate) fn on_congestion(&mut self, report: &CongestionReport) {
        self.in_flight -= report.lost();
        self.congestion = Some(*report);
    }

    /// `totals` without the events of this history, because these are counted again.
    pub(crate) fn totals_before_replay(&self, mut totals: Sample) -> Sample {
        totals.sent -= self.in_flight;
        if let Some((packet, _)) = self.acked {
            totals.sent -= packet.bytes;
            totals.delivered -= packet.bytes;
            totals.delivered_packets = totals.delivered_packets.saturating_sub(1);
        }
        if let Some(report) = self.congestion {
            totals.lost -= report.lost();
            totals.congestion_events = totals.congestion_events.saturating_sub(1);
        }
        totals
    }

    /// Moves the events so that none is earlier than the one reported before it.
    pub(crate) fn in_order(&mut self) {
        let mut now = self.acked.map(|(packet, _)| packet.acked);
        if let Some(report) = &mut self.congestion {
            report.now = now.map_or(report.now, |now| report.now.max(now));
            now = Some(report.now);
        }
        self.last_sent = now.map_or(self.last_sent, |now| self.last_sent.max(now));
    }
}

fn round_trip(packet: &AckedPacket) -> Duration {
    packet.acked.saturating_duration_since(packet.sent)
}
