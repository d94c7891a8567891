//! The largest rate of the last ten seconds.

use crate::Timestamp;

use super::{NANOS_PER_SECOND, SlotMax};

const SECONDS: u8 = 10;

/// Maximum over the last ten seconds, to the second: a value lives nine to ten seconds.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowMax {
    /// Each second's maximum, bytes per second.
    seconds: SlotMax<{ SECONDS as usize }>,
    /// Beginning of the current second.
    head_began: Timestamp,
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
            self.seconds.advance();
        }
        let lasted = ended.saturating_mul(NANOS_PER_SECOND);
        self.head_began = Timestamp::from_nanos(self.head_began.as_nanos().saturating_add(lasted));
    }

    /// Adds a value to the current second.
    pub(super) fn insert(&mut self, rate: u32) {
        self.seconds.insert(rate);
    }

    /// The largest value, bytes per second; `None` if there is none above zero.
    pub(super) fn max(&self) -> Option<u32> {
        let max = self.seconds.max();
        (max > 0).then_some(max)
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
