//! [`Component`]: what a spec can name, declared beside the code that it makes; [`dispatch`]: how a
//! controller calls it.
//!
//! There are six kinds of components, and all have one form: a folder with a trait (`Algorithm`, `Startup`,
//! …) whose methods a controller calls, one file for each implementation, and an enum of all of them
//! (`AnyAlgorithm`, …) that [`dispatch`] makes callable. A controller so holds its components by value and
//! calls them without indirection.

use crate::Facts;
use crate::parameter::{Arguments, Parameter};

/// An implementation of one kind of component. `T` is the enum of the kind's implementations.
pub(crate) struct Component<T> {
    pub(crate) description: Description,
    pub(crate) make: fn(&Arguments) -> T,
}

/// A component or controller as specs, error messages and listings present it.
#[derive(Clone)]
pub(crate) struct Description {
    /// Name in specs, unique among the components of its kind.
    pub(crate) name: &'static str,
    /// One line of description for listings.
    pub(crate) summary: &'static str,
    /// RFC section, or paper and equation.
    pub(crate) source: &'static str,
    /// Parameters in the order in which a spec may give their values without names.
    pub(crate) parameters: Vec<Parameter>,
    /// The window is set outright, so that it may rise without acknowledged bytes to account for it.
    pub(crate) absolute: bool,
    /// Properties of an algorithm or a controller without components; unused for other kinds.
    pub(crate) traits: Traits,
    /// Refuses algorithms that it does not go with, and says why.
    pub(crate) fits: fn(Traits) -> Result<(), &'static str>,
}

/// Properties of an algorithm that decide which components it goes with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// It may leave a loss to the loss policy (`Algorithm::on_congestion` returns `None`).
    pub(crate) holds_on_loss: bool,
    /// It reduces its window when the RTT rises.
    pub(crate) delay_based: bool,
    /// It gives way to other traffic as soon as its window carries more than the video's rate.
    pub(crate) yields: bool,
}

impl Description {
    /// Describes a component without parameters that goes with every algorithm.
    pub(crate) fn new(name: &'static str, summary: &'static str, source: &'static str) -> Self {
        Self {
            name,
            summary,
            source,
            parameters: Vec::new(),
            absolute: false,
            traits: Traits::default(),
            fits: |_| Ok(()),
        }
    }

    pub(crate) fn with_parameters(mut self, parameters: &[Parameter]) -> Self {
        self.parameters = parameters.to_vec();
        self
    }

    /// Declares that it sets the window outright.
    pub(crate) fn absolute(mut self) -> Self {
        self.absolute = true;
        self
    }

    pub(crate) fn with_traits(mut self, traits: Traits) -> Self {
        self.traits = traits;
        self
    }

    pub(crate) fn fits(mut self, fits: fn(Traits) -> Result<(), &'static str>) -> Self {
        self.fits = fits;
        self
    }

    /// The component of this description that `make` makes.
    pub(crate) fn made_by<T>(self, make: fn(&Arguments) -> T) -> Component<T> {
        Component {
            description: self,
            make,
        }
    }
}

/// Requirements of a component on its surroundings. A controller merges those of all its components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The peer is asked to acknowledge every packet, instead of one for two or more.
    pub(crate) every_ack: bool,
    pub(crate) bursts: Bursts,
    /// A clock of the time in which the window was not what limited the sender.
    pub(crate) limited_time: bool,
    /// Time after which the largest RTT is forgotten, ns; zero keeps that of the connection.
    pub(crate) rtt_window_ns: u64,
    /// Facts of the video that it uses.
    pub(crate) knowledge: Facts,
}

impl Needs {
    pub(crate) fn knowledge(facts: Facts) -> Self {
        Self {
            knowledge: facts,
            ..Self::default()
        }
    }

    pub(crate) fn merge(self, other: Self) -> Self {
        Self {
            every_ack: self.every_ack || other.every_ack,
            bursts: self.bursts.max(other.bursts),
            limited_time: self.limited_time || other.limited_time,
            rtt_window_ns: self.rtt_window_ns.max(other.rtt_window_ns),
            knowledge: self.knowledge.union(other.knowledge),
        }
    }
}

/// Reports of departing bursts that a component requires; each kind contains those before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bursts {
    /// Bursts that leave while nothing is in flight.
    #[default]
    AfterSilence,
    /// All bursts that leave.
    Every,
    /// All bursts, from which the controller estimates the capacity of the path.
    Capacity,
}

/// Result of slow start at one ACK frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Step {
    /// Slow start goes on.
    Stay,
    /// Slow start is over.
    Leave {
        /// One of those that [end slow start](crate::Reason::ends_slow_start).
        reason: crate::Reason,
        /// Bytes of the frame's allowance that slow start did not use; the algorithm gets them at once.
        unused: u64,
    },
}

/// A window and threshold after a congestion event, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// New window; raised to the minimum when it is set.
    pub(crate) window: u64,
    /// New slow start threshold.
    pub(crate) ssthresh: u64,
}

/// Gives an enum of components the methods of their trait, each of which calls the variant that is there.
///
/// A method that is not listed here cannot be called on the enum, so that none is forgotten.
macro_rules! dispatch {
    (impl $kind:ident $variants:tt
        $(fn $name:ident(&$($receiver:ident)+ $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)+
    ) => {
        impl $kind {
            $(
                #[inline]
                pub(crate) fn $name(&$($receiver)+ $(, $argument: $type)*) $(-> $result)? {
                    crate::component::dispatch!(@each [$($receiver)+] $kind $variants $name($($argument),*))
                }
            )+
        }
    };
    (@each [mut $this:ident] $($rest:tt)+) => {
        crate::component::dispatch!(@each [$this] $($rest)+)
    };
    (@each [$this:ident] $kind:ident { $($variant:ident),+ $(,)? } $name:ident $arguments:tt) => {
        match $this {
            $($kind::$variant(component) => component.$name $arguments,)+
        }
    };
}
pub(crate) use dispatch;
