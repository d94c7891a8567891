//! The largest value of the last few slots of time.

/// Maximum over the current slot of time and those before it, `SLOTS` in all. Zero stands for no value.
///
/// The owner decides how long a slot lasts: a second, a round trip, a cycle of probing.
#[derive(Clone, Debug)]
pub(crate) struct SlotMax<const SLOTS: usize> {
    slots: [u32; SLOTS],
    /// Index of the current slot.
    head: usize,
    max: u32,
}

impl<const SLOTS: usize> SlotMax<SLOTS> {
    /// Adds a value to the current slot.
    #[inline]
    pub(crate) fn insert(&mut self, value: u32) {
        let slot = &mut self.slots[self.head];
        *slot = value.max(*slot);
        self.max = self.max.max(value);
    }

    /// Begins the next slot, which forgets the oldest.
    pub(crate) fn advance(&mut self) {
        self.head = Self::stepped(self.head, 1);
        self.slots[self.head] = 0;
        self.max = self.slots.iter().copied().max().unwrap_or(0);
    }

    /// The largest value; zero if there is none.
    #[inline]
    pub(crate) const fn max(&self) -> u32 {
        self.max
    }

    /// The largest value of the current slot and the one before it.
    pub(crate) fn recent_max(&self) -> u32 {
        let before = Self::stepped(self.head, SLOTS.saturating_sub(1));
        self.slots[self.head].max(self.slots[before])
    }

    /// The index `steps` slots later, in a ring.
    fn stepped(index: usize, steps: usize) -> usize {
        index.saturating_add(steps).checked_rem(SLOTS).unwrap_or(0)
    }
}

impl<const SLOTS: usize> Default for SlotMax<SLOTS> {
    fn default() -> Self {
        Self {
            slots: [0; SLOTS],
            head: 0,
            max: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lives_as_many_slots_as_there_are() {
        let mut max = SlotMax::<3>::default();
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
}
