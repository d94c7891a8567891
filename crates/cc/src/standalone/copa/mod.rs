//! `copa`: Copa (Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI
//! 2018), which keeps about 1/δ packets of its own in the queue.
//!
//! On each ACK frame, with the queueing delay dq that [`Delays`] measures:
//!
//! ```text
//! target rate  λt = mtu/(δ·dq),   rate  λ = w/RTTstanding
//! λ ≤ λt:  w += v·acked·mtu/(δ·w)        λ > λt:  w −= v·acked·mtu/(δ·w)
//! ```
//!
//! which is v/δ packets per round trip. [`Velocity`] gives v, [`Competition`] δ.
//!
//! The paper leaves some choices open, and mvfst (`quic/congestion_control/Copa.cpp`), which has carried Facebook's
//! live video, makes some of them differently:
//!
//! | | paper | mvfst | here |
//! |---|---|---|---|
//! | dq | `RTTstanding` − `RTTmin` | latest RTT − `RTTmin` unless an option is set | paper |
//! | window of `RTTstanding` | srtt/2 | srtt/2; srtt if dq is taken from it | paper |
//! | default δ | 0.5 | 0.05 (`deltaParam_`, its latency factor) | paper |
//! | mode switching | yes | none | paper |
//! | slow start | doubles per round trip | doubles at once, every srtt | by acknowledged bytes |
//! | direction | once per window | once per srtt | paper, by [`Core`]'s round trips |
//! | v doubles after | three round trips of one direction | three repeats; four if dq is standing | four repeats |
//! | v while the target changes sides | until the round trip ends | 1 immediately | mvfst |
//! | loss outside competitive mode | nothing | nothing | nothing up to 10 % |
//! | ECN-CE | unsaid | as a loss | as a loss, and 0.7 of the flight |
//! | persistent congestion | unsaid | smallest window | smallest window, slow start, RTTs learnt again |
//! | application-limited | unsaid | unsupported | no growth; λ is that of the flight |
//! | pacing | 2·w/`RTTstanding` | 2·w/srtt | paper; the transport's if it does not pace by a rate |
//!
//! quinn offers only a window, and paces at 1.25·w/srtt. Copa requires 2·w/RTTstanding so that a pacer never
//! limits it; the slower pacer spreads a window over most of a round trip, which shortens the queue at its end.
//!
//! Added here: no ACK frame changes the window by more than it acknowledges, and v does not double beyond that, so the
//! window at most doubles in a round trip. A path that drops without queueing, such as a policer, shows Copa no delay.
//! There, and wherever the path marks packets with ECN-CE, a [`LossGuard`] bounds the window (RFC 8085 §3.1): at 0.7 of
//! the flight, rising like CUBIC's window.

mod competition;
mod delay;
#[cfg(test)]
mod tests;
mod velocity;

use core::time::Duration;
use std::sync::Arc;

use crate::adjustment::LossGuard;
use crate::component::Needs;
use crate::entry::Entry;
use crate::events::{AckFrame, Congestion, Sent};
use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core, MINIMUM_RTO_NS, float, floor_bytes};
use crate::{Bitrate, Bytes, CongestionController, Path, Phase, Reason, Snapshot, Timestamp, VideoKnowledge};
use competition::Competition;
use delay::Delays;
use velocity::{Direction, Velocity};

/// Smallest window, packets. Two would leave only one packet in flight, and the peer delays its acknowledgement.
const MINIMUM_PACKETS: u64 = 4;

/// Copa with its two modes.
#[derive(Clone, Debug)]
struct Copa {
    core: Core,
    /// δ of default mode.
    delta: f64,
    delays: Delays,
    velocity: Velocity,
    /// Mode switching; `None` if it is off.
    competition: Option<Competition>,
    /// Part of the window below a byte.
    fraction: f64,
    /// Packets that left up to this time belong to a loss that was answered.
    answered_at: Option<Timestamp>,
    /// Upper bound of the window on a path that drops without queueing.
    guard: LossGuard,
}

impl Copa {
    fn new(path: &Path, arguments: &Arguments, known: Arc<VideoKnowledge>) -> Self {
        let core = Core::new(path, MINIMUM_PACKETS, Needs::default(), known);
        let switches = arguments.word("mode") == "switching";
        let delta = arguments.number("delta");
        Self {
            delta,
            delays: Delays::default(),
            velocity: Velocity::at(core.window()),
            competition: switches.then(|| Competition::new(delta)),
            fraction: 0.0,
            answered_at: None,
            guard: LossGuard::by_average(),
            core,
        }
    }

    /// The only function that changes the phase.
    fn enter(&mut self, phase: Phase, reason: Reason) {
        self.core.enter(phase, reason);
        self.velocity = Velocity::at(self.core.window());
        self.competition = self.competition.map(|_| Competition::new(self.delta));
    }

    /// The δ of Copa's current mode.
    fn current_delta(&self) -> f64 {
        self.competition
            .map_or(self.delta, |competition| competition.delta())
    }

    /// Returns true if `bytes` per round trip are more than the target: λ > λt, that is,
    /// δ·dq·bytes > mtu·RTTstanding.
    fn exceeds_target(&self, bytes: u64) -> bool {
        let queued = self.current_delta() * float(self.delays.queueing_ns()) * float(bytes);
        queued > float(self.core.mtu()) * float(self.delays.standing_ns())
    }

    /// Grows or shrinks the window with an ACK frame.
    fn follow_target(&mut self, batch: &Batch) {
        // If the sender does not use its window, the window does not show its rate.
        let used = if batch.limited {
            batch.prior_in_flight().min(self.core.window())
        } else {
            self.core.window()
        };
        if self.core.phase.is_slow_start() {
            if !self.exceeds_target(used) {
                self.core.grow(batch.allowance);
                return;
            }
            self.enter(Phase::Avoidance, Reason::RttRose);
        }
        if let Some(competition) = &mut self.competition {
            let nearly_empty = self.delays.queue_is_nearly_empty();
            competition.on_batch(nearly_empty, batch.new_round, !batch.limited);
        }
        self.approach_target(batch, used);
    }

    /// Moves the window towards the target by `v·acked·mtu/(δ·w)`, at most by what the frame acknowledges.
    fn approach_target(&mut self, batch: &Batch, used: u64) {
        let window = self.core.window();
        let per_byte = float(self.core.mtu()) / (self.current_delta() * float(window));
        if batch.limited {
            self.velocity = Velocity::at(window);
        } else if batch.new_round {
            let most = u32::try_from(floor_bytes(1.0 / per_byte)).unwrap_or(u32::MAX);
            self.velocity.end_round(window, most);
        }
        let (direction, bytes) = if self.exceeds_target(used) {
            (Direction::Down, batch.acked)
        } else {
            (Direction::Up, batch.allowance)
        };
        self.velocity.head_for(direction, window);
        let bytes = float(bytes);
        let step = (f64::from(self.velocity.factor()) * per_byte * bytes).min(bytes);
        let exact = float(window) + self.fraction;
        let exact = match direction {
            Direction::Up => exact + step,
            Direction::Down => exact - step,
        };
        let whole = floor_bytes(exact);
        self.core.set_window(whole);
        // At a bound, the fraction is dropped.
        self.fraction = if self.core.window() == whole {
            exact - float(whole)
        } else {
            0.0
        };
    }

    /// Restarts after persistent congestion (RFC 9002 §7.6), because the path may have changed.
    fn restart(&mut self) {
        self.core.rtt.forget_extremes();
        self.delays = Delays::default();
        self.fraction = 0.0;
        self.answered_at = None;
        self.core.set_window(self.core.minimum());
        self.enter(Phase::AfterPersistentCongestion, Reason::PersistentCongestion);
    }
}

impl CongestionController for Copa {
    fn on_sent(&mut self, event: &Sent) {
        // The velocity and direction from before a pause are outdated.
        if self.core.pause(event.now, MINIMUM_RTO_NS).is_some() {
            self.velocity = Velocity::at(self.core.window());
        }
        self.core.note_sent(event);
    }

    fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Bytes {
        let Some(batch) = self.core.note_acked(event) else {
            return self.window();
        };
        self.delays
            .on_batch(&batch, self.core.rtt.smoothed_ns().unwrap_or(0));
        self.guard.on_batch(&mut self.core, &batch);
        self.follow_target(&batch);
        let bound = self.guard.adjust(&self.core, self.core.window());
        self.core.set_window(bound);
        self.window()
    }

    fn on_congestion(&mut self, event: &Congestion) {
        if event.is_persistent() {
            self.restart();
        } else if self.answered_at.is_none_or(|at| event.newest_sent > at)
            && let Some(competition) = &mut self.competition
        {
            self.answered_at = Some(event.now);
            competition.on_loss();
        }
        self.guard.on_congestion(&self.core, event);
        let bound = self.guard.adjust(&self.core, self.core.window());
        if bound < self.core.window() {
            self.core.set_window(bound);
            self.core.note_reduction();
            if self.core.phase.is_slow_start() {
                self.enter(Phase::Avoidance, event.reason());
            } else {
                self.core.reason = event.reason();
                self.velocity = Velocity::at(bound);
            }
        }
        self.core.note_congestion(event);
    }

    fn on_mtu_change(&mut self, mtu: Bytes) {
        self.core.set_mtu(mtu);
    }

    fn window(&self) -> Bytes {
        Bytes::new(self.core.window())
    }

    fn initial_window(&self) -> Bytes {
        Bytes::new(self.core.initial_window())
    }

    /// The paper's rate, 2·w/`RTTstanding` (§2.1); `None` before the first RTT.
    fn pacing_rate(&self) -> Option<Bitrate> {
        let twice = Bytes::new(self.core.window().saturating_mul(2));
        twice.per(Duration::from_nanos(self.delays.standing_ns()))
    }

    fn snapshot(&self) -> Snapshot {
        let core = &self.core;
        let mut snapshot = core.snapshot(core.window());
        let standing = self.delays.standing_ns();
        // A packet spends the share dq of its RTT in the queue, so this share of the window is queued.
        let queued = || float(core.window()) * float(self.delays.queueing_ns()) / float(standing);
        snapshot.backlog = (standing > 0).then(|| Bytes::new(floor_bytes(queued())));
        snapshot
    }

    fn requires_every_burst(&self) -> bool {
        false
    }

    fn clone_box(&self) -> Box<dyn CongestionController> {
        Box::new(self.clone())
    }
}

const PARAMETERS: &[Parameter] = &[
    Parameter::number("delta", 0.5, 0.001..=100.0).about(
        "weight of delay against throughput: in default mode about 1/δ packets wait in the queue; mvfst has \
         0.05",
    ),
    Parameter::word("mode", "switching", &["switching", "default"]).about(
        "against flows that fill the buffer: switching to competitive mode, or default mode always, as in \
         mvfst",
    ),
];

pub(crate) fn entry() -> Entry {
    Entry::custom("copa", |path, arguments, known| {
        Box::new(Copa::new(path, arguments, known))
    })
    .about("keeps a few packets in the queue, and more when competing with flows that fill it")
    .defined_in("Arun and Balakrishnan 2018")
    .with_parameters(PARAMETERS)
    .with_traits(|traits| (traits.holds_on_loss, traits.delay_based) = (true, true))
}
