//! [`PathController`]: the congestion control of one path, as a stack calls it.
//!
//! Each further packet of a run costs only additions: a run's times are converted when it begins, the controller is
//! called once per ACK frame, and bursts are reported only if the controller
//! [requires](CongestionController::requires_every_burst) them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use playrate_cc::events::{AckFrame, Acked, Congestion, Sent};
use playrate_cc::{CongestionController, Snapshot, Timestamp};
use playrate_units::Bytes;

use crate::observed::ObservedBaseline;
use crate::switching::ReplayHistory;
use crate::telemetry::{LastAckFrame, Recorder};
use crate::{AckedPacket, CongestionReport, ConnectionController, ControllerChoice, QuicStack};

/// Window of a connection that is being closed: more than can be in flight, and above `u32::MAX`, so that quinn does
/// not pace.
const CLOSING_WINDOW: Bytes = Bytes::new(1 << 32);

/// State of the stack's RTT estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RttEstimate {
    /// The configured initial RTT: there has been no sample.
    Initial,
    /// The same, but the ACK frame being read acknowledges an ack-eliciting packet: the stack takes its sample at the
    /// end of the frame, so the estimator is measured from the next frame on.
    SampleDue,
    Measured,
}

/// The congestion control of one path: one of playrate's controllers, driven by the stack's calls, or one of the
/// stack's own, which the adapter calls itself. Telemetry observes both.
///
/// A copy is independent: it receives, counts and samples its own events.
#[derive(Clone)]
pub struct PathController<S: QuicStack> {
    control: Arc<ConnectionController<S>>,
    kind: Kind<S>,
    built: Instant,
    /// Bytes of the path's largest packet.
    mtu: u16,
    rtt_estimate: RttEstimate,
    /// Telemetry. The times of its newest packet distinguish runs.
    recorder: Recorder,
    /// `None` if the controller cannot be replaced, or has been replaced.
    history: Option<Box<ReplayHistory<S::Rtt>>>,
}

#[derive(Clone)]
enum Kind<S: QuicStack> {
    Driven(Driver),
    Observed(ObservedBaseline<S>),
}

impl<S: QuicStack> fmt::Debug for PathController<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathController")
            .field("choice", self.control.choice())
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}

impl<S: QuicStack> PathController<S> {
    /// The [present](ConnectionController::choice) controller of `control`, for a path that begins at `now` with an MTU
    /// of `mtu` bytes.
    pub fn new(control: Arc<ConnectionController<S>>, now: Instant, mtu: u16) -> Self {
        let recorder = control.recorder(now);
        Self::build(control, recorder, now, mtu)
    }

    fn build(control: Arc<ConnectionController<S>>, recorder: Recorder, built: Instant, mtu: u16) -> Self {
        // Read this before the choice: a switch in between then replaces the controller again instead of being missed.
        let history = control.may_switch().then(|| Box::new(ReplayHistory::new(built)));
        let kind = match control.choice() {
            ControllerChoice::Spec(spec) => {
                let controller = spec.build(&control.path(mtu), Arc::clone(control.knowledge()));
                Kind::Driven(Driver::new(controller, built, Self::least_window(mtu)))
            }
            ControllerChoice::Baseline(baseline) => {
                Kind::Observed(ObservedBaseline::new(S::build(*baseline, built, mtu)))
            }
        };
        Self {
            control,
            kind,
            built,
            mtu,
            rtt_estimate: RttEstimate::Initial,
            recorder,
            history,
        }
    }

    /// The smallest window with which the stack sends a packet of `mtu` bytes.
    fn least_window(mtu: u16) -> Bytes {
        Bytes::new(u64::from(mtu) + u64::from(S::IS_STRICT))
    }

    /// The stack's own controller, if it is one. The adapter passes each call of the stack to it and then here.
    #[inline]
    pub fn baseline(&self) -> Option<&S::BaselineController> {
        match &self.kind {
            Kind::Driven(_) => None,
            Kind::Observed(baseline) => Some(&baseline.inner),
        }
    }

    /// The stack's own controller, if it is one, for calls that change it.
    #[inline]
    pub fn baseline_mut(&mut self) -> Option<&mut S::BaselineController> {
        match &mut self.kind {
            Kind::Driven(_) => None,
            Kind::Observed(baseline) => Some(&mut baseline.inner),
        }
    }

    /// After a [switch](ConnectionController::switch), replaces the controller and returns the events that the new one
    /// has to receive first. The adapter asks for it before each departing burst.
    #[inline]
    pub fn replace_if_switched(&mut self) -> Option<Box<ReplayHistory<S::Rtt>>> {
        let mut history = self.history.take_if(|_| !self.control.may_switch())?;
        history.in_order();
        let mut recorder = self.control.recorder(self.built);
        recorder.totals = history.totals_before_replay(self.recorder.totals);
        // Dropping the old controller takes its last sample.
        *self = Self::build(Arc::clone(&self.control), recorder, self.built, self.mtu);
        Some(history)
    }

    /// Takes a burst of `bytes` that left at `now`.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.end_without_sample(now);
        }
        if let Some(history) = &mut self.history {
            history.on_sent(now, bytes);
        }
        self.recorder.sent(bytes);
        if let Kind::Driven(driver) = &mut self.kind {
            driver.on_sent(now, bytes, self.recorder.frame.in_flight);
        }
    }

    /// Takes an acknowledged packet and the stack's present RTT estimate. The packets of a frame come in the order of
    /// their departure.
    #[inline]
    pub fn on_ack(&mut self, packet: &AckedPacket, rtt: &S::Rtt) {
        if let Some(history) = &mut self.history {
            history.on_ack(packet, rtt);
        }
        let times = Some((packet.sent, packet.acked));
        let joined = match &mut self.kind {
            Kind::Driven(driver) => driver.on_ack(packet, self.recorder.frame.newest == times),
            Kind::Observed(_) => {
                self.recorder.acked(packet.bytes, 1);
                false
            }
        };
        if joined {
            return;
        }
        let frame = &mut self.recorder.frame;
        frame.newest = times;
        if self.rtt_estimate == RttEstimate::Measured {
            let (smoothed, min) = S::smoothed_and_min(rtt);
            (frame.smoothed_rtt, frame.min_rtt) = (Some(smoothed), Some(min));
        } else {
            self.rtt_estimate = RttEstimate::SampleDue;
        }
    }

    /// Takes the end of an ACK frame that arrived at `now` and left `in_flight` bytes in flight. `app_limited` means
    /// that the sender had nothing to send at its last attempt.
    #[inline]
    pub fn on_end_acks(&mut self, now: Instant, in_flight: Bytes, app_limited: bool) {
        if let Some(history) = &mut self.history {
            history.in_flight = in_flight;
        }
        self.count_runs();
        self.recorder.frame_ended(now, in_flight, app_limited);
        match &mut self.kind {
            Kind::Driven(driver) => driver.on_end_acks(now, &self.recorder.frame),
            Kind::Observed(baseline) => baseline.watch_pacing_rate(),
        }
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.rtt_estimate = RttEstimate::Measured;
        }
        if self.recorder.is_due(now) {
            self.sample(now);
        }
    }

    /// Counts the runs that the controller receives next.
    #[inline]
    fn count_runs(&mut self) {
        if let Kind::Driven(driver) = &self.kind {
            for run in &driver.runs {
                self.recorder.acked(run.bytes, run.packets);
            }
        }
    }

    /// Passes on a packet that was acknowledged without an ACK frame or an RTT sample: a Retry packet makes quinn
    /// report one.
    #[cold]
    fn end_without_sample(&mut self, now: Instant) {
        self.rtt_estimate = RttEstimate::Initial;
        self.count_runs();
        let arrived = self.recorder.frame.newest.map_or(now, |(_, acked)| acked);
        if let Kind::Driven(driver) = &mut self.kind {
            driver.on_end_acks(arrived, &self.recorder.frame);
        }
    }

    /// Takes a sign of congestion.
    pub fn on_congestion(&mut self, report: &CongestionReport) {
        if let Some(history) = &mut self.history {
            history.on_congestion(report);
        }
        match &mut self.kind {
            Kind::Driven(driver) => driver.on_congestion(report),
            Kind::Observed(baseline) => baseline.on_congestion(&report.signal),
        }
        self.recorder.congestion(report.lost());
        self.sample(report.now);
    }

    /// Takes the path's new MTU, in bytes.
    pub fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if let Kind::Driven(driver) = &mut self.kind {
            driver.on_mtu_update(Bytes::new(mtu.into()), Self::least_window(mtu));
        }
    }

    /// The window for the stack: large enough for one packet.
    #[inline]
    pub fn window(&self) -> Bytes {
        if self.recorder.unsent.is_closing() {
            return CLOSING_WINDOW;
        }
        match &self.kind {
            Kind::Driven(driver) => driver.window,
            Kind::Observed(baseline) => S::window(&baseline.inner),
        }
    }

    /// The window that a connection starts with on this path.
    pub fn initial_window(&self) -> Bytes {
        match &self.kind {
            Kind::Driven(driver) => driver.for_stack(driver.inner.initial_window()),
            Kind::Observed(baseline) => S::initial_window(&baseline.inner),
        }
    }

    /// State of the controller for telemetry.
    pub fn snapshot(&self) -> Snapshot {
        match &self.kind {
            Kind::Driven(driver) => driver.inner.snapshot(),
            Kind::Observed(baseline) => baseline.snapshot(&self.recorder.frame),
        }
    }

    #[cold]
    fn sample(&mut self, now: Instant) {
        self.recorder.sample(now, self.snapshot());
    }
}

impl<S: QuicStack> Drop for PathController<S> {
    /// Makes the path's last sample include everything counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled() {
            self.sample(at);
        }
    }
}

/// One of playrate's controllers, and the events that it has not received yet.
#[derive(Clone, Debug)]
struct Driver {
    inner: Box<dyn CongestionController>,
    /// Time zero of the controller: the time when it was built.
    built: Instant,
    /// Runs of the ACK frame that is being read.
    runs: Vec<Acked>,
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
    window: Bytes,
}

impl Driver {
    fn new(inner: Box<dyn CongestionController>, built: Instant, least_window: Bytes) -> Self {
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
    fn for_stack(&self, window: Bytes) -> Bytes {
        window.max(self.least_window).min(Bytes::new(u64::from(u32::MAX)))
    }

    #[inline(never)]
    fn report_burst(&mut self, now: Instant, bytes: Bytes) {
        self.inner.on_sent(&Sent::new(self.timestamp(now), bytes));
        self.refresh_window();
    }

    /// Takes a burst. `in_flight` is the number of bytes after the last ACK frame.
    #[inline]
    fn on_sent(&mut self, now: Instant, bytes: Bytes, in_flight: Bytes) {
        if in_flight > self.lost && !self.every_burst {
            self.unreported = Some((now, bytes));
        } else {
            self.report_burst(now, bytes);
        }
    }

    /// Takes an acknowledged packet. Returns true if it joined the last run, which is possible if its times are
    /// `as_before`: those of the packet before. Comparing `Instant`s is cheap and converting them is not.
    #[inline]
    fn on_ack(&mut self, packet: &AckedPacket, as_before: bool) -> bool {
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
    fn on_end_acks(&mut self, now: Instant, frame: &LastAckFrame) {
        let event = AckFrame::new(self.frame_time(now), &self.runs, frame.in_flight)
            .with_app_limited(frame.app_limited)
            .with_smoothed_rtt(frame.smoothed_rtt);
        let window = self.inner.window_after(&event);
        self.runs.clear();
        self.window = self.for_stack(window);
        self.lost = Bytes::ZERO;
        self.unreported = None;
    }

    fn on_congestion(&mut self, report: &CongestionReport) {
        if let Some((left, bytes)) = self.unreported.take() {
            self.report_burst(left, bytes);
        }
        let (noticed, newest_sent) = (self.timestamp(report.now), self.timestamp(report.newest_sent));
        self.inner
            .on_congestion(&Congestion::new(noticed, newest_sent, report.signal));
        self.refresh_window();
        self.lost += report.lost();
    }

    fn on_mtu_update(&mut self, mtu: Bytes, least_window: Bytes) {
        self.least_window = least_window;
        self.inner.on_mtu_change(mtu);
        self.refresh_window();
    }
}
