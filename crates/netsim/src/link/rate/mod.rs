//! [`Rate`]: how fast a link takes packets off its queue.

mod mahimahi;
mod schedule;
mod wifi;

use core::fmt;
use core::str::FromStr;

use playrate_units::Bitrate;

pub use mahimahi::MahimahiTrace;
pub use schedule::RateSchedule;
pub use wifi::WifiConfig;

use crate::{ConfigError, Seed, Time};

/// The fastest rate that is counted exactly in nanoseconds and 64 bits.
const FASTEST: u64 = 1_000_000_000_000;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The rate of a link, headers included.
///
/// Text form: `20Mbit/s`, `unlimited`, `wifi(15Mbit/s)`, or the steps of a [`RateSchedule`]. Traces come from files, so
/// they have none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rate {
    /// Packets take no time to leave; nothing ever waits.
    #[default]
    Unlimited,
    /// The same rate all the time.
    Constant(Bitrate),
    /// Steps and outages on a schedule.
    Schedule(RateSchedule),
    /// Opportunities to deliver, as recorded on a real link.
    Trace(MahimahiTrace),
    /// A Wi-Fi hop.
    Wifi(WifiConfig),
}

impl Rate {
    /// The mean rate; `None` if it is unlimited.
    pub fn mean(&self) -> Option<Bitrate> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Schedule(schedule) => Some(schedule.mean()),
            Self::Trace(trace) => Some(trace.mean()),
            Self::Wifi(wifi) => Some(wifi.mean_rate),
        }
    }

    pub(crate) fn server(&self, seed: Seed) -> Result<Server, ConfigError> {
        Ok(match self {
            Self::Unlimited => Server::Unlimited,
            Self::Constant(rate) => match rate.as_bits_per_second() {
                bits @ 1..=FASTEST => Server::Constant { rate: bits, carry: 0 },
                _ => return Err(ConfigError::Rate(rate.to_string())),
            },
            Self::Schedule(schedule) => Server::Schedule(schedule.clone()),
            Self::Trace(trace) => Server::Trace(mahimahi::Position::new(trace.clone())),
            Self::Wifi(wifi) => Server::Wifi(Box::new(wifi.air(seed.child("wifi").generator())?)),
        })
    }
}

impl From<Bitrate> for Rate {
    fn from(rate: Bitrate) -> Self {
        Self::Constant(rate)
    }
}

impl From<RateSchedule> for Rate {
    fn from(schedule: RateSchedule) -> Self {
        Self::Schedule(schedule)
    }
}

impl From<MahimahiTrace> for Rate {
    fn from(trace: MahimahiTrace) -> Self {
        Self::Trace(trace)
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
    Schedule(RateSchedule),
    Trace(mahimahi::Position),
    Wifi(Box<wifi::Air>),
}

impl Server {
    /// When a packet's first bit leaves if its turn comes at `start`: that time, unless the link is out.
    pub(crate) fn begin(&mut self, start: Time) -> Time {
        match self {
            Self::Unlimited | Self::Constant { .. } => start,
            Self::Schedule(schedule) => schedule.begin(start),
            Self::Trace(position) => position.begin(start),
            Self::Wifi(air) => air.begin(start),
        }
    }

    /// When a packet of `bytes` has left if its first bit leaves at `start`, and whether the link gave up on it. `busy`
    /// says that the packet before it left just then.
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
            Self::Wifi(air) => air.finish(start, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_link_keeps_its_rate_to_the_nanosecond() {
        // 3 Mbit/s does not divide the bits of a 1480-byte packet: 3,946,666.67 ns each.
        let mut server = Rate::Constant(Bitrate::from_mbps(3))
            .server(Seed::new(1))
            .unwrap();
        let end = (0..3_000).fold(Time::ZERO, |free, n| server.finish(free, n > 0, 1_480).0);
        assert_eq!(end, Time::from_micros(3_000 * 1_480 * 8 / 3));
    }

    #[test]
    fn a_rate_of_zero_is_refused_with_its_text() {
        let error = Rate::Constant(Bitrate::ZERO).server(Seed::new(1)).unwrap_err();
        assert!(error.to_string().contains("`0bit/s`"), "{error}");
    }

    #[test]
    fn text_round_trips() {
        for text in ["unlimited", "20Mbit/s", "wifi(15Mbit/s)", "20Mbit/s,5Mbit/s@30s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
        assert!("fast".parse::<Rate>().is_err());
        assert!("wifi(fast)".parse::<Rate>().is_err());
    }
}
