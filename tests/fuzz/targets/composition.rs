//! [`composition`]: makes a spec from arbitrary bytes.

use core::fmt::Write as _;
use core::slice::Iter;
use core::time::Duration;

use playrate_cc::registry::{Domain, Entry, Key, Parameter, Registry, Value};
use playrate_cc::{Bytes, ControllerSpec};

/// Reads a spec of `registry` from the first of `bytes` and returns it with the rest. Every input is valid, and every
/// composition that the registry accepts is possible.
///
/// One byte selects the algorithm or alias; then one for each key selects the component, or none. After each name, two
/// bytes for each parameter select whether it is given and its value. Incompatible components are left out.
///
/// # Panics
/// If `registry` can build no controller.
pub(super) fn composition<'a>(registry: &Registry, bytes: &'a [u8]) -> (ControllerSpec, &'a [u8]) {
    let mut source = bytes.iter();
    let algorithms = registry.controllers().map(Entry::name);
    let heads: Vec<_> = algorithms
        .chain(registry.aliases().map(|alias| alias.name))
        .collect();
    let head = choose(&mut source, &heads).copied().unwrap_or("reno");
    let algorithm = registry.controllers().find(|entry| entry.name() == head);
    let mut text = match algorithm {
        Some(algorithm) => term(algorithm, &mut source),
        None => head.to_owned(),
    };
    let mut spec = registry.parse(&text);
    for key in Key::ALL {
        let components: Vec<Option<&Entry>> = core::iter::once(None)
            .chain(registry.components(key).map(Some))
            .collect();
        let Some(Some(component)) = choose(&mut source, &components) else {
            continue;
        };
        let longer = format!("{text}+{key}={}", term(component, &mut source));
        if let Ok(fits) = registry.parse(&longer) {
            text = longer;
            spec = Ok(fits);
        }
    }
    let spec = spec.unwrap_or_else(|error| panic!("`{text}` is made of the registry's own names: {error}"));
    (spec, source.as_slice())
}

/// The next byte; zero once they have run out.
fn next(source: &mut Iter<'_, u8>) -> u8 {
    source.next().copied().unwrap_or(0)
}

fn choose<'c, T>(source: &mut Iter<'_, u8>, choices: &'c [T]) -> Option<&'c T> {
    let index = usize::from(next(source)).checked_rem(choices.len())?;
    choices.get(index)
}

/// A term `name(parameter=value,…)` of a spec.
fn term(entry: &Entry, source: &mut Iter<'_, u8>) -> String {
    let mut arguments = String::new();
    for parameter in entry.parameters() {
        let (given, value) = (next(source), next(source));
        if given % 2 == 1 {
            let separator = if arguments.is_empty() { "" } else { "," };
            let value = argument(parameter, u16::from_be_bytes([given, value]));
            let _ = write!(arguments, "{separator}{}={value}", parameter.name);
        }
    }
    format!("{}({arguments})", entry.name())
}

/// A value of the parameter's range. Cubed, so that small values are as likely as large ones.
fn argument(parameter: &Parameter, value: u16) -> Value {
    let share = (f64::from(value) / f64::from(u16::MAX)).powi(3);
    let between = |min: f64, max: f64| (min + share * (max - min)).clamp(min, max);
    match parameter.domain {
        Domain::Range(Value::Number(min), Value::Number(max)) => Value::Number(between(min, max)),
        Domain::Range(Value::Time(min), Value::Time(max)) => {
            let us = between(min.as_micros() as f64, max.as_micros() as f64);
            Value::Time(Duration::from_micros(whole(us)))
        }
        Domain::Range(Value::Size(min), Value::Size(max)) => {
            Value::Size(Bytes::new(whole(between(min.as_f64(), max.as_f64()))))
        }
        Domain::Words(words) => {
            let index = usize::from(value) % words.len().max(1);
            words
                .get(index)
                .map_or(parameter.default, |&word| Value::Word(word))
        }
        // The registry's ranges have two ends of one kind.
        _ => parameter.default,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-integer casts saturate"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_algorithm_and_every_component_comes_out_of_some_bytes() {
        let registry = Registry::builtin();
        let mut state = 1_u64;
        let mut seen = BTreeSet::new();
        for _ in 0..2_000 {
            let bytes: Vec<u8> = core::iter::repeat_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .take(64)
            .collect();
            let (spec, rest) = composition(&registry, &bytes);
            assert!(rest.len() < bytes.len());
            seen.insert((None, spec.algorithm().name()));
            let components = Key::ALL.map(|key| {
                (
                    Some(key),
                    spec.component(key).map_or("", |component| component.0.name()),
                )
            });
            seen.extend(components);
        }
        for entry in registry.entries() {
            let name = entry.name();
            assert!(seen.contains(&(entry.key(), name)), "{name} never comes out");
        }
    }

    #[test]
    fn no_bytes_are_the_first_algorithm_with_its_defaults() {
        let (spec, rest) = composition(&Registry::builtin(), &[]);
        assert_eq!((spec.to_string().as_str(), rest), ("reno", [].as_slice()));
    }
}
