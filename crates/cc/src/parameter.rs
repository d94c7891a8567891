//! [`Parameter`]: a parameter in the parentheses after a name, [`Value`]: its value, and [`Arguments`]: a value for
//! each parameter of one entry.

use core::fmt;
use core::ops::RangeInclusive;
use core::time::Duration;

use playrate_units::{Bytes, duration};

/// Values that a parameter takes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Domain {
    /// All values of a kind from the first to the second, both included.
    Range(Value, Value),
    /// One of these words.
    Words(&'static [&'static str]),
}

/// The value of a parameter. Values of one kind are ordered by size.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Value {
    /// A number without a unit.
    Number(f64),
    /// A length of time; a spec may write it as a bare number of microseconds.
    Time(Duration),
    /// A number of bytes; a spec may write it as a bare number.
    Size(Bytes),
    /// One of a list of words.
    Word(&'static str),
}

impl fmt::Display for Value {
    /// The text that parses to the same value.
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
    /// The value if a spec gives none.
    pub default: Value,
    /// The permitted values, of the default's kind.
    pub domain: Domain,
    /// Its effect, in one line.
    pub summary: &'static str,
}

impl Parameter {
    const fn new(name: &'static str, default: Value, domain: Domain) -> Self {
        Self {
            name,
            default,
            domain,
            summary: "",
        }
    }

    /// A number without unit within `range`.
    pub const fn number(name: &'static str, default: f64, range: RangeInclusive<f64>) -> Self {
        let domain = Domain::Range(Value::Number(*range.start()), Value::Number(*range.end()));
        Self::new(name, Value::Number(default), domain)
    }

    /// A time within `range`.
    pub const fn time(name: &'static str, default: Duration, range: RangeInclusive<Duration>) -> Self {
        let domain = Domain::Range(Value::Time(*range.start()), Value::Time(*range.end()));
        Self::new(name, Value::Time(default), domain)
    }

    /// A [time](Self::time), default and `range` in milliseconds.
    pub(crate) const fn millis(name: &'static str, default: u64, range: RangeInclusive<u64>) -> Self {
        let (min, max) = (*range.start(), *range.end());
        let range = Duration::from_millis(min)..=Duration::from_millis(max);
        Self::time(name, Duration::from_millis(default), range)
    }

    /// A size within `range`.
    pub const fn size(name: &'static str, default: Bytes, range: RangeInclusive<Bytes>) -> Self {
        let domain = Domain::Range(Value::Size(*range.start()), Value::Size(*range.end()));
        Self::new(name, Value::Size(default), domain)
    }

    /// One word out of `words`.
    pub const fn word(name: &'static str, default: &'static str, words: &'static [&'static str]) -> Self {
        Self::new(name, Value::Word(default), Domain::Words(words))
    }

    /// A switch, written `on` or `off`.
    pub const fn switch(name: &'static str, default: bool) -> Self {
        Self::word(name, if default { "on" } else { "off" }, &["on", "off"])
    }

    /// Adds a description of its effect, in one line.
    #[must_use]
    pub const fn about(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    /// The kind of its values, as a word for listings.
    pub const fn unit(&self) -> &'static str {
        match self.default {
            Value::Number(_) => "number",
            Value::Time(_) => "time",
            Value::Size(_) => "size",
            Value::Word(_) => "word",
        }
    }

    /// The permitted words; none if its values are not words.
    pub const fn words(&self) -> &'static [&'static str] {
        match self.domain {
            Domain::Range(..) => &[],
            Domain::Words(words) => words,
        }
    }

    /// Form and range of its values, in words.
    pub fn expected(&self) -> String {
        let Domain::Range(min, max) = self.domain else {
            return self.words().join(" or ");
        };
        let example = match self.default {
            Value::Time(_) => ", such as 2ms (a bare number is microseconds)",
            Value::Size(_) => ", such as 656kB (a bare number is bytes)",
            _ => "",
        };
        format!("a {} from {min} to {max}{example}", self.unit())
    }

    /// Returns true if it takes this value.
    pub(crate) fn accepts(&self, value: Value) -> bool {
        match (self.domain, value) {
            // Values of other kinds compare as outside the range.
            (Domain::Range(min, max), _) => min <= value && value <= max,
            (Domain::Words(words), Value::Word(word)) => words.contains(&word),
            _ => false,
        }
    }

    /// Reads a value; `None` if it is malformed or out of range.
    pub(crate) fn read(&self, text: &str) -> Option<Value> {
        let bare = !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '_');
        let with_unit = |unit| [text, if bare { unit } else { "" }].concat();
        let value = match self.default {
            // `f64` also reads `inf` and `NaN`, which are outside every range, and `-0`, which must print as `0` does.
            Value::Number(_) => Value::Number(text.parse::<f64>().ok()? + 0.0),
            Value::Time(_) => Value::Time(duration::parse(&with_unit("us")).ok()?),
            Value::Size(_) => Value::Size(with_unit("B").parse().ok()?),
            Value::Word(_) => Value::Word(self.words().iter().find(|word| **word == text)?),
        };
        Some(value).filter(|&value| self.accepts(value))
    }
}

/// The values of an entry's parameters, with defaults where a spec gives none.
///
/// # Panics
/// Reading a parameter that the entry does not declare with that kind is a bug of the entry. It panics in every build,
/// when the entry's first controller is built, so that no controller runs with an arbitrary value.
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

    /// Places of the values, in the documented order.
    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.0.iter_mut().map(|(_, value)| value)
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
            _ => self.undeclared(name, "number"),
        }
    }

    /// The value of the time `name`.
    pub fn time(&self, name: &str) -> Duration {
        match self.value(name) {
            Some(Value::Time(time)) => time,
            _ => self.undeclared(name, "time"),
        }
    }

    /// The value of the size `name`.
    pub fn size(&self, name: &str) -> Bytes {
        match self.value(name) {
            Some(Value::Size(size)) => size,
            _ => self.undeclared(name, "size"),
        }
    }

    /// The value of the word `name`.
    pub fn word(&self, name: &str) -> &'static str {
        match self.value(name) {
            Some(Value::Word(word)) => word,
            _ => self.undeclared(name, "word"),
        }
    }

    /// Returns true if the switch `name` is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.word(name) == "on"
    }

    #[cold]
    fn undeclared(&self, name: &str, kind: &str) -> ! {
        let declared: Vec<_> = self.iter().map(|(name, _)| name).collect();
        panic!(
            "the entry declares no {kind} `{name}`; its parameters: {}",
            declared.join(", ")
        )
    }
}
