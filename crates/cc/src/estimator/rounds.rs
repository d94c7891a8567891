//! Round trips, counted by time: QUIC's packet numbers restart in every packet number space.

use crate::Timestamp;

/// Counts round trips. A round ends when a packet that left in it is acknowledged; the next one begins then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rounds {
    start: Timestamp,
}

impl Rounds {
    /// An ACK batch whose newest packet left at `newest_sent` arrived. Returns whether it ended a round; the batch
    /// itself then belongs to the new one.
    #[inline]
    pub(crate) fn on_batch(&mut self, now: Timestamp, newest_sent: Timestamp) -> bool {
        let ended = newest_sent >= self.start;
        if ended {
            self.start = now;
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_the_first_packet_sent_in_it() {
        let at = Timestamp::from_millis;
        let mut rounds = Rounds::default();
        assert!(rounds.on_batch(at(100), at(0)));
        assert!(!rounds.on_batch(at(101), at(1)), "sent before the round began");
        assert!(rounds.on_batch(at(200), at(100)));
        assert!(!rounds.on_batch(at(290), at(199)));
    }
}
