//! The parser of specs.

use core::str::FromStr;
use std::collections::btree_map::{BTreeMap, Entry as MapEntry};
use std::sync::Arc;

use super::spec::{Chosen, ControllerSpec};
use super::suggest::nearest;
use super::{Entry, Key, Registry, SpecError};
use crate::parameter::{Parameter, Value};

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

/// `name(arguments)`, parsed but not resolved.
struct Term<'a> {
    name: &'a str,
    /// Name, if given, and value.
    arguments: Vec<(Option<&'a str>, &'a str)>,
}

impl<'a> Term<'a> {
    fn read(text: &'a str) -> Result<Self, SpecError> {
        let (name, inside) = match text.trim().split_once('(') {
            Some((name, rest)) => (name, rest.strip_suffix(')')),
            None => (text, (!text.contains(')')).then_some("")),
        };
        let Some(inside) = inside.filter(|inside| !inside.contains(['(', ')'])) else {
            return Err(SpecError::malformed(
                text,
                "write arguments as name(a,b) or name(key=a,key=b), with matching parentheses and nothing \
                 after them",
            ));
        };
        let arguments = inside.split(',').filter(|_| !inside.trim().is_empty());
        let arguments = arguments.map(|argument| match argument.split_once('=') {
            Some((name, value)) => (Some(name.trim()), value.trim()),
            None => (None, argument.trim()),
        });
        Ok(Self {
            name: name.trim(),
            arguments: arguments.collect(),
        })
    }
}

impl Registry {
    /// Parses a spec. Each mistake has its own error, which says how to correct it.
    pub fn parse(&self, text: &str) -> Result<ControllerSpec, SpecError> {
        complete(self, read(self, text)?)
    }
}

impl FromStr for ControllerSpec {
    type Err = SpecError;

    /// Reads a spec of [`Registry::installed`].
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Registry::installed().parse(text)
    }
}

impl ControllerSpec {
    /// The same controller with another value of the parameter `name`: the algorithm's or, if it has none of that name,
    /// that of the first component that declares it.
    ///
    /// ```
    /// use playrate_cc::ControllerSpec;
    ///
    /// let spec: ControllerSpec = "ccp+loss=ignore".parse()?;
    /// assert_eq!(spec.with_argument("floor", "3")?.to_string(), "ccp(floor=3)+loss=ignore");
    /// # Ok::<(), playrate_cc::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// If neither declares the parameter, or `value` is malformed or out of range.
    pub fn with_argument(&self, name: &str, value: &str) -> Result<Self, SpecError> {
        let mut spec = self.clone();
        let takers = core::iter::once(&mut spec.algorithm).chain(spec.components.values_mut());
        assign(self.algorithm().name(), &[(Some(name), value)], takers)?;
        Ok(spec)
    }
}

/// Reads `text` into a spec that contains only the components named in `text`.
fn read(registry: &Registry, text: &str) -> Result<ControllerSpec, SpecError> {
    let mut pieces = split_outside(text, '+').map(str::trim);
    let empty = |place| SpecError::malformed(text, place);
    let head = Term::read(pieces.next().unwrap_or_default())?;
    if head.name.is_empty() {
        return Err(empty("expected the name of a controller at the beginning"));
    }
    let unknown = || SpecError::unknown("controller", "", head.name, &registry.controller_names());
    let mut spec = match registry.alias(head.name) {
        Some(alias) => read(registry, alias.expansion)?,
        None => ControllerSpec {
            algorithm: Chosen::by_default(registry.find(None, head.name).ok_or_else(unknown)?),
            components: BTreeMap::new(),
        },
    };
    // An alias's arguments go to its components first.
    let takers = spec.components.values_mut().chain([&mut spec.algorithm]);
    assign(head.name, &head.arguments, takers)?;
    let by_alias: Vec<Key> = spec.components.keys().copied().collect();
    for piece in pieces {
        if piece.is_empty() {
            return Err(empty("expected a component after every `+`"));
        }
        let (key, chosen) = read_component(registry, head.name, spec.algorithm(), piece)?;
        if spec.components.insert(key, chosen).is_some() {
            let alias = by_alias.contains(&key).then(|| head.name.to_owned());
            return Err(SpecError::KeyTwice { key, alias });
        }
    }
    Ok(spec)
}

/// Adds the default components and checks that all are compatible.
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
        .find_map(|chosen| (chosen.entry.refuses)(algorithm.traits));
    match refusal {
        Some(reason) => Err(SpecError::Refused {
            spec: spec.to_string(),
            reason,
        }),
        None => Ok(spec),
    }
}

/// Reads `KEY=COMPONENT` after `algorithm`; the spec writes the algorithm as `of`.
fn read_component(
    registry: &Registry,
    of: &str,
    algorithm: &Entry,
    piece: &str,
) -> Result<(Key, Chosen), SpecError> {
    if !algorithm.takes_components() {
        return Err(SpecError::TakesNoComponents {
            name: of.to_owned(),
            component: format!("+{piece}"),
        });
    }
    // `=` before any `(` separates the key.
    let head = piece.split('(').next().unwrap_or(piece);
    let names = Key::ALL.map(Key::name);
    let Some((key, _)) = head.split_once('=') else {
        let mut keys = Key::ALL.into_iter();
        let known = keys.find(|&key| registry.find(Some(key), head.trim()).is_some());
        let expected = match known {
            Some(key) => format!("`{key}={piece}`"),
            None => format!("`KEY=COMPONENT`, with KEY one of {}", names.join(", ")),
        };
        return Err(SpecError::malformed(
            piece,
            format!("it needs a key, so write {expected}"),
        ));
    };
    let term = Term::read(piece.get(key.len().saturating_add(1)..).unwrap_or_default())?;
    let mut keys = Key::ALL.into_iter();
    let key = keys
        .find(|known| known.name() == key.trim())
        .ok_or_else(|| SpecError::unknown("key", "", key.trim(), &names))?;
    let mut chosen = Chosen::by_default(find_component(registry, key, term.name)?);
    let of = format!("{key}={}", term.name);
    assign(&of, &term.arguments, core::iter::once(&mut chosen))?;
    Ok((key, chosen))
}

fn find_component<'a>(registry: &'a Registry, key: Key, name: &str) -> Result<&'a Arc<Entry>, SpecError> {
    registry.find(Some(key), name).ok_or_else(|| {
        let names: Vec<_> = registry.components(key).map(Entry::name).collect();
        SpecError::unknown("component", &format!("{key}="), name, &names)
    })
}

/// Assigns arguments to the parameters of `takers`, in order. If several declare a name, the first one gets it.
fn assign<'a>(
    of: &str,
    arguments: &[(Option<&str>, &str)],
    takers: impl Iterator<Item = &'a mut Chosen>,
) -> Result<(), SpecError> {
    // A place is `None` once it has received a value.
    let places_of = |taker: &'a mut Chosen| {
        let parameters = taker.entry.parameters().iter().copied();
        parameters.zip(taker.arguments.values_mut().map(Some))
    };
    let mut places: Vec<(Parameter, Option<&mut Value>)> = takers.flat_map(places_of).collect();
    let names: Vec<&'static str> = places.iter().map(|(parameter, _)| parameter.name).collect();
    let allowed = || match names.join(", ") {
        names if names.is_empty() => "it takes none".to_owned(),
        names => format!("it takes {names}"),
    };
    let bad = |problem: String| SpecError::malformed(of, problem);
    let mut by_name = false;
    for (position, &(name, value)) in arguments.iter().enumerate() {
        by_name |= name.is_some();
        let index = match name {
            Some(name) => {
                names
                    .iter()
                    .position(|known| *known == name)
                    .ok_or_else(|| SpecError::Unknown {
                        kind: "parameter",
                        name: name.to_owned(),
                        of: format!(" of `{of}`"),
                        suggestion: nearest(name, &names),
                        allowed: allowed(),
                    })?
            }
            None if by_name => {
                let problem = format!("`{value}` follows a named argument: write its name, too");
                return Err(bad(problem));
            }
            None => position,
        };
        let Some((parameter, place)) = places.get_mut(index) else {
            return Err(SpecError::TooManyArguments {
                of: of.to_owned(),
                value: value.to_owned(),
                allowed: allowed(),
            });
        };
        let name = parameter.name;
        let place = place.take();
        let place = place.ok_or_else(|| bad(format!("`{name}` is given twice")))?;
        *place = parameter.read(value).ok_or_else(|| {
            let expected = parameter.expected();
            bad(format!("invalid value `{name}={value}`: write {expected}"))
        })?;
    }
    Ok(())
}
