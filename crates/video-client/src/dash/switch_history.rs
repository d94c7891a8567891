//! [`SwitchHistory`]: dash.js's rule against going up to where the player came down from.

use std::collections::VecDeque;

// dash.js 4.0.0, `SwitchHistoryRule.js` and `SwitchRequestHistory.js`.

/// Decisions remembered.
const DEPTH: usize = 8;
/// Decisions without which the rule says nothing.
const SAMPLES: u32 = 6;
/// Ways down for each decision that was none, above which a representation is avoided.
const MOST_DROPS: f64 = 0.075;

/// How often the player went down from each representation, of its last eight decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchHistory {
    /// Where a decision was made, and whether it was to go down.
    decisions: VecDeque<(usize, bool)>,
}

impl SwitchHistory {
    /// The player was at `from` and chose `to`.
    pub(super) fn push(&mut self, from: usize, to: usize) {
        self.decisions.push_back((from, to < from));
        if self.decisions.len() > DEPTH {
            self.decisions.pop_front();
        }
    }

    /// The highest representation that can be gone to, of `count`; `None` if all can.
    pub(super) fn limit(&self, count: usize) -> Option<usize> {
        let (mut drops, mut others) = (0_u32, 0_u32);
        for index in 0..count {
            let here = self.decisions.iter().filter(|(from, _)| *from == index);
            let dropped_here = here.clone().filter(|(_, down)| *down).count();
            let dropped_here = u32::try_from(dropped_here).unwrap_or(u32::MAX);
            drops += dropped_here;
            others += u32::try_from(here.count()).unwrap_or(u32::MAX) - dropped_here;
            if drops + others >= SAMPLES && f64::from(drops) > MOST_DROPS * f64::from(others) {
                let below = index.saturating_sub(1);
                return Some(if dropped_here > 0 { below } else { index });
            }
        }
        None
    }
}
