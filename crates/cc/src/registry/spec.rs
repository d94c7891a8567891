//! [`ControllerSpec`]: a controller written as text.
//!
//! `ALGORITHM[(args)][+KEY=COMPONENT[(args)]]…` with KEY one of `start`, `shape`, `idle`, `loss`, `ceiling`,
//! each at most once. Arguments are `name=value`, or values in their documented order.

use core::fmt;
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::compose::{Components, Composed};
use crate::entry::{Entry, Key, Make};
use crate::parameter::Arguments;
use crate::state::Rules;
use crate::{CongestionController, Path, VideoKnowledge};

/// A controller with its components and their arguments: a recipe that builds any number of controllers.
///
/// Its text form is canonical: aliases are expanded, and default components and arguments are left out. Parsing that
/// text gives an equal spec, and equal specs build controllers that behave alike.
///
/// ```
/// use playrate_cc::ControllerSpec;
///
/// let spec: ControllerSpec = "cubic(off)+start=hystartpp+idle=keep".parse()?;
/// assert_eq!(spec.to_string(), "cubic(fast_convergence=off)+start=hystartpp");
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ControllerSpec {
    pub(super) algorithm: Chosen,
    /// One component for each key; empty for a controller that takes no components.
    pub(super) components: BTreeMap<Key, Chosen>,
}

/// An entry and the arguments that it is given.
#[derive(Clone, Debug)]
pub(super) struct Chosen {
    pub(super) entry: Arc<Entry>,
    pub(super) arguments: Arguments,
}

impl ControllerSpec {
    /// Makes the controller for one connection.
    pub fn build(&self, path: &Path, known: Arc<VideoKnowledge>) -> Box<dyn CongestionController> {
        let mut components = Components::default();
        for Chosen { entry, arguments } in self.chosen() {
            match &entry.make {
                Make::Component(_, add) => add(&mut components, arguments),
                Make::Custom(build) => return build(path, arguments, known),
            }
        }
        components.rules = Rules::from_arguments(&self.algorithm.arguments);
        Box::new(Composed::new(path, components, known))
    }

    /// The algorithm or complete controller at the beginning of the spec.
    pub fn algorithm(&self) -> &Entry {
        &self.algorithm.entry
    }

    /// The arguments of the [algorithm](Self::algorithm).
    pub fn algorithm_arguments(&self) -> &Arguments {
        &self.algorithm.arguments
    }

    /// The component for `key`, named or by default; `None` for a controller that takes no components.
    pub fn component(&self, key: Key) -> Option<(&Entry, &Arguments)> {
        let chosen = self.components.get(&key)?;
        Some((&chosen.entry, &chosen.arguments))
    }

    /// Returns true if algorithm and components grow the window by acknowledged bytes only, and never set it directly.
    pub fn is_window_based(&self) -> bool {
        !self.chosen().any(|chosen| chosen.entry.is_absolute())
    }

    pub(super) fn chosen(&self) -> impl Iterator<Item = &Chosen> {
        core::iter::once(&self.algorithm).chain(self.components.values())
    }
}

impl Chosen {
    pub(super) fn by_default(entry: &Arc<Entry>) -> Self {
        Self {
            entry: Arc::clone(entry),
            arguments: Arguments::defaults(entry.parameters()),
        }
    }
}

impl PartialEq for Chosen {
    fn eq(&self, other: &Self) -> bool {
        self.entry.key() == other.entry.key()
            && self.entry.name() == other.entry.name()
            && self.arguments == other.arguments
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.entry.parameters().iter().zip(self.arguments.iter());
        let given = parameters.filter(|(parameter, (_, value))| *value != parameter.default);
        let given: Vec<_> = given
            .map(|(_, (name, value))| format!("{name}={value}"))
            .collect();
        match given.join(",") {
            given if given.is_empty() => f.write_str(self.entry.name()),
            given => write!(f, "{}({given})", self.entry.name()),
        }
    }
}

impl fmt::Display for ControllerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = vec![self.algorithm.to_string()];
        for (&key, component) in &self.components {
            let component = component.to_string();
            if component != self.algorithm.entry.default_component(key) {
                shown.push(format!("{key}={component}"));
            }
        }
        f.pad(&shown.join("+"))
    }
}
