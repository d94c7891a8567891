//! [`PathController`]: the congestion control of one path, as a stack calls it.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use playrate_cc::events::Signal;
use playrate_cc::{Phase, Reason, Snapshot};
use playrate_units::{Bitrate, Bytes};

use crate::driver::Driver;
use crate::switching::ReplayHistory;
use crate::telemetry::{LastAckFrame, Recorder};
use crate::{ConnectionController, ControllerChoice, QuicStack};

/// Window of a connection that is being closed: more than can be in flight, and above `u32::MAX`, so that quinn does
/// not pace.
const CLOSING_WINDOW: Bytes = Bytes::new(1 << 32);

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

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_structs, reason = "an adapter makes one for every sign")]
pub struct CongestionReport {
    /// Time when the stack noticed it.
    pub now: Instant,
    /// Departure of the newest affected packet.
    pub newest_sent: Instant,
    /// The kind of sign.
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
    /// `None` if the controller cannot be replaced, or has been.
    history: Option<Box<ReplayHistory<S::Rtt>>>,
}

#[derive(Clone)]
enum Kind<S: QuicStack> {
    Driven(Driver),
    Observed(ObservedBaseline<S>),
}

/// One of the stack's own controllers, and what its behaviour shows.
#[derive(Clone)]
struct ObservedBaseline<S: QuicStack> {
    inner: S::BaselineController,
    reason: Reason,
    /// Pacing rate after the last ACK frame, of a controller that reports one.
    pacing_rate: Option<Bitrate>,
    /// The pacing rate has fallen. BBR's never falls before its slow start ends.
    rate_fell: bool,
}

impl<S: QuicStack> ObservedBaseline<S> {
    /// Detects the end of slow start for a controller without a threshold that paces.
    fn watch_pacing_rate(&mut self) {
        let rate = S::metrics(&self.inner).pacing_rate;
        if !self.rate_fell && rate.is_some() && rate < self.pacing_rate {
            self.rate_fell = true;
            self.reason = Reason::CapacityKnown;
        }
        self.pacing_rate = rate;
    }

    fn snapshot(&self, frame: &LastAckFrame) -> Snapshot {
        let ssthresh = S::metrics(&self.inner).ssthresh;
        let mut snapshot = Snapshot::of_window(S::window(&self.inner));
        snapshot.phase = match ssthresh {
            Some(ssthresh) if snapshot.window >= ssthresh => Phase::Avoidance,
            Some(_) if self.reason == Reason::PersistentCongestion => Phase::AfterPersistentCongestion,
            None if self.rate_fell => Phase::Avoidance,
            _ => Phase::Startup,
        };
        snapshot.ssthresh = ssthresh;
        snapshot.smoothed_rtt = frame.smoothed_rtt;
        snapshot.min_rtt = frame.min_rtt;
        snapshot.reason = self.reason;
        snapshot
    }
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
        // Before the choice is read: a switch between the two replaces the controller once more, and none is missed.
        let history = control.may_switch().then(|| Box::new(ReplayHistory::new(built)));
        let kind = match control.choice() {
            ControllerChoice::Spec(spec) => {
                let controller = spec.build(&control.path(mtu), Arc::clone(control.knowledge()));
                Kind::Driven(Driver::new(controller, built, Self::least_window(mtu)))
            }
            ControllerChoice::Baseline(baseline) => Kind::Observed(ObservedBaseline {
                inner: S::build(*baseline, built, mtu),
                reason: Reason::Began,
                pacing_rate: None,
                rate_fell: false,
            }),
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

    /// The same, to be changed.
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
        // A Retry packet makes quinn report an acknowledgement without an ACK frame or an RTT sample. The controller
        // receives its run with the next frame.
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.rtt_estimate = RttEstimate::Initial;
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
        if let Kind::Driven(driver) = &self.kind {
            for run in &driver.runs {
                self.recorder.acked(run.bytes, run.packets);
            }
        }
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

    /// Takes a sign of congestion.
    pub fn on_congestion(&mut self, report: &CongestionReport) {
        if let Some(history) = &mut self.history {
            history.on_congestion(report);
        }
        match &mut self.kind {
            Kind::Driven(driver) => driver.on_congestion(report),
            Kind::Observed(baseline) => {
                baseline.reason = match report.signal {
                    Signal::Loss { persistent: true, .. } => Reason::PersistentCongestion,
                    Signal::EcnCe => Reason::EcnCe,
                    _ => Reason::Loss,
                };
            }
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
