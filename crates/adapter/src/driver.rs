//! [`Driver`]: turns a stack's calls into the events of a [`CongestionController`].
//!
//! Each further packet of a run costs only additions: a run's times are converted when it begins, the controller is
//! called once per ACK frame, and bursts are reported only if the controller
//! [requires](CongestionController::requires_every_burst) them.

use std::time::Instant;

use playrate_cc::events::{AckFrame, Acked, Congestion, Sent};
use playrate_cc::{CongestionController, Timestamp};
use playrate_units::Bytes;

use crate::path::{AckedPacket, CongestionReport};
use crate::telemetry::LastAckFrame;

/// One of playrate's controllers, and what it has not received yet.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    pub(crate) inner: Box<dyn CongestionController>,
    /// Time zero of the controller: the time when it was built.
    built: Instant,
    /// Runs of the ACK frame that is being read.
    pub(crate) runs: Vec<Acked>,
    /// Arrival of the last ACK frame, in both forms: all events of a frame carry the same time.
    arrived: (Instant, Timestamp),
    /// Bytes lost since the last ACK frame.
    lost: Bytes,
    /// The last burst since the last ACK frame, if the controller has not received it.
    unreported: Option<(Instant, Bytes)>,
    /// True if the controller [requires](CongestionController::requires_every_burst) all bursts.
    every_burst: bool,
    /// The smallest window with which the stack sends a packet.
    least_window: Bytes,
    /// The window for the stack, updated after every event because stacks read it several times per datagram.
    pub(crate) window: Bytes,
}

impl Driver {
    pub(crate) fn new(inner: Box<dyn CongestionController>, built: Instant, least_window: Bytes) -> Self {
        let mut driver = Self {
            every_burst: inner.requires_every_burst(),
            inner,
            built,
            runs: Vec::new(),
            arrived: (built, Timestamp::ZERO),
            lost: Bytes::ZERO,
            unreported: None,
            least_window,
            window: Bytes::ZERO,
        };
        driver.refresh_window();
        driver
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "2⁶⁴ ns are 584 years")]
    fn timestamp(&self, at: Instant) -> Timestamp {
        Timestamp::from_nanos(at.saturating_duration_since(self.built).as_nanos() as u64)
    }

    /// [`timestamp`](Self::timestamp) of the arrival of an ACK frame.
    #[inline]
    fn frame_time(&mut self, now: Instant) -> Timestamp {
        if self.arrived.0 != now {
            self.arrived = (now, self.timestamp(now));
        }
        self.arrived.1
    }

    fn refresh_window(&mut self) {
        self.window = self.for_stack(self.inner.window());
    }

    /// A controller's window for the stack: large enough for one packet, and at most `u32::MAX`, because quinn does not
    /// pace above that.
    #[inline]
    pub(crate) fn for_stack(&self, window: Bytes) -> Bytes {
        window.max(self.least_window).min(Bytes::new(u64::from(u32::MAX)))
    }

    #[inline(never)]
    fn report_burst(&mut self, now: Instant, bytes: Bytes) {
        self.inner.on_sent(&Sent::new(self.timestamp(now), bytes));
        self.refresh_window();
    }

    /// Takes a burst. `in_flight` is the number after the last ACK frame.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) {
        if in_flight > self.lost && !self.every_burst {
            self.unreported = Some((now, bytes));
        } else {
            self.report_burst(now, bytes);
        }
    }

    /// Takes an acknowledged packet. Returns true if it joined the last run, which is possible if its times are
    /// `as_before`: those of the packet before. Comparing `Instant`s is cheap and converting them is not.
    #[inline]
    pub(crate) fn on_ack(&mut self, packet: &AckedPacket, as_before: bool) -> bool {
        if let Some(run) = self.runs.last_mut()
            && as_before
            && run.app_limited == packet.app_limited
        {
            run.bytes += packet.bytes;
            run.packets = run.packets.saturating_add(1);
            return true;
        }
        let run = Acked::new(self.timestamp(packet.sent), packet.bytes, 1);
        self.runs.push(run.with_app_limited(packet.app_limited));
        false
    }

    /// Takes the end of an ACK frame that arrived at `now`.
    #[inline]
    pub(crate) fn on_end_acks(&mut self, now: Instant, frame: &LastAckFrame) {
        let event = AckFrame::new(self.frame_time(now), &self.runs, frame.in_flight)
            .with_app_limited(frame.app_limited)
            .with_smoothed_rtt(frame.smoothed_rtt);
        let window = self.inner.window_after(&event);
        self.runs.clear();
        self.window = self.for_stack(window);
        self.lost = Bytes::ZERO;
        self.unreported = None;
    }

    pub(crate) fn on_congestion(&mut self, report: &CongestionReport) {
        if let Some((left, bytes)) = self.unreported.take() {
            self.report_burst(left, bytes);
        }
        let (noticed, newest_sent) = (self.timestamp(report.now), self.timestamp(report.newest_sent));
        self.inner
            .on_congestion(&Congestion::new(noticed, newest_sent, report.signal));
        self.refresh_window();
        self.lost += report.lost();
    }

    pub(crate) fn on_mtu_update(&mut self, mtu: Bytes, least_window: Bytes) {
        self.least_window = least_window;
        self.inner.on_mtu_change(mtu);
        self.refresh_window();
    }
}
