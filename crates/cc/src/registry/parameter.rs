//! [`Parameter`]: what may stand in the parentheses behind a name, and [`Value`]: what stands there.

use core::fmt;
use core::time::Duration;

use playrate_units::{Bytes, duration};

/// What a parameter's values look like, and their range (both ends belong to it).
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// A number.
    Number {
        /// Smallest.
        min: f64,
        /// Largest.
        max: f64,
    },
    /// A time with its unit, such as `2ms`; a bare number is microseconds.
    Time {
        /// Shortest.
        min: Duration,
        /// Longest.
        max: Duration,
    },
    /// A size with its unit, such as `656kB`; a bare number is bytes.
    Size {
        /// Smallest.
        min: Bytes,
        /// Largest.
        max: Bytes,
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// A parameter's value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A number.
    Number(f64),
    /// A time.
    Time(Duration),
    /// A size.
    Size(Bytes),
    /// A word.
    Word(&'static str),
}

impl fmt::Display for Value {
    /// The text that is read back to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => duration::display(*time).fmt(f),
            Self::Size(size) => size.fmt(f),
            Self::Word(word) => word.fmt(f),
        }
    }
}

/// A parameter of a controller or part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Which values it takes.
    pub kind: ParameterKind,
    /// The value that it has when a spec gives none.
    pub default: Value,
    /// What it does, in one line.
    pub summary: &'static str,
}

const SWITCH: ParameterKind = ParameterKind::Word(&["on", "off"]);

impl Parameter {
    /// A number without unit between `min` and `max`.
    pub const fn number(name: &'static str, default: f64, min: f64, max: f64, summary: &'static str) -> Self {
        Self {
            name,
            kind: ParameterKind::Number { min, max },
            default: Value::Number(default),
            summary,
        }
    }

    /// A time between `min` and `max`.
    pub const fn time(
        name: &'static str,
        default: Duration,
        min: Duration,
        max: Duration,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            kind: ParameterKind::Time { min, max },
            default: Value::Time(default),
            summary,
        }
    }

    /// A size between `min` and `max`.
    pub const fn size(
        name: &'static str,
        default: Bytes,
        min: Bytes,
        max: Bytes,
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            kind: ParameterKind::Size { min, max },
            default: Value::Size(default),
            summary,
        }
    }

    /// One of `words`.
    pub const fn word(
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
        summary: &'static str,
    ) -> Self {
        Self {
            name,
            kind: ParameterKind::Word(words),
            default: Value::Word(default),
            summary,
        }
    }

    /// `on` or `off`.
    pub const fn switch(name: &'static str, default: bool, summary: &'static str) -> Self {
        Self {
            name,
            kind: SWITCH,
            default: Value::Word(if default { "on" } else { "off" }),
            summary,
        }
    }

    /// The unit of its values, as a word for listings.
    pub const fn unit(&self) -> &'static str {
        match self.kind {
            ParameterKind::Number { .. } => "number",
            ParameterKind::Time { .. } => "time",
            ParameterKind::Size { .. } => "size",
            ParameterKind::Word(_) => "word",
        }
    }

    /// Which values it takes, in words.
    pub fn expected(&self) -> String {
        match self.kind {
            ParameterKind::Number { min, max } => format!("a number from {min} to {max}"),
            ParameterKind::Time { min, max } => format!(
                "a time from {} to {}, such as 2ms (a bare number is microseconds)",
                duration::display(min),
                duration::display(max)
            ),
            ParameterKind::Size { min, max } => {
                format!("a size from {min} to {max}, such as 656kB (a bare number is bytes)")
            }
            ParameterKind::Word(words) => words.join(" or "),
        }
    }

    /// Whether it takes this value.
    pub fn accepts(&self, value: Value) -> bool {
        match (self.kind, value) {
            (ParameterKind::Number { min, max }, Value::Number(number)) => min <= number && number <= max,
            (ParameterKind::Time { min, max }, Value::Time(time)) => min <= time && time <= max,
            (ParameterKind::Size { min, max }, Value::Size(size)) => min <= size && size <= max,
            (ParameterKind::Word(words), Value::Word(word)) => words.contains(&word),
            _ => false,
        }
    }

    /// Reads a value; `None` if it is malformed or out of range.
    pub(crate) fn read(&self, text: &str) -> Option<Value> {
        let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '_');
        let with_unit = |unit: &str| {
            if bare {
                format!("{text}{unit}")
            } else {
                text.to_owned()
            }
        };
        let value = match self.kind {
            // `f64` would also read `inf` and `NaN`; the range refuses the one and comparison the other.
            ParameterKind::Number { .. } => Value::Number(text.parse().ok()?),
            ParameterKind::Time { .. } => Value::Time(duration::parse(&with_unit("us")).ok()?),
            ParameterKind::Size { .. } => Value::Size(with_unit("B").parse().ok()?),
            ParameterKind::Word(words) => Value::Word(words.iter().find(|word| **word == text)?),
        };
        // `-0` and `0` are the same number and must print alike.
        let value = match value {
            Value::Number(number) => Value::Number(number + 0.0),
            other => other,
        };
        Some(value).filter(|&value| self.accepts(value))
    }
}
