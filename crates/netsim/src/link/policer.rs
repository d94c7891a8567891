//! [`Policer`]: a token bucket that drops packets above a rate.

use core::fmt;
use core::str::FromStr;

use playrate_units::{Bitrate, Bytes};

use crate::{ConfigError, Time};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A token bucket in front of the queue, including cross traffic: a packet passes if the bucket holds as many bytes as
/// the packet has, and is dropped immediately otherwise. Providers enforce rates this way (Flach et al., SIGCOMM 2016):
/// a sender sees no queue build up before it loses packets.
///
/// Text form: `5Mbit/s,100kB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Policer {
    /// Rate at which the bucket fills, headers included.
    pub rate: Bitrate,
    /// Size of the bucket; it is full at first.
    pub burst: Bytes,
}

impl FromStr for Policer {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::Policer(text.to_owned());
        let (rate, burst) = text.split_once(',').ok_or_else(error)?;
        Ok(Self {
            rate: rate.trim().parse().map_err(|_| error())?,
            burst: burst.trim().parse().map_err(|_| error())?,
        })
    }
}

impl fmt::Display for Policer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{}", self.rate, self.burst)
    }
}

/// State of a running policer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PolicerState {
    policer: Policer,
    /// Content of the bucket in bits times nanoseconds per second; in this unit a refill is exact.
    tokens: u128,
    filled_at: Time,
}

impl PolicerState {
    /// A policer with a full bucket, for packets of up to `mtu`.
    pub(super) fn new(policer: Policer, mtu: Bytes) -> Result<Self, ConfigError> {
        if policer.rate == Bitrate::ZERO || policer.burst < mtu {
            return Err(ConfigError::Policer(policer.to_string()));
        }
        Ok(Self {
            policer,
            tokens: tokens(policer.burst.as_u64()),
            filled_at: Time::ZERO,
        })
    }

    /// Returns true if a packet of `bytes` that arrives at `now` passes, and takes its tokens.
    pub(super) fn passes(&mut self, now: Time, bytes: u64) -> bool {
        let passed = now.since(self.filled_at).as_nanos();
        self.filled_at = self.filled_at.max(now);
        let filled = u128::from(self.policer.rate.as_bits_per_second()).saturating_mul(passed);
        let full = tokens(self.policer.burst.as_u64());
        self.tokens = self.tokens.saturating_add(filled).min(full);
        match self.tokens.checked_sub(tokens(bytes)) {
            Some(left) => {
                self.tokens = left;
                true
            }
            None => false,
        }
    }
}

/// The tokens that `bytes` cost.
fn tokens(bytes: u64) -> u128 {
    u128::from(bytes) * 8 * NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_passes_its_burst_at_once_and_then_its_rate() {
        let mut state = PolicerState::new("12Mbit/s,15kB".parse().unwrap(), Bytes::new(1_500)).unwrap();
        let burst = (0..20)
            .filter(|_| state.passes(Time::from_millis(1), 1_500))
            .count();
        assert_eq!(burst, 10);
        // The rate is a packet per millisecond; four times as many are offered.
        let offers = (0..4_000).map(|n| Time::from_micros(1_000 + 250 * (n + 1)));
        let passed = offers.filter(|&at| state.passes(at, 1_500)).count();
        assert_eq!(passed, 1_000);
        // An idle second fills the bucket, but not beyond its size.
        let later = (0..20)
            .filter(|_| state.passes(Time::from_secs(9), 1_500))
            .count();
        assert_eq!(later, 10);
    }

    #[test]
    fn text_round_trips_and_a_bucket_below_a_packet_is_refused() {
        let policer: Policer = "5Mbit/s,100kB".parse().unwrap();
        assert_eq!(policer.to_string(), "5Mbit/s,100kB");
        assert!("5Mbit/s".parse::<Policer>().is_err());
        let small = "1Mbit/s,1kB".parse().unwrap();
        let error = PolicerState::new(small, Bytes::new(1_500))
            .unwrap_err()
            .to_string();
        assert!(error.contains("`1Mbit/s,1kB`"), "{error}");
    }
}
