//! [`Parameter`]: what may stand in the parentheses behind a name, [`Value`]: what stands there, and [`Arguments`]: a
//! value for each parameter of one entry.

use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use playrate_units::{Bytes, duration};

/// Form of a parameter's values, and their range, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ParameterKind {
    /// A number without a unit.
    Number {
        /// Lower bound of its values, inclusive.
        min: f64,
        /// Upper bound of its values, inclusive.
        max: f64,
    },
    /// A time with its unit, such as `2ms`; a bare number is microseconds.
    Time {
        /// Lower bound of its values, inclusive.
        min: Duration,
        /// Upper bound of its values, inclusive.
        max: Duration,
    },
    /// A size with its unit, such as `656kB`; a bare number is bytes.
    Size {
        /// Lower bound of its values, inclusive.
        min: Bytes,
        /// Upper bound of its values, inclusive.
        max: Bytes,
    },
    /// One of these words.
    Word(&'static [&'static str]),
}

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A number without a unit.
    Number(f64),
    /// A length of time.
    Time(Duration),
    /// A number of bytes.
    Size(Bytes),
    /// One of a list of words.
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

/// A parameter of a controller or component.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parameter {
    /// Its name in specs.
    pub name: &'static str,
    /// Form and range of its values.
    pub kind: ParameterKind,
    /// The value that it has when a spec gives none.
    pub default: Value,
    /// Its effect, in one line.
    pub summary: &'static str,
}

impl Parameter {
    /// A number without unit within `range`.
    pub const fn number(
        name: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
        summary: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self::new(
            name,
            ParameterKind::Number { min, max },
            Value::Number(default),
            summary,
        )
    }

    /// A time within `range`.
    pub const fn time(
        name: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
        summary: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self::new(
            name,
            ParameterKind::Time { min, max },
            Value::Time(default),
            summary,
        )
    }

    /// A size within `range`.
    pub const fn size(
        name: &'static str,
        default: Bytes,
        range: RangeInclusive<Bytes>,
        summary: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        Self::new(
            name,
            ParameterKind::Size { min, max },
            Value::Size(default),
            summary,
        )
    }

    /// One word out of `words`.
    pub const fn word(
        name: &'static str,
        default: &'static str,
        words: &'static [&'static str],
        summary: &'static str,
    ) -> Self {
        Self::new(name, ParameterKind::Word(words), Value::Word(default), summary)
    }

    /// A switch, written `on` or `off`.
    pub const fn switch(name: &'static str, default: bool, summary: &'static str) -> Self {
        let default = if default { "on" } else { "off" };
        Self::word(name, default, &["on", "off"], summary)
    }

    const fn new(name: &'static str, kind: ParameterKind, default: Value, summary: &'static str) -> Self {
        Self {
            name,
            kind,
            default,
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

    /// Form and range of its values, in words.
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

    /// Returns true if the value has its form and lies within its range.
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

/// The values of an entry's parameters, those that a spec does not give being the defaults.
///
/// Asking for a parameter that the entry does not declare with that kind is a mistake of the entry's author:
/// debug builds stop at it, others get zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arguments(Vec<(&'static str, Value)>);

impl Arguments {
    pub(crate) fn defaults(parameters: &[Parameter]) -> Self {
        Self(
            parameters
                .iter()
                .map(|parameter| (parameter.name, parameter.default))
                .collect(),
        )
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.0.iter_mut().find(|slot| slot.0 == name) {
            slot.1 = value;
        }
    }

    /// The value of the parameter `name`; `None` if the entry does not declare it.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|slot| slot.0 == name).map(|slot| slot.1)
    }

    /// All values, in the documented order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().copied()
    }

    /// The value of the number `name`.
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Some(Value::Number(number)) => number,
            _ => undeclared(name, "number"),
        }
    }

    /// The value of the time `name`.
    pub fn time(&self, name: &str) -> Duration {
        match self.value(name) {
            Some(Value::Time(time)) => time,
            _ => undeclared(name, "time"),
        }
    }

    /// The value of the size `name`.
    pub fn size(&self, name: &str) -> Bytes {
        match self.value(name) {
            Some(Value::Size(size)) => size,
            _ => undeclared(name, "size"),
        }
    }

    /// The value of the word `name`.
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Some(Value::Word(word)) => word,
            _ => undeclared(name, "word"),
        }
    }

    /// Returns true if the switch `name` is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.word(name) == "on"
    }
}

fn undeclared<T: Default>(name: &str, kind: &str) -> T {
    debug_assert!(false, "`{name}` is not a declared {kind}");
    T::default()
}
