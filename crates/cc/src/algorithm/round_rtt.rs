//! Smallest RTT of each round trip, for algorithms that act once per round trip on delay.

use crate::state::Batch;

/// With fewer samples, a round trip is not judged (Linux `tcp_vegas.c`: "at least three", against delayed ACKs).
const ENOUGH_SAMPLES: u32 = 3;

/// Smallest RTT and number of samples of the current round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoundRtt {
    min_ns: Option<u64>,
    samples: u32,
    /// Ignore the rest of this round: it began before a pause or a recovery.
    skip: bool,
}

/// Result of a completed round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RoundEnd {
    /// Its smallest RTT, ns.
    Measured(u64),
    /// It had too few samples.
    TooFew,
}

impl RoundRtt {
    /// Processes an ACK batch. The first batch of a new round trip ends the old one and counts for the new one.
    pub(crate) fn on_batch(&mut self, batch: &Batch) -> Option<RoundEnd> {
        let ended = batch.new_round.then(|| core::mem::take(self));
        if let Some(rtt) = batch.rtt_ns {
            self.min_ns = Some(self.min_ns.map_or(rtt, |min| min.min(rtt)));
            self.samples = self.samples.saturating_add(1);
        }
        let ended = ended.filter(|round| !round.skip)?;
        Some(match ended.min_ns {
            Some(min) if ended.samples >= ENOUGH_SAMPLES => RoundEnd::Measured(min),
            _ => RoundEnd::TooFew,
        })
    }

    /// Ignores the current round trip, so that the next result comes from a whole new one (after recovery, after a
    /// pause).
    pub(crate) fn restart(&mut self) {
        *self = Self {
            skip: true,
            ..Self::default()
        };
    }
}

/// Segments of `window` (segments) that wait in queues when the path's RTT without queues is `base_ns`:
/// `(w/base − w/rtt)·base = w·(1 − base/rtt)` (Brakmo and Peterson 1995, §III-B).
pub(crate) fn queued_segments(window: f64, base_ns: u64, rtt_ns: u64) -> f64 {
    let rtt = rtt_ns.max(base_ns).max(1);
    window * (1.0 - base_ns as f64 / rtt as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, close};

    /// Processes frames with these times and RTTs in ms. The last one begins a round; returns the result of the round
    /// before.
    fn take(round: &mut RoundRtt, frames: &[(u64, u64)]) -> Option<RoundEnd> {
        let (&(last, rtt), within) = frames.split_last().expect("a frame");
        for &(ms, rtt) in within {
            assert_eq!(round.on_batch(&Batch::sample(ms, rtt, false)), None);
        }
        round.on_batch(&Batch::sample(last, rtt, true))
    }

    #[test]
    fn a_round_gives_its_smallest_rtt() {
        let mut round = RoundRtt::default();
        assert_eq!(take(&mut round, &[(100, 100)]), Some(RoundEnd::TooFew));
        let end = take(&mut round, &[(110, 120), (120, 105), (210, 130)]);
        assert_eq!(end, Some(RoundEnd::Measured(100 * MS)));
    }

    #[test]
    fn two_samples_are_too_few() {
        let mut round = RoundRtt::default();
        take(&mut round, &[(100, 100)]);
        let end = take(&mut round, &[(110, 100), (200, 100)]);
        assert_eq!(end, Some(RoundEnd::TooFew));
    }

    #[test]
    fn a_round_that_began_before_a_restart_is_left_out() {
        let mut round = RoundRtt::default();
        take(&mut round, &[(100, 100)]);
        round.restart();
        let end = take(&mut round, &[(110, 100), (120, 100), (130, 100), (200, 100)]);
        assert_eq!(end, None);
        let end = take(&mut round, &[(210, 100), (220, 100), (300, 100)]);
        assert_eq!(end, Some(RoundEnd::Measured(100 * MS)));
    }

    // cwnd 20, base 100 ms.
    #[test]
    fn queued_segments_as_vegas_counts_them() {
        for (rtt_ms, queued) in [(90, 0.0), (110, 1.818), (125, 4.0), (130, 4.615)] {
            close(queued_segments(20.0, 100 * MS, rtt_ms * MS), queued, 1e-3);
        }
    }
}
