//! [`Bitrate`]: bits per second.

use core::ops::Mul;
use core::time::Duration;

use crate::Bytes;
use crate::decimal::{Family, ParseUnitError, quantity};

/// A rate in bits per second. Addition and subtraction saturate.
///
/// Text form: a number and `bit/s`, `kbit/s`, `Mbit/s` or `Gbit/s` (powers of 1000).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Bitrate(u64);

const FAMILY: Family = Family {
    quantity: "bit rate",
    example: "20Mbit/s, 500kbit/s or 1Gbit/s",
    suffixes: &[
        ("bit/s", 1),
        ("kbit/s", 1_000),
        ("Mbit/s", 1_000_000),
        ("Gbit/s", 1_000_000_000),
    ],
};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

impl Bitrate {
    /// A rate of zero.
    pub const ZERO: Self = Self(0);
    /// The highest representable rate.
    pub const MAX: Self = Self(u64::MAX);

    /// `rate` bits per second.
    pub const fn from_bits_per_second(rate: u64) -> Self {
        Self(rate)
    }

    /// `rate` thousand bits per second.
    pub const fn from_kbps(rate: u64) -> Self {
        Self(rate.saturating_mul(1_000))
    }

    /// `rate` million bits per second.
    pub const fn from_mbps(rate: u64) -> Self {
        Self(rate.saturating_mul(1_000_000))
    }

    /// `rate` bytes per second.
    pub const fn from_bytes_per_second(rate: u64) -> Self {
        Self(rate.saturating_mul(8))
    }

    /// Bits per second as a bare integer.
    pub const fn as_bits_per_second(self) -> u64 {
        self.0
    }

    /// Whole bytes per second, rounded down.
    pub const fn as_bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// Megabits per second as a float, for reports and figures.
    pub const fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The transmission time of `bytes` at this rate, rounded up to a nanosecond; `None` if the rate is zero.
    pub fn time_for(self, bytes: Bytes) -> Option<Duration> {
        let bits = u128::from(bytes.as_u64()).saturating_mul(8 * NANOS_PER_SECOND);
        if self.0 == 0 {
            return None;
        }
        let nanos = bits.div_ceil(u128::from(self.0));
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    }

    /// This rate times `numerator / denominator`, rounded down; the rate itself if `denominator` is zero.
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        let product = u128::from(self.0).saturating_mul(u128::from(numerator));
        product
            .checked_div(u128::from(denominator))
            .map_or(self, |rate| Self(u64::try_from(rate).unwrap_or(u64::MAX)))
    }
}

quantity!(Bitrate);

impl Mul<Duration> for Bitrate {
    type Output = Bytes;
    /// Bytes that pass at this rate in `time`, rounded down.
    fn mul(self, time: Duration) -> Bytes {
        let bits = u128::from(self.0).saturating_mul(time.as_nanos());
        Bytes::new(u64::try_from(bits / (8 * NANOS_PER_SECOND)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("20Mbit/s", 20_000_000)]
    #[case("5.24Mbit/s", 5_240_000)]
    #[case("500kbit/s", 500_000)]
    #[case("9600bit/s", 9_600)]
    fn reads_rates_with_their_unit(#[case] text: &str, #[case] rate: u64) {
        assert_eq!(text.parse(), Ok(Bitrate::from_bits_per_second(rate)));
    }

    #[rstest]
    #[case("20")]
    #[case("20Mbps")]
    #[case("20MB/s")]
    #[case("fast")]
    fn refuses_what_is_not_a_rate_and_shows_one(#[case] text: &str) {
        let error = text.parse::<Bitrate>().expect_err("must not parse");
        assert!(error.to_string().contains("20Mbit/s"), "{error}");
    }

    #[test]
    fn rate_times_time_is_bytes() {
        let bdp = Bitrate::from_mbps(20) * Duration::from_millis(100);
        assert_eq!(bdp, Bytes::from_kb(250));
        assert_eq!(Bitrate::MAX * Duration::MAX, Bytes::MAX);
    }

    #[test]
    fn serialisation_time_rounds_up_and_needs_a_rate() {
        let packet = Bytes::new(1_480);
        assert_eq!(
            Bitrate::from_mbps(20).time_for(packet),
            Some(Duration::from_micros(592))
        );
        assert_eq!(
            Bitrate::from_bits_per_second(3).time_for(Bytes::new(1)),
            Some(Duration::from_nanos(2_666_666_667))
        );
        assert_eq!(Bitrate::ZERO.time_for(packet), None);
    }

    proptest::proptest! {
        #[test]
        fn text_round_trips(rate: u64) {
            let rate = Bitrate::from_bits_per_second(rate);
            proptest::prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }
    }
}
