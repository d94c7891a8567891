//! [`Crowd`]: whether others keep a queue that does not empty however much this sender gives way.

use crate::Timestamp;

const SECOND_NS: u64 = 1_000_000_000;
/// Times in a row that giving way has to be in vain.
const PROOFS: u8 = 2;
/// Time until a crowd is tested again, at first: this long, and so many RTTs. Each test in vain doubles it, twice:
/// the smallest RTT must not be forgotten meanwhile.
const TEST_AFTER_NS: u64 = 5 * SECOND_NS;
const TEST_AFTER_RTTS: u64 = 30;
const MOST_DOUBLINGS: u32 = 2;
/// Time without a queue after which the crowd has gone: this long, and so many RTTs.
const CLEAR_NS: u64 = SECOND_NS;
const CLEAR_RTTS: u64 = 4;

/// Tests for a crowd, and the time of the next. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Queue before the window was reduced by all of its excess.
    gave_way_at: Option<u64>,
    in_vain: u8,
    /// Window before it first gave way, bytes.
    before: u64,
    next_test: Timestamp,
    clear_since: Option<Timestamp>,
    tests_in_vain: u32,
}

impl Crowd {
    /// The window of `window` bytes is about to be reduced, for the first time if nothing was in vain yet.
    pub(super) const fn note_window(&mut self, window: u64) {
        if self.in_vain == 0 {
            self.before = window;
        }
    }

    /// The sender gives way to a queue of `queue`, all of it that is more than the target.
    pub(super) const fn gives_way(&mut self, window: u64, queue: u64) {
        self.note_window(window);
        self.gave_way_at = Some(queue);
    }

    /// The queue is `queue` after the sender gave way, if it did. Returns true if that was in vain twice: alone it
    /// would have emptied the queue. Half of it may be left, and twice the target.
    pub(super) fn is_proven(&mut self, queue: u64, target: u64) -> bool {
        let Some(before) = self.gave_way_at.take() else {
            return false;
        };
        let expected = target.saturating_add(before.saturating_sub(target) / 2);
        self.in_vain = if queue > expected.max(target.saturating_mul(2)) {
            self.in_vain.saturating_add(1)
        } else {
            0
        };
        self.in_vain >= PROOFS
    }

    /// There is no queue to give way to.
    pub(super) const fn note_no_queue(&mut self) {
        self.in_vain = 0;
    }

    /// A crowd it is. Returns the window before the sender gave way.
    pub(super) fn begin(&mut self, now: Timestamp, rtt: u64) -> u64 {
        let wait = TEST_AFTER_NS.max(TEST_AFTER_RTTS.saturating_mul(rtt));
        let doublings = self.tests_in_vain.min(MOST_DOUBLINGS);
        self.next_test = now.plus_nanos(wait.saturating_mul(1 << doublings));
        self.tests_in_vain = self.tests_in_vain.saturating_add(1);
        self.clear_since = None;
        self.before
    }

    /// A round of the crowd is over, in which a queue `stood` or did not. Returns true if it is time to give way again:
    /// there has been none for some time, or a test is due.
    pub(super) fn is_over(&mut self, stood: bool, now: Timestamp, min_rtt: u64) -> bool {
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

    /// The sender gives way from now on.
    pub(super) const fn end(&mut self) {
        self.in_vain = 0;
        self.gave_way_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};

    /// Gives way at `before` and finds `after`, with a target of 4 ms.
    fn gives_way(crowd: &mut Crowd, before: u64, after: u64) -> bool {
        crowd.gives_way(100_000, before * MS);
        crowd.is_proven(after * MS, 4 * MS)
    }

    #[test]
    fn a_queue_that_stays_twice_although_the_sender_gave_way_is_a_crowds() {
        let mut crowd = Crowd::default();
        assert!(!crowd.is_proven(100 * MS, 4 * MS), "it did not give way yet");
        assert!(!gives_way(&mut crowd, 40, 40));
        assert!(gives_way(&mut crowd, 40, 23), "half of the excess would be 22 ms");
    }

    #[test]
    fn a_queue_that_halves_is_the_senders_own() {
        let mut crowd = Crowd::default();
        gives_way(&mut crowd, 40, 40);
        assert!(!gives_way(&mut crowd, 40, 22));
        assert!(!gives_way(&mut crowd, 40, 40), "the count begins anew");
        assert!(
            !gives_way(&mut crowd, 8, 8),
            "less than twice the target is noise"
        );
    }

    #[test]
    fn the_window_of_before_is_that_of_the_first_time() {
        let mut crowd = Crowd::default();
        crowd.gives_way(200_000, 40 * MS);
        crowd.is_proven(40 * MS, 4 * MS);
        crowd.gives_way(50_000, 40 * MS);
        assert_eq!(crowd.begin(at(0), 20 * MS), 200_000);
    }

    #[test]
    fn a_crowd_is_tested_again_after_ever_longer_times_and_leaves_with_its_queue() {
        let mut crowd = Crowd::default();
        for (began, wait) in [(0, 5_000), (10_000, 10_000), (30_000, 20_000), (60_000, 20_000)] {
            crowd.begin(at(began), 20 * MS);
            assert!(!crowd.is_over(true, at(began + wait - 1), 20 * MS));
            assert!(crowd.is_over(true, at(began + wait), 20 * MS));
        }
        crowd.begin(at(200_000), 20 * MS);
        assert!(!crowd.is_over(false, at(200_100), 20 * MS));
        assert!(crowd.is_over(false, at(201_101), 20 * MS));
        crowd.begin(at(300_000), 20 * MS);
        assert!(crowd.is_over(true, at(305_000), 20 * MS), "as at first");
    }
}
