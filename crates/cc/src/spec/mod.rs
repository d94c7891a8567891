//! [`ControllerSpec`]: which controller, written as text.
//!
//! `LAW[(args)][+KEY=PART[(args)]]…` with KEY one of `start`, `shape`, `idle`, `loss`, `ceiling`, each at most once.
//! Arguments are `name=value`, or values in their documented order.

mod error;
pub(crate) mod parse;

use core::fmt;
use core::str::FromStr;
use std::sync::Arc;

pub use error::SpecError;

use crate::compose::{Composed, Growth, Parts};
use crate::registry::{Arguments, Entry, Key, Make, Registry};
use crate::{CongestionController, Path, VideoKnowledge};

/// A controller with its parts and their arguments: a recipe that builds any number of controllers.
///
/// Its text form is canonical: aliases are expanded, and parts and arguments that have their default value are left out.
/// Reading that text gives an equal spec, and equal specs build controllers that behave alike.
///
/// ```
/// use playrate_cc::ControllerSpec;
///
/// let spec: ControllerSpec = "cubic(off)+start=hystartpp+idle=keep".parse()?;
/// assert_eq!(spec.to_string(), "cubic(fast_convergence=off)+start=hystartpp");
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ControllerSpec {
    law: Chosen,
    /// One part for each key of [`Key::ALL`]; empty for a controller that takes no parts.
    parts: Vec<Chosen>,
}

/// An entry and the arguments that it is given.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) entry: Arc<Entry>,
    pub(crate) arguments: Arguments,
}

/// What a text chose from a registry: a controller that can be built here, or the name of an external one.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// [`ControllerSpec::build`] makes it.
    Spec(ControllerSpec),
    /// Whoever registered this name with [`Entry::external`] makes it.
    External(&'static str),
}

impl ControllerSpec {
    /// The controller for one connection.
    pub fn build(&self, path: &Path, known: Arc<VideoKnowledge>) -> Box<dyn CongestionController> {
        if let Make::Custom(build) = &self.law.entry.make {
            return build(path, &self.law.arguments, known);
        }
        Box::new(Composed::new(path, self.parts(), known))
    }

    /// The law, or the whole controller, that the spec begins with.
    pub fn law(&self) -> &Entry {
        &self.law.entry
    }

    /// The arguments of the [law](Self::law).
    pub fn law_arguments(&self) -> &Arguments {
        &self.law.arguments
    }

    /// The part behind `key`, named or by default; `None` for a controller that takes no parts.
    pub fn part(&self, key: Key) -> Option<(&Entry, &Arguments)> {
        let chosen = self.parts.get(key.index())?;
        Some((&chosen.entry, &chosen.arguments))
    }

    /// Whether the law and all parts grow the window by acknowledged bytes only, never outright.
    pub fn is_window_based(&self) -> bool {
        !self.chosen().any(|chosen| chosen.entry.is_absolute())
    }

    /// Whether the window may grow while it is not used in full (`growth=ratelimited`), up to what
    /// draft-ietf-ccwg-ratelimited-increase allows.
    pub fn grows_while_limited(&self) -> bool {
        Growth::from_arguments(&self.law.arguments).is_rate_limited()
    }

    pub(crate) fn new(law: Chosen, parts: Vec<Chosen>) -> Self {
        Self { law, parts }
    }

    pub(crate) fn chosen(&self) -> impl Iterator<Item = &Chosen> {
        core::iter::once(&self.law).chain(&self.parts)
    }

    fn parts(&self) -> Parts {
        use crate::avoidance::{Avoidance, reno::Reno};
        use crate::{ceiling::Ceiling, idle, loss::Loss, shape::Shape, startup};
        let mut parts = Parts {
            startup: startup::Startup::Standard(startup::standard::Standard),
            law: Avoidance::Reno(Reno::default()),
            shape: Shape::None,
            idle: idle::Idle::Keep(idle::keep::Keep),
            loss: Loss::Standard,
            ceiling: Ceiling::None,
            growth: Growth::from_arguments(&self.law.arguments),
        };
        for Chosen { entry, arguments } in self.chosen() {
            match entry.make {
                Make::Law(make) => parts.law = make(arguments),
                Make::Start(make) => parts.startup = make(arguments),
                Make::Shape(make) => parts.shape = make(arguments),
                Make::Idle(make) => parts.idle = make(arguments),
                Make::Loss(make) => parts.loss = make(arguments),
                Make::Ceiling(make) => parts.ceiling = make(arguments),
                Make::Custom(_) | Make::Undefined => {}
            }
        }
        parts
    }
}

impl Chosen {
    pub(crate) fn by_default(entry: &Arc<Entry>) -> Self {
        Self {
            entry: Arc::clone(entry),
            arguments: Arguments::defaults(entry.parameters()),
        }
    }
}

impl PartialEq for Chosen {
    fn eq(&self, other: &Self) -> bool {
        self.entry.kind() == other.entry.kind()
            && self.entry.name() == other.entry.name()
            && self.arguments == other.arguments
    }
}

impl PartialEq for ControllerSpec {
    fn eq(&self, other: &Self) -> bool {
        self.law == other.law && self.parts == other.parts
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry.name())?;
        let mut separator = "(";
        for (parameter, (name, value)) in self.entry.parameters().iter().zip(self.arguments.iter()) {
            if value != parameter.default {
                write!(f, "{separator}{name}={value}")?;
                separator = ",";
            }
        }
        if separator == "," {
            f.write_str(")")
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for ControllerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = vec![self.law.to_string()];
        for (key, part) in Key::ALL.into_iter().zip(&self.parts) {
            let part = part.to_string();
            if part != self.law.entry.default_part(key) {
                shown.push(format!("{key}={part}"));
            }
        }
        f.pad(&shown.join("+"))
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(spec) => spec.fmt(f),
            Self::External(name) => f.pad(name),
        }
    }
}

impl FromStr for ControllerSpec {
    type Err = SpecError;

    /// Reads a spec of [`Registry::builtin`].
    fn from_str(text: &str) -> Result<Self, SpecError> {
        Registry::builtin_ref().parse(text)
    }
}
