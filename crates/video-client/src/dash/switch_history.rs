//! [`SwitchHistory`]: dash.js's rule against returning to a representation that the player keeps leaving for a lower
//! one.

use std::collections::VecDeque;

// dash.js 4.0.0, `SwitchHistoryRule.js` and `SwitchRequestHistory.js`.

/// Number of decisions kept.
const DEPTH: usize = 8;
/// Minimum number of decisions for the rule to apply.
const SAMPLES: usize = 6;
/// A representation is avoided if the ratio of decisions for a lower one to all others exceeds this.
const MOST_DROPS: f64 = 0.075;

/// The last eight decisions.
#[derive(Clone, Debug, Default)]
pub(super) struct SwitchHistory {
    /// Representation at the decision, and true if the decision was for a lower one.
    decisions: VecDeque<(usize, bool)>,
}

impl SwitchHistory {
    /// Adds the decision for `to` at representation `from`.
    pub(super) fn push(&mut self, from: usize, to: usize) {
        self.decisions.push_back((from, to < from));
        if self.decisions.len() > DEPTH {
            self.decisions.pop_front();
        }
    }

    /// The highest of `count` representations that is not avoided; `None` if none is.
    pub(super) fn limit(&self, count: usize) -> Option<usize> {
        let (mut drops, mut others) = (0, 0);
        for index in 0..count {
            let here = self.decisions.iter().filter(|(from, _)| *from == index);
            let dropped_here = here.clone().filter(|(_, down)| *down).count();
            drops += dropped_here;
            others += here.count() - dropped_here;
            if drops + others >= SAMPLES && drops as f64 > MOST_DROPS * others as f64 {
                let below = index.saturating_sub(1);
                return Some(if dropped_here > 0 { below } else { index });
            }
        }
        None
    }
}
