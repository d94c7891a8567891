//! The parser of specs.

use std::collections::btree_map::Entry as MapEntry;
use std::sync::Arc;

use super::spec::{Chosen, ControllerSpec};
use super::suggest::nearest;
use super::{Entry, Key, Registry, SpecError};
use crate::parameter::Parameter;

/// Splits a list of specs at its commas; commas in parentheses belong to their spec.
pub fn split_list(text: &str) -> impl Iterator<Item = &str> {
    split_outside(text, ',').map(str::trim)
}

fn split_outside(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    text.split(move |c: char| {
        match c {
            '(' => depth = depth.saturating_add(1),
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        c == separator && depth == 0
    })
}

/// `name(arguments)`, read but not yet understood.
struct Term<'a> {
    name: &'a str,
    /// Name, if given, and value.
    arguments: Vec<(Option<&'a str>, &'a str)>,
}

impl<'a> Term<'a> {
    fn read(text: &'a str) -> Result<Self, SpecError> {
        let bad = || SpecError::Parentheses {
            text: text.to_owned(),
        };
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return if text.contains(')') {
                Err(bad())
            } else {
                Ok(Self {
                    name: text,
                    arguments: Vec::new(),
                })
            };
        };
        let inside = rest.strip_suffix(')').ok_or_else(bad)?;
        if inside.contains(['(', ')']) {
            return Err(bad());
        }
        let arguments = if inside.trim().is_empty() {
            Vec::new()
        } else {
            inside
                .split(',')
                .map(|argument| match argument.split_once('=') {
                    Some((name, value)) => (Some(name.trim()), value.trim()),
                    None => (None, argument.trim()),
                })
                .collect()
        };
        Ok(Self {
            name: name.trim(),
            arguments,
        })
    }
}

/// Reads `text` against `registry`.
pub(super) fn parse(registry: &Registry, text: &str) -> Result<ControllerSpec, SpecError> {
    complete(registry, read(registry, text)?)
}

/// `spec` with the component that `text` names behind `key`, in place of the one that it has.
pub(super) fn replace(
    registry: &Registry,
    spec: &ControllerSpec,
    key: Key,
    text: &str,
) -> Result<ControllerSpec, SpecError> {
    let piece = format!("{key}={text}");
    if !spec.algorithm.entry.takes_components() {
        return Err(SpecError::TakesNoComponents {
            name: spec.algorithm.entry.name().to_owned(),
            component: format!("+{piece}"),
        });
    }
    let (key, chosen) = read_component(registry, &piece)?;
    let mut other = spec.clone();
    other.components.insert(key, chosen);
    complete(registry, other)
}

/// Reads `text` into a spec that has only the components which `text` names.
fn read(registry: &Registry, text: &str) -> Result<ControllerSpec, SpecError> {
    let mut pieces = split_outside(text, '+').map(str::trim);
    let empty = |place| SpecError::Empty {
        spec: text.to_owned(),
        place,
    };
    let head = Term::read(pieces.next().unwrap_or_default())?;
    if head.name.is_empty() {
        return Err(empty("the name of a controller at the beginning"));
    }
    let alias = registry.alias(head.name);
    let mut spec = match alias {
        Some(alias) => read(registry, alias.expansion)?,
        None => ControllerSpec::bare(find_algorithm(registry, head.name)?),
    };
    // Those of an alias go to its components first.
    let takers = spec.components.values_mut().chain([&mut spec.algorithm]);
    assign(head.name, &head.arguments, &mut takers.collect::<Vec<_>>())?;
    let by_alias: Vec<Key> = spec.components.keys().copied().collect();
    for piece in pieces {
        if piece.is_empty() {
            return Err(empty("a component after every `+`"));
        }
        if !spec.algorithm.entry.takes_components() {
            return Err(SpecError::TakesNoComponents {
                name: head.name.to_owned(),
                component: format!("+{piece}"),
            });
        }
        let (key, chosen) = read_component(registry, piece)?;
        if spec.components.insert(key, chosen).is_some() {
            let alias = by_alias.contains(&key).then(|| head.name.to_owned());
            return Err(SpecError::KeyTwice { key, alias });
        }
    }
    Ok(spec)
}

/// Fills in the default components and checks that all fit together.
fn complete(registry: &Registry, mut spec: ControllerSpec) -> Result<ControllerSpec, SpecError> {
    let algorithm = Arc::clone(&spec.algorithm.entry);
    if !algorithm.takes_components() {
        return Ok(spec);
    }
    for key in Key::ALL {
        if let MapEntry::Vacant(vacant) = spec.components.entry(key) {
            let default = find_component(registry, key, algorithm.default_component(key))?;
            vacant.insert(Chosen::by_default(default));
        }
    }
    let refusal = spec
        .chosen()
        .find_map(|chosen| (chosen.entry.description.fits)(algorithm.description.traits).err());
    match refusal {
        Some(reason) => Err(SpecError::Refused {
            spec: spec.to_string(),
            reason,
        }),
        None => Ok(spec),
    }
}

fn read_component(registry: &Registry, piece: &str) -> Result<(Key, Chosen), SpecError> {
    // `=` before any `(` separates the key.
    let head = piece.split('(').next().unwrap_or(piece);
    let Some((key, _)) = head.split_once('=') else {
        let name = head.trim();
        let known = Key::ALL
            .into_iter()
            .find(|&key| registry.find(Some(key), name).is_some());
        return Err(SpecError::NoKey {
            text: piece.to_owned(),
            suggestion: known.map(|key| format!("{key}={piece}")),
        });
    };
    let term = Term::read(piece.get(key.len().saturating_add(1)..).unwrap_or_default())?;
    let key = find_key(key.trim())?;
    let mut chosen = Chosen::by_default(find_component(registry, key, term.name)?);
    let of = format!("{key}={}", term.name);
    assign(&of, &term.arguments, &mut [&mut chosen])?;
    Ok((key, chosen))
}

/// Gives arguments to the parameters of `takers`, in order. A name that several declare is that of the first.
pub(super) fn assign(
    of: &str,
    arguments: &[(Option<&str>, &str)],
    takers: &mut [&mut Chosen],
) -> Result<(), SpecError> {
    let slots: Vec<(usize, Parameter)> = takers
        .iter()
        .enumerate()
        .flat_map(|(index, taker)| {
            taker
                .entry
                .parameters()
                .iter()
                .map(move |&parameter| (index, parameter))
        })
        .collect();
    let names: Vec<&'static str> = slots.iter().map(|(_, parameter)| parameter.name).collect();
    let allowed = || {
        if names.is_empty() {
            "it takes none".to_owned()
        } else {
            format!("it takes {}", names.join(", "))
        }
    };
    let of = of.to_owned();
    let mut given: Vec<usize> = Vec::new();
    let mut by_name = false;
    for (position, &(name, value)) in arguments.iter().enumerate() {
        let slot = match name {
            Some(name) => {
                by_name = true;
                names
                    .iter()
                    .position(|known| *known == name)
                    .ok_or_else(|| SpecError::UnknownParameter {
                        of: of.clone(),
                        name: name.to_owned(),
                        suggestion: nearest(name, &names).map(str::to_owned),
                        allowed: allowed(),
                    })?
            }
            None if by_name => {
                return Err(SpecError::PositionAfterName {
                    of,
                    value: value.to_owned(),
                });
            }
            None => position,
        };
        let Some((taker, parameter)) = slots.get(slot) else {
            return Err(SpecError::TooManyArguments {
                of,
                value: value.to_owned(),
                allowed: allowed(),
            });
        };
        if given.contains(&slot) {
            return Err(SpecError::ArgumentTwice {
                of,
                name: parameter.name.to_owned(),
            });
        }
        given.push(slot);
        let value = parameter.read(value).ok_or_else(|| SpecError::BadValue {
            of: of.clone(),
            name: parameter.name.to_owned(),
            value: value.to_owned(),
            expected: parameter.expected(),
        })?;
        if let Some(taker) = takers.get_mut(*taker) {
            taker.arguments.set(parameter.name, value);
        }
    }
    Ok(())
}

fn find_algorithm<'a>(registry: &'a Registry, name: &str) -> Result<&'a Arc<Entry>, SpecError> {
    registry.find(None, name).ok_or_else(|| {
        let names = registry.controller_names();
        SpecError::UnknownController {
            name: name.to_owned(),
            suggestion: nearest(name, &names).map(str::to_owned),
            allowed: names.join(", "),
        }
    })
}

fn find_component<'a>(registry: &'a Registry, key: Key, name: &str) -> Result<&'a Arc<Entry>, SpecError> {
    registry.find(Some(key), name).ok_or_else(|| {
        let names: Vec<_> = registry.components(key).map(Entry::name).collect();
        SpecError::UnknownComponent {
            key,
            name: name.to_owned(),
            suggestion: nearest(name, &names).map(str::to_owned),
            allowed: names.join(", "),
        }
    })
}

fn find_key(name: &str) -> Result<Key, SpecError> {
    Key::ALL
        .into_iter()
        .find(|key| key.name() == name)
        .ok_or_else(|| SpecError::UnknownKey {
            key: name.to_owned(),
            suggestion: nearest(name, &Key::ALL.map(Key::name)).map(str::to_owned),
        })
}
