//! The largest rate of the last ten seconds.

use crate::Timestamp;

use super::NANOS_PER_SECOND;

const SECONDS: u8 = 10;

/// Maximum over the last ten seconds, to the second: a value lives nine to ten seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowMax {
    /// Each second's maximum, bytes per second; zero if there was none.
    seconds: [u32; SECONDS as usize],
    head: u8,
    /// Beginning of the current second.
    head_began: Timestamp,
    max: u32,
}

impl WindowMax {
    /// Forgets what has become too old.
    pub(super) fn advance(&mut self, now: Timestamp) {
        let age = now.nanos_since(self.head_began);
        if age < NANOS_PER_SECOND {
            return;
        }
        let ended = age / NANOS_PER_SECOND;
        for _ in 0..ended.min(u64::from(SECONDS)) {
            self.head = self.head.wrapping_add(1) % SECONDS;
            self.seconds[usize::from(self.head)] = 0;
        }
        let lasted = ended.saturating_mul(NANOS_PER_SECOND);
        self.head_began = Timestamp::from_nanos(self.head_began.as_nanos().saturating_add(lasted));
        self.max = self.seconds.iter().copied().max().unwrap_or(0);
    }

    /// Adds a value to the current second.
    pub(super) fn insert(&mut self, rate: u32) {
        let second = &mut self.seconds[usize::from(self.head)];
        *second = rate.max(*second);
        self.max = self.max.max(rate);
    }

    /// The largest value, bytes per second; `None` if there is none above zero.
    pub(super) fn max(&self) -> Option<u32> {
        (self.max > 0).then_some(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lives_nine_to_ten_seconds_and_then_gives_way_to_the_next() {
        let mut max = WindowMax::default();
        max.insert(100);
        max.advance(Timestamp::from_millis(5_500));
        max.insert(60);
        max.advance(Timestamp::from_millis(9_999));
        assert_eq!(max.max(), Some(100));
        max.advance(Timestamp::from_millis(10_000));
        assert_eq!(max.max(), Some(60));
        max.advance(Timestamp::from_nanos(u64::MAX));
        assert_eq!(max.max(), None);
    }
}
