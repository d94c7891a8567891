//! [`CrossTraffic`]: packets of other flows on the same link.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::{Bitrate, Bytes, duration};
use rand_pcg::Pcg32;

use super::draw::exponential;
use super::parts_of;
use crate::{ConfigError, Seed, Time};

/// Packets that enter and leave the path at this link. They use room in its queue and time on it, and do not react to
/// congestion. Rates and sizes include headers.
///
/// Text form: `poisson(5Mbit/s)`, `onoff(5Mbit/s,500ms,1s)`, and a packet size such as `,300B` appended if it
/// is not 1500 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CrossTraffic {
    /// Rate: the mean, or the rate while on.
    pub rate: Bitrate,
    /// Size of each packet.
    pub packet: Bytes,
    /// Arrival times of the packets.
    pub pattern: CrossPattern,
}

/// Arrival pattern of cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrossPattern {
    /// Poisson arrivals: exponential gaps.
    Poisson,
    /// Evenly spaced while on, nothing while off; both periods are exponential.
    OnOff {
        /// Mean length of an on-period.
        on: Duration,
        /// Mean length of an off-period.
        off: Duration,
    },
}

const FULL_PACKET: Bytes = Bytes::new(1_500);

impl CrossTraffic {
    /// Mean rate, headers included.
    pub fn mean(&self) -> Bitrate {
        match self.pattern {
            CrossPattern::Poisson => self.rate,
            CrossPattern::OnOff { on, off } => {
                // Microseconds keep the product of rate and time within 64 bits for hours.
                let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
                let (on, off) = (micros(on), micros(off));
                self.rate.scaled(on, on.saturating_add(off).max(1))
            }
        }
    }

    pub(super) fn source(self, mtu: Bytes, seed: Seed) -> Result<CrossSource, ConfigError> {
        let gap = self.rate.time_for(self.packet).filter(|gap| !gap.is_zero());
        let stuck = matches!(self.pattern, CrossPattern::OnOff { on, .. } if on.is_zero());
        match gap {
            Some(gap) if self.packet <= mtu && self.packet > Bytes::ZERO && !stuck => {
                Ok(CrossSource::new(self, gap, seed.generator()))
            }
            _ => Err(ConfigError::CrossTraffic(self.to_string())),
        }
    }
}

impl FromStr for CrossTraffic {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::CrossText(text.to_owned());
        let time = |text: &str| duration::parse(text).map_err(|_| error());
        let (poisson, on_off) = (parts_of(text, "poisson"), parts_of(text, "onoff"));
        let (rate, pattern, size) = match (poisson.as_deref(), on_off.as_deref()) {
            (Some([rate, size @ ..]), _) => (rate, CrossPattern::Poisson, size),
            (_, Some([rate, on, off, size @ ..])) => {
                let (on, off) = (time(on)?, time(off)?);
                (rate, CrossPattern::OnOff { on, off }, size)
            }
            _ => return Err(error()),
        };
        let packet = match size {
            [] => FULL_PACKET,
            [size] => size.parse().map_err(|_| error())?,
            _ => return Err(error()),
        };
        let rate = rate.parse().map_err(|_| error())?;
        Ok(Self {
            rate,
            packet,
            pattern,
        })
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

/// State of running cross traffic.
#[derive(Clone, Debug)]
pub(super) struct CrossSource {
    traffic: CrossTraffic,
    gap: Duration,
    next: Time,
    /// End of the current on-period of an on-off source.
    on_until: Time,
    generator: Pcg32,
}

impl CrossSource {
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

    /// Arrival time of its next packet.
    pub(super) fn next(&self) -> Time {
        self.next
    }

    /// Takes the next packet; returns its size in bytes.
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
        // A thousand on-off periods estimate their mean within about 5 %.
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
    fn text_that_is_not_cross_traffic_is_refused(#[case] text: &str) {
        assert_eq!(
            text.parse::<CrossTraffic>(),
            Err(ConfigError::CrossText(text.into()))
        );
    }
}
