//! The smallest RTT of each round trip.

use core::time::Duration;

use crate::Timestamp;

/// What a finished round trip measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Smallest RTT sample.
    pub min_rtt: Duration,
    /// How many samples, at least 1. Vegas and Compound TCP do nothing with fewer than 3: the minimum of few may be all
    /// delayed acknowledgements.
    pub samples: u32,
}

/// Collects RTT samples into rounds. A round ends when a packet that left in it is acknowledged. It is told by time, because
/// QUIC's packet numbers restart in every packet number space.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRtt {
    start: Timestamp,
    current: Option<Round>,
    /// The round that is being measured must not be used.
    spoilt: bool,
}

impl RoundRtt {
    /// No round yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An ACK batch whose newest packet left at `newest_sent` arrived and gave the sample `rtt`, or none that is up to date.
    /// Returns the round that it ended; the batch itself belongs to the next.
    pub fn on_ack_batch(
        &mut self,
        now: Timestamp,
        newest_sent: Timestamp,
        rtt: Option<Duration>,
    ) -> Option<Round> {
        let mut finished = None;
        if newest_sent >= self.start {
            self.start = now;
            let round = self.current.take();
            finished = round.filter(|_| !self.spoilt);
            self.spoilt = false;
        }
        if let Some(rtt) = rtt {
            let round = self.current.get_or_insert(Round {
                min_rtt: rtt,
                samples: 0,
            });
            round.min_rtt = round.min_rtt.min(rtt);
            round.samples = round.samples.saturating_add(1);
        }
        finished
    }

    /// After a pause, a recovery or a timeout: what this round measures says nothing. The next one begins with the first
    /// acknowledgement of a packet that leaves from now on.
    pub fn discard(&mut self, now: Timestamp) {
        self.start = now;
        self.current = None;
        self.spoilt = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Acknowledges what left at `sent` after `rtt` ms.
    fn ack(rounds: &mut RoundRtt, sent: u64, rtt: u64) -> Option<(u128, u32)> {
        let round = rounds.on_ack_batch(at(sent + rtt), at(sent), Some(Duration::from_millis(rtt)))?;
        Some((round.min_rtt.as_millis(), round.samples))
    }

    #[test]
    fn a_round_gives_its_smallest_rtt_and_its_samples() {
        let mut rounds = RoundRtt::new();
        assert_eq!(ack(&mut rounds, 0, 100), None);
        assert_eq!(ack(&mut rounds, 10, 96), None);
        assert_eq!(ack(&mut rounds, 20, 125), None);
        assert_eq!(ack(&mut rounds, 100, 110), Some((96, 3)));
        assert_eq!(ack(&mut rounds, 209, 100), None, "left before the round began");
        assert_eq!(ack(&mut rounds, 210, 105), Some((100, 2)));
    }

    #[test]
    fn a_batch_without_a_sample_can_end_a_round_but_is_not_counted() {
        let mut rounds = RoundRtt::new();
        ack(&mut rounds, 0, 100);
        let ended = rounds
            .on_ack_batch(at(210), at(100), None)
            .map(|round| round.samples);
        assert_eq!(ended, Some(1));
        assert_eq!(
            rounds.on_ack_batch(at(320), at(210), None),
            None,
            "a round without samples"
        );
    }

    #[test]
    fn after_a_discard_a_full_fresh_round_is_needed() {
        let mut rounds = RoundRtt::new();
        ack(&mut rounds, 0, 100);
        rounds.discard(at(150));
        assert_eq!(ack(&mut rounds, 120, 300), None, "old packet");
        assert_eq!(ack(&mut rounds, 430, 101), None, "ends the spoilt round");
        assert_eq!(ack(&mut rounds, 450, 104), None);
        assert_eq!(ack(&mut rounds, 540, 102), Some((101, 2)));
    }
}
