//! [`CrossTraffic`]: others on the same link.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::{Bitrate, Bytes, duration};
use rand_pcg::Pcg32;

use super::draw::exponential;
use crate::{ConfigError, Seed, Time};

/// Packets that come to a link from elsewhere and leave it elsewhere. They take room in its queue and time on it, and
/// heed nobody's congestion. Rates and sizes count headers.
///
/// Text form: `poisson(5Mbit/s)`, `onoff(5Mbit/s,500ms,1s)`, and a packet size such as `,300B` appended if it is not
/// 1500 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossTraffic {
    /// Its rate: the mean, or while it is on.
    pub rate: Bitrate,
    /// The size of each packet.
    pub packet: Bytes,
    /// When they come.
    pub pattern: CrossPattern,
}

/// When packets of cross traffic come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrossPattern {
    /// At random: exponential gaps.
    Poisson,
    /// Evenly while it is on, not at all while it is off; both for exponential times.
    OnOff {
        /// How long it is on, on average.
        on: Duration,
        /// How long it is off, on average.
        off: Duration,
    },
}

const FULL_PACKET: Bytes = Bytes::new(1_500);

impl CrossTraffic {
    /// Full packets at random with this mean rate.
    pub const fn poisson(rate: Bitrate) -> Self {
        Self {
            rate,
            packet: FULL_PACKET,
            pattern: CrossPattern::Poisson,
        }
    }

    /// Full packets at this rate while it is on.
    pub const fn on_off(rate: Bitrate, on: Duration, off: Duration) -> Self {
        Self {
            rate,
            packet: FULL_PACKET,
            pattern: CrossPattern::OnOff { on, off },
        }
    }

    /// The same traffic in packets of this size.
    #[must_use]
    pub const fn with_packet(self, packet: Bytes) -> Self {
        Self { packet, ..self }
    }

    pub(super) fn source(self, mtu: Bytes, seed: Seed) -> Result<Source, ConfigError> {
        let gap = self.rate.time_for(self.packet).filter(|gap| !gap.is_zero());
        let stuck = matches!(self.pattern, CrossPattern::OnOff { on, .. } if on.is_zero());
        match gap {
            Some(gap) if self.packet <= mtu && self.packet > Bytes::ZERO && !stuck => {
                Ok(Source::new(self, gap, seed.generator()))
            }
            _ => Err(ConfigError::CrossTraffic(self.to_string())),
        }
    }
}

impl FromStr for CrossTraffic {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::CrossText(text.to_owned());
        let (kind, inner) = text
            .trim()
            .strip_suffix(')')
            .and_then(|rest| rest.split_once('('))
            .ok_or_else(error)?;
        let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
        let (rate, rest) = parts.split_first().ok_or_else(error)?;
        let rate = rate.parse().map_err(|_| error())?;
        let time = |text: &str| duration::parse(text).map_err(|_| error());
        let (traffic, rest) = match (kind, rest) {
            ("poisson", rest) => (Self::poisson(rate), rest),
            ("onoff", [on, off, rest @ ..]) => (Self::on_off(rate, time(on)?, time(off)?), rest),
            _ => return Err(error()),
        };
        match rest {
            [] => Ok(traffic),
            [packet] => Ok(traffic.with_packet(packet.parse().map_err(|_| error())?)),
            _ => Err(error()),
        }
    }
}

impl fmt::Display for CrossTraffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.packet == FULL_PACKET {
            String::new()
        } else {
            format!(",{}", self.packet)
        };
        match self.pattern {
            CrossPattern::Poisson => write!(f, "poisson({}{size})", self.rate),
            CrossPattern::OnOff { on, off } => {
                let (on, off) = (duration::display(on), duration::display(off));
                write!(f, "onoff({},{on},{off}{size})", self.rate)
            }
        }
    }
}

/// Cross traffic that runs.
#[derive(Clone, Debug)]
pub(super) struct Source {
    traffic: CrossTraffic,
    gap: Duration,
    next: Time,
    /// Until when an on-off source is on.
    on_until: Time,
    generator: Pcg32,
}

impl Source {
    fn new(traffic: CrossTraffic, gap: Duration, generator: Pcg32) -> Self {
        let mut source = Self {
            traffic,
            gap,
            next: Time::ZERO,
            on_until: Time::ZERO,
            generator,
        };
        source.advance();
        source
    }

    /// When its next packet comes.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Takes the next packet; returns its size.
    pub(super) fn take(&mut self) -> u64 {
        self.advance();
        self.traffic.packet.as_u64()
    }

    fn advance(&mut self) {
        match self.traffic.pattern {
            CrossPattern::Poisson => self.next = self.next + exponential(&mut self.generator, self.gap),
            CrossPattern::OnOff { on, off } => {
                self.next = self.next + self.gap;
                while self.next >= self.on_until {
                    self.next = self.next.max(self.on_until) + exponential(&mut self.generator, off);
                    self.on_until = self.next + exponential(&mut self.generator, on);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("poisson(5Mbit/s)", 5.0)]
    #[case("poisson(5Mbit/s,300B)", 5.0)]
    #[case("onoff(8Mbit/s,500ms,1.5s)", 2.0)]
    fn sources_keep_their_mean_rate(#[case] text: &str, #[case] mbps: f64) {
        let traffic: CrossTraffic = text.parse().unwrap();
        assert_eq!(traffic.to_string(), text);
        let mut source = traffic.source(FULL_PACKET, Seed::new(1)).unwrap();
        let mut bytes = 0;
        while source.next() < Time::from_secs(2_000) {
            bytes += source.take();
        }
        let rate = bytes as f64 * 8.0 / 2_000.0 / 1e6;
        // A thousand on-off periods give their mean to about 5 %.
        assert!((rate / mbps - 1.0).abs() < 0.15, "{rate} Mbit/s");
    }

    #[rstest]
    #[case("poisson(0bit/s)")]
    #[case("poisson(5Mbit/s,9kB)")]
    #[case("onoff(5Mbit/s,0s,1s)")]
    fn impossible_sources_are_refused_with_their_text(#[case] text: &str) {
        let error = text
            .parse::<CrossTraffic>()
            .unwrap()
            .source(FULL_PACKET, Seed::new(1))
            .unwrap_err();
        assert!(error.to_string().contains(&format!("`{text}`")), "{error}");
    }

    #[rstest]
    #[case("poisson")]
    #[case("bulk(5Mbit/s)")]
    #[case("onoff(5Mbit/s,1s)")]
    #[case("poisson(5Mbit/s,300B,4)")]
    fn what_is_no_cross_traffic_is_refused(#[case] text: &str) {
        assert_eq!(
            text.parse::<CrossTraffic>(),
            Err(ConfigError::CrossText(text.into()))
        );
    }
}
