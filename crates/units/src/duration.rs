//! The text form of a [`Duration`]: a number and `ns`, `us`, `ms`, `s`, `min` or `h`.

use core::fmt;
use core::time::Duration;

use crate::decimal::{Family, ParseUnitError};

const FAMILY: Family = Family {
    quantity: "time",
    example: "100ms, 2000us or 1.5s",
    suffixes: &[
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("µs", 1_000),
        ("min", 60_000_000_000),
        ("h", 3_600_000_000_000),
    ],
};

/// Parses a time such as `100ms`, rounded to a nanosecond.
pub fn parse(text: &str) -> Result<Duration, ParseUnitError> {
    FAMILY.parse(text).map(Duration::from_nanos)
}

/// A [`Duration`] that prints as the shortest exact text that [`parse`] parses to the same value.
///
/// Times longer than 2⁶⁴ − 1 ns (584 years) are shown as this maximum.
pub fn display(time: Duration) -> impl fmt::Display {
    struct Shown(Duration);
    impl fmt::Display for Shown {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            let nanos = u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX);
            if nanos == 0 {
                return f.pad("0s");
            }
            FAMILY.show(nanos, f)
        }
    }
    Shown(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("100ms", 100_000_000)]
    #[case("1.5s", 1_500_000_000)]
    #[case("2000us", 2_000_000)]
    #[case("2000µs", 2_000_000)]
    #[case("5min", 300_000_000_000)]
    fn reads_times_with_their_unit(#[case] text: &str, #[case] nanos: u64) {
        assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)));
    }

    #[rstest]
    #[case("100")]
    #[case("soon")]
    #[case("-1s")]
    #[case("_s")]
    #[case("1._s")]
    fn refuses_what_is_no_time(#[case] text: &str) {
        assert!(parse(text).is_err());
    }

    #[test]
    fn prints_the_shortest_exact_text() {
        assert_eq!(display(Duration::from_millis(100)).to_string(), "100ms");
        assert_eq!(display(Duration::from_millis(2)).to_string(), "2ms");
        assert_eq!(display(Duration::from_millis(1_500)).to_string(), "1.5s");
        assert_eq!(display(Duration::ZERO).to_string(), "0s");
    }

    proptest::proptest! {
        #[test]
        fn text_round_trips(nanos: u64) {
            let time = Duration::from_nanos(nanos);
            proptest::prop_assert_eq!(parse(&display(time).to_string()), Ok(time));
        }
    }
}
