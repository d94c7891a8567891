//! The largest value of the last few slots of time.

use crate::Timestamp;

/// Maximum over the current slot of time and the previous ones, `SLOTS` in all. Zero means no value.
///
/// The owner decides how long a slot lasts: a round trip, a cycle of probing, or a [time](Self::advance_to).
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SlotMax<T, const SLOTS: usize> {
    slots: [T; SLOTS],
    /// Index of the current slot.
    head: usize,
    max: T,
    /// Beginning of the current slot, if slots last for a time.
    began: Timestamp,
}

impl<T: Copy + Ord + Default, const SLOTS: usize> SlotMax<T, SLOTS> {
    /// Adds a value to the current slot.
    #[inline]
    pub(crate) fn insert(&mut self, value: T) {
        let slot = &mut self.slots[self.head];
        *slot = value.max(*slot);
        self.max = self.max.max(value);
    }

    /// Begins the next slot, which forgets the oldest.
    pub(crate) fn advance(&mut self) {
        self.head = Self::stepped(self.head, 1);
        self.slots[self.head] = T::default();
        self.max = self.slots.iter().copied().max().unwrap_or_default();
    }

    /// Forgets expired values if a slot lasts `slot_ns`: a value lives for `SLOTS` times that, less up to one slot.
    pub(crate) fn advance_to(&mut self, now: Timestamp, slot_ns: u64) {
        let age = now.nanos_since(self.began);
        if age < slot_ns {
            return;
        }
        let ended = age.checked_div(slot_ns).unwrap_or(0);
        for _ in 0..usize::try_from(ended).unwrap_or(SLOTS).min(SLOTS) {
            self.advance();
        }
        self.began = self.began.plus_nanos(ended.saturating_mul(slot_ns));
    }

    /// Forgets the values of all slots.
    pub(crate) fn forget(&mut self) {
        *self = Self {
            began: self.began,
            ..Self::default()
        };
    }

    /// The largest value; zero if there is none.
    #[inline]
    pub(crate) const fn max(&self) -> T {
        self.max
    }

    /// The largest value of the current slot and the previous one.
    pub(crate) fn recent_max(&self) -> T {
        let before = Self::stepped(self.head, SLOTS.saturating_sub(1));
        self.slots[self.head].max(self.slots[before])
    }

    /// The index `steps` slots later, in a ring.
    fn stepped(index: usize, steps: usize) -> usize {
        index.saturating_add(steps).checked_rem(SLOTS).unwrap_or(0)
    }
}

impl<T: Copy + Default, const SLOTS: usize> Default for SlotMax<T, SLOTS> {
    fn default() -> Self {
        Self {
            slots: [T::default(); SLOTS],
            head: 0,
            max: T::default(),
            began: Timestamp::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::at;

    #[test]
    fn a_value_lives_as_many_slots_as_there_are() {
        let mut max = SlotMax::<u32, 3>::default();
        max.insert(100);
        max.advance();
        max.insert(60);
        max.advance();
        assert_eq!((max.max(), max.recent_max()), (100, 60));
        max.advance();
        assert_eq!((max.max(), max.recent_max()), (60, 0));
        max.advance();
        assert_eq!(max.max(), 0);
    }

    #[test]
    fn a_value_lives_nine_to_ten_of_ten_seconds_and_then_gives_way_to_the_next() {
        const SECOND: u64 = 1_000_000_000;
        let mut max = SlotMax::<u32, 10>::default();
        max.insert(100);
        max.advance_to(at(5_500), SECOND);
        max.insert(60);
        max.advance_to(at(9_999), SECOND);
        assert_eq!(max.max(), 100);
        max.advance_to(at(10_000), SECOND);
        assert_eq!(max.max(), 60);
        max.advance_to(Timestamp::from_nanos(u64::MAX), SECOND);
        assert_eq!(
            max.max(),
            0,
            "nothing outlives a pause that is longer than the window"
        );
    }
}
