//! [`PathController`]: the congestion control of one path, as a stack calls it.
//!
//! Each additional packet of a run costs only additions: a run's times are converted when it ends, the controller is
//! called once per ACK frame, and bursts are reported only if the controller
//! [requires](CongestionController::requires_every_burst) them. A frame with a single run needs no list of runs.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use playrate_cc::events::{AckFrame, Acked, Congestion, Sent};
use playrate_cc::{CongestionController, Snapshot, Timestamp};
use playrate_units::{Bitrate, Bytes};

use crate::estimator::{Frame, RateEstimator};
use crate::observed::ObservedBaseline;
use crate::share::PathShare;
use crate::switching::ReplayHistory;
use crate::telemetry::Recorder;
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
    /// Time zero of the controller: the time when it was built.
    built: Instant,
    /// Size of the path's largest packet in bytes.
    mtu: u16,
    /// The window for the stack, updated after every event because stacks read it several times per datagram.
    window: Bytes,
    rtt_estimate: RttEstimate,
    /// The run that the next acknowledged packet may join. Its packets have the times of the recorder's newest packet.
    /// `None` between ACK frames, and under the stack's own controller.
    run: Option<Acked>,
    /// The runs of an ACK frame that has several, in their order. Most frames have one.
    runs: Vec<Acked>,
    /// Bytes lost since the last ACK frame.
    lost: Bytes,
    /// The last burst since the last ACK frame, if the controller has not received it.
    unreported: Option<(Instant, Bytes)>,
    /// True if the controller [requires](CongestionController::requires_every_burst) all bursts.
    every_burst: bool,
    recorder: Recorder,
    share: PathShare,
    estimator: RateEstimator,
    /// `None` if the controller cannot be replaced, or has been replaced.
    history: Option<Box<ReplayHistory<S::Rtt>>>,
}

#[derive(Clone)]
enum Kind<S: QuicStack> {
    Driven(Box<dyn CongestionController>),
    Observed(ObservedBaseline<S>),
}

impl<S: QuicStack> fmt::Debug for PathController<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PathController")
            .field("choice", self.control.current_choice())
            .field("snapshot", &self.snapshot())
            .finish_non_exhaustive()
    }
}

impl<S: QuicStack> PathController<S> {
    /// The [current](ConnectionController::current_choice) controller of `control`, for a path that begins at `now`
    /// with an MTU of `mtu` bytes.
    pub fn new(control: Arc<ConnectionController<S>>, now: Instant, mtu: u16) -> Self {
        let recorder = control.recorder(now);
        Self::build(control, recorder, now, mtu)
    }

    fn build(control: Arc<ConnectionController<S>>, recorder: Recorder, built: Instant, mtu: u16) -> Self {
        // Read this before the choice: a switch in between then replaces the controller again instead of being missed.
        let history = control.may_switch().then(|| Box::new(ReplayHistory::new(built)));
        let kind = match control.current_choice() {
            ControllerChoice::Spec(spec) => {
                Kind::Driven(spec.build(&control.path(mtu), Arc::clone(control.knowledge())))
            }
            ControllerChoice::Baseline(baseline) => {
                Kind::Observed(ObservedBaseline::new(S::build(*baseline, built, mtu)))
            }
        };
        let mut path = Self {
            share: control.share(built, recorder.totals.delivered),
            control,
            every_burst: matches!(&kind, Kind::Driven(controller) if controller.requires_every_burst()),
            kind,
            built,
            mtu,
            window: Bytes::ZERO,
            rtt_estimate: RttEstimate::Initial,
            run: None,
            runs: Vec::new(),
            lost: Bytes::ZERO,
            unreported: None,
            recorder,
            estimator: RateEstimator::new(built),
            history,
        };
        path.refresh_window();
        path
    }

    /// The congestion control of the path's connection.
    pub fn control(&self) -> &ConnectionController<S> {
        &self.control
    }

    /// Returns true if the path only drives one of playrate's controllers: it has no controller of the stack and keeps
    /// no history for a switch. An adapter may then skip the calls for these.
    #[inline]
    pub fn is_plain(&self) -> bool {
        matches!(self.kind, Kind::Driven(_)) && self.history.is_none()
    }

    /// The stack's own controller, if the path uses one.
    pub fn baseline(&self) -> Option<&S::BaselineController> {
        match &self.kind {
            Kind::Driven(_) => None,
            Kind::Observed(baseline) => Some(&baseline.inner),
        }
    }

    /// Passes a call of the stack to the stack's own controller, if the path uses one. The adapter passes each call
    /// here first.
    #[inline]
    pub fn call_baseline(&mut self, call: impl FnOnce(&mut S::BaselineController)) {
        if let Kind::Observed(baseline) = &mut self.kind {
            call(&mut baseline.inner);
            self.refresh_window();
        }
    }

    /// After a [switch](ConnectionController::switch), replaces the controller and returns the events that the new one
    /// has to receive first. The adapter calls this before each departing burst.
    pub fn replace_if_switched(&mut self) -> Option<Box<ReplayHistory<S::Rtt>>> {
        let mut history = self.history.take_if(|_| !self.control.may_switch())?;
        history.in_order();
        let mut recorder = self.control.recorder(self.built);
        recorder.totals = history.totals_before_replay(self.recorder.totals);
        // Dropping the old controller takes its last sample.
        *self = Self::build(Arc::clone(&self.control), recorder, self.built, self.mtu);
        Some(history)
    }

    /// Records a burst of `bytes` that left at `now`.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: Bytes) {
        if let Some(history) = &mut self.history {
            history.on_sent(now, bytes);
        }
        self.recorder.sent(bytes);
        if self.recorder.frame.in_flight > self.lost && !self.every_burst {
            self.unreported = Some((now, bytes));
        } else {
            self.report_burst(now, bytes);
        }
    }

    #[inline(never)]
    fn report_burst(&mut self, now: Instant, bytes: Bytes) {
        // Before the first ACK frame nothing is known to be in flight, so every burst comes here.
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.end_without_sample(now);
        }
        if let Kind::Driven(controller) = &mut self.kind {
            controller.on_sent(&Sent::new(timestamp(self.built, now), bytes));
            self.refresh_window();
        }
    }

    /// Records an acknowledged packet and the stack's current RTT estimate, which is the same for all packets of a
    /// frame. Packets are reported in the order of their departure.
    #[inline]
    pub fn on_ack(&mut self, packet: &AckedPacket, rtt: &S::Rtt) {
        if !self.add_to_run(packet, rtt) {
            self.add_run(packet, rtt);
        }
    }

    /// Takes an acknowledged packet if this needs no other call: the packet joins the run before it, which has the same
    /// times and limit, or it is the first one of a frame on a [plain](Self::is_plain) path. If this returns false, the
    /// adapter passes the packet to the stack's own controller and to [`add_run`](Self::add_run).
    #[inline]
    pub fn add_to_run(&mut self, packet: &AckedPacket, rtt: &S::Rtt) -> bool {
        // Comparing `Instant`s is cheap and converting them is not.
        let times = Some((packet.sent, packet.acked));
        let is_plain = self.is_plain();
        match &mut self.run {
            Some(run) if run.app_limited == packet.app_limited && self.recorder.frame.newest == times => {
                run.bytes += packet.bytes;
                run.packets = run.packets.saturating_add(1);
            }
            None if is_plain => {
                self.begin_run(packet);
                self.begin_frame(rtt);
            }
            _ => return false,
        }
        true
    }

    /// Begins a run with an acknowledged packet that [`add_to_run`](Self::add_to_run) did not take.
    pub fn add_run(&mut self, packet: &AckedPacket, rtt: &S::Rtt) {
        // The other packets of a run have the round trip of its first one.
        if let Some(history) = &mut self.history {
            history.on_ack(packet, rtt);
        }
        let is_first = self.run.is_none();
        if !is_first {
            self.end_run(false);
        }
        self.begin_run(packet);
        if is_first {
            self.begin_frame(rtt);
        }
    }

    /// Begins a run, or counts the packet under the stack's own controller.
    #[inline]
    fn begin_run(&mut self, packet: &AckedPacket) {
        match self.kind {
            Kind::Driven(_) => {
                let run = Acked::new(Timestamp::ZERO, packet.bytes, 1);
                self.run = Some(run.with_app_limited(packet.app_limited));
            }
            Kind::Observed(_) => self.recorder.acked(packet.bytes, 1),
        }
        self.recorder.frame.newest = Some((packet.sent, packet.acked));
    }

    /// Notes the stack's RTT estimate, which is the same for all packets of a frame.
    #[inline]
    fn begin_frame(&mut self, rtt: &S::Rtt) {
        let frame = &mut self.recorder.frame;
        if self.rtt_estimate == RttEstimate::Measured {
            let (smoothed, min) = S::smoothed_and_min(rtt);
            (frame.smoothed_rtt, frame.min_rtt) = (Some(smoothed), Some(min));
        } else {
            self.rtt_estimate = RttEstimate::SampleDue;
        }
    }

    /// Counts the run that is being read, if there is one, and converts its time for the controller. A run that is not
    /// its frame's only one joins the list. Returns the departure of the newest acknowledged packet, if any.
    #[inline]
    fn end_run(&mut self, only: bool) -> Option<Timestamp> {
        let (sent, _) = self.recorder.frame.newest?;
        let sent = timestamp(self.built, sent);
        if let Some(run) = &mut self.run {
            self.recorder.acked(run.bytes, run.packets);
            if only {
                run.sent = sent;
            } else {
                // Built from its parts: to copy it would wait for the stores of its parts.
                let run = Acked::new(sent, run.bytes, run.packets).with_app_limited(run.app_limited);
                self.runs.push(run);
                self.run = None;
            }
        }
        Some(sent)
    }

    /// Handles the end of an ACK frame that arrived at `now` and left `in_flight` bytes in flight. `app_limited` means
    /// that the sender had nothing to send at its last attempt.
    #[inline]
    pub fn on_end_acks(&mut self, now: Instant, in_flight: Bytes, app_limited: bool) {
        if let Some(history) = &mut self.history {
            history.in_flight = in_flight;
        }
        let only = self.runs.is_empty();
        let (arrived, sent) = (timestamp(self.built, now), self.end_run(only));
        self.recorder.frame_ended(now, in_flight, app_limited);
        if let Some(sent) = sent {
            let frame = Frame {
                at: arrived.as_nanos(),
                sent: sent.as_nanos(),
                delivered: self.recorder.totals.delivered.as_u64(),
            };
            if let Some(measured) = self.estimator.on_ack_frame(frame, app_limited) {
                self.control.set_measured(measured);
            }
        }
        self.report_frame(arrived, only);
        if self.rtt_estimate == RttEstimate::SampleDue {
            self.rtt_estimate = RttEstimate::Measured;
        }
        if self.share.is_due(now) {
            self.update_share(now);
        }
        if self.recorder.is_due(now) {
            self.sample(now);
        }
    }

    #[cold]
    fn update_share(&mut self, now: Instant) {
        let share = self.share.update(now, self.recorder.totals.delivered);
        if let (Some(share), Kind::Driven(controller)) = (share, &mut self.kind) {
            controller.on_path_share(share);
        }
    }

    /// Reports the `only` run, or all runs, of an ACK frame that arrived at `now`.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the second caller is cold")]
    fn report_frame(&mut self, now: Timestamp, only: bool) {
        match &mut self.kind {
            Kind::Driven(controller) => {
                let acked = if only { self.run.as_slice() } else { &self.runs };
                let frame = &self.recorder.frame;
                let event = AckFrame::new(now, acked, frame.in_flight)
                    .with_app_limited(frame.app_limited)
                    .with_smoothed_rtt(frame.smoothed_rtt);
                let window = controller.on_ack_frame(&event);
                self.run = None;
                self.runs.clear();
                self.window = self.for_stack(window);
            }
            Kind::Observed(baseline) => baseline.watch_pacing_rate(),
        }
        self.lost = Bytes::ZERO;
        self.unreported = None;
    }

    /// Passes on a packet that was acknowledged without an ACK frame or an RTT sample: a Retry packet makes quinn
    /// report one.
    #[cold]
    fn end_without_sample(&mut self, now: Instant) {
        self.rtt_estimate = RttEstimate::Initial;
        let only = self.runs.is_empty();
        self.end_run(only);
        let arrived = self.recorder.frame.newest.map_or(now, |(_, acked)| acked);
        self.report_frame(timestamp(self.built, arrived), only);
    }

    /// Handles a congestion signal.
    pub fn on_congestion(&mut self, report: &CongestionReport) {
        if let Some(history) = &mut self.history {
            history.on_congestion(report);
        }
        if let Some((left, bytes)) = self.unreported.take() {
            self.report_burst(left, bytes);
        }
        match &mut self.kind {
            Kind::Driven(controller) => {
                let noticed = timestamp(self.built, report.now);
                let newest_sent = timestamp(self.built, report.newest_sent);
                controller.on_congestion(&Congestion::new(noticed, newest_sent, report.signal));
                self.refresh_window();
            }
            Kind::Observed(baseline) => baseline.on_congestion(&report.signal),
        }
        self.lost += report.lost();
        self.recorder.congestion(report.lost());
        self.sample(report.now);
    }

    /// Handles the stack's finding that all the packets that it declared lost have arrived.
    pub fn on_spurious_congestion(&mut self) {
        if let Kind::Driven(controller) = &mut self.kind {
            controller.on_spurious_congestion();
            self.refresh_window();
        }
    }

    /// The path's MTU, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Sets the path's new MTU, in bytes.
    pub fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = mtu;
        if let Kind::Driven(controller) = &mut self.kind {
            controller.on_mtu_change(Bytes::new(mtu.into()));
            self.refresh_window();
        }
    }

    /// The window for the stack: large enough for one packet.
    #[inline]
    pub fn window(&self) -> Bytes {
        if self.recorder.unsent.is_closing() {
            CLOSING_WINDOW
        } else {
            self.window
        }
    }

    /// Rate at which the stack should pace.
    /// `None` unless one of playrate's controllers [sets it](CongestionController::pacing_rate).
    #[inline]
    pub fn pacing_rate(&self) -> Option<Bitrate> {
        match &self.kind {
            Kind::Driven(controller) => controller.pacing_rate(),
            Kind::Observed(_) => None,
        }
    }

    fn refresh_window(&mut self) {
        self.window = match &self.kind {
            Kind::Driven(controller) => self.for_stack(controller.window()),
            Kind::Observed(baseline) => S::window(&baseline.inner),
        };
    }

    /// A controller's window for the stack: large enough for one packet, and at most `u32::MAX`, because quinn does not
    /// pace above that.
    #[inline]
    fn for_stack(&self, window: Bytes) -> Bytes {
        let least = u64::from(self.mtu) + u64::from(S::IS_STRICT);
        window.max(Bytes::new(least)).min(Bytes::new(u64::from(u32::MAX)))
    }

    /// The window that a connection starts with on this path.
    pub fn initial_window(&self) -> Bytes {
        match &self.kind {
            Kind::Driven(controller) => self.for_stack(controller.initial_window()),
            Kind::Observed(baseline) => S::initial_window(&baseline.inner),
        }
    }

    /// State of the controller for telemetry.
    pub fn snapshot(&self) -> Snapshot {
        match &self.kind {
            Kind::Driven(controller) => controller.snapshot(),
            Kind::Observed(baseline) => baseline.snapshot(&self.recorder.frame),
        }
    }

    /// State of the controller as of the last sample, which is at most a [sampling
    /// interval](crate::telemetry::Monitor::interval) old while packets are acknowledged.
    pub fn last_snapshot(&self) -> Option<&Snapshot> {
        self.recorder.last.as_ref().map(|sample| &sample.snapshot)
    }

    /// Makes this copy take no sample when it is dropped: the original takes it. For copies that are only read.
    pub fn leave_samples_to_original(&mut self) {
        self.recorder.frame.ended = None;
    }

    #[cold]
    fn sample(&mut self, now: Instant) {
        self.recorder.totals.estimate = self.control.estimate(now);
        self.recorder.sample(now, self.snapshot());
    }
}

/// The time `at` on the clock of a controller that was built at `built`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "2⁶⁴ ns are 584 years")]
fn timestamp(built: Instant, at: Instant) -> Timestamp {
    Timestamp::from_nanos(at.saturating_duration_since(built).as_nanos() as u64)
}

impl<S: QuicStack> Drop for PathController<S> {
    /// Makes the path's last sample include everything counted.
    fn drop(&mut self) {
        if let Some(at) = self.recorder.unsampled() {
            self.sample(at);
        }
    }
}
