//! [`Probability`]: a probability in parts per billion.

use core::fmt;
use core::str::FromStr;

use crate::decimal::{Family, ParseUnitError, decimal};

/// A probability or share between 0 and 1, kept in parts per billion.
///
/// Text form: `0.01%`, or a bare share such as `0.0001` or `0`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct Probability(u32);

const ONE: u32 = 1_000_000_000;

const FAMILY: Family = Family {
    quantity: "probability",
    example: "0.01%, 2% or 0.0001",
    suffixes: &[("%", 10_000_000), ("", ONE as u64)],
};

impl Probability {
    /// Probability of zero: never.
    pub const ZERO: Self = Self(0);
    /// Probability of one: always.
    pub const ONE: Self = Self(ONE);

    /// `parts` in a billion, capped at one.
    pub const fn from_parts_per_billion(parts: u32) -> Self {
        Self(if parts > ONE { ONE } else { parts })
    }

    /// Parts in a billion.
    pub const fn as_parts_per_billion(self) -> u32 {
        self.0
    }

    /// The share as a float between 0 and 1, for reports and figures.
    pub const fn as_f64(self) -> f64 {
        self.0 as f64 / ONE as f64
    }

    /// Returns true if a draw from a uniform 32-bit generator falls within this probability.
    pub const fn accepts(self, draw: u32) -> bool {
        ((draw as u64 * ONE as u64) >> 32) < self.0 as u64
    }
}

impl FromStr for Probability {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let parts = FAMILY.parse(text)?;
        u32::try_from(parts)
            .ok()
            .filter(|&parts| parts <= ONE)
            .map(Self)
            .ok_or_else(|| FAMILY.error(text))
    }
}

impl fmt::Display for Probability {
    /// Percent, exactly; [`FromStr`] parses it to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = decimal((self.0 / 10_000_000).into(), (self.0 % 10_000_000).into(), 7);
        f.pad(&format!("{percent}%"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("0", 0, "0%")]
    #[case("0.01%", 100_000, "0.01%")]
    #[case("0.0001", 100_000, "0.01%")]
    #[case("2%", 20_000_000, "2%")]
    #[case("100%", 1_000_000_000, "100%")]
    fn reads_percent_and_shares(#[case] text: &str, #[case] parts: u32, #[case] shown: &str) {
        let read: Probability = text.parse().expect("parses");
        assert_eq!(read.as_parts_per_billion(), parts);
        assert_eq!(read.to_string(), shown);
    }

    #[rstest]
    #[case("101%")]
    #[case("1.5")]
    #[case("-1%")]
    #[case("often")]
    fn refuses_what_is_no_probability(#[case] text: &str) {
        assert!(text.parse::<Probability>().is_err());
    }

    #[test]
    fn zero_never_accepts_and_one_always_does() {
        for draw in [0, 1, u32::MAX / 2, u32::MAX] {
            assert!(!Probability::ZERO.accepts(draw));
            assert!(Probability::ONE.accepts(draw));
        }
    }

    proptest::proptest! {
        #[test]
        fn text_round_trips(parts in 0..=ONE) {
            let share = Probability::from_parts_per_billion(parts);
            proptest::prop_assert_eq!(share.to_string().parse(), Ok(share));
        }
    }
}
