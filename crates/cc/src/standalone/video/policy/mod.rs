//! [`Policy`]: derives the window from the [`Model`].

mod crowd;
mod giving_way;
mod losses;
mod route;
mod start;

use crate::algorithm::coupled::growth_factor;
use crate::algorithm::{Algorithm, Cubic};
use crate::events::{Congestion, Signal};
use crate::state::{Batch, Core, float, floor_bytes};
use crate::{Phase, Reason, Timestamp};

use super::model::{Frame, Model, Round, bytes_in};
use giving_way::{Finding, GivingWay};
use losses::Losses;
use route::RouteCheck;
use start::Start;

/// Smallest window outside a crowd, packets. If a peer acknowledges every second packet, it still sends two ACK frames
/// per window, although quinn keeps one packet back. If it was asked to acknowledge six at a time, it waits for 10 ms.
const LEAST_PACKETS: u64 = 4;
/// Rounds until a change of the window takes effect.
const SETTLING: u8 = 1;
/// The same after a loss, whose effect shows a round later.
const SETTLING_AFTER_LOSS: u8 = 2;
/// A queue this many times the target is answered immediately, a shorter one if it persists for two rounds.
const LONG: u64 = 4;
/// Share of the window that remains after losses.
pub(super) const AFTER_LOSS: f64 = 0.85;
/// Minimum step as a share of the window, and divisor of the window for the largest step beyond the recently carried
/// volume.
const LEAST_STEP: f64 = 1.0 / 64.0;
const MOST_STEP_BEYOND: u64 = 8;
/// If the queue has not been empty for this long, it is drained to measure the smallest RTT.
const DRAIN_AFTER_NS: u64 = 5_000_000_000;

/// Time after the last sign of others for which they are assumed to share the path.
const CONTENDED_NS: u64 = 30_000_000_000;

/// The rule that governs the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Mode {
    #[default]
    Start,
    Alone,
    Crowded,
}

/// A queue that persisted throughout a round trip, and the target queue, ns.
#[derive(Clone, Copy, Debug)]
struct Stood<'a> {
    queue: u64,
    target: u64,
    round: &'a Round,
}

/// State of the rules. Sizes are bytes, times nanoseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Policy {
    pub(super) mode: Mode,
    start: Start,
    losses: Losses,
    giving_way: GivingWay,
    cubic: Cubic,
    /// True if the path has always had a queue of others since slow start, which then continues in a crowd.
    may_double: bool,
    /// Window at the end of slow start if the RTT's rise ended it, until the cause is known.
    start_left_at: Option<u64>,
    /// Growth in the next round.
    step: u64,
    /// Rounds until the last change shows.
    pub(super) settling: u8,
    /// Queue of the last round, if the window has not been reduced since.
    queue_before: Option<u64>,
    route: RouteCheck,
    /// Time until which others are assumed to share the path.
    contended_until: Timestamp,
    /// Window to return to after the queue has been emptied.
    pub(super) drained_from: Option<u64>,
    /// Factor of RFC 6356 for the growth of this path, 1 if the connection has no other.
    part: f64,
    /// Growth of less than a byte that [`coupled`](Self::coupled) has yet to return.
    fraction: f64,
}

impl Policy {
    /// The policy of a new connection; `tolerated` is the share of packets whose loss costs nothing.
    pub(super) fn new(tolerated: f64) -> Self {
        Self {
            part: 1.0,
            losses: Losses::new(tolerated),
            cubic: Cubic::new(true),
            may_double: true,
            ..Self::default()
        }
    }

    #[cfg(test)]
    pub(super) fn scaled_by(factor: f64) -> Self {
        Self {
            part: factor,
            ..Self::default()
        }
    }

    pub(super) fn on_frame(&mut self, core: &mut Core, path: &mut Model, frame: &Frame) {
        let batch = &frame.batch;
        if core.phase == Phase::Recovery && batch.after_recovery {
            core.enter(Phase::Avoidance, Reason::RecoveryEnded);
            self.cubic.begin(core, Reason::RecoveryEnded, batch.now);
        }
        match self.mode {
            Mode::Start => self.double(core, path, frame),
            Mode::Crowded if self.may_double => core.grow(batch.allowance / 2),
            Mode::Crowded if core.phase == Phase::Avoidance => {
                let allowance = self.coupled(batch.allowance);
                self.cubic.on_batch(core, &Batch { allowance, ..*batch });
            }
            Mode::Alone | Mode::Crowded => {}
        }
        if let Some(round) = frame.ended {
            self.part = growth_factor(core);
            match self.mode {
                Mode::Start => self.judge_start(core, path, &round),
                Mode::Alone => self.judge_alone(core, path, &round),
                Mode::Crowded => self.judge_crowd(core, path, &round),
            }
        }
    }

    /// Scales `growth`, in bytes, if the connection has several paths: by the square of RFC 6356's factor, but at least
    /// by a quarter of the factor. By the factor itself, two paths took 1.2 to 1.3 shares of a bottleneck.
    pub(super) fn coupled(&mut self, growth: u64) -> u64 {
        let scaled = self.part * self.part.max(0.25) * float(growth) + self.fraction;
        let whole = floor_bytes(scaled);
        self.fraction = scaled - float(whole);
        whole
    }

    /// Returns true if others share the path, or did recently: losses or marks required a smaller window, or a queue
    /// persisted.
    pub(super) fn is_contended(&self, now: Timestamp) -> bool {
        now < self.contended_until
    }

    fn note_contention(&mut self, core: &Core) {
        self.contended_until = now(core).plus_nanos(CONTENDED_NS);
    }

    /// Smallest window outside a crowd, bytes.
    pub(super) const fn least(core: &Core) -> u64 {
        LEAST_PACKETS.saturating_mul(core.mtu())
    }

    fn least_step(core: &Core) -> u64 {
        let part = floor_bytes(float(core.window()) * LEAST_STEP);
        part.max(core.mtu())
    }

    fn be_alone(&mut self, core: &mut Core, reason: Reason) {
        self.mode = Mode::Alone;
        if core.phase == Phase::Avoidance {
            core.reason = reason;
        } else {
            core.enter(Phase::Avoidance, reason);
        }
        self.reset(core);
    }

    /// Forgets what was learnt about others, losses and the last steps.
    fn reset(&mut self, core: &Core) {
        self.settling = 0;
        self.queue_before = None;
        self.drained_from = None;
        self.giving_way.reset();
        self.losses.begin_anew();
        self.step = Self::least_step(core);
    }

    /// Applies the rules of mode `Alone` at the end of a round trip.
    fn judge_alone(&mut self, core: &mut Core, path: &mut Model, round: &Round) {
        if self.settling > 0 {
            self.settling = self.settling.saturating_sub(1);
            return;
        }
        if let Some(window) = self.drained_from.take() {
            let stood = Stood {
                queue: path.queue.within(round.rtt_min),
                target: path.queue.target(core.mtu()),
                round,
            };
            if self.judge_back_off(core, path, &stood) {
                return;
            }
            core.set_window(window);
            self.settling = SETTLING;
            path.queue.drained(now(core));
            return;
        }
        let (window, target) = (core.window(), path.queue.target(core.mtu()));
        let latest = path.queue.within(round.rtt_min);
        let before = self.queue_before.replace(latest);
        let is_long = latest > LONG.saturating_mul(target);
        if before.is_none() && latest > target && !is_long {
            return;
        }
        let asked = self.losses.ask_for_less(round, core, now(core)).is_some();
        let overflows = path.queue.overflows(core.mtu());
        let bound = self.losses.bound(now(core));
        if overflows && bound.is_some_and(|(bound, _)| window <= bound) {
            self.giving_way.note(window);
            self.be_crowded(core);
        } else if asked || overflows {
            let delivered = bytes_in(round.rate, round.rtt_mean.saturating_add(path.ack_delay()));
            let delivered = if round.window_limited { delivered } else { window };
            path.queue.forget_rate(round.rate, now(core));
            path.queue.forget_losses();
            self.cut(core, delivered, Reason::Loss);
        } else {
            let queue = if is_long {
                latest
            } else {
                before.unwrap_or(0).min(latest)
            };
            self.answer_queue(core, path, &Stood { queue, target, round });
        }
    }

    /// Cuts the window, which delivered `delivered` bytes in a round trip, because of losses or ECN marks.
    pub(super) fn cut(&mut self, core: &mut Core, delivered: u64, reason: Reason) {
        let window = core.window();
        self.note_contention(core);
        self.giving_way.note(window);
        let part = floor_bytes(AFTER_LOSS * float(window));
        core.set_window(part.min(delivered.max(window / 2)).max(Self::least(core)));
        self.start_left_at = None;
        core.reason = reason;
        if reason == Reason::Loss {
            self.losses.note_cut(core.window(), now(core));
        }
        self.step = Self::least_step(core);
        core.recovery_start = Some(now(core));
        self.settling = SETTLING_AFTER_LOSS;
        self.queue_before = None;
        self.drained_from = None;
    }

    /// Judges the last back-off; returns true if its result determines the window.
    fn judge_back_off(&mut self, core: &mut Core, path: &mut Model, stood: &Stood<'_>) -> bool {
        let round = stood.round;
        let queue = (stood.queue, stood.target, path.queue.noise());
        match self.giving_way.judge(core.window(), round, queue) {
            Finding::Crowd => self.be_crowded(core),
            Finding::LongerRoute => self.take_longer_route(core, path, round),
            Finding::Own => return false,
        }
        true
    }

    /// Answers a queue that persisted throughout a round trip.
    fn answer_queue(&mut self, core: &mut Core, path: &mut Model, standing: &Stood<'_>) {
        let (stood, target, round) = (standing.queue, standing.target, standing.round);
        let window = core.window();
        if self.judge_back_off(core, path, standing) {
            return;
        }
        let has_room = round.window_limited && self.giving_way.has_room(window, round, path.queue.noise());
        if has_room && stood > target / 2 {
            self.accept_min_rtt(core, path, round);
        } else if stood > target && window <= Self::least(core) {
            // A smaller window has no visible effect, but a larger one has.
            core.set_window(Self::least(core).saturating_mul(5) / 4);
            self.settling = SETTLING;
            return;
        } else if stood > target {
            let excess = bytes_in(round.rate, stood.saturating_sub(target));
            // Less than a step could leave the queue just above its target for ever, and more than half could leave too
            // few packets to judge the effect.
            let excess = excess.max(Self::least_step(core)).min(window / 2);
            let smaller = window.saturating_sub(excess).max(Self::least(core));
            if round.window_limited && self.giving_way.backs_off(window, round, stood) {
                self.drained_from = Some(smaller);
                core.set_window(smaller.min(window / 2).max(Self::least(core)));
            } else {
                core.set_window(smaller);
            }
            self.step = Self::least_step(core);
            self.settling = SETTLING;
            self.queue_before = None;
            return;
        }
        self.giving_way.note_no_queue();
        self.may_double = false;
        let since_empty = path.queue.since_empty(now(core));
        let may_check = round.window_limited && window > Self::least(core);
        if may_check && self.route.is_due(now(core), since_empty) {
            self.route.check(now(core));
            let queue = path.queue.within(round.rtt_mean);
            self.giving_way.backs_off(window, round, queue);
            self.drain_to(core, window / 2);
        } else if stood > 0 && since_empty > DRAIN_AFTER_NS {
            let excess = bytes_in(2.0 * round.rate, stood);
            self.drain_to(core, window.saturating_sub(excess).max(window / 2));
        } else if round.window_limited {
            self.grow(core, path, standing);
            if self.start_left_at.is_some_and(|left_at| core.window() > left_at) {
                self.resume_start();
            }
        }
    }

    /// Reduces the window to `smaller` bytes until the effect shows.
    fn drain_to(&mut self, core: &mut Core, smaller: u64) {
        self.drained_from = Some(core.window());
        self.queue_before = None;
        core.set_window(smaller.max(Self::least(core)));
        self.settling = SETTLING;
    }

    /// Accepts that the route is longer and that no queue persisted. Resumes slow start if the RTT ended it; otherwise
    /// restores the window from before the first back-off.
    fn take_longer_route(&mut self, core: &mut Core, path: &mut Model, round: &Round) {
        self.accept_min_rtt(core, path, round);
        let before = self.giving_way.window_before();
        self.reset(core);
        if self.start_left_at.is_some() {
            self.resume_start();
            return;
        }
        core.set_window(before.max(core.window()));
        self.settling = SETTLING;
        self.step = core.window() / 2;
    }

    /// Accepts the smallest RTT of a round trip as that of an empty queue.
    fn accept_min_rtt(&mut self, core: &Core, path: &mut Model, round: &Round) {
        path.queue.set_min_rtt(round.rtt_min, now(core));
        self.route.note_longer(now(core));
    }

    /// Grows by a step that doubles while the queue stays short. The step is at most half of the window up to the
    /// path's recently carried volume; beyond, where the path is unknown, an eighth.
    fn grow(&mut self, core: &mut Core, path: &Model, standing: &Stood<'_>) {
        let window = core.window();
        if self.losses.exceed_so_far(core.mtu()) {
            return;
        }
        let mut known = path.carried();
        if let Some((bound, holds)) = self.losses.bound(now(core)) {
            if window >= bound {
                if !holds {
                    core.grow(self.coupled(Self::least_step(core)));
                }
                return;
            }
            known = known.min(bound);
        }
        let grown = window.saturating_add(self.coupled(self.step));
        let longer = if standing.queue <= standing.target / 2 {
            self.step.saturating_mul(2)
        } else {
            self.step
        };
        if window < known {
            self.step = if grown >= known { 0 } else { longer.min(window / 2) };
            core.set_window(grown.min(known));
        } else {
            self.step = longer.min(window / MOST_STEP_BEYOND);
            core.set_window(grown);
        }
        self.step = self.step.max(Self::least_step(core));
    }

    /// Handles the first congestion event of a round trip.
    pub(super) fn on_congestion(&mut self, core: &mut Core, path: &mut Model, event: &Congestion) {
        let is_mark = event.signal == Signal::EcnCe;
        match self.mode {
            Mode::Crowded => {
                let is_heavy = self.losses.are_heavy(path.round.lost(), core);
                if is_mark || is_heavy || path.queue.is_long() {
                    self.reduce(core, event);
                }
            }
            Mode::Start | Mode::Alone if is_mark => {
                if self.mode == Mode::Start {
                    self.leave_start(core, path, Reason::EcnCe);
                }
                self.cut(core, core.window(), Reason::EcnCe);
            }
            Mode::Start | Mode::Alone => {}
        }
    }

    /// Restarts slow start from the smallest window after persistent congestion (RFC 9002 §7.6).
    pub(super) fn collapse(&mut self, core: &mut Core, path: &mut Model) {
        self.reset(core);
        path.restart();
        self.mode = Mode::Start;
        self.start = Start::default();
        self.start_left_at = None;
        self.route = RouteCheck::default();
        self.may_double = true;
        core.set_window(core.minimum());
        core.recovery_start = None;
        core.enter(Phase::AfterPersistentCongestion, Reason::PersistentCongestion);
    }
}

/// Arrival of the last ACK frame.
fn now(core: &Core) -> Timestamp {
    core.last_acked.unwrap_or(Timestamp::ZERO)
}
