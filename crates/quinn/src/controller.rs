//! [`QuinnController`]: drives a [`CongestionController`] from quinn's callbacks.
//!
//! Everything specific to quinn's side of congestion control is here: its clock becomes a [`Timestamp`], its per-packet
//! calls become runs of an [`AckFrame`], its "zero bytes lost" becomes [`Signal::EcnCe`], and the controller's window
//! becomes a plain integer, because quinn reads it twice per datagram.
//!
//! Each further packet of a run costs only additions: a run's times are converted when it begins, the controller is
//! called once per ACK frame, and bursts are reported only if the controller
//! [requires](CongestionController::requires_every_burst) them.

use std::any::Any;
use std::time::Instant;

use playrate_cc::events::{AckFrame, Acked, Congestion, Sent, Signal};
use playrate_cc::{CongestionController, Snapshot, Timestamp};
use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use crate::telemetry::Recorder;

/// State of quinn's RTT estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RttEstimate {
    /// The configured initial RTT: there has been no sample.
    Initial,
    /// The same, but the ACK frame being read acknowledges an ack-eliciting packet: quinn takes its sample at the end
    /// of the frame, so the estimator is measured from the next frame on.
    SampleDue,
    Measured,
}

/// Drives a [`CongestionController`] from quinn. [`quinn::Connection::congestion_state`] returns a copy, and
/// `into_any().downcast::<QuinnController>()` turns it into this type.
///
/// A copy is independent: it receives, counts and samples its own events.
#[derive(Clone, Debug)]
pub struct QuinnController {
    inner: Box<dyn CongestionController>,
    /// Time zero of the controller: the time when it was built.
    built: Instant,
    /// Runs of the ACK frame that is being read.
    runs: Vec<Acked>,
    /// Arrival of the frame with the last run.
    arrived: Timestamp,
    /// Bytes lost since the last ACK frame.
    lost: u64,
    /// The last burst since the last ACK frame, if the controller has not received it.
    unreported: Option<(Instant, u64)>,
    /// True if the controller [requires](CongestionController::requires_every_burst) all bursts.
    every_burst: bool,
    /// The window for quinn, updated after every event because quinn reads it twice per datagram.
    window: u64,
    mtu: u64,
    rtt_estimate: RttEstimate,
    /// Telemetry. The times of its newest packet distinguish runs, because comparing `Instant`s is cheap and converting
    /// them is not.
    recorder: Recorder,
}

impl QuinnController {
    pub(crate) fn new(
        inner: Box<dyn CongestionController>,
        now: Instant,
        current_mtu: u16,
        recorder: Recorder,
    ) -> Self {
        let mut controller = Self {
            every_burst: inner.requires_every_burst(),
            inner,
            built: now,
            runs: Vec::new(),
            arrived: Timestamp::ZERO,
            lost: 0,
            unreported: None,
            window: 0,
            mtu: u64::from(current_mtu),
            rtt_estimate: RttEstimate::Initial,
            recorder,
        };
        controller.refresh_window();
        controller
    }

    /// State of the controller for telemetry.
    pub fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "2⁶⁴ ns are 584 years")]
    fn timestamp(&self, at: Instant) -> Timestamp {
        Timestamp::from_nanos(at.saturating_duration_since(self.built).as_nanos() as u64)
    }

    /// [`timestamp`](Self::timestamp) of the arrival of an ACK frame: all events of a frame carry the same time.
    #[inline]
    fn frame_time(&self, now: Instant) -> Timestamp {
        match self.recorder.frame.newest {
            Some((_, at)) if at == now => self.arrived,
            _ => self.timestamp(now),
        }
    }

    fn refresh_window(&mut self) {
        self.window = self.for_quinn(self.inner.window());
    }

    /// A controller's window for quinn: larger than one MTU, because quinn sends a packet only if
    /// `in flight + mtu < window`, and at most `u32::MAX`, because quinn does not pace above that.
    #[inline]
    fn for_quinn(&self, window: Bytes) -> u64 {
        window.as_u64().max(self.mtu + 1).min(u64::from(u32::MAX))
    }

    #[inline(never)]
    fn report_burst(&mut self, now: Instant, bytes: u64) {
        self.inner
            .on_sent(&Sent::new(self.timestamp(now), Bytes::new(bytes)));
        self.refresh_window();
    }

    #[cold]
    fn sample(&mut self, now: Instant) {
        self.recorder.sample(now, self.inner.snapshot());
    }
}

impl Drop for QuinnController {
    /// Makes the path's last sample include everything counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled() {
            self.sample(at);
        }
    }
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        // A Retry packet makes quinn report an acknowledgement without an ACK frame or an RTT sample. The controller
        // receives its run with the next frame.
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.rtt_estimate = RttEstimate::Initial;
        }
        self.recorder.sent(bytes);
        if self.recorder.frame.in_flight > self.lost && !self.every_burst {
            self.unreported = Some((now, bytes));
        } else {
            self.report_burst(now, bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let times = Some((sent, now));
        if let Some(run) = self.runs.last_mut()
            && self.recorder.frame.newest == times
            && run.app_limited == app_limited
        {
            run.bytes += Bytes::new(bytes);
            run.packets = run.packets.saturating_add(1);
            return;
        }
        if self.rtt_estimate == RttEstimate::Measured {
            self.recorder.frame.smoothed_rtt = Some(rtt.get());
        } else {
            self.rtt_estimate = RttEstimate::SampleDue;
        }
        self.arrived = self.frame_time(now);
        let run = Acked::new(self.timestamp(sent), Bytes::new(bytes), 1);
        self.runs.push(run.with_app_limited(app_limited));
        self.recorder.frame.newest = times;
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        for run in &self.runs {
            self.recorder.acked(run.bytes.as_u64(), run.packets);
        }
        let event = AckFrame::new(self.frame_time(now), &self.runs, Bytes::new(in_flight))
            .with_app_limited(app_limited)
            .with_smoothed_rtt(self.recorder.frame.smoothed_rtt);
        let window = self.inner.window_after(&event);
        self.runs.clear();
        self.window = self.for_quinn(window);
        self.lost = 0;
        self.unreported = None;
        self.recorder.frame_ended(now, in_flight, app_limited);
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.rtt_estimate = RttEstimate::Measured;
        }
        if self.recorder.is_due(now) {
            self.sample(now);
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        if let Some((left, bytes)) = self.unreported.take() {
            self.report_burst(left, bytes);
        }
        let signal = if lost_bytes == 0 && !is_persistent_congestion {
            Signal::EcnCe
        } else {
            Signal::Loss {
                bytes: Bytes::new(lost_bytes),
                persistent: is_persistent_congestion,
            }
        };
        let (noticed, newest_sent) = (self.timestamp(now), self.timestamp(sent));
        self.inner
            .on_congestion(&Congestion::new(noticed, newest_sent, signal));
        self.refresh_window();
        self.lost = self.lost.saturating_add(lost_bytes);
        self.recorder.congestion(lost_bytes);
        self.sample(now);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu);
        self.inner.on_mtu_change(Bytes::new(self.mtu));
        self.refresh_window();
    }

    fn window(&self) -> u64 {
        self.recorder.window_for_quinn(self.window)
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.ssthresh = self.inner.snapshot().ssthresh.map(Bytes::as_u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.for_quinn(self.inner.initial_window())
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
