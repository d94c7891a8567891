//! [`Entry`]: one controller or part, with everything that a user can be told of it.

use core::fmt;
use std::sync::Arc;

use super::{Arguments, Parameter, RegisterError};
use crate::avoidance::Avoidance;
use crate::ceiling::Ceiling;
use crate::idle::Idle;
use crate::loss::Loss;
use crate::shape::Shape;
use crate::spec::ControllerSpec;
use crate::startup::Startup;
use crate::{CongestionController, Path, VideoKnowledge};

/// Which part of a controller `KEY=PART` sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Slow start.
    Start,
    /// What of the law's window is published.
    Shape,
    /// What a pause costs.
    Idle,
    /// What a loss does to a law that does not answer it itself.
    Loss,
    /// A bound from above.
    Ceiling,
}

impl Key {
    /// All keys, in the order in which a spec prints them.
    pub const ALL: [Self; 5] = [Self::Start, Self::Shape, Self::Idle, Self::Loss, Self::Ceiling];

    /// The key as it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Shape => "shape",
            Self::Idle => "idle",
            Self::Loss => "loss",
            Self::Ceiling => "ceiling",
        }
    }

    pub(crate) const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What an [`Entry`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// An avoidance law, which parts complete.
    Law,
    /// A part, behind its key.
    Part(Key),
    /// A whole controller made by a registered builder; takes no parts.
    Custom,
    /// A whole controller that whoever registered it makes outside this crate; takes neither parts nor arguments.
    External,
}

/// Makes a complete controller.
pub(crate) type Build =
    Arc<dyn Fn(&Path, &Arguments, Arc<VideoKnowledge>) -> Box<dyn CongestionController> + Send + Sync>;

/// How the thing that an entry names is made of its arguments.
#[derive(Clone)]
pub(crate) enum Make {
    Undefined,
    Law(fn(&Arguments) -> Avoidance),
    Start(fn(&Arguments) -> Startup),
    Shape(fn(&Arguments) -> Shape),
    Idle(fn(&Arguments) -> Idle),
    Loss(fn(&Arguments) -> Loss),
    Ceiling(fn(&Arguments) -> Ceiling),
    Custom(Build),
}

/// A controller or a part of one, as a spec names it.
#[derive(Clone)]
pub struct Entry {
    name: &'static str,
    kind: Kind,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
    default_loss: &'static str,
    absolute: bool,
    fits: fn(&ControllerSpec) -> Result<(), &'static str>,
    pub(crate) make: Make,
}

impl Entry {
    fn new(name: &'static str, kind: Kind, make: Make) -> Self {
        Self {
            name,
            kind,
            summary: "",
            source: "",
            parameters: Vec::new(),
            default_loss: "standard",
            absolute: false,
            fits: |_| Ok(()),
            make,
        }
    }

    /// A controller of your own. `build` makes it for one connection; it takes no parts.
    ///
    /// What it has to say about itself is added with [`about`](Self::about) and [`with_parameters`](Self::with_parameters).
    pub fn custom(
        name: &'static str,
        build: impl Fn(&Path, &Arguments, Arc<VideoKnowledge>) -> Box<dyn CongestionController>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::new(name, Kind::Custom, Make::Custom(Arc::new(build)))
    }

    /// A controller that the caller makes itself when [`Registry::resolve`](super::Registry::resolve) answers
    /// with its name.
    pub fn external(name: &'static str) -> Self {
        Self::new(name, Kind::External, Make::Undefined)
    }

    pub(crate) fn law(name: &'static str) -> Self {
        Self::new(name, Kind::Law, Make::Undefined)
    }

    pub(crate) fn part(key: Key, name: &'static str) -> Self {
        Self::new(name, Kind::Part(key), Make::Undefined)
    }

    /// Says in one line what it is, and where it is defined.
    #[must_use]
    pub fn about(mut self, summary: &'static str, source: &'static str) -> Self {
        self.summary = summary;
        self.source = source;
        self
    }

    /// Declares its parameters, in the order in which they may be given without names.
    #[must_use]
    pub fn with_parameters(mut self, parameters: &[Parameter]) -> Self {
        self.parameters = parameters.to_vec();
        self
    }

    /// Says that it sets the window outright, so that the window may rise without credit from acknowledgements.
    #[must_use]
    pub fn absolute(mut self) -> Self {
        self.absolute = true;
        self
    }

    /// Names the loss response that a law has when a spec names none.
    #[must_use]
    pub(crate) fn default_loss(mut self, name: &'static str) -> Self {
        self.default_loss = name;
        self
    }

    /// Sets the check that refuses combinations that make no sense, with the reason as text.
    #[must_use]
    pub(crate) fn fits(mut self, fits: fn(&ControllerSpec) -> Result<(), &'static str>) -> Self {
        self.fits = fits;
        self
    }

    pub(crate) fn avoidance(mut self, make: fn(&Arguments) -> Avoidance) -> Self {
        self.make = Make::Law(make);
        self
    }

    pub(crate) fn startup(mut self, make: fn(&Arguments) -> Startup) -> Self {
        self.make = Make::Start(make);
        self
    }

    pub(crate) fn shape(mut self, make: fn(&Arguments) -> Shape) -> Self {
        self.make = Make::Shape(make);
        self
    }

    pub(crate) fn idle(mut self, make: fn(&Arguments) -> Idle) -> Self {
        self.make = Make::Idle(make);
        self
    }

    pub(crate) fn loss(mut self, make: fn(&Arguments) -> Loss) -> Self {
        self.make = Make::Loss(make);
        self
    }

    pub(crate) fn ceiling(mut self, make: fn(&Arguments) -> Ceiling) -> Self {
        self.make = Make::Ceiling(make);
        self
    }

    /// The name in specs.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is.
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// The key that it stands behind; `None` for what a spec begins with.
    pub const fn key(&self) -> Option<Key> {
        match self.kind {
            Kind::Part(key) => Some(key),
            _ => None,
        }
    }

    /// What it does, in one line.
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// Where it is defined: RFC section, or paper and equation.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// Its parameters, in the order in which they may be given without names.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Whether it sets the window outright instead of growing it by what is acknowledged.
    pub const fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// Whether a law answers losses itself.
    pub fn answers_loss(&self) -> bool {
        self.default_loss == "standard"
    }

    /// The part that a law has for `key` when a spec names none.
    pub const fn default_part(&self, key: Key) -> &'static str {
        match key {
            Key::Start => "standard",
            Key::Shape | Key::Ceiling => "none",
            Key::Idle => "keep",
            Key::Loss => self.default_loss,
        }
    }

    pub(crate) fn check_fit(&self, spec: &ControllerSpec) -> Result<(), &'static str> {
        (self.fits)(spec)
    }

    pub(super) fn check(&self) -> Result<(), RegisterError> {
        let bad = |problem| RegisterError::BadParameter {
            entry: self.name,
            problem,
        };
        for (index, parameter) in self.parameters.iter().enumerate() {
            super::check_name(parameter.name)?;
            let earlier = self.parameters.iter().take(index);
            if earlier.into_iter().any(|other| other.name == parameter.name) {
                return Err(bad(format!("two are called `{}`", parameter.name)));
            }
            if !parameter.accepts(parameter.default) {
                return Err(bad(format!(
                    "the default of `{}` is not {}",
                    parameter.name,
                    parameter.expected()
                )));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}
