//! [`Velocity`]: the speed of Copa's window towards the target.

/// Consecutive round trips in the same direction after which the velocity doubles.
///
/// The paper says "only after the direction has remained the same for three RTTs" (§2.1, step 4), since it remains the
/// same for 2.5 in equilibrium. mvfst requires three repeats, and four (`useRttStanding_`) if dq comes from
/// `RTTstanding`, which shows a queue up to half a round trip later. Four apply here, too: with three, on paths of 200
/// packets, the velocity's overshoot outlasts the patience of mode switching, and the window never settles.
const SAME_BEFORE_DOUBLING: u32 = 4;

/// Direction of the window's movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// The velocity parameter `v`: one in equilibrium, doubled once per round trip while the window keeps its
/// direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Velocity {
    factor: u32,
    direction: Option<Direction>,
    /// Consecutive round trips in the same direction as the previous one.
    same: u32,
    /// Window at the beginning of the round trip, bytes.
    window_before: u64,
}

impl Velocity {
    /// Initial velocity of a window, without direction.
    pub(super) const fn at(window: u64) -> Self {
        Self {
            factor: 1,
            direction: None,
            same: 0,
            window_before: window,
        }
    }

    /// The factor `v` of the window's change, at least 1.
    pub(super) const fn factor(&self) -> u32 {
        self.factor
    }

    /// Ends a round trip, after which the window is `window` bytes. The factor may double up to `most`.
    pub(super) fn end_round(&mut self, window: u64, most: u32) {
        let direction = if window > self.window_before {
            Direction::Up
        } else {
            Direction::Down
        };
        if self.direction == Some(direction) {
            self.same = self.same.saturating_add(1);
            if self.same >= SAME_BEFORE_DOUBLING && self.factor <= most / 2 {
                self.factor = self.factor.saturating_mul(2);
            }
        } else {
            self.factor = 1;
            self.same = 0;
        }
        self.direction = Some(direction);
        self.window_before = window;
    }

    /// Drops a velocity above one that was not gained in `direction`, where the target now lies: immediately, not at
    /// the end of the round trip.
    pub(super) fn head_for(&mut self, direction: Direction, window: u64) {
        if self.factor > 1 && self.direction != Some(direction) {
            *self = Self {
                direction: Some(direction),
                ..Self::at(window)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(windows: impl IntoIterator<Item = u64>) -> Vec<u32> {
        let mut velocity = Velocity::at(100);
        let factor = |window| {
            velocity.end_round(window, u32::MAX);
            velocity.factor()
        };
        windows.into_iter().map(factor).collect()
    }

    #[test]
    fn doubles_once_per_round_trip_after_four_that_went_the_same_way_as_the_one_before() {
        assert_eq!(rounds([110, 120, 130, 140, 150, 160, 170]), [1, 1, 1, 1, 2, 4, 8]);
        assert_eq!(rounds([90, 80, 70, 60, 50, 40]), [1, 1, 1, 1, 2, 4]);
    }

    #[test]
    fn a_turn_resets_it_and_it_has_to_be_gained_anew() {
        assert_eq!(rounds([110, 120, 130, 140, 150]), [1, 1, 1, 1, 2]);
        let there_and_back = [110, 120, 130, 140, 150, 140, 130, 120, 110, 100];
        assert_eq!(rounds(there_and_back), [1, 1, 1, 1, 2, 1, 1, 1, 1, 2]);
    }

    #[test]
    fn a_target_on_the_other_side_resets_it_within_the_round_trip() {
        let mut velocity = Velocity::at(100);
        for window in [110, 120, 130, 140, 150, 160] {
            velocity.end_round(window, u32::MAX);
        }
        velocity.head_for(Direction::Up, 165);
        assert_eq!(velocity.factor(), 4);
        velocity.head_for(Direction::Down, 165);
        assert_eq!(velocity.factor(), 1);
        velocity.end_round(155, u32::MAX);
        assert_eq!(velocity.same, 1, "the turn began the new direction");
    }

    #[test]
    fn it_does_not_double_beyond_its_bound() {
        let mut velocity = Velocity::at(100);
        for window in 101..130 {
            velocity.end_round(window, 5);
        }
        assert_eq!(velocity.factor(), 4);
    }
}
