//! Quantities in scenario files: texts with their unit.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::Duration;

use playrate_netsim::{Rate, Seed};
use playrate_units::{Bitrate, duration};
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
        duration::parse(text).map(Self)
    }
}

/// A time, or any between two, both included. Text form: `10ms`, `5ms..15ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Times {
    /// The shortest.
    pub from: Duration,
    /// The longest.
    pub to: Duration,
}

impl Times {
    /// No time at all.
    pub const ZERO: Self = Self {
        from: Duration::ZERO,
        to: Duration::ZERO,
    };

    /// One of them, each as likely as any other.
    pub(super) fn draw(self, seed: Seed) -> Duration {
        let span = self.to.saturating_sub(self.from).as_nanos();
        // A child's number is evenly spread over 64 bits.
        let drawn = (span * u128::from(seed.number())) >> 64;
        let drawn = Duration::from_nanos(u64::try_from(drawn).unwrap_or(u64::MAX));
        self.from.saturating_add(drawn)
    }
}

impl FromStr for Times {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let time = |text: &str| {
            duration::parse(text.trim())
                .map_err(|error| format!("{error}; a random time is written such as 5ms..15ms"))
        };
        let (from, to) = match text.split_once("..") {
            Some((from, to)) => (time(from)?, time(to)?),
            None => (time(text)?, time(text)?),
        };
        if to < from {
            return Err(format!(
                "`{text}` ends before it begins: write the shorter time first, such as 5ms..15ms"
            ));
        }
        Ok(Self { from, to })
    }
}

impl fmt::Display for Times {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", duration::display(self.from))?;
        if self.from < self.to {
            write!(f, "..{}", duration::display(self.to))?;
        }
        Ok(())
    }
}

/// A value of its own, or `same` as somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SameOr<T> {
    Same,
    Other(T),
}

impl<T: FromStr> FromStr for SameOr<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text.trim() == "same" {
            return Ok(Self::Same);
        }
        text.parse().map(Self::Other)
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
    fn a_random_time_is_between_its_bounds_and_the_same_for_the_same_seed() {
        let times: Times = "5ms..15ms".parse().unwrap();
        assert_eq!(times.to_string(), "5ms..15ms");
        let drawn: Vec<Duration> = (0..1_000)
            .map(|number| times.draw(Seed::new(7).child(&number.to_string())))
            .collect();
        assert!(drawn.iter().all(|time| (times.from..=times.to).contains(time)));
        let mean = drawn.iter().sum::<Duration>() / 1_000;
        assert!(
            mean.abs_diff(Duration::from_millis(10)) < Duration::from_micros(500),
            "{mean:?}"
        );
        assert_eq!(drawn[3], times.draw(Seed::new(7).child("3")));
        let fixed: Times = "40s".parse().unwrap();
        assert_eq!(fixed.draw(Seed::new(1)), Duration::from_secs(40));
        for wrong in ["15ms..5ms", "5..15", "soon"] {
            assert!(wrong.parse::<Times>().unwrap_err().contains("5ms..15ms"));
        }
    }

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
