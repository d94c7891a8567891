//! [`Registry`]: every controller and part that a [`ControllerSpec`] can name.
//!
//! Parsing, error messages, documentation and the `controllers` listing all read the same [`Entry`]s. Each part's entry stands beside its
//! code; [`Registry::builtin`] collects them.

mod arguments;
mod builtin;
mod entry;
mod parameter;
mod suggest;

use std::sync::{Arc, LazyLock};

use thiserror::Error;

pub use arguments::Arguments;
pub(crate) use entry::Make;
pub use entry::{Entry, Key, Kind};
pub use parameter::{Parameter, ParameterKind, Value};
pub(crate) use suggest::nearest;

use crate::spec::{Choice, ControllerSpec, SpecError, parse};

/// Another name for a spec, such as the name that a paper gives to a combination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alias {
    /// The name.
    pub name: &'static str,
    /// The spec that it stands for. Further parts may be added to it; arguments of the alias go to the parts that it
    /// names, then to its law, in their documented order.
    pub expansion: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// Where it is defined.
    pub source: &'static str,
}

/// Why an entry or an alias was not registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Something of the same kind has the name already.
    #[error("the name `{0}` is taken")]
    NameTaken(&'static str),
    /// The name could not be told from the grammar around it.
    #[error("`{0}` is no name: use lower case letters, digits, `-` and `_`, beginning with a letter")]
    BadName(&'static str),
    /// A default value lies outside its own range, or two parameters share a name.
    #[error("the parameters of `{entry}` do not fit: {problem}")]
    BadParameter {
        /// The entry.
        entry: &'static str,
        /// What is wrong with them.
        problem: String,
    },
    /// The alias stands for no valid spec.
    #[error("the alias `{alias}` does not expand: {error}")]
    BadExpansion {
        /// The alias.
        alias: &'static str,
        /// What its expansion's parser says.
        error: SpecError,
    },
}

/// Named controllers, parts and aliases.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: Vec<Arc<Entry>>,
    aliases: Vec<Alias>,
}

static BUILTIN: LazyLock<Registry> = LazyLock::new(builtin::registry);

impl Registry {
    /// This crate's own controllers, parts and aliases, to be extended with [`register`](Self::register).
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    pub(crate) fn builtin_ref() -> &'static Self {
        &BUILTIN
    }

    /// Adds a controller.
    pub fn register(&mut self, entry: Entry) -> Result<(), RegisterError> {
        check_name(entry.name())?;
        entry.check()?;
        let taken = match entry.key() {
            None => self.alias(entry.name()).is_some() || self.law(entry.name()).is_some(),
            Some(key) => self.part(key, entry.name()).is_some(),
        };
        if taken {
            return Err(RegisterError::NameTaken(entry.name()));
        }
        self.entries.push(Arc::new(entry));
        Ok(())
    }

    /// Adds another name for a spec.
    pub fn register_alias(&mut self, alias: Alias) -> Result<(), RegisterError> {
        check_name(alias.name)?;
        if self.alias(alias.name).is_some() || self.law(alias.name).is_some() {
            return Err(RegisterError::NameTaken(alias.name));
        }
        self.parse(alias.expansion)
            .map_err(|error| RegisterError::BadExpansion {
                alias: alias.name,
                error,
            })?;
        self.aliases.push(alias);
        Ok(())
    }

    /// Everything that is registered, in the order of registration.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(Arc::as_ref)
    }

    /// The laws and complete controllers, which a spec begins with.
    pub fn controllers(&self) -> impl Iterator<Item = &Entry> {
        self.entries().filter(|entry| entry.key().is_none())
    }

    /// The parts that may stand behind `key=`.
    pub fn parts(&self, key: Key) -> impl Iterator<Item = &Entry> {
        self.entries().filter(move |entry| entry.key() == Some(key))
    }

    /// All aliases.
    pub fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.iter()
    }

    /// Reads a spec of a controller that this crate, or a registered builder, makes.
    pub fn parse(&self, text: &str) -> Result<ControllerSpec, SpecError> {
        match self.resolve(text)? {
            Choice::Spec(spec) => Ok(spec),
            Choice::External(name) => Err(SpecError::External {
                name: name.to_owned(),
            }),
        }
    }

    /// Reads a spec, or the name of an [external](Entry::external) controller.
    pub fn resolve(&self, text: &str) -> Result<Choice, SpecError> {
        parse::resolve(self, text)
    }

    /// Reads specs separated by commas; commas in parentheses belong to their spec.
    pub fn parse_list(&self, text: &str) -> Result<Vec<ControllerSpec>, SpecError> {
        parse::split_list(text).map(|spec| self.parse(spec)).collect()
    }

    /// As [`parse_list`](Self::parse_list), with external controllers.
    pub fn resolve_list(&self, text: &str) -> Result<Vec<Choice>, SpecError> {
        parse::split_list(text).map(|spec| self.resolve(spec)).collect()
    }

    pub(crate) fn law(&self, name: &str) -> Option<&Arc<Entry>> {
        self.find(None, name)
    }

    pub(crate) fn part(&self, key: Key, name: &str) -> Option<&Arc<Entry>> {
        self.find(Some(key), name)
    }

    fn find(&self, key: Option<Key>, name: &str) -> Option<&Arc<Entry>> {
        self.entries
            .iter()
            .find(|entry| entry.key() == key && entry.name() == name)
    }

    pub(crate) fn alias(&self, name: &str) -> Option<&Alias> {
        self.aliases.iter().find(|alias| alias.name == name)
    }

    /// Names that a spec may begin with.
    pub(crate) fn controller_names(&self) -> Vec<&'static str> {
        let laws = self.controllers().map(Entry::name);
        laws.chain(self.aliases.iter().map(|alias| alias.name)).collect()
    }

    /// Names that may stand behind `key=`.
    pub(crate) fn part_names(&self, key: Key) -> Vec<&'static str> {
        self.parts(key).map(Entry::name).collect()
    }
}

fn check_name(name: &'static str) -> Result<(), RegisterError> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase());
    let rest = name
        .chars()
        .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_');
    if first && rest {
        Ok(())
    } else {
        Err(RegisterError::BadName(name))
    }
}
