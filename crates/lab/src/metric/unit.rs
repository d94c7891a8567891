//! [`Unit`]: the unit of a metric, and its values as text.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes, rounded};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "count")]
    Count,
    /// A share of one, shown in per cent.
    #[serde(rename = "share")]
    Share,
    #[serde(rename = "s")]
    Seconds,
    #[serde(rename = "bit/s")]
    BitsPerSecond,
    #[serde(rename = "byte")]
    Bytes,
}

impl Unit {
    /// The unit of an axis, and the factor from a value to it. The unit of counts is empty.
    pub(crate) const fn axis(self) -> (&'static str, f64) {
        match self {
            Self::Count => ("", 1.0),
            Self::Share => ("%", 100.0),
            Self::Seconds => ("s", 1.0),
            Self::BitsPerSecond => ("Mbit/s", 1e-6),
            Self::Bytes => ("kB", 1e-3),
        }
    }

    /// A value with its unit, rounded for people: `1.5 s`, `-3`, `0.40 %`.
    pub(crate) fn text(self, value: f64) -> String {
        if !value.is_finite() {
            return "–".to_owned();
        }
        let size = value.abs();
        let whole = crate::rounding::whole(size);
        let text = match self {
            Self::Count if (size - size.round()).abs() < 0.005 || size >= 100.0 => rounded::grouped(whole),
            Self::Count if size < 10.0 => format!("{size:.2}"),
            Self::Count => format!("{size:.1}"),
            Self::Share => rounded::percent(size),
            Self::Seconds => rounded::time(Duration::try_from_secs_f64(size).unwrap_or(Duration::MAX)),
            Self::BitsPerSecond => rounded::rate(Bitrate::from_bits_per_second(whole)),
            Self::Bytes => rounded::size(Bytes::new(whole)),
        };
        let nothing = text.chars().all(|c| !c.is_ascii_digit() || c == '0');
        if value < 0.0 && !nothing {
            format!("-{text}")
        } else {
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_with_their_unit_and_sign() {
        for (unit, value, text) in [
            (Unit::Count, 1234.4, "1,234"),
            (Unit::Count, 2.5, "2.50"),
            (Unit::Count, -3.0, "-3"),
            (Unit::Count, -0.001, "0"),
            (Unit::Share, 0.004, "0.40 %"),
            (Unit::Seconds, -1.5, "-1.50 s"),
            (Unit::BitsPerSecond, 5_240_000.0, "5.24 Mbit/s"),
            (Unit::Bytes, 655_872.0, "656 kB"),
            (Unit::Seconds, f64::NAN, "–"),
        ] {
            assert_eq!(unit.text(value), text);
        }
    }
}
