//! The smallest or largest value of a window of time whose length may change.

use crate::Timestamp;

/// Best value of a window of time, after Kathleen Nichols (`lib/win_minmax.c` of Linux, `windowed_filter.h` of
/// Chromium and mvfst): the best of the whole window, of its last three quarters and of its last half.
///
/// Each value comes with the window's length, so the length may follow the RTT. No value outlives its window. The
/// successor of the best value may be up to a quarter of the window newer than the true second best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Extreme<const IS_LARGEST: bool> {
    /// Time and value of the three best, best first; `None` before the first value.
    best: Option<[(Timestamp, u64); 3]>,
}

/// The smallest value of a window.
pub(crate) type Smallest = Extreme<false>;
/// The largest value of a window.
pub(crate) type Largest = Extreme<true>;

impl<const IS_LARGEST: bool> Extreme<IS_LARGEST> {
    /// Adds a value; forgets values older than `window_ns`.
    pub(crate) fn insert(&mut self, now: Timestamp, value: u64, window_ns: u64) {
        let new = (now, value);
        let Some(mut best) = self.best else {
            self.best = Some([new; 3]);
            return;
        };
        let is_old = |(taken, _): (Timestamp, u64)| now.nanos_since(taken) > window_ns;
        if Self::is_as_good(value, best[0].1) || is_old(best[2]) {
            best = [new; 3];
        } else if Self::is_as_good(value, best[1].1) {
            best = [best[0], new, new];
        } else if Self::is_as_good(value, best[2].1) {
            best[2] = new;
        }
        if is_old(best[0]) {
            best = [best[1], best[2], new];
            if is_old(best[0]) {
                best = [best[1], best[2], new];
            }
        } else if best[1].0 == best[0].0 && now.nanos_since(best[0].0) > window_ns / 4 {
            best = [best[0], new, new];
        } else if best[2].0 == best[1].0 && now.nanos_since(best[0].0) > window_ns / 2 {
            best[2] = new;
        }
        self.best = Some(best);
    }

    /// The best value as of the last [`insert`](Self::insert); `None` before the first.
    pub(crate) fn get(&self) -> Option<u64> {
        self.best.map(|[(_, value), ..]| value)
    }

    /// Returns true if `value` may take the place of `other`.
    const fn is_as_good(value: u64, other: u64) -> bool {
        if IS_LARGEST {
            value >= other
        } else {
            value <= other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    #[track_caller]
    fn is_kept_for_a_second<const IS_LARGEST: bool>(values: [u64; 4]) {
        let mut extreme = Extreme::<IS_LARGEST>::default();
        assert_eq!(extreme.get(), None);
        for (ms, value) in [0, 300, 600, 900].into_iter().zip(values) {
            extreme.insert(at(ms), value, 1_000_000_000);
            assert_eq!(extreme.get(), Some(values[0]), "at {ms} ms");
        }
        extreme.insert(at(1_100), values[3], 1_000_000_000);
        assert_eq!(extreme.get(), Some(values[2]));
    }

    #[test]
    fn the_best_value_is_kept_for_the_window_and_gives_way_to_a_later_one() {
        is_kept_for_a_second::<false>([100, 130, 120, 140]);
        is_kept_for_a_second::<true>([140, 110, 120, 100]);
    }

    #[test]
    fn a_window_that_becomes_shorter_forgets_at_once() {
        let mut extreme = Smallest::default();
        extreme.insert(at(0), 100, 1_000_000_000);
        extreme.insert(at(400), 120, 1_000_000_000);
        extreme.insert(at(500), 130, 200_000_000);
        assert_eq!(extreme.get(), Some(120));
    }

    #[test]
    fn nothing_outlives_a_pause_that_is_longer_than_the_window() {
        let mut extreme = Smallest::default();
        for ms in [0, 10, 20] {
            extreme.insert(at(ms), 100 + ms, 50_000_000);
        }
        extreme.insert(at(1_000), 300, 50_000_000);
        assert_eq!(extreme.get(), Some(300));
    }
}
