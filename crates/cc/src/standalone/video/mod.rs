//! `video`: one controller for every path.
//!
//! It has three modes, and a ceiling over all of them.
//!
//! - *Start*: the window doubles every round trip until the RTT rises, packets are lost, or three rounds bring no more.
//! - *Alone*: once per round trip the window loses the bytes that stood in the queue beyond a short target, or grows if
//!   fewer stood there. So random losses cost nothing; losses that a smaller window ends do.
//! - *Crowded*: giving way was in vain, or a queue overflows that this sender keeps short, so others fill it. The
//!   window is CUBIC's, but only losses of packets that found a long queue count. From time to time it gives way again.
//! - *Ceiling*: the video's rate times a factor, which falls while the player's supply grows: no path is probed for
//!   more than its player can use, and a player with plenty leaves the path to others.
//!
//! What the player says or the library knows can only lower the window, so false values gain nothing.
//!
//! docs/controllers/video.md has the equations, docs/controllers/video-design.md what was tried.

mod ack_delay;
mod ceiling;
mod crowd;
mod losses;
mod parameters;
mod queue;
mod round;
mod start;
mod supply;

use std::sync::Arc;

use core::time::Duration;

use crate::algorithm::{Algorithm, Cubic};
use crate::component::Needs;
use crate::events::{AckBatch, Acked, Congestion, MtuChange, Sent, Signal};
use crate::parameter::Arguments;
use crate::state::{Batch, Core, float, floor_bytes};
use crate::timestamp::{nanos, seconds};
use crate::{
    Bitrate, Bytes, CongestionController, Facts, Path, Phase, Reason, Snapshot, Timestamp, VideoKnowledge,
};

use ack_delay::{AckDelay, Sample};
use ceiling::Ceiling;
use crowd::Crowd;
use losses::Losses;
use queue::Queue;
use round::{OpenRound, Round};
use start::Start;

pub(super) use parameters::entry;

/// With fewer packets the peer would hold back acknowledgements, and quinn keeps one back of a window.
const LEAST_PACKETS: u64 = 4;
/// In a crowd it is CUBIC's smallest window (RFC 9002 §7.2).
const LEAST_IN_A_CROWD: u64 = 2;
/// Rise of the RTT that ends slow start: an eighth, within 4 and 16 ms (RFC 9406 §4.3).
const RISE_NS: (u64, u64) = (4_000_000, 16_000_000);
/// Rounds after a change in which it does not show yet.
const SETTLING: u8 = 1;
/// The same after a loss, which shows a round later.
const SETTLING_AFTER_LOSS: u8 = 2;
/// A queue this many times the target is answered at once, a shorter one if it stands for two rounds.
const LONG: u64 = 4;
/// Share of the window that is left after losses.
const AFTER_LOSS: f64 = 0.85;
/// The window grows by at least this part of it, and beyond what the path has carried lately by at most that one.
const LEAST_STEP: f64 = 1.0 / 64.0;
const MOST_STEP_BEYOND: u64 = 8;
/// RTT below which there is no ceiling: there the target, not the path, would set it, and small sends cost CPU time.
const NEAR_NS: u64 = 1_000_000;
/// Time without an empty queue after which it is emptied, so that the smallest RTT is seen.
const DRAIN_AFTER_NS: u64 = 5_000_000_000;
/// Part of the window that is used in the first round after a pause: quinn's pacer sends 1.25 windows per RTT, and no
/// acknowledgements slow it down.
const AFTER_PAUSE: f64 = 0.8;

/// The law that the window follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Start,
    Alone,
    Crowded,
}

/// The controller. Sizes are bytes, times nanoseconds.
#[derive(Clone, Debug)]
struct Video {
    core: Core,
    ceiling: Ceiling,
    /// Window that the transport gets.
    published: u64,
    mode: Mode,
    /// Smallest RTT of the connection, ns. On an overloaded machine later ones are longer.
    least_rtt: u64,
    start: Start,
    ack_delay: AckDelay,
    round: OpenRound,
    queue: Queue,
    losses: Losses,
    crowd: Crowd,
    cubic: Cubic,
    /// The path has not been seen without a queue of others since slow start: in a crowd it goes on.
    may_double: bool,
    /// Growth in the next round.
    step: u64,
    /// Rounds to come in which the last change does not show yet.
    settling: u8,
    /// Losses while it settles are those of before.
    explains_losses: bool,
    /// The ceiling, not the window, was the bound as of the last event.
    at_ceiling: bool,
    /// Queue of the last round, if the window has not been reduced since.
    queue_before: Option<u64>,
    /// Window to return to after the queue has been emptied.
    drained_from: Option<u64>,
    /// Departure of the first packet after a pause, until a later one is acknowledged.
    paused_until: Option<Timestamp>,
}

impl Video {
    fn new(path: &Path, arguments: &Arguments, known: Arc<VideoKnowledge>) -> Self {
        let needs = Needs {
            limited_time: true,
            knowledge: Facts::AVERAGE_RATE,
            ..Needs::default()
        };
        let core = Core::new(path, LEAST_IN_A_CROWD, needs, known);
        Self {
            published: core.window(),
            core,
            ceiling: Ceiling::from_arguments(arguments),
            mode: Mode::Start,
            least_rtt: u64::MAX,
            start: Start::default(),
            ack_delay: AckDelay::default(),
            round: OpenRound::default(),
            queue: Queue::new(nanos(arguments.time("queue"))),
            losses: Losses::new(arguments.number("loss")),
            crowd: Crowd::default(),
            cubic: Cubic::new(true),
            may_double: true,
            step: 0,
            settling: 0,
            explains_losses: false,
            at_ceiling: false,
            queue_before: None,
            drained_from: None,
            paused_until: None,
        }
    }

    /// Time from a packet's departure to its acknowledgement without a queue, ns.
    fn base_rtt(&self) -> Option<u64> {
        let least = self.queue.min_rtt();
        least.map(|least| least.saturating_add(self.ack_delay.mean_ns()))
    }

    fn target(&self) -> u64 {
        self.queue.target(self.core.mtu())
    }

    /// Bytes that arrive in `ns` nanoseconds.
    fn bytes_in(rate: f64, ns: u64) -> u64 {
        floor_bytes(rate * seconds(ns))
    }

    fn least_step(&self) -> u64 {
        let part = floor_bytes(float(self.core.window()) * LEAST_STEP);
        part.max(self.core.mtu())
    }

    fn on_frame(&mut self, batch: &Batch, sample: Option<Sample>) {
        self.ceiling.on_acked(&self.core.known, batch.acked, batch.now);
        self.queue.on_frame(batch, sample);
        self.least_rtt = self.least_rtt.min(batch.rtt_ns.unwrap_or(u64::MAX));
        if self.paused_until.is_some_and(|sent| batch.newest_sent > sent) {
            self.paused_until = None;
        }
        let ended = self.round.on_batch(batch, sample);
        if self.core.phase == Phase::Recovery && batch.after_recovery {
            self.core.enter(Phase::Avoidance, Reason::RecoveryEnded);
            self.cubic.begin(&mut self.core, Reason::RecoveryEnded, batch.now);
        }
        match self.mode {
            Mode::Start => self.double(batch, sample),
            Mode::Crowded if self.may_double => self.core.grow(batch.allowance / 2),
            Mode::Crowded if self.core.phase == Phase::Avoidance => {
                self.cubic.on_batch(&mut self.core, batch);
            }
            Mode::Alone | Mode::Crowded => {}
        }
        if let Some(round) = ended {
            self.queue.on_round(&round, batch.now);
            match self.mode {
                Mode::Start => self.judge_start(&round),
                Mode::Alone => self.judge_alone(&round),
                Mode::Crowded => self.judge_crowd(&round),
            }
        }
    }

    /// Slow start at one ACK frame.
    fn double(&mut self, batch: &Batch, sample: Option<Sample>) {
        self.core.grow(batch.allowance);
        let Some(sample) = sample else { return };
        if self.start.has_stayed_risen(self.has_risen(sample.rtt_ns)) {
            self.leave_start(Reason::RttRose);
        }
    }

    fn has_risen(&self, rtt: u64) -> bool {
        let rise = self.queue.min_rtt().unwrap_or(rtt) / 8;
        self.queue.within(rtt) >= rise.clamp(RISE_NS.0, RISE_NS.1)
    }

    /// Arrival of the last ACK frame.
    fn now(&self) -> Timestamp {
        self.core.last_acked.unwrap_or(Timestamp::ZERO)
    }

    fn judge_start(&mut self, round: &Round) {
        if self.losses.ask_for_less(round, &self.core, self.now()) {
            self.may_double = false;
            self.leave_start(Reason::Loss);
        } else if !round.window_limited || self.at_ceiling {
            // Neither its RTT, which may be a delayed acknowledgement's, nor its rate says anything of the path.
        } else if self.has_risen(round.rtt_min) {
            self.leave_start(Reason::RttRose);
        } else if self.start.brings_no_more(round) {
            self.leave_start(Reason::CapacityKnown);
        }
    }

    /// Slow start is over: the window is what the path carries with the queue that is aimed at.
    fn leave_start(&mut self, reason: Reason) {
        let rate = self.round.rate(self.now()).max(self.queue.largest_rate());
        let rtt = self.base_rtt().unwrap_or(0).saturating_add(self.target());
        if rate > 0.0 {
            let window = Self::bytes_in(rate, rtt).min(self.core.window());
            self.core.set_window(window);
        }
        self.be_alone(reason);
        self.settling = SETTLING_AFTER_LOSS;
        self.explains_losses = true;
        self.step = self.least_step().max(self.core.window() / MOST_STEP_BEYOND);
    }

    fn be_alone(&mut self, reason: Reason) {
        self.mode = Mode::Alone;
        if self.core.phase == Phase::Avoidance {
            self.core.reason = reason;
        } else {
            self.core.enter(Phase::Avoidance, reason);
        }
        self.begin_anew();
    }

    /// Forgets what was learnt of others, of losses and of the last steps.
    fn begin_anew(&mut self) {
        self.settling = 0;
        self.queue_before = None;
        self.drained_from = None;
        self.crowd.end();
        self.queue.forget_losses();
        self.losses.begin_anew();
        self.step = self.least_step();
    }

    /// Alone, at the end of a round trip.
    fn judge_alone(&mut self, round: &Round) {
        if self.settling > 0 {
            self.settling = self.settling.saturating_sub(1);
            if self.explains_losses {
                self.queue.forget_losses();
                self.explains_losses = self.settling > 0;
            }
            return;
        }
        if let Some(window) = self.drained_from.take() {
            self.core.set_window(window);
            self.settling = SETTLING;
            self.queue.drained(self.now());
            return;
        }
        let (window, target) = (self.core.window(), self.target());
        let latest = self.queue.within(round.rtt_min);
        let before = self.queue_before.replace(latest);
        let is_long = latest > LONG.saturating_mul(target);
        if before.is_none() && latest > target && !is_long {
            return;
        }
        if self.queue.overflows(self.core.mtu()) {
            self.crowd.note_window(window);
            self.be_crowded();
        } else if self.losses.ask_for_less(round, &self.core, self.now()) {
            let delivered = Self::bytes_in(round.rate, round.rtt_mean);
            self.cut(
                if round.window_limited { delivered } else { window },
                Reason::Loss,
            );
        } else {
            let stood = if is_long {
                latest
            } else {
                before.unwrap_or(0).min(latest)
            };
            self.answer_queue(stood, target, round);
        }
    }

    /// Losses or ECN marks ask for less than the window, which delivered `delivered` in a round trip.
    fn cut(&mut self, delivered: u64, reason: Reason) {
        let window = self.core.window();
        self.crowd.note_window(window);
        let part = floor_bytes(AFTER_LOSS * float(window));
        self.core.set_window(part.min(delivered));
        self.core.reason = reason;
        if reason == Reason::Loss {
            self.losses.note_cut(self.core.window(), self.now());
        }
        self.step = self.least_step();
        self.settling = SETTLING_AFTER_LOSS;
        self.explains_losses = true;
        self.queue_before = None;
        self.drained_from = None;
    }

    /// A queue of `stood` stood on the path throughout the round.
    fn answer_queue(&mut self, stood: u64, target: u64, round: &Round) {
        let window = self.core.window();
        if self.crowd.is_proven(stood, target) {
            self.be_crowded();
        } else if stood > target {
            if round.window_limited {
                self.crowd.gives_way(window, stood);
            }
            let excess = Self::bytes_in(round.rate, stood.saturating_sub(target));
            self.core.set_window(window.saturating_sub(excess));
            self.step = self.least_step();
            self.settling = SETTLING;
            self.queue_before = None;
        } else {
            self.crowd.note_no_queue();
            self.may_double = false;
            if stood > 0 && self.queue.since_empty(self.now()) > DRAIN_AFTER_NS {
                let excess = Self::bytes_in(2.0 * round.rate, stood);
                self.drained_from = Some(window);
                self.queue_before = None;
                self.core
                    .set_window(window.saturating_sub(excess).max(window / 2));
                self.settling = SETTLING;
            } else if round.window_limited {
                self.grow(stood, target);
            }
        }
    }

    /// Grows by a step, which doubles while the queue stays short. Up to what the path has carried lately that is half
    /// of the window at most; beyond, where the path is unknown, an eighth.
    fn grow(&mut self, stood: u64, target: u64) {
        let window = self.core.window();
        let grown = window.saturating_add(self.step);
        if let Some(bound) = self.losses.bound(self.now()) {
            self.core.set_window(grown.min(bound.max(window)));
            return;
        }
        let known = self.queue.carried_in(self.base_rtt().unwrap_or(0));
        let longer = if stood <= target / 2 {
            self.step.saturating_mul(2)
        } else {
            self.step
        };
        if window < known {
            self.step = if grown >= known { 0 } else { longer.min(window / 2) };
            self.core.set_window(grown.min(known));
        } else {
            self.step = longer.min(window / MOST_STEP_BEYOND);
            self.core.set_window(grown);
        }
        self.step = self.step.max(self.least_step());
    }

    /// Others fill the queue: from here on the window is CUBIC's, and begins where it was before it gave way.
    fn be_crowded(&mut self) {
        let now = self.now();
        let before = self.crowd.begin(now, self.core.rtt.smoothed_ns().unwrap_or(0));
        self.mode = Mode::Crowded;
        self.core.set_window(before.max(self.core.window()));
        self.cubic.begin(&mut self.core, Reason::Idle, now);
        self.crowd.end();
    }

    fn judge_crowd(&mut self, round: &Round) {
        let stood = self.queue.within(round.rtt_min) > self.target();
        let min_rtt = self.queue.min_rtt().unwrap_or(0);
        if self.crowd.is_over(stood, self.now(), min_rtt) {
            self.be_alone(Reason::RecoveryEnded);
        }
    }

    /// The first congestion event of a round trip while others fill the queue.
    fn reduce(&mut self, event: &Congestion, reason: Reason) {
        self.may_double = false;
        if self.core.capped {
            self.core.set_window(self.published.min(self.core.window()));
        }
        if let Some(reduction) = self.cubic.on_congestion(&mut self.core, event) {
            self.core.set_window(reduction.window);
            self.core.recovery_start = Some(event.now);
            self.core.enter(Phase::Recovery, reason);
        }
    }

    /// Persistent congestion (RFC 9002 §7.6): slow start from the smallest window.
    fn collapse(&mut self) {
        self.begin_anew();
        self.round = OpenRound::default();
        self.paused_until = None;
        self.mode = Mode::Start;
        self.start = Start::default();
        self.may_double = true;
        self.core.set_window(self.core.minimum());
        self.core.recovery_start = None;
        self.core
            .enter(Phase::AfterPersistentCongestion, Reason::PersistentCongestion);
    }

    /// Works out what the transport may have in flight.
    fn publish(&mut self) {
        // In a crowd the queue is not this sender's, and it needs its rate in spite of it.
        let rtt = match self.mode {
            Mode::Crowded => {
                let smoothed = self.core.rtt.smoothed_ns();
                smoothed.map(|rtt| rtt.saturating_add(self.ack_delay.mean_ns()))
            }
            Mode::Start | Mode::Alone => {
                let target = self.target();
                // Where noise is longer than the path, an ACK takes what it takes on average.
                let half = self.core.rtt.smoothed_ns().unwrap_or(0) / 2;
                let aimed_at = self.base_rtt().map(|rtt| rtt.saturating_add(target));
                aimed_at.map(|rtt| rtt.max(half))
            }
        };
        let window = self.core.window();
        let useful = rtt
            .filter(|_| self.least_rtt >= NEAR_NS)
            .and_then(|rtt| self.ceiling.window(&self.core, rtt))
            .unwrap_or(u64::MAX);
        let least = match self.mode {
            Mode::Crowded => 0,
            Mode::Start | Mode::Alone => LEAST_PACKETS.saturating_mul(self.core.mtu()),
        };
        self.at_ceiling = useful < window;
        let bounded = self.core.bounded(window.min(useful).max(least));
        self.core.capped = self.mode == Mode::Crowded && bounded < window;
        if self.mode != Mode::Crowded {
            self.core.set_window(bounded);
        }
        self.published = if self.paused_until.is_some() {
            let part = floor_bytes(AFTER_PAUSE * float(bounded));
            self.core.bounded(part.max(least))
        } else {
            bounded
        };
    }

    /// Takes the end of an ACK frame, with the transport's smoothed RTT.
    fn end_frame(&mut self, batch: Option<Batch>, smoothed_rtt: Option<Duration>) {
        let Some(batch) = batch else {
            self.ack_delay.lose_track();
            return;
        };
        let sample = self.ack_delay.without(&batch, smoothed_rtt.map(nanos));
        self.on_frame(&batch, sample);
        self.publish();
    }
}

impl CongestionController for Video {
    fn on_sent(&mut self, event: &Sent) {
        if self.core.in_flight == 0 && self.mode != Mode::Start && self.paused_until.is_none() {
            self.paused_until = Some(event.now);
            self.publish();
        }
        self.core.note_sent(event);
    }

    fn on_acked(&mut self, event: &Acked) {
        self.core.note_acked(event);
    }

    fn on_ack_batch(&mut self, event: &AckBatch) {
        let batch = self.core.close_batch(None, event);
        self.end_frame(batch, event.smoothed_rtt);
    }

    fn on_ack_frame(&mut self, acked: &Acked, batch: &AckBatch) -> Bytes {
        let closed = self.core.close_batch(Some(acked), batch);
        self.end_frame(closed, batch.smoothed_rtt);
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let (lost, persistent, is_mark) = match event.signal {
            Signal::Loss { bytes, persistent } => (bytes.as_u64(), persistent, false),
            Signal::EcnCe => (0, false, true),
        };
        self.round.on_lost(lost);
        self.queue.on_lost(lost);
        let is_new = !self.core.in_recovery(event.newest_sent);
        if persistent {
            self.collapse();
        } else if is_new && self.mode == Mode::Crowded {
            let is_heavy = self.losses.are_heavy(self.round.lost(), &self.core);
            if is_mark || is_heavy || self.queue.is_long() {
                let reason = if is_mark { Reason::EcnCe } else { Reason::Loss };
                self.reduce(event, reason);
            }
        } else if is_new && is_mark {
            self.core.recovery_start = Some(event.now);
            if self.mode == Mode::Start {
                self.leave_start(Reason::EcnCe);
            }
            self.cut(self.core.window(), Reason::EcnCe);
        }
        self.core.note_congestion(event);
        self.publish();
    }

    fn on_mtu_change(&mut self, event: &MtuChange) {
        self.core.set_mtu(event.mtu);
        self.publish();
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.published)
    }

    fn initial_window(&self) -> Bytes {
        Bytes::new(self.core.initial_window())
    }

    fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let rate = self.queue.largest_rate();
        let latest = self.queue.latest();
        Snapshot {
            phase: core.phase(),
            window: self.window(),
            algorithm_window: Some(Bytes::new(core.window())),
            smoothed_rtt: core.rtt.smoothed_ns().map(Duration::from_nanos),
            min_rtt: self.queue.min_rtt().map(Duration::from_nanos),
            max_rtt: core.rtt.max_ns().map(Duration::from_nanos),
            capacity: (rate > 0.0).then(|| Bitrate::from_bytes_per_second(floor_bytes(rate))),
            backlog: (rate > 0.0).then(|| Bytes::new(Self::bytes_in(rate, latest))),
            reason: core.reason,
            waiting_for: core.known.unknown_of(core.needs.knowledge),
            ..Snapshot::default()
        }
    }

    fn requires_every_burst(&self) -> bool {
        false
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
