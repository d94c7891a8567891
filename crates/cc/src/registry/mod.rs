//! [`Registry`]: every controller and component that a [`ControllerSpec`] can name.
//!
//! Parsing, error messages, documentation and the `controllers` listing all read the same [`Entry`]s. The
//! entries of components are in `builtin`; a controller without components declares its entry in its own file, as a
//! user's controller does.

mod builtin;
mod error;
mod parse;
mod spec;
mod suggest;

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock, OnceLock};

use thiserror::Error;

pub use crate::entry::{Entry, Key};
pub use crate::parameter::{Arguments, Domain, Parameter, Value};
pub use error::SpecError;
pub use parse::split_list;
pub use spec::ControllerSpec;

/// Another name for a spec, such as the name that a paper gives to a combination.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Alias {
    /// The name in specs.
    pub name: &'static str,
    /// The spec that it stands for. A spec may add more components. The alias's arguments go to the components in the
    /// expansion, then to its algorithm, in their documented order.
    pub expansion: &'static str,
    /// One line for listings.
    pub summary: &'static str,
    /// The paper or RFC that defines it.
    pub source: &'static str,
}

/// Reason why an entry was not registered.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// Another entry of the same kind already has this name.
    #[error("the name `{0}` is already registered")]
    NameTaken(&'static str),
    /// The name conflicts with the grammar of specs.
    #[error("invalid name `{0}`: use lower case letters, digits, `-` and `_`, beginning with a letter")]
    BadName(&'static str),
    /// A default value lies outside its own range, or two parameters share a name.
    #[error("invalid parameters of `{entry}`: {problem}")]
    BadParameter {
        /// Name of the entry.
        entry: &'static str,
        /// The mistake in words.
        problem: String,
    },
    /// The process already has an installed registry.
    #[error("a registry was installed before: register everything in one, and install it once")]
    Installed,
}

/// Named controllers, components and aliases.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    entries: Vec<Arc<Entry>>,
    aliases: &'static [Alias],
}

static BUILTIN: LazyLock<Registry> = LazyLock::new(builtin::registry);
static INSTALLED: OnceLock<Registry> = OnceLock::new();

impl Registry {
    /// This crate's own controllers, components and aliases; [`register`](Self::register) adds more.
    pub fn builtin() -> Self {
        BUILTIN.clone()
    }

    /// The process's registry for parsing specs: the [installed](Self::install) one, or else
    /// [`builtin`](Self::builtin).
    pub fn installed() -> &'static Self {
        INSTALLED.get().unwrap_or(&BUILTIN)
    }

    /// Makes this the process's registry for parsing specs, so that options, config files and scenarios accept its
    /// names. Call it once, before the first spec is read.
    ///
    /// ```
    /// use playrate_cc::registry::{Entry, Registry};
    /// use playrate_cc::ControllerSpec;
    ///
    /// let modern: ControllerSpec = "cubic+start=hystartpp".parse()?;
    /// let mut registry = Registry::builtin();
    /// registry.register(Entry::custom("house", move |path, _, known| modern.build(path, known)))?;
    /// registry.install()?;
    /// assert!("house".parse::<ControllerSpec>().is_ok());
    /// assert!(Registry::builtin().install().is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If a registry was installed before; that one is kept.
    pub fn install(self) -> Result<(), RegisterError> {
        INSTALLED.set(self).map_err(|_| RegisterError::Installed)
    }

    /// Adds a controller under its name.
    pub fn register(&mut self, entry: Entry) -> Result<(), RegisterError> {
        check_name(entry.name())?;
        check_parameters(&entry)?;
        let is_alias = entry.key().is_none() && self.alias(entry.name()).is_some();
        if is_alias || self.find(entry.key(), entry.name()).is_some() {
            return Err(RegisterError::NameTaken(entry.name()));
        }
        self.entries.push(Arc::new(entry));
        Ok(())
    }

    /// Everything that is registered, in the order of registration.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(Arc::as_ref)
    }

    /// The algorithms and complete controllers: the names that begin a spec.
    pub fn controllers(&self) -> impl Iterator<Item = &Entry> {
        self.entries().filter(|entry| entry.key().is_none())
    }

    /// The components for `key=`.
    pub fn components(&self, key: Key) -> impl Iterator<Item = &Entry> {
        self.entries().filter(move |entry| entry.key() == Some(key))
    }

    /// All aliases, in the order of listings.
    pub fn aliases(&self) -> impl Iterator<Item = &Alias> {
        self.aliases.iter()
    }

    /// The component for `key` with this name; if `key` is `None`, the algorithm or complete controller.
    pub(crate) fn find(&self, key: Option<Key>, name: &str) -> Option<&Arc<Entry>> {
        self.entries
            .iter()
            .find(|entry| entry.key() == key && entry.name() == name)
    }

    pub(crate) fn alias(&self, name: &str) -> Option<&Alias> {
        self.aliases.iter().find(|alias| alias.name == name)
    }

    /// Names that a spec may begin with.
    fn controller_names(&self) -> Vec<&'static str> {
        let algorithms = self.controllers().map(Entry::name);
        algorithms
            .chain(self.aliases.iter().map(|alias| alias.name))
            .collect()
    }
}

fn check_name(name: &'static str) -> Result<(), RegisterError> {
    let first = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if first && name.chars().all(is_allowed) {
        Ok(())
    } else {
        Err(RegisterError::BadName(name))
    }
}

fn check_parameters(entry: &Entry) -> Result<(), RegisterError> {
    let mut names = BTreeSet::new();
    for parameter in entry.parameters() {
        let (name, default) = (parameter.name, parameter.default);
        check_name(name)?;
        let problem = if !names.insert(name) {
            format!("two have the name `{name}`")
        } else if !parameter.accepts(default) {
            let expected = parameter.expected();
            format!("the default of `{name}` is {default}, which is not {expected}")
        } else {
            continue;
        };
        return Err(RegisterError::BadParameter {
            entry: entry.name(),
            problem,
        });
    }
    Ok(())
}
