//! [`Rate`]: rate models of a link.
//!
//! A new model requires two files: its own, and this one ([`Rate`] and `Transmitter`). All other code reads properties
//! of [`Rate`] and never asks for the model.

mod cellular;
mod mahimahi;
mod schedule;
mod wifi;

use core::fmt;
use core::str::FromStr;

use playrate_units::Bitrate;

pub use cellular::CellularConfig;
pub use mahimahi::MahimahiTrace;
pub use schedule::RateSchedule;
pub use wifi::WifiConfig;

use crate::{ConfigError, QueueLimit, Seed, Time};

/// Fastest rate that 64-bit nanosecond arithmetic represents exactly.
const FASTEST: u64 = 1_000_000_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Rate of a link, headers included.
///
/// The text form is one of [`Rate::FORMS`]. Traces come from files, so they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rate {
    /// Packets take no time to leave; nothing ever waits.
    #[default]
    Unlimited,
    /// The same rate at all times.
    Constant(Bitrate),
    /// Steps and outages on a schedule.
    Schedule(RateSchedule),
    /// Delivery opportunities recorded on a real link.
    Trace(MahimahiTrace),
    /// A Wi-Fi hop with contention, retries and rate switching.
    Wifi(WifiConfig),
    /// A synthetic cellular link.
    Cellular(CellularConfig),
}

impl Rate {
    /// Text forms of all models, for help texts and errors.
    pub const FORMS: &str = "`unlimited`, a rate such as 20Mbit/s, `wifi(15Mbit/s)` or \
        `wifi(15Mbit/s,queue=500kB)`, `cellular(20Mbit/s,SEED)`, `lte(20Mbit/s,SEED)`, `umts(2Mbit/s,SEED)`, \
        or steps such as 20Mbit/s,5Mbit/s@30s,20Mbit/s@60s";

    /// Mean rate; `None` if unlimited.
    pub fn mean(&self) -> Option<Bitrate> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(schedule) => Some(schedule.mean()),
            Self::Trace(trace) => Some(trace.mean()),
            Self::Wifi(wifi) => Some(wifi.mean_rate),
            Self::Cellular(cellular) => Some(cellular.mean()),
        }
    }

    /// Returns true if the rate never exceeds its mean for long. A schedule, a trace or a cellular link may.
    pub const fn is_steady(&self) -> bool {
        matches!(self, Self::Constant(_) | Self::Wifi(_))
    }

    /// Name of the medium, if both directions of a path share it; then the return direction is a link of this model,
    /// too.
    pub const fn shared_medium(&self) -> Option<&'static str> {
        match self {
            Self::Wifi(_) => Some("Wi-Fi"),
            _ => None,
        }
    }

    /// Default queue limit of a link of this rate: the model's own, or one bandwidth-delay product.
    pub const fn default_queue(&self) -> QueueLimit {
        match self {
            Self::Wifi(wifi) => wifi.queue,
            _ => QueueLimit::ONE_BDP,
        }
    }

    pub(crate) fn transmitter(&self, seed: Seed) -> Result<Transmitter, ConfigError> {
        Ok(match self {
            Self::Unlimited => Transmitter::Unlimited,
            Self::Constant(rate) => match rate.as_bits_per_second() {
                bits @ 1..=FASTEST => Transmitter::Constant { rate: bits, carry: 0 },
                _ => return Err(ConfigError::Rate(rate.to_string())),
            },
            Self::Schedule(schedule) => Transmitter::Schedule(schedule.clone()),
            Self::Trace(trace) => Transmitter::Trace(mahimahi::TraceCursor::new(trace.clone())),
            Self::Cellular(cellular) => Transmitter::Schedule(cellular.schedule().clone()),
            Self::Wifi(wifi) => Transmitter::Wifi(Box::new(wifi.channel(seed.child("wifi").generator())?)),
        })
    }
}

impl From<Bitrate> for Rate {
    fn from(rate: Bitrate) -> Self {
        Self::Constant(rate)
    }
}

impl From<WifiConfig> for Rate {
    fn from(wifi: WifiConfig) -> Self {
        Self::Wifi(wifi)
    }
}

impl FromStr for Rate {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let trimmed = text.trim();
        let error = || ConfigError::RateText(text.to_owned());
        if trimmed == "unlimited" {
            return Ok(Self::Unlimited);
        }
        if let Some(wifi) = trimmed
            .strip_prefix("wifi(")
            .and_then(|rest| rest.strip_suffix(')'))
        {
            return wifi.parse().map(Self::Wifi);
        }
        if let Some(cellular) = CellularConfig::read(trimmed) {
            return cellular.map(Self::Cellular);
        }
        if trimmed.contains(',') {
            return trimmed.parse().map(Self::Schedule);
        }
        trimmed.parse().map(Self::Constant).map_err(|_| error())
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.pad("unlimited"),
            Self::Constant(rate) => rate.fmt(f),
            Self::Schedule(schedule) => schedule.fmt(f),
            Self::Trace(trace) => f.pad(&format!("trace of {} on average", trace.mean())),
            Self::Wifi(wifi) => f.pad(&format!("wifi({wifi})")),
            Self::Cellular(cellular) => f.pad(&cellular.to_string()),
        }
    }
}

/// Running model that transmits packets from the queue, one at a time.
#[derive(Clone, Debug)]
pub(crate) enum Transmitter {
    Unlimited,
    /// `carry` is the part of a nanosecond (in 1/rate) that the last departure lost by rounding down, so that a busy
    /// link keeps its rate exactly.
    Constant {
        rate: u64,
        carry: u64,
    },
    Schedule(RateSchedule),
    Trace(mahimahi::TraceCursor),
    Wifi(Box<wifi::WifiChannel>),
}

impl Transmitter {
    /// Departure of the first bit of a packet whose turn is at `start`: `start`, or the end of an outage.
    pub(crate) fn begin(&mut self, start: Time) -> Time {
        match self {
            Self::Unlimited | Self::Constant { .. } => start,
            Self::Schedule(schedule) => schedule.begin(start),
            Self::Trace(position) => position.begin(start),
            Self::Wifi(channel) => channel.begin(start),
        }
    }

    /// Departure time of a packet of `bytes` whose first bit leaves at `start`, and true if all attempts to send it
    /// failed. `busy` means that the previous packet left at `start`.
    pub(crate) fn finish(&mut self, start: Time, busy: bool, bytes: u64) -> (Time, bool) {
        match self {
            Self::Unlimited => (start, false),
            Self::Constant { rate, carry } => {
                if !busy {
                    *carry = 0;
                }
                // bytes ≤ 65,535 and carry < rate ≤ 10¹², so this stays below 2⁵⁰.
                let work = bytes.saturating_mul(8 * NANOS_PER_SECOND).saturating_add(*carry);
                *carry = work % *rate;
                (
                    Time::from_nanos(start.as_nanos().saturating_add(work / *rate)),
                    false,
                )
            }
            Self::Schedule(schedule) => (schedule.finish(start, bytes), false),
            Self::Trace(position) => (position.finish(start, bytes), false),
            Self::Wifi(channel) => channel.finish(start, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_keeps_its_rate_to_the_nanosecond() {
        // 3 Mbit/s does not divide the bits of a 1480-byte packet: 3,946,666.67 ns each.
        let mut transmitter = Rate::Constant(Bitrate::from_mbps(3))
            .transmitter(Seed::new(1))
            .unwrap();
        let end = (0..3_000).fold(Time::ZERO, |free, n| transmitter.finish(free, n > 0, 1_480).0);
        assert_eq!(end, Time::from_micros(3_000 * 1_480 * 8 / 3));
    }

    #[test]
    fn a_rate_of_zero_is_refused_with_its_text() {
        let error = Rate::Constant(Bitrate::ZERO)
            .transmitter(Seed::new(1))
            .unwrap_err();
        assert!(error.to_string().contains("`0bit/s`"), "{error}");
    }

    #[test]
    fn text_round_trips() {
        for text in [
            "unlimited",
            "20Mbit/s",
            "wifi(15Mbit/s)",
            "cellular(20Mbit/s,7)",
            "lte(20Mbit/s,7)",
            "umts(2Mbit/s,7)",
            "20Mbit/s,5Mbit/s@30s",
        ] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert!("fast".parse::<Rate>().is_err());
        assert!("wifi(fast)".parse::<Rate>().is_err());
        assert!("cellular(fast)".parse::<Rate>().is_err());
    }
}
