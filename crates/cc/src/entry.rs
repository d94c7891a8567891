//! [`Entry`]: one controller or component, with everything that specs, listings and error messages say about it.

use core::fmt;
use std::sync::Arc;

use crate::adjustment::AnyAdjustment;
use crate::algorithm::AnyAlgorithm;
use crate::component::Traits;
use crate::compose::Components;
use crate::idle::AnyIdlePolicy;
use crate::parameter::{Arguments, Parameter};
use crate::startup::AnyStartup;
use crate::state::{GROWTH, OF_ALL_ALGORITHMS, Rules};
use crate::{CongestionController, Path, VideoKnowledge};

/// The component of a controller that `KEY=COMPONENT` sets. Specs print keys in the order of this declaration, and an
/// alias's components take arguments in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Key {
    /// Startup component: slow start.
    Start,
    /// Shaper: the window that is published, given what is known of the video.
    Shape,
    /// Idle policy: the cost of a pause.
    Idle,
    /// Loss policy: the cost of a loss to an algorithm that holds on it.
    Loss,
    /// Ceiling: a bound from above.
    Ceiling,
}

impl Key {
    /// All keys, in order.
    pub const ALL: [Self; 5] = [Self::Start, Self::Shape, Self::Idle, Self::Loss, Self::Ceiling];

    /// The key as specs write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Shape => "shape",
            Self::Idle => "idle",
            Self::Loss => "loss",
            Self::Ceiling => "ceiling",
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Makes a complete controller.
pub(crate) type Build =
    Arc<dyn Fn(&Path, &Arguments, Arc<VideoKnowledge>) -> Box<dyn CongestionController> + Send + Sync>;

/// Constructor of the entry's controller or component from its arguments.
#[derive(Clone)]
pub(crate) enum Make {
    Algorithm(fn(&Arguments) -> AnyAlgorithm),
    Startup(fn(&Arguments) -> AnyStartup),
    Idle(fn(&Arguments) -> AnyIdlePolicy),
    /// The shaper, loss policy or ceiling.
    Adjustment(Key, fn(&Arguments) -> AnyAdjustment),
    Custom(Build),
}

/// A controller or a component, as a spec names it.
#[derive(Clone)]
pub struct Entry {
    pub(crate) name: &'static str,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
    absolute: bool,
    /// Properties of an algorithm or a controller without components; unused for other kinds.
    pub(crate) traits: Traits,
    /// Rejects incompatible algorithms with a reason.
    pub(crate) fits: fn(Traits) -> Result<(), &'static str>,
    pub(crate) make: Make,
}

impl Entry {
    /// A user-defined controller. `build` makes it for one connection; it takes no components.
    ///
    /// Its descriptions are added with [`about`](Self::about) and [`with_parameters`](Self::with_parameters).
    pub fn custom(
        name: &'static str,
        build: impl Fn(&Path, &Arguments, Arc<VideoKnowledge>) -> Box<dyn CongestionController>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self::new(name, Make::Custom(Arc::new(build)))
    }

    /// An entry without parameters. A component is compatible with every algorithm.
    pub(crate) fn new(name: &'static str, make: Make) -> Self {
        Self {
            name,
            summary: "",
            source: "",
            parameters: Vec::new(),
            absolute: false,
            traits: Traits::default(),
            fits: |_| Ok(()),
            make,
        }
    }

    /// Adds a one-line description, and the RFC section or paper that defines it.
    #[must_use]
    pub fn about(self, summary: &'static str, source: &'static str) -> Self {
        Self {
            summary,
            source,
            ..self
        }
    }

    /// Declares its parameters, in their order in specs without names.
    #[must_use]
    pub fn with_parameters(mut self, parameters: &[Parameter]) -> Self {
        self.parameters = parameters.to_vec();
        self
    }

    /// Declares that it sets the window directly, so that the window may rise without acknowledged bytes.
    #[must_use]
    pub fn absolute(self) -> Self {
        Self {
            absolute: true,
            ..self
        }
    }

    /// Declares the traits that decide which components an algorithm is compatible with, and which invariants hold for
    /// a controller.
    pub(crate) fn with_traits(self, traits: Traits) -> Self {
        Self { traits, ..self }
    }

    /// Declares the algorithms that a component is compatible with.
    pub(crate) fn fits(self, fits: fn(Traits) -> Result<(), &'static str>) -> Self {
        Self { fits, ..self }
    }

    /// Adds the parameters that algorithms share: [`GROWTH`] for a window-based one, and [`OF_ALL_ALGORITHMS`].
    pub(crate) fn with_shared_parameters(mut self) -> Self {
        self.parameters.extend((!self.absolute).then_some(GROWTH));
        self.parameters.extend(OF_ALL_ALGORITHMS);
        self
    }

    /// Its name in specs.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The key in front of it; `None` for entries that begin a spec.
    pub const fn key(&self) -> Option<Key> {
        match self.make {
            Make::Algorithm(_) | Make::Custom(_) => None,
            Make::Startup(_) => Some(Key::Start),
            Make::Idle(_) => Some(Key::Idle),
            Make::Adjustment(key, _) => Some(key),
        }
    }

    /// Returns true if a spec that begins with it may name components: it is an algorithm, not a whole controller.
    pub const fn takes_components(&self) -> bool {
        matches!(self.make, Make::Algorithm(_))
    }

    /// One line for listings; empty if none was registered.
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// The RFC section, or paper and equation, that defines it.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// Its parameters, in their order in specs without names.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Returns true if it sets the window directly instead of growing it by acknowledged bytes.
    pub const fn is_absolute(&self) -> bool {
        self.absolute
    }

    /// An algorithm's component for `key` when a spec names none.
    pub const fn default_component(&self, key: Key) -> &'static str {
        match key {
            Key::Loss if self.traits.holds_on_loss => "guard",
            Key::Start | Key::Loss => "standard",
            Key::Shape | Key::Ceiling => "none",
            Key::Idle => "keep",
        }
    }

    /// Makes its component and stores it in `components`.
    pub(crate) fn add_to(&self, components: &mut Components, arguments: &Arguments) {
        match self.make {
            Make::Algorithm(make) => {
                components.algorithm = make(arguments);
                components.rules = Rules::from_arguments(arguments);
            }
            Make::Startup(make) => components.startup = make(arguments),
            Make::Idle(make) => components.idle = make(arguments),
            Make::Adjustment(Key::Shape, make) => components.shaper = make(arguments),
            Make::Adjustment(Key::Loss, make) => components.loss = make(arguments),
            Make::Adjustment(_, make) => components.ceiling = make(arguments),
            Make::Custom(_) => {}
        }
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .field("key", &self.key())
            .field("parameters", &self.parameters)
            .finish_non_exhaustive()
    }
}
