//! Exact decimal numbers with a unit suffix: the parser and the printer of every unit.

use core::fmt;

use thiserror::Error;

/// A text that is not a quantity of the requested unit.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[error("`{value}` is not a {quantity}: write a number and its unit, such as {example}")]
pub struct ParseUnitError {
    /// The text as given.
    pub value: String,
    /// The expected form, in words.
    pub quantity: &'static str,
    /// Texts that would be accepted.
    pub example: &'static str,
}

/// Number of suffixes of a family that are used for printing.
const SHOWN: usize = 4;

/// A family of suffixes: `(suffix, base units in one of it)`.
pub(crate) struct Family {
    pub(crate) quantity: &'static str,
    pub(crate) example: &'static str,
    /// Suffixes for parsing, matched by full text. The first [`SHOWN`] are also for printing, from the base unit up.
    pub(crate) suffixes: &'static [(&'static str, u64)],
}

impl Family {
    pub(crate) fn error(&self, value: &str) -> ParseUnitError {
        ParseUnitError {
            value: value.to_owned(),
            quantity: self.quantity,
            example: self.example,
        }
    }

    /// Parses `12.5kB` to base units. A fraction finer than one base unit is rounded to nearest.
    pub(crate) fn parse(&self, value: &str) -> Result<u64, ParseUnitError> {
        let text = value.trim();
        let split = text
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(text.len());
        let (number, suffix) = text.split_at(split);
        let scale = self
            .suffixes
            .iter()
            .find(|(name, _)| *name == suffix.trim())
            .map(|&(_, scale)| scale)
            .ok_or_else(|| self.error(value))?;
        scaled(number, scale).ok_or_else(|| self.error(value))
    }

    /// Writes the shortest exact text, in the largest of the first [`SHOWN`] units that needs at most three decimals.
    pub(crate) fn show(&self, value: u64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for &(suffix, scale) in self.suffixes.iter().take(SHOWN).rev() {
            let thousandth = (scale / 1000).max(1);
            if value >= scale && value.is_multiple_of(thousandth) {
                let number = decimal(value / scale, (value % scale) / thousandth, 3);
                return f.pad(&format!("{number}{suffix}"));
            }
        }
        let base = self.suffixes.first().map_or("", |unit| unit.0);
        f.pad(&format!("{value}{base}"))
    }
}

/// Formats `whole` units and `parts` of 10^−`digits` of a unit as a decimal number without trailing zeros.
pub(crate) fn decimal(whole: u64, parts: u64, digits: usize) -> String {
    let text = format!("{whole}.{parts:0digits$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Exact product of the decimal text `number` and `scale`, rounded to nearest; `None` if malformed or too large.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    // Underscores alone are not a number.
    let lacks_digits = |text: &str| !text.contains(|c: char| c.is_ascii_digit());
    if lacks_digits(whole) || fraction.len() > 18 || (number.contains('.') && lacks_digits(fraction)) {
        return None;
    }
    let digits = |text: &str| -> Option<u128> {
        text.chars().filter(|&c| c != '_').try_fold(0_u128, |sum, c| {
            sum.checked_mul(10)?.checked_add(u128::from(c.to_digit(10)?))
        })
    };
    let scale = u128::from(scale);
    let whole = digits(whole)?.checked_mul(scale)?;
    let unit = 10_u128.pow(u32::try_from(fraction.chars().filter(|&c| c != '_').count()).ok()?);
    let part = (digits(fraction)?.checked_mul(scale)? + unit / 2) / unit;
    u64::try_from(whole.checked_add(part)?).ok()
}

/// Implements saturating addition, subtraction and sums for a quantity, and its text form, which its module's `FAMILY`
/// defines.
macro_rules! quantity {
    ($name:ident) => {
        impl core::ops::Add for $name {
            type Output = Self;
            fn add(self, other: Self) -> Self {
                Self(self.0.saturating_add(other.0))
            }
        }

        impl core::ops::Sub for $name {
            type Output = Self;
            fn sub(self, other: Self) -> Self {
                Self(self.0.saturating_sub(other.0))
            }
        }

        impl core::iter::Sum for $name {
            fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
                parts.fold(Self::ZERO, core::ops::Add::add)
            }
        }

        impl core::str::FromStr for $name {
            type Err = ParseUnitError;
            fn from_str(text: &str) -> Result<Self, ParseUnitError> {
                FAMILY.parse(text).map(Self)
            }
        }

        impl core::fmt::Display for $name {
            /// The shortest exact form that [`FromStr`](core::str::FromStr) parses to the same value.
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                FAMILY.show(self.0, f)
            }
        }
    };
}
pub(crate) use quantity;
