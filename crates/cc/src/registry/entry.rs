//! [`Entry`]: one controller or component, with all that listings and error messages say about it.

use core::fmt;
use std::sync::Arc;

use super::RegisterError;
use crate::algorithm::AnyAlgorithm;
use crate::ceiling::AnyCeiling;
use crate::component::{Component, Description, Traits};
use crate::compose::Components;
use crate::idle::AnyIdlePolicy;
use crate::loss::AnyLossPolicy;
use crate::parameter::{Arguments, Parameter};
use crate::shaper::AnyShaper;
use crate::startup::AnyStartup;
use crate::state::{
    COUNTING, GROWTH, Growth, INITIAL_WINDOW, MAX_SSTHRESH, Opening, RECOVERY, Resends, SSTHRESH,
};
use crate::{CongestionController, Path, VideoKnowledge};

/// The component of a controller that `KEY=COMPONENT` sets. Declared in the order in which specs print them, and in
/// which an alias's components take arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Key {
    /// Startup component: slow start.
    Start,
    /// Shaper: the window that is published, given what is known of the video.
    Shape,
    /// Idle policy: the cost of a pause.
    Idle,
    /// Loss policy: the cost of a loss to an algorithm that does not answer it itself.
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

/// Place of an [`Entry`] in a spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A congestion avoidance algorithm, which components complete.
    Algorithm,
    /// A component, behind its key.
    Component(Key),
    /// A whole controller made by a registered builder; takes no components.
    Custom,
}

/// Makes a complete controller.
pub(crate) type Build =
    Arc<dyn Fn(&Path, &Arguments, Arc<VideoKnowledge>) -> Box<dyn CongestionController> + Send + Sync>;

/// Makes what an entry names out of its arguments.
#[derive(Clone)]
pub(crate) enum Make {
    Algorithm(fn(&Arguments) -> AnyAlgorithm),
    Startup(fn(&Arguments) -> AnyStartup),
    Shaper(fn(&Arguments) -> AnyShaper),
    Idle(fn(&Arguments) -> AnyIdlePolicy),
    Loss(fn(&Arguments) -> AnyLossPolicy),
    Ceiling(fn(&Arguments) -> AnyCeiling),
    Custom(Build),
}

/// Parameters that every algorithm has behind all others.
pub(crate) const OF_ALL_ALGORITHMS: [Parameter; 5] =
    [COUNTING, INITIAL_WINDOW, SSTHRESH, RECOVERY, MAX_SSTHRESH];

/// A controller or a component of one, as a spec names it.
#[derive(Clone)]
pub struct Entry {
    pub(crate) description: Description,
    pub(crate) make: Make,
}

impl Entry {
    /// A controller of your own. `build` makes it for one connection; it takes no components.
    ///
    /// Its descriptions are added with [`about`](Self::about) and [`with_parameters`](Self::with_parameters).
    pub fn custom(
        name: &'static str,
        build: impl Fn(&Path, &Arguments, Arc<VideoKnowledge>) -> Box<dyn CongestionController>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            description: Description::new(name, "", ""),
            make: Make::Custom(Arc::new(build)),
        }
    }

    /// The entry of a component, which `wrap` makes of its kind's maker. Every algorithm has, after its own
    /// parameters, [`GROWTH`] if it is window-based, and those of [`OF_ALL_ALGORITHMS`].
    pub(crate) fn of<T>(component: Component<T>, wrap: fn(fn(&Arguments) -> T) -> Make) -> Self {
        let Component {
            mut description,
            make,
        } = component;
        let make = wrap(make);
        if matches!(make, Make::Algorithm(_)) {
            let growth = (!description.absolute).then_some(GROWTH);
            let shared = growth.into_iter().chain(OF_ALL_ALGORITHMS);
            description.parameters.extend(shared);
        }
        Self { description, make }
    }

    /// Describes it in one line, and names the RFC section or paper that defines it.
    #[must_use]
    pub fn about(mut self, summary: &'static str, source: &'static str) -> Self {
        self.description.summary = summary;
        self.description.source = source;
        self
    }

    /// Declares its parameters, in the order in which they may be given without names.
    #[must_use]
    pub fn with_parameters(mut self, parameters: &[Parameter]) -> Self {
        self.description.parameters = parameters.to_vec();
        self
    }

    /// Declares what decides which components an algorithm goes with, and which promises hold for a controller.
    #[must_use]
    pub(crate) fn with_traits(mut self, traits: Traits) -> Self {
        self.description.traits = traits;
        self
    }

    /// Declares that it sets the window outright, so that the window may rise without acknowledged bytes to
    /// account for it.
    #[must_use]
    pub fn absolute(mut self) -> Self {
        self.description.absolute = true;
        self
    }

    /// Its name in specs.
    pub const fn name(&self) -> &'static str {
        self.description.name
    }

    /// Its place in specs.
    pub const fn kind(&self) -> Kind {
        match self.make {
            Make::Algorithm(_) => Kind::Algorithm,
            Make::Startup(_) => Kind::Component(Key::Start),
            Make::Shaper(_) => Kind::Component(Key::Shape),
            Make::Idle(_) => Kind::Component(Key::Idle),
            Make::Loss(_) => Kind::Component(Key::Loss),
            Make::Ceiling(_) => Kind::Component(Key::Ceiling),
            Make::Custom(_) => Kind::Custom,
        }
    }

    /// The key that it stands behind; `None` for what a spec begins with.
    pub const fn key(&self) -> Option<Key> {
        match self.kind() {
            Kind::Component(key) => Some(key),
            _ => None,
        }
    }

    /// Returns true if a spec that begins with it may name components.
    pub const fn takes_components(&self) -> bool {
        matches!(self.make, Make::Algorithm(_))
    }

    /// One line for listings; empty if it was registered without.
    pub const fn summary(&self) -> &'static str {
        self.description.summary
    }

    /// The RFC section, or paper and equation, that defines it.
    pub const fn source(&self) -> &'static str {
        self.description.source
    }

    /// Its parameters, in the order in which they may be given without names.
    pub fn parameters(&self) -> &[Parameter] {
        &self.description.parameters
    }

    /// Returns true if it sets the window outright instead of growing it by acknowledged bytes.
    pub const fn is_absolute(&self) -> bool {
        self.description.absolute
    }

    /// The component that an algorithm has for `key` when a spec names none.
    pub const fn default_component(&self, key: Key) -> &'static str {
        match key {
            Key::Loss if self.description.traits.holds_on_loss => "guard",
            Key::Start | Key::Loss => "standard",
            Key::Shape | Key::Ceiling => "none",
            Key::Idle => "keep",
        }
    }

    /// Puts what it makes into its place among `components`.
    pub(super) fn add_to(&self, components: &mut Components, arguments: &Arguments) {
        match self.make {
            Make::Algorithm(make) => {
                components.algorithm = make(arguments);
                components.growth = Growth::from_arguments(arguments);
                components.opening = Opening::from_arguments(arguments);
                components.resends = Resends::from_arguments(arguments);
            }
            Make::Startup(make) => components.startup = make(arguments),
            Make::Shaper(make) => components.shaper = make(arguments),
            Make::Idle(make) => components.idle = make(arguments),
            Make::Loss(make) => components.loss = make(arguments),
            Make::Ceiling(make) => components.ceiling = make(arguments),
            Make::Custom(_) => {}
        }
    }

    pub(super) fn check(&self) -> Result<(), RegisterError> {
        let bad = |problem| RegisterError::BadParameter {
            entry: self.description.name,
            problem,
        };
        for (index, parameter) in self.description.parameters.iter().enumerate() {
            super::check_name(parameter.name)?;
            let earlier = self.description.parameters.iter().take(index);
            if earlier.into_iter().any(|other| other.name == parameter.name) {
                return Err(bad(format!("two have the name `{}`", parameter.name)));
            }
            if !parameter.accepts(parameter.default) {
                return Err(bad(format!(
                    "the default of `{}` is {}, which is not {}",
                    parameter.name,
                    parameter.default,
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
            .field("name", &self.description.name)
            .field("kind", &self.kind())
            .field("parameters", &self.description.parameters)
            .finish_non_exhaustive()
    }
}
