//! [`QuinnController`]: drives a [`CongestionController`] from quinn's callbacks.
//!
//! Everything specific to quinn's side of congestion control is here: its clock becomes a [`Timestamp`], its per-packet
//! calls become runs, its "zero bytes lost" becomes [`Signal::EcnCe`], and the controller's window becomes a plain
//! integer, because quinn reads it twice per datagram.
//!
//! Each further packet of a run costs only additions: a run's times are converted when it begins, the controller is
//! called once per run and ACK frame, and bursts are reported only if the controller
//! [requires](CongestionController::requires_every_burst) them.

use std::any::Any;
use std::time::{Duration, Instant};

use playrate_cc::events::{AckBatch, Acked, Congestion, MtuChange, Sent, Signal};
use playrate_cc::{CongestionController, Snapshot, Timestamp};
use playrate_units::Bytes;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};

use crate::telemetry::{LastAckFrame, Recorder};

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
    /// Packets of one burst that have not been reported yet. If `packets` is 0, this is not an event but the remains of
    /// the last one.
    run: Acked,
    /// Departure and acknowledgement of the run's packets on quinn's clock. They distinguish runs, because comparing
    /// `Instant`s is cheap and converting them is not. `None` before the first run.
    run_times: Option<(Instant, Instant)>,
    /// End of the last ACK frame that acknowledged no ack-eliciting packet.
    ended: Option<Instant>,
    /// True if the application or flow control limited the sender as of the last ACK frame.
    app_limited: bool,
    /// Bytes in flight as of the last ACK frame.
    in_flight: u64,
    /// Bytes lost since the last ACK frame.
    lost: u64,
    /// The last burst since the last ACK frame, if the controller has not received it.
    unreported: Option<(Instant, u64)>,
    /// True if the controller [requires](CongestionController::requires_every_burst) all bursts.
    every_burst: bool,
    /// The window for quinn, updated after every event because quinn reads it twice per datagram.
    window: u64,
    mtu: u64,
    smoothed_rtt: Option<Duration>,
    rtt_estimate: RttEstimate,
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
            run: Acked::new(Timestamp::ZERO, Timestamp::ZERO, Bytes::ZERO, 0),
            run_times: None,
            ended: None,
            app_limited: false,
            in_flight: 0,
            lost: 0,
            unreported: None,
            window: 0,
            mtu: u64::from(current_mtu),
            smoothed_rtt: None,
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
        match self.run_times {
            Some((_, at)) if at == now => self.run.now,
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

    /// Reports the run, if there is one. Off the hot path, because nearly every run is reported with the end of its
    /// frame.
    #[inline]
    fn flush(&mut self) {
        #[cold]
        fn report(controller: &mut QuinnController) {
            controller.count_run();
            controller.inner.on_acked(&controller.run);
            controller.run.packets = 0;
        }
        if self.run.packets > 0 {
            report(self);
        }
    }

    #[inline]
    fn count_run(&mut self) {
        self.recorder.acked(self.run.bytes.as_u64(), self.run.packets);
    }

    #[inline(never)]
    fn report_burst(&mut self, now: Instant, bytes: u64) {
        self.flush();
        self.inner
            .on_sent(&Sent::new(self.timestamp(now), Bytes::new(bytes)));
        self.refresh_window();
    }

    /// The last ACK frame, for telemetry.
    fn last_frame(&self) -> LastAckFrame {
        LastAckFrame {
            ended: self.run_times.map(|(_, acked)| acked).max(self.ended),
            newest: self.run_times,
            in_flight: self.in_flight,
            app_limited: self.app_limited,
            smoothed_rtt: self.smoothed_rtt,
        }
    }

    #[cold]
    fn sample(&mut self, now: Instant) {
        self.recorder
            .sample(now, &self.last_frame(), self.inner.snapshot());
    }
}

impl Drop for QuinnController {
    /// Makes the path's last sample include everything counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled(&self.last_frame()) {
            self.sample(at);
        }
    }
}

impl Controller for QuinnController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        // A Retry packet makes quinn report an acknowledgement without an ACK frame or an RTT sample; its run is
        // reported here.
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.rtt_estimate = RttEstimate::Initial;
        }
        self.recorder.sent(bytes);
        if self.in_flight > self.lost && !self.every_burst && self.run.packets == 0 {
            self.unreported = Some((now, bytes));
        } else {
            self.report_burst(now, bytes);
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let times = Some((sent, now));
        if self.run.packets > 0 && self.run_times == times && self.run.app_limited == app_limited {
            self.run.bytes += Bytes::new(bytes);
            self.run.packets = self.run.packets.saturating_add(1);
            return;
        }
        self.flush();
        if self.rtt_estimate == RttEstimate::Measured {
            self.smoothed_rtt = Some(rtt.get());
        } else {
            self.rtt_estimate = RttEstimate::SampleDue;
        }
        let (arrived, left) = (self.frame_time(now), self.timestamp(sent));
        self.run = Acked::new(arrived, left, Bytes::new(bytes), 1).with_app_limited(app_limited);
        self.run_times = times;
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        let at = self.frame_time(now);
        let batch = AckBatch::new(at, Bytes::new(in_flight))
            .with_app_limited(app_limited)
            .with_smoothed_rtt(self.smoothed_rtt);
        let window = if self.run.packets > 0 {
            self.count_run();
            let window = self.inner.on_ack_frame(&self.run, &batch);
            self.run.packets = 0;
            window
        } else {
            self.ended = Some(now);
            self.inner.on_ack_batch(&batch);
            self.inner.window()
        };
        self.window = self.for_quinn(window);
        self.app_limited = app_limited;
        self.in_flight = in_flight;
        self.lost = 0;
        self.unreported = None;
        self.recorder.frame_ended(in_flight, app_limited);
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
        self.flush();
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
        // If an ACK frame acknowledges an MTU probe, this arrives in the middle of the frame.
        self.flush();
        self.mtu = u64::from(new_mtu);
        self.inner.on_mtu_change(&MtuChange::new(Bytes::new(self.mtu)));
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
