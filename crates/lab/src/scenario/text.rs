//! Quantities in scenario files: texts with their unit.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use playrate_netsim::Rate;
use playrate_units::Bitrate;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// A value that a scenario writes as a text, and that says itself what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text<T>(pub(super) T);

impl<'de, T> Deserialize<'de> for Text<T>
where
    T: FromStr,
    T::Err: fmt::Display,
{
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader<T>(PhantomData<T>);
        impl<T: FromStr> Visitor<'_> for Reader<T>
        where
            T::Err: fmt::Display,
        {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text in quotes, quantities with their unit, such as \"20Mbit/s\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map(Text).map_err(E::custom)
            }
        }
        from.deserialize_str(Reader(PhantomData))
    }
}

/// A time such as `100ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) Duration);

impl FromStr for Time {
    type Err = playrate_units::ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        playrate_units::duration::parse(text).map(Self)
    }
}

/// A link's rate, absolute (`20Mbit/s`) or as a multiple of the title's average rate (`0.95λ`, or `0.95lambda`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkRate {
    Absolute(Rate),
    /// Thousandths of the title's average rate.
    OfTitle(u64),
}

impl FromStr for LinkRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some(factor) = text.strip_suffix('λ').or_else(|| text.strip_suffix("lambda")) else {
            return text.parse().map(Self::Absolute).map_err(|error| {
                format!("{error}, or a multiple of the title's average rate, such as 0.95λ")
            });
        };
        let wrong = || {
            format!(
                "`{text}` is no multiple of the title's average rate from 0.001λ to 1000λ: write it such as 0.95λ"
            )
        };
        let factor: f64 = factor.trim().parse().map_err(|_| wrong())?;
        if !(0.001..=1_000.0).contains(&factor) {
            return Err(wrong());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 1 and 1,000,000 as just checked"
        )]
        let thousandths = (factor * 1e3).round() as u64;
        Ok(Self::OfTitle(thousandths))
    }
}

impl LinkRate {
    /// The rate itself, for a title of this average rate.
    pub(super) fn resolve(&self, title: Bitrate) -> Rate {
        match self {
            Self::Absolute(rate) => rate.clone(),
            Self::OfTitle(thousandths) => Rate::Constant(title.scaled(*thousandths, 1_000)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_absolute_or_a_multiple_of_the_titles() {
        let rate = |text: &str| {
            text.parse::<LinkRate>()
                .map(|rate| rate.resolve(Bitrate::from_mbps(5)))
        };
        assert_eq!(rate("20Mbit/s"), Ok(Rate::Constant(Bitrate::from_mbps(20))));
        assert_eq!(rate("0.95λ"), Ok(Rate::Constant(Bitrate::from_kbps(4_750))));
        assert_eq!(rate("1.1 lambda"), Ok(Rate::Constant(Bitrate::from_kbps(5_500))));
        for wrong in ["fastλ", "0λ", "20", "-1λ", "NaNλ"] {
            let error = rate(wrong).unwrap_err();
            assert!(error.contains("0.95λ") && error.contains(wrong), "{error}");
        }
    }
}
