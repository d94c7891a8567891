//! [`Arguments`]: a value for each parameter of one entry.

use core::time::Duration;

use playrate_units::Bytes;

use super::{Parameter, Value};

/// The values of an entry's parameters, those that a spec does not give being the defaults.
///
/// Asking for a parameter that the entry does not declare with that kind is a mistake of the entry's author: debug builds
/// stop at it, others get zero.
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

    /// The value of the parameter `name`; `None` if there is no such parameter.
    pub fn value(&self, name: &str) -> Option<Value> {
        self.0.iter().find(|slot| slot.0 == name).map(|slot| slot.1)
    }

    /// All values, in the documented order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Value)> {
        self.0.iter().copied()
    }

    /// The number `name`.
    pub fn number(&self, name: &str) -> f64 {
        let value = self.value(name);
        debug_assert!(matches!(value, Some(Value::Number(_))), "{name} is no number");
        match value {
            Some(Value::Number(number)) => number,
            _ => 0.0,
        }
    }

    /// The time `name`.
    pub fn time(&self, name: &str) -> Duration {
        let value = self.value(name);
        debug_assert!(matches!(value, Some(Value::Time(_))), "{name} is no time");
        match value {
            Some(Value::Time(time)) => time,
            _ => Duration::ZERO,
        }
    }

    /// The size `name`.
    pub fn size(&self, name: &str) -> Bytes {
        let value = self.value(name);
        debug_assert!(matches!(value, Some(Value::Size(_))), "{name} is no size");
        match value {
            Some(Value::Size(size)) => size,
            _ => Bytes::ZERO,
        }
    }

    /// The word `name`.
    pub fn word(&self, name: &str) -> &'static str {
        let value = self.value(name);
        debug_assert!(matches!(value, Some(Value::Word(_))), "{name} is no word");
        match value {
            Some(Value::Word(word)) => word,
            _ => "",
        }
    }

    /// Whether the switch `name` is on.
    pub fn is_on(&self, name: &str) -> bool {
        self.word(name) == "on"
    }
}
