//! [`GivingWay`]: detects if a smaller window shortens the queue, and draws the conclusions if it does not.

use crate::Timestamp;
use crate::standalone::video::model::Round;
use crate::state::{float, floor_bytes};

const SECOND_NS: u64 = 1_000_000_000;
const MS_NS: u64 = 1_000_000;
/// Consecutive unsuccessful back-offs that prove a crowd.
const PROOFS: u8 = 2;
/// A back-off is conclusive if it should have shortened the RTT by this multiple of the insignificant difference.
const CONCLUSIVE: u64 = 3;
/// If the RTT falls by less than this fraction of the expected fall, the back-off had no effect: the others' part of a
/// shared queue is too small to explain this.
const NO_EFFECT: u64 = 8;
/// Insignificant difference of the RTT, as a share of it, and its lower bound.
const UNCHANGED_SHARE: u64 = 64;
const UNCHANGED_NS: u64 = MS_NS;
/// A window this many times as large shows if the path carries more.
const GROWN: f64 = 1.25;
/// Initial time until a crowd is tested again: this long, and this many RTTs. Each unsuccessful test doubles it, twice
/// at most.
const TEST_AFTER_NS: u64 = 5 * SECOND_NS;
const TEST_AFTER_RTTS: u64 = 30;
const MOST_DOUBLINGS: u32 = 2;
/// Time without a queue after which the crowd has gone: this long, and this many RTTs.
const CLEAR_NS: u64 = SECOND_NS;
const CLEAR_RTTS: u64 = 4;

/// Conclusion about the queue after a back-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    /// No conclusion yet, or the queue is this sender's own.
    Own,
    /// The route has become longer: the increase looked like a queue, but belongs to the RTT without one.
    LongerRoute,
    /// Others keep a queue.
    Crowd,
}

/// State before a back-off.
#[derive(Clone, Copy, Debug)]
struct BackOff {
    window: u64,
    /// The queue that persisted throughout the round trip, ns.
    queue: u64,
    round: Round,
}

/// Judges back-offs, and schedules tests of a crowd. Times are nanoseconds, sizes bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GivingWay {
    /// Window before the first of consecutive back-offs.
    before: u64,
    /// The last back-off, if it has not been judged.
    last: Option<BackOff>,
    in_vain: u8,
    /// A round with a smaller window, since the last back-off.
    smaller: Option<(u64, Round)>,
    /// The last back-off had no effect, but was too small for a visible one.
    is_inconclusive: bool,
    next_test: Timestamp,
    clear_since: Option<Timestamp>,
    tests_in_vain: u32,
}

impl GivingWay {
    /// Window before the first back-off, bytes.
    pub(crate) const fn window_before(&self) -> u64 {
        self.before
    }

    /// Notes that the window of `window` bytes is about to be reduced.
    pub(crate) const fn note(&mut self, window: u64) {
        if self.in_vain == 0 {
            self.before = window;
        }
    }

    /// Notes that the window of `window` bytes is about to be reduced because of a queue of `queue` throughout `round`.
    /// Returns true if the window must be halved for a round trip instead, because smaller back-offs had no visible
    /// effect.
    pub(crate) const fn backs_off(&mut self, window: u64, round: &Round, queue: u64) -> bool {
        self.note(window);
        self.smaller = None;
        let round = *round;
        self.last = Some(BackOff { window, queue, round });
        self.is_inconclusive
    }

    /// Judges the last back-off, if there was one, by a `round` after it with the window `window` and a persistent
    /// queue of `queue`. Alone, the sender would have emptied the queue; half of it may remain.
    pub(crate) fn judge(
        &mut self,
        window: u64,
        round: &Round,
        (queue, target, noise): (u64, u64, u64),
    ) -> Finding {
        let Some(last) = self.last.take().filter(|_| round.window_limited) else {
            return Finding::Own;
        };
        self.is_inconclusive = false;
        // With a queue, the RTT falls with the window and the rate stays; on a longer route it is the other way round.
        let left = float(window) / float(last.window.max(1));
        let rtt = last.round.rtt_mean;
        let fall = floor_bytes(float(rtt) * (1.0 - left)).min(last.queue);
        let unchanged = unchanged(rtt, noise);
        let is_unchanged = round.rtt_mean.abs_diff(rtt) <= unchanged.max(fall / NO_EFFECT);
        let is_conclusive = fall >= CONCLUSIVE.saturating_mul(unchanged);
        if is_unchanged && is_conclusive && round.rate < last.round.rate * f64::midpoint(1.0, left) {
            return Finding::LongerRoute;
        }
        let expected = target.saturating_add(last.queue.saturating_sub(target) / 2);
        if queue <= expected {
            self.in_vain = 0;
            return Finding::Own;
        }
        self.in_vain = self.in_vain.saturating_add(1);
        if is_unchanged {
            self.is_inconclusive = !is_conclusive && self.in_vain >= PROOFS;
        } else if round.rtt_mean > rtt {
            // The path has changed since; findings from before the change do not count.
            self.in_vain = 1;
        } else if self.in_vain >= PROOFS && queue > target.saturating_mul(2) {
            return Finding::Crowd;
        }
        Finding::Own
    }

    /// Compares the window `window` of a `round` without a back-off with earlier ones. Returns true if a window a
    /// quarter larger delivered proportionally more at the same RTT: then the apparent queue does not exist.
    pub(crate) fn has_room(&mut self, window: u64, round: &Round, noise: u64) -> bool {
        let (before, smaller) = *self.smaller.get_or_insert((window, *round));
        let more = float(window) / float(before.max(1));
        if more < GROWN {
            return false;
        }
        self.smaller = Some((window, *round));
        let unchanged = unchanged(smaller.rtt_mean, noise);
        round.rtt_mean <= smaller.rtt_mean.saturating_add(unchanged)
            && round.rate > smaller.rate * f64::midpoint(1.0, more)
    }

    /// Notes that there is no queue to yield to.
    pub(crate) const fn note_no_queue(&mut self) {
        self.in_vain = 0;
        self.is_inconclusive = false;
    }

    /// Notes that a crowd was found. Returns the window before the back-offs.
    pub(crate) fn begin_crowd(&mut self, now: Timestamp, rtt: u64) -> u64 {
        let wait = TEST_AFTER_NS.max(TEST_AFTER_RTTS.saturating_mul(rtt));
        let doublings = self.tests_in_vain.min(MOST_DOUBLINGS);
        self.next_test = now.plus_nanos(wait.saturating_mul(1 << doublings));
        self.tests_in_vain = self.tests_in_vain.saturating_add(1);
        self.clear_since = None;
        self.before
    }

    /// Ends a round of the crowd; `stood` is true if a queue persisted throughout it. Returns true if it is time to
    /// back off again: there has been no queue for some time, or a test is due.
    pub(crate) fn is_over(&mut self, stood: bool, now: Timestamp, min_rtt: u64) -> bool {
        if stood {
            self.clear_since = None;
            return now >= self.next_test;
        }
        let since = *self.clear_since.get_or_insert(now);
        let gone = now.nanos_since(since) > CLEAR_NS.max(CLEAR_RTTS.saturating_mul(min_rtt));
        if gone {
            self.tests_in_vain = 0;
        }
        gone
    }

    /// Resets the state; no back-off waits for judgement.
    pub(crate) const fn reset(&mut self) {
        self.in_vain = 0;
        self.is_inconclusive = false;
        self.last = None;
        self.smaller = None;
    }
}

/// Insignificant difference of an RTT of `rtt`, ns.
fn unchanged(rtt: u64, noise: u64) -> u64 {
    (rtt / UNCHANGED_SHARE)
        .max(UNCHANGED_NS)
        .saturating_add(noise / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};

    const TARGET: u64 = 4 * MS;

    fn round(rtt_ms: u64, rate: f64) -> Round {
        Round::sample(rtt_ms, rtt_ms, rate)
    }

    /// Backs off from `window.0` to `window.1` on a path of 20 ms, with the RTTs and rates before and after.
    fn backs_off(
        giving_way: &mut GivingWay,
        window: (u64, u64),
        rtt_ms: (u64, u64),
        rate: (f64, f64),
    ) -> Finding {
        giving_way.backs_off(window.0, &round(rtt_ms.0, rate.0), (rtt_ms.0 - 20) * MS);
        let queueing = (rtt_ms.1 - 20) * MS;
        giving_way.judge(window.1, &round(rtt_ms.1, rate.1), (queueing, TARGET, 0))
    }

    #[test]
    fn a_queue_that_stays_long_twice_although_it_became_shorter_is_a_crowds() {
        let mut giving_way = GivingWay::default();
        let before_any = giving_way.judge(100_000, &round(120, 1e6), (100 * MS, TARGET, 0));
        assert_eq!(before_any, Finding::Own);
        let first = backs_off(&mut giving_way, (100_000, 50_000), (100, 85), (1e6, 0.6e6));
        let second = backs_off(&mut giving_way, (50_000, 20_000), (85, 70), (0.6e6, 0.3e6));
        assert_eq!((first, second), (Finding::Own, Finding::Crowd));
        let window_before = giving_way.begin_crowd(at(0), 20 * MS);
        assert_eq!(window_before, 100_000);
    }

    #[test]
    fn a_queue_that_halves_is_the_senders_own() {
        let mut giving_way = GivingWay::default();
        backs_off(&mut giving_way, (100_000, 50_000), (100, 85), (1e6, 0.6e6));
        let halved = backs_off(&mut giving_way, (100_000, 50_000), (100, 62), (1e6, 1e6));
        let next = backs_off(&mut giving_way, (100_000, 50_000), (100, 85), (1e6, 0.6e6));
        // The count begins again.
        assert_eq!((halved, next), (Finding::Own, Finding::Own));
    }

    #[test]
    fn an_rtt_that_stays_while_window_and_rate_fall_is_that_of_a_longer_route() {
        for (rtt, left) in [(200, 0.5), (100, 0.5), (50, 0.6), (30, 0.6)] {
            let windows = (100_000, floor_bytes(100_000.0 * left));
            let rates = (1e6, left * 1e6);
            let found = backs_off(&mut GivingWay::default(), windows, (rtt, rtt), rates);
            assert_eq!(found, Finding::LongerRoute, "{rtt} ms");
        }
    }

    #[test]
    fn an_rtt_that_stays_at_the_same_rate_is_a_queue_that_still_grew() {
        let mut giving_way = GivingWay::default();
        let found = backs_off(&mut giving_way, (100_000, 50_000), (100, 100), (1e6, 1e6));
        assert_eq!(found, Finding::Own);
    }

    #[test]
    fn back_offs_too_small_for_an_effect_lead_to_a_large_one() {
        let mut giving_way = GivingWay::default();
        for window in [100_000, 99_000, 98_000] {
            let found = backs_off(&mut giving_way, (window, window - 1_000), (25, 25), (1e6, 0.99e6));
            assert_eq!(found, Finding::Own);
        }
        assert!(giving_way.backs_off(97_000, &round(25, 1e6), 5 * MS));
        let found = giving_way.judge(48_500, &round(25, 0.5e6), (5 * MS, TARGET, 0));
        assert_eq!(found, Finding::LongerRoute);
    }

    #[test]
    fn an_rtt_that_rose_since_makes_the_count_begin_again() {
        let mut giving_way = GivingWay::default();
        backs_off(&mut giving_way, (100_000, 50_000), (100, 85), (1e6, 0.6e6));
        backs_off(&mut giving_way, (50_000, 20_000), (85, 200), (0.6e6, 0.3e6));
        let found = backs_off(&mut giving_way, (20_000, 19_000), (200, 190), (0.3e6, 0.3e6));
        // The second consecutive back-off after the rise.
        assert_eq!(found, Finding::Crowd);
    }

    #[test]
    fn a_larger_window_that_brings_as_much_more_at_the_same_rtt_has_room() {
        for (rtt_ms, rate, expected) in [(80, 1.3e6, true), (80, 1.0e6, false), (90, 1.3e6, false)] {
            let mut giving_way = GivingWay::default();
            assert!(!giving_way.has_room(100_000, &round(80, 1e6), 0));
            assert!(!giving_way.has_room(110_000, &round(80, 1.1e6), 0), "a tenth");
            let has_room = giving_way.has_room(130_000, &round(rtt_ms, rate), 0);
            assert_eq!(has_room, expected, "{rtt_ms} ms, {rate}");
        }
    }

    #[test]
    fn a_crowd_is_tested_again_after_ever_longer_times_and_leaves_with_its_queue() {
        let mut giving_way = GivingWay::default();
        for (began, wait) in [(0, 5_000), (10_000, 10_000), (30_000, 20_000), (60_000, 20_000)] {
            giving_way.begin_crowd(at(began), 20 * MS);
            assert!(!giving_way.is_over(true, at(began + wait - 1), 20 * MS));
            assert!(giving_way.is_over(true, at(began + wait), 20 * MS));
        }
        giving_way.begin_crowd(at(200_000), 20 * MS);
        assert!(!giving_way.is_over(false, at(200_100), 20 * MS));
        assert!(giving_way.is_over(false, at(201_101), 20 * MS));
        giving_way.begin_crowd(at(300_000), 20 * MS);
        assert!(giving_way.is_over(true, at(305_000), 20 * MS), "as at first");
    }
}
