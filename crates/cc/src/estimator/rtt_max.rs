//! The largest RTT of a window of time.

use crate::Timestamp;

/// Parts of the window that are over; the part that goes on is one more.
const PARTS: u8 = 7;

/// Maximum over a window of time, to an eighth of it: a value lives seven to eight eighths.
///
/// The part that goes on is the caller's, so that a sample costs no more than without a window.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RttMax {
    part_ns: u64,
    /// Maxima of the parts that are over, ns; `None` for one without samples.
    parts: [Option<u64>; PARTS as usize],
    /// Index of the newest of them.
    head: u8,
    /// Beginning of the part that goes on.
    began: Timestamp,
    max_ns: Option<u64>,
}

impl RttMax {
    /// A window of `window_ns`, at least 8 ns.
    pub(super) fn over(window_ns: u64) -> Self {
        Self {
            part_ns: (window_ns / 8).max(1),
            parts: [None; PARTS as usize],
            head: 0,
            began: Timestamp::ZERO,
            max_ns: None,
        }
    }

    /// Forgets what has become too old. `current_ns` is the maximum of the part that goes on; it is taken if
    /// that part is over.
    pub(super) fn advance(&mut self, now: Timestamp, current_ns: &mut Option<u64>) {
        let ended = now.nanos_since(self.began).checked_div(self.part_ns).unwrap_or(0);
        if ended == 0 {
            return;
        }
        for _ in 0..ended.min(u64::from(PARTS).saturating_add(1)) {
            self.head = self.head.wrapping_add(1) % PARTS;
            self.parts[usize::from(self.head)] = current_ns.take();
        }
        let lasted = ended.saturating_mul(self.part_ns);
        self.began = Timestamp::from_nanos(self.began.as_nanos().saturating_add(lasted));
        self.max_ns = self.parts.into_iter().flatten().max();
    }

    /// Largest value of the parts that are over, ns.
    pub(super) const fn max_ns(&self) -> Option<u64> {
        self.max_ns
    }

    pub(super) const fn forget(&mut self) {
        self.parts = [None; PARTS as usize];
        self.max_ns = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    #[test]
    fn a_maximum_lives_seven_to_eight_eighths_of_the_window() {
        let mut window = RttMax::over(8_000_000_000);
        let mut current = Some(300);
        window.advance(at(500), &mut current);
        assert_eq!((window.max_ns(), current), (None, Some(300)), "its part goes on");
        window.advance(at(1_000), &mut current);
        assert_eq!((window.max_ns(), current), (Some(300), None));
        current = Some(200);
        window.advance(at(7_999), &mut current);
        assert_eq!(window.max_ns(), Some(300));
        window.advance(at(8_000), &mut current);
        assert_eq!(window.max_ns(), Some(200));
    }

    #[test]
    fn nothing_outlives_a_pause_that_is_longer_than_the_window() {
        let mut window = RttMax::over(8);
        let mut current = Some(300);
        window.advance(Timestamp::from_nanos(1), &mut current);
        window.advance(Timestamp::from_nanos(u64::MAX), &mut current);
        assert_eq!((window.max_ns(), current), (None, None));
    }
}
