//! [`Bytes`]: a number of bytes.

use core::ops::{AddAssign, Div, Mul, SubAssign};
use core::time::Duration;

use crate::Bitrate;
use crate::decimal::{Family, ParseUnitError, quantity};

/// A number of bytes. Addition and subtraction saturate.
///
/// Text form: a number and `B`, `kB`, `MB`, `GB` (powers of 1000) or `KiB`, `MiB`, `GiB` (powers of 1024).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Bytes(u64);

const FAMILY: Family = Family {
    quantity: "size",
    example: "656kB, 4MiB or 1200B",
    suffixes: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
};

impl Bytes {
    /// A size of zero.
    pub const ZERO: Self = Self(0);
    /// The largest representable number of bytes.
    pub const MAX: Self = Self(u64::MAX);

    /// A size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// `kb` thousands of bytes.
    pub const fn from_kb(kb: u64) -> Self {
        Self(kb.saturating_mul(1_000))
    }

    /// `mib` times 2²⁰ bytes.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// The number of bytes as a bare integer, for other libraries.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The number of bytes as a `usize`, saturating on 32-bit machines.
    pub fn as_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }

    /// The number of bytes as a float, for reports and figures.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// The rate for transmitting this many bytes in `time`; `None` if `time` is zero.
    pub fn per(self, time: Duration) -> Option<Bitrate> {
        let bits = u128::from(self.0).saturating_mul(8_000_000_000);
        let rate = bits.checked_div(time.as_nanos())?;
        Some(Bitrate::from_bits_per_second(
            u64::try_from(rate).unwrap_or(u64::MAX),
        ))
    }

    /// Difference; `None` if `other` is larger.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(left) => Some(Self(left)),
            None => None,
        }
    }
}

impl From<usize> for Bytes {
    fn from(bytes: usize) -> Self {
        Self(u64::try_from(bytes).unwrap_or(u64::MAX))
    }
}

quantity!(Bytes);

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

impl Div<u64> for Bytes {
    type Output = Self;
    /// # Panics
    /// If `divisor` is zero, as with integers.
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("1200B", 1_200)]
    #[case("656kB", 656_000)]
    #[case("655.872kB", 655_872)]
    #[case("4MiB", 4_194_304)]
    #[case(" 1.5 MB ", 1_500_000)]
    #[case("1_000B", 1_000)]
    fn reads_sizes_with_their_unit(#[case] text: &str, #[case] bytes: u64) {
        assert_eq!(text.parse(), Ok(Bytes::new(bytes)));
    }

    #[rstest]
    #[case("")]
    #[case("656")]
    #[case("kB")]
    #[case("-1B")]
    #[case("1.B")]
    #[case("1.2.3B")]
    #[case("656kb")]
    #[case("99999999999999999999GB")]
    fn refuses_what_is_not_a_size_and_names_it(#[case] text: &str) {
        let error = text.parse::<Bytes>().expect_err("must not parse");
        assert_eq!(error.value, text);
        assert!(error.to_string().contains("656kB"), "{error}");
    }

    #[rstest]
    #[case(0, "0B")]
    #[case(999, "999B")]
    #[case(656_000, "656kB")]
    #[case(655_872, "655.872kB")]
    #[case(1_313_208, "1313.208kB")]
    #[case(2_500_000, "2.5MB")]
    fn prints_the_shortest_exact_text(#[case] bytes: u64, #[case] text: &str) {
        assert_eq!(Bytes::new(bytes).to_string(), text);
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Bytes::ZERO - Bytes::new(1), Bytes::ZERO);
        assert_eq!(Bytes::MAX + Bytes::new(1), Bytes::MAX);
        assert_eq!(Bytes::MAX * 2, Bytes::MAX);
    }

    #[test]
    fn a_rate_needs_a_time() {
        assert_eq!(Bytes::from_kb(1).per(Duration::ZERO), None);
        assert_eq!(
            Bytes::from_kb(250).per(Duration::from_millis(100)),
            Some(Bitrate::from_mbps(20))
        );
    }

    proptest::proptest! {
        #[test]
        fn text_round_trips(bytes: u64) {
            proptest::prop_assert_eq!(Bytes::new(bytes).to_string().parse(), Ok(Bytes::new(bytes)));
        }
    }
}
