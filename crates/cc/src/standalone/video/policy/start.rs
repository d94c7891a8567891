//! [`Start`]: detects that slow start has reached the path's capacity.

use crate::Reason;
use crate::standalone::video::model::{Frame, Model, Round, bytes_in};
use crate::state::Core;

use super::{MOST_STEP_BEYOND, Mode, Policy, SETTLING_AFTER_LOSS, now};

/// Consecutive packets with a risen RTT. HyStart++ looks at the first eight samples of a round. It therefore sees a
/// queue that grows within a round only in the next, when twice as much is in flight.
const PACKETS: u32 = 32;
/// A round delivers more if its rate exceeds the largest so far by this factor. This many rounds without more end slow
/// start (draft-ietf-ccwg-bbr §5.3.1.2).
const MORE: f64 = 1.25;
const ROUNDS: u8 = 3;
/// Rise of the RTT that ends slow start: an eighth, but between 4 and 16 ms (RFC 9406 §4.3).
const RISE_NS: (u64, u64) = (4_000_000, 16_000_000);
/// RTT samples that a round needs before its smallest can end slow start: `N_RTT_SAMPLE` (RFC 9406 §4.3).
const LEAST_SAMPLES: u64 = 8;
/// If slow start ended on a rise and the queue has not been seen empty since, it is checked after the longer of this
/// time and this many RTTs.
const CHECK_NS: u64 = 500_000_000;
const CHECK_RTTS: u64 = 10;
/// Share of packets lost that ends slow start although a larger window still delivers more.
const HEAVY: f64 = 0.1;

/// State of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Start {
    /// Largest delivery rate of a round, bytes per second, and rounds without more since.
    rate: f64,
    rounds: u8,
    /// Consecutive packets with a risen RTT.
    risen: u32,
    /// Smallest RTT of the last round, ns.
    last_rtt_min: Option<u64>,
}

impl Start {
    /// Counts an RTT sample of `packets` packets if it `has_risen`; returns true if enough consecutive ones have.
    pub(crate) const fn has_stayed_risen(&mut self, has_risen: bool, packets: u32) -> bool {
        self.risen = if has_risen {
            self.risen.saturating_add(packets)
        } else {
            0
        };
        self.risen >= PACKETS
    }

    /// Processes a window-limited round. Returns true if three consecutive such rounds have delivered no more than
    /// before.
    pub(crate) fn brings_no_more(&mut self, round: &Round) -> bool {
        if round.rate > MORE * self.rate {
            self.rate = round.rate;
            self.rounds = 0;
        } else {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.rounds >= ROUNDS
    }

    /// Returns true if the last round delivered more than the previous ones.
    pub(crate) const fn brought_more(self) -> bool {
        self.rounds == 0
    }

    /// RTT from which a rise counts, ns: the smallest of the last round, as in RFC 9406, but at least `rtt_min`. A
    /// queue grows from one round to the next. Jitter does not: its smallest value soon becomes the connection's
    /// smallest RTT.
    pub(crate) fn base_rtt(self, rtt_min: u64) -> u64 {
        self.last_rtt_min.map_or(rtt_min, |last| last.max(rtt_min))
    }

    /// Records the smallest RTT of a completed round, ns.
    pub(crate) const fn note_rtt_min(&mut self, rtt_min: u64) {
        self.last_rtt_min = Some(rtt_min);
    }
}

impl Policy {
    /// Applies slow start to one ACK frame.
    pub(super) fn double(&mut self, core: &mut Core, path: &mut Model, frame: &Frame) {
        core.grow(frame.batch.allowance);
        let Some(sample) = frame.sample else { return };
        let has_risen = self.has_risen(path, sample.rtt_ns);
        if self.start.has_stayed_risen(has_risen, sample.packets) {
            self.leave_start(core, path, Reason::RttRose);
        }
    }

    /// Returns true if the RTT `rtt` has risen enough to end slow start.
    fn has_risen(&self, path: &Model, rtt: u64) -> bool {
        let base = self.start.base_rtt(path.queue.min_rtt().unwrap_or(rtt));
        let rise = (base / 8).clamp(RISE_NS.0, RISE_NS.1);
        rtt.saturating_sub(base) >= rise.saturating_add(path.queue.jitter())
    }

    pub(super) fn judge_start(&mut self, core: &mut Core, path: &mut Model, round: &Round) {
        let brings_no_more = round.window_limited && self.start.brings_no_more(round);
        let has_risen = self.has_risen(path, round.rtt_min);
        self.start.note_rtt_min(round.rtt_min);
        let lost = self.losses.ask_for_less(round, core, now(core));
        if lost.is_some_and(|share| share > HEAVY || !self.start.brought_more()) {
            self.may_double = false;
            self.leave_start(core, path, Reason::Loss);
        } else if !round.window_limited {
            // Its RTT may contain a delayed acknowledgement, and its rate says nothing about the path either.
        } else if has_risen && round.samples >= LEAST_SAMPLES {
            self.leave_start(core, path, Reason::RttRose);
        } else if brings_no_more {
            self.leave_start(core, path, Reason::CapacityKnown);
        }
    }

    /// Ends slow start: the window becomes the path's capacity without a queue.
    pub(super) fn leave_start(&mut self, core: &mut Core, path: &mut Model, reason: Reason) {
        let rate = path.rate(now(core));
        let rtt = path.base_rtt().unwrap_or(0);
        let before = core.window();
        if rate > 0.0 {
            core.set_window(bytes_in(rate, rtt).min(before));
        }
        self.be_alone(core, reason);
        if reason == Reason::RttRose {
            self.start_left_at = Some(before);
            let after_ns = CHECK_NS.max(CHECK_RTTS.saturating_mul(rtt));
            self.route.note_rise(now(core), after_ns);
            let round = path.latest_round(now(core));
            self.giving_way.backs_off(before, &round, path.queue.latest());
        }
        path.queue.forget_losses();
        core.recovery_start = Some(now(core));
        self.settling = SETTLING_AFTER_LOSS;
        self.step = Self::least_step(core).max(core.window() / MOST_STEP_BEYOND);
    }

    /// Resumes slow start, because it was not a queue that ended it.
    pub(super) fn resume_start(&mut self) {
        self.mode = Mode::Start;
        self.start = Start::default();
        self.start_left_at = None;
        self.route.forget_rise();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_rtt_begins_the_count_of_packets_anew() {
        let mut start = Start::default();
        for packets in [2, 10, 19] {
            assert!(!start.has_stayed_risen(true, packets));
        }
        assert!(!start.has_stayed_risen(false, 2));
        assert!(!start.has_stayed_risen(true, 31));
        assert!(start.has_stayed_risen(true, 1));
    }

    #[test]
    fn a_rise_counts_from_the_smallest_rtt_of_the_last_round() {
        let mut start = Start::default();
        assert_eq!(start.base_rtt(60), 60);
        for (last, expected) in [(85, 85), (50, 60)] {
            start.note_rtt_min(last);
            assert_eq!(start.base_rtt(60), expected, "{last}");
        }
    }

    #[test]
    fn three_rounds_with_less_than_a_quarter_more_bring_no_more() {
        let mut start = Start::default();
        let mut brings_no_more = |rate| start.brings_no_more(&Round::sample(0, 0, rate));
        for rate in [100.0, 120.0, 124.0, 126.0, 150.0, 157.0] {
            assert!(!brings_no_more(rate), "{rate}");
        }
        assert!(brings_no_more(157.4));
    }
}
