//! Reading specs.

use std::sync::Arc;

use super::{Choice, Chosen, ControllerSpec, SpecError};
use crate::registry::{Entry, Key, Kind, Parameter, Registry, nearest};

/// Splits at commas outside parentheses.
pub(crate) fn split_list(text: &str) -> impl Iterator<Item = &str> {
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
pub(crate) fn resolve(registry: &Registry, text: &str) -> Result<Choice, SpecError> {
    let mut pieces = split_outside(text, '+').map(str::trim);
    let empty = |place| SpecError::Empty {
        spec: text.to_owned(),
        place,
    };
    let head = Term::read(pieces.next().unwrap_or_default())?;
    if head.name.is_empty() {
        return Err(empty("where a controller's name should stand"));
    }
    let mut parts: [Option<Chosen>; 5] = [const { None }; 5];
    let alias = registry.alias(head.name);
    let mut law = match alias {
        Some(alias) => expand(registry, alias.expansion, &mut parts)?,
        None => Chosen::by_default(find_law(registry, head.name)?),
    };
    give(head.name, &head.arguments, &mut parts, &mut law, alias.is_some())?;

    let by_alias: [bool; 5] = core::array::from_fn(|index| parts.get(index).is_some_and(Option::is_some));
    for piece in pieces {
        if piece.is_empty() {
            return Err(empty("behind a `+`"));
        }
        if !matches!(law.entry.kind(), Kind::Law) {
            return Err(SpecError::TakesNoParts {
                name: head.name.to_owned(),
                part: piece.to_owned(),
            });
        }
        let (key, chosen) = read_part(registry, piece)?;
        let slot = parts.get_mut(key.index());
        match slot {
            Some(slot) if slot.is_none() => *slot = Some(chosen),
            _ => {
                let set_by_alias = by_alias.get(key.index()).copied().unwrap_or_default();
                return Err(SpecError::KeyTwice {
                    key,
                    alias: set_by_alias.then(|| head.name.to_owned()),
                });
            }
        }
    }
    match law.entry.kind() {
        Kind::External => Ok(Choice::External(law.entry.name())),
        Kind::Law => complete(registry, law, parts).map(Choice::Spec),
        Kind::Custom | Kind::Part(_) => Ok(Choice::Spec(ControllerSpec::new(law, Vec::new()))),
    }
}

/// Fills in the default parts and checks that all fit together.
fn complete(
    registry: &Registry,
    law: Chosen,
    parts: [Option<Chosen>; 5],
) -> Result<ControllerSpec, SpecError> {
    let mut all = Vec::with_capacity(Key::ALL.len());
    for (key, part) in Key::ALL.into_iter().zip(parts) {
        let part = match part {
            Some(part) => part,
            None => Chosen::by_default(find_part(registry, key, law.entry.default_part(key))?),
        };
        all.push(part);
    }
    let spec = ControllerSpec::new(law, all);
    let refusal = spec
        .chosen()
        .find_map(|chosen| chosen.entry.check_fit(&spec).err());
    match refusal {
        Some(reason) => Err(SpecError::Refused {
            spec: spec.to_string(),
            reason,
        }),
        None => Ok(spec),
    }
}

/// Reads an alias's expansion into its law and the parts that it names.
fn expand(
    registry: &Registry,
    expansion: &str,
    parts: &mut [Option<Chosen>; 5],
) -> Result<Chosen, SpecError> {
    let mut pieces = split_outside(expansion, '+').map(str::trim);
    let head = Term::read(pieces.next().unwrap_or_default())?;
    let mut law = Chosen::by_default(find_law(registry, head.name)?);
    assign(head.name, &head.arguments, &mut [&mut law])?;
    for piece in pieces {
        let (key, chosen) = read_part(registry, piece)?;
        if let Some(slot) = parts.get_mut(key.index()) {
            *slot = Some(chosen);
        }
    }
    Ok(law)
}

fn read_part(registry: &Registry, piece: &str) -> Result<(Key, Chosen), SpecError> {
    // `=` before any `(` separates the key.
    let head = piece.split('(').next().unwrap_or(piece);
    let Some((key, _)) = head.split_once('=') else {
        let name = head.trim();
        let known = Key::ALL
            .into_iter()
            .find(|&key| registry.part(key, name).is_some());
        return Err(SpecError::NoKey {
            text: piece.to_owned(),
            suggestion: known.map(|key| format!("{key}={piece}")),
        });
    };
    let term = Term::read(piece.get(key.len() + 1..).unwrap_or_default())?;
    let key = find_key(key.trim())?;
    let mut chosen = Chosen::by_default(find_part(registry, key, term.name)?);
    let of = format!("{key}={}", term.name);
    assign(&of, &term.arguments, &mut [&mut chosen])?;
    Ok((key, chosen))
}

/// Gives the head's arguments to the law; those of an alias to its parts first.
fn give(
    of: &str,
    arguments: &[(Option<&str>, &str)],
    parts: &mut [Option<Chosen>; 5],
    law: &mut Chosen,
    is_alias: bool,
) -> Result<(), SpecError> {
    let mut takers: Vec<&mut Chosen> = Vec::new();
    if is_alias {
        takers.extend(parts.iter_mut().flatten());
    }
    takers.push(law);
    assign(of, arguments, &mut takers)
}

/// Gives arguments to the parameters of `takers`, in order.
fn assign(of: &str, arguments: &[(Option<&str>, &str)], takers: &mut [&mut Chosen]) -> Result<(), SpecError> {
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
            "it has none".to_owned()
        } else {
            format!("it has {}", names.join(", "))
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

fn find_law<'a>(registry: &'a Registry, name: &str) -> Result<&'a Arc<Entry>, SpecError> {
    registry.law(name).ok_or_else(|| {
        let names = registry.controller_names();
        SpecError::UnknownController {
            name: name.to_owned(),
            suggestion: nearest(name, &names).map(str::to_owned),
            allowed: names.join(", "),
        }
    })
}

fn find_part<'a>(registry: &'a Registry, key: Key, name: &str) -> Result<&'a Arc<Entry>, SpecError> {
    registry.part(key, name).ok_or_else(|| {
        let names = registry.part_names(key);
        SpecError::UnknownPart {
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
