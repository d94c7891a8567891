//! [`Start`]: when slow start has found what the path carries.

use crate::standalone::video::model::Round;

/// RTT samples in a row that have risen. HyStart++ looks at the first eight of a round, and so sees a queue that grows
/// within one only in the next, when twice as much is in flight.
const SAMPLES: u32 = 16;
/// A round that brings less than this times more brings no more, and so many of them (draft-ietf-ccwg-bbr §5.3.1.2).
const MORE: f64 = 1.25;
const ROUNDS: u8 = 3;

/// State of slow start.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::standalone::video) struct Start {
    /// Largest delivery rate of a round, bytes per second, and rounds since without more.
    rate: f64,
    rounds: u8,
    /// RTT samples in a row that have risen.
    risen: u32,
}

impl Start {
    /// Takes an RTT sample that `has_risen` or not; returns true if enough in a row have.
    pub(in crate::standalone::video) const fn has_stayed_risen(&mut self, has_risen: bool) -> bool {
        self.risen = if has_risen {
            self.risen.saturating_add(1)
        } else {
            0
        };
        self.risen >= SAMPLES
    }

    /// Takes a round in which the window was the limit; returns true if a larger one has brought no more for three.
    pub(in crate::standalone::video) fn brings_no_more(&mut self, round: &Round) -> bool {
        if round.rate > MORE * self.rate {
            self.rate = round.rate;
            self.rounds = 0;
        } else {
            self.rounds = self.rounds.saturating_add(1);
        }
        self.rounds >= ROUNDS
    }

    /// Returns true if the last round brought more than the ones before.
    pub(in crate::standalone::video) const fn brought_more(self) -> bool {
        self.rounds == 0
    }

    /// Slow start goes on: what ended it was no queue.
    pub(in crate::standalone::video) const fn resume(&mut self) {
        self.rounds = 0;
        self.risen = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_rtt_begins_the_count_anew() {
        let mut start = Start::default();
        for _ in 0..15 {
            assert!(!start.has_stayed_risen(true));
        }
        assert!(!start.has_stayed_risen(false));
        for _ in 0..15 {
            assert!(!start.has_stayed_risen(true));
        }
        assert!(start.has_stayed_risen(true));
    }

    #[test]
    fn three_rounds_with_less_than_a_quarter_more_bring_no_more() {
        let mut start = Start::default();
        let mut brings_no_more = |rate| {
            start.brings_no_more(&Round {
                acked: 0,
                lost: 0,
                window_limited: true,
                rtt_min: 0,
                rtt_mean: 0,
                rate,
            })
        };
        for rate in [100.0, 120.0, 124.0, 126.0, 150.0, 157.0] {
            assert!(!brings_no_more(rate), "{rate}");
        }
        assert!(brings_no_more(157.4));
    }
}
