//! [`Rate`]: how fast a link takes packets off its queue.

use core::fmt;
use core::str::FromStr;

use playrate_units::Bitrate;

use crate::{ConfigError, Time};

/// The fastest rate that is counted exactly in nanoseconds and 64 bits.
const FASTEST: u64 = 1_000_000_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The rate of a link, headers included.
///
/// Text form: `20Mbit/s` or `unlimited`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rate {
    /// Packets take no time to leave; nothing ever waits.
    #[default]
    Unlimited,
    /// The same rate all the time.
    Constant(Bitrate),
}

impl Rate {
    /// The mean rate; `None` if it is unlimited.
    pub fn mean(&self) -> Option<Bitrate> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
        }
    }

    pub(crate) fn server(&self) -> Result<Server, ConfigError> {
        match self {
            Self::Unlimited => Ok(Server::Unlimited),
            Self::Constant(rate) => match rate.as_bits_per_second() {
                bits @ 1..=FASTEST => Ok(Server::Constant { rate: bits, carry: 0 }),
                _ => Err(ConfigError::Rate(rate.to_string())),
            },
        }
    }
}

impl From<Bitrate> for Rate {
    fn from(rate: Bitrate) -> Self {
        Self::Constant(rate)
    }
}

impl FromStr for Rate {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        if text.trim() == "unlimited" {
            return Ok(Self::Unlimited);
        }
        text.parse()
            .map(Self::Constant)
            .map_err(|_| ConfigError::RateText(text.to_owned()))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.pad("unlimited"),
            Self::Constant(rate) => rate.fmt(f),
        }
    }
}

/// What takes packets off the queue, one at a time.
#[derive(Clone, Debug)]
pub(crate) enum Server {
    Unlimited,
    /// `carry` is the part of a nanosecond (in 1/rate) that the last departure was rounded down by, so that a busy
    /// link keeps its rate exactly.
    Constant {
        rate: u64,
        carry: u64,
    },
}

impl Server {
    /// When a packet of `bytes` has left, if its first bit leaves at `start`. `busy` says that the one before it left
    /// just then.
    pub(crate) fn finish(&mut self, start: Time, busy: bool, bytes: u64) -> Time {
        match self {
            Self::Unlimited => start,
            Self::Constant { rate, carry } => {
                if !busy {
                    *carry = 0;
                }
                // bytes ≤ 65,535 and carry < rate ≤ 10¹², so this stays below 2⁵⁰.
                let work = bytes.saturating_mul(8 * NANOS_PER_SECOND).saturating_add(*carry);
                *carry = work % *rate;
                Time::from_nanos(start.as_nanos().saturating_add(work / *rate))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_keeps_its_rate_to_the_nanosecond() {
        // 3 Mbit/s does not divide the bits of a 1480-byte packet: 3,946,666.67 ns each.
        let mut server = Rate::Constant(Bitrate::from_mbps(3)).server().unwrap();
        let end = (0..3_000).fold(Time::ZERO, |free, n| server.finish(free, n > 0, 1_480));
        assert_eq!(end, Time::from_micros(3_000 * 1_480 * 8 / 3));
    }

    #[test]
    fn a_rate_of_zero_is_refused_with_its_text() {
        let error = Rate::Constant(Bitrate::ZERO).server().unwrap_err();
        assert!(error.to_string().contains("`0bit/s`"), "{error}");
    }

    #[test]
    fn text_round_trips() {
        for text in ["unlimited", "20Mbit/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert!("fast".parse::<Rate>().is_err());
    }
}
