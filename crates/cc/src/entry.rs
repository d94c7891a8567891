//! [`Entry`]: one controller or component, with everything that specs, listings and error messages say about it.

use core::fmt;
use std::sync::Arc;

use crate::component::Traits;
use crate::compose::Components;
use crate::parameter::{Arguments, Parameter};
use crate::state::{GROWTH, of_all_algorithms};
use crate::{CongestionController, Path, VideoKnowledge};

/// The component of a controller that `KEY=COMPONENT` sets. Specs print keys in the order of this declaration, and an
/// alias's components take their arguments in the same order.
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

/// Makes a component from its arguments and stores it with the others.
pub(crate) type Add = fn(&mut Components, &Arguments);

/// Constructor of the entry's controller or component.
#[derive(Clone)]
pub(crate) enum Make {
    /// An algorithm, or the component for a key.
    Component(Option<Key>, Add),
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
    /// Reason why the component is incompatible with an algorithm, if it is.
    pub(crate) refuses: fn(Traits) -> Option<&'static str>,
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

    /// An algorithm (`key` is `None`), or a component that is compatible with every algorithm.
    pub(crate) fn component(key: impl Into<Option<Key>>, name: &'static str, add: Add) -> Self {
        Self::new(name, Make::Component(key.into(), add))
    }

    /// An entry without parameters.
    fn new(name: &'static str, make: Make) -> Self {
        Self {
            name,
            summary: "",
            source: "",
            parameters: Vec::new(),
            absolute: false,
            traits: Traits::default(),
            refuses: |_| None,
            make,
        }
    }

    /// Adds a one-line description.
    #[must_use]
    pub fn about(self, summary: &'static str) -> Self {
        Self { summary, ..self }
    }

    /// Adds the RFC section or paper that defines it.
    #[must_use]
    pub fn defined_in(self, source: &'static str) -> Self {
        Self { source, ..self }
    }

    /// Declares its parameters, in the order of unnamed arguments in specs.
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
    pub(crate) fn with_traits(mut self, set: fn(&mut Traits)) -> Self {
        set(&mut self.traits);
        self
    }

    /// Declares the algorithms that a component is incompatible with, and the reason.
    pub(crate) fn refuses(self, refuses: fn(Traits) -> Option<&'static str>) -> Self {
        Self { refuses, ..self }
    }

    /// Adds the parameters that algorithms share: [`GROWTH`] for a window-based one, and [`of_all_algorithms`].
    pub(crate) fn with_shared_parameters(mut self) -> Self {
        self.parameters.extend((!self.absolute).then_some(GROWTH));
        self.parameters.extend(of_all_algorithms());
        self
    }

    /// Its name in specs.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The key in front of it; `None` for entries that begin a spec.
    pub const fn key(&self) -> Option<Key> {
        match self.make {
            Make::Component(key, _) => key,
            Make::Custom(_) => None,
        }
    }

    /// Returns true if a spec that begins with it may name components: it is an algorithm, not a whole controller.
    pub const fn takes_components(&self) -> bool {
        matches!(self.make, Make::Component(None, _))
    }

    /// One line for listings; empty if none was registered.
    pub const fn summary(&self) -> &'static str {
        self.summary
    }

    /// The RFC section, or paper and equation, that defines it.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// Its parameters, in the order of unnamed arguments in specs.
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
