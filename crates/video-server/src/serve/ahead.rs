//! [`DeliveredAhead`]: playing time that a connection has received ahead of playback.

use std::time::{Duration, Instant};

use playrate_units::{Bitrate, Bytes};

/// Buffer level of a modelled player that plays from the first byte on and never pauses: what was delivered,
/// less the time since.
#[derive(Debug)]
pub(super) struct DeliveredAhead {
    level: Duration,
    /// Time of the level.
    at: Instant,
}

impl DeliveredAhead {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            level: Duration::ZERO,
            at: now,
        }
    }

    /// Playing time that such a player has left at `now`.
    pub(super) fn level(&self, now: Instant) -> Duration {
        self.level.saturating_sub(now.saturating_duration_since(self.at))
    }

    /// Adds `bytes` of media of this rate.
    pub(super) fn add(&mut self, bytes: Bytes, rate: Bitrate, now: Instant) {
        let time = rate.time_for(bytes).unwrap_or_default();
        self.level = self.level(now).saturating_add(time);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use quinn::{Runtime, TokioRuntime};

    use super::*;

    #[test]
    fn it_is_what_was_delivered_less_the_time_since_and_never_less_than_nothing() {
        let began = TokioRuntime.now();
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut ahead = DeliveredAhead::new(began);
        let mut add = |megabytes: u64, now| {
            ahead.add(Bytes::new(megabytes * 1_000_000), Bitrate::from_mbps(8), now);
            ahead.level(now).as_secs()
        };
        assert_eq!(add(6, at(0)), 6);
        assert_eq!(add(1, at(2)), 5);
        assert_eq!(add(1, at(60)), 1, "a pause is no debt");
        assert_eq!(add(1, at(60)), 2);
    }
}
