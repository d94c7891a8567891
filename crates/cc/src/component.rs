//! Types that components share, and the macro for kinds with many of them.
//!
//! Algorithms, startup components and idle policies have the same form: a folder with a trait (`Algorithm`, …), one
//! file for each implementation, and an enum of all of them (`AnyAlgorithm`, …) that [`dispatch`] defines. A controller
//! holds its components by value and calls their methods without indirection.

use crate::Facts;

/// Properties of an algorithm that decide which components it is compatible with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traits {
    /// It may leave a loss to the loss policy (`Algorithm::on_congestion` returns `None`).
    pub(crate) holds_on_loss: bool,
    /// It reduces its window when the RTT rises.
    pub(crate) delay_based: bool,
    /// It yields to other traffic as soon as its window carries more than the video's rate.
    pub(crate) yields: bool,
}

/// Requirements of a controller's components on their surroundings. Each component adds its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// The peer is asked to acknowledge every packet, instead of one for two or more.
    pub(crate) every_ack: bool,
    pub(crate) bursts: Bursts,
    /// A clock of the time during which something other than the window limited the sender.
    pub(crate) limited_time: bool,
    /// The path's window is shared with those of the connection's other paths.
    pub(crate) coupled: bool,
    /// Time after which the largest RTT is forgotten, ns; zero never forgets it.
    pub(crate) rtt_window_ns: u64,
    /// Facts of the video that it uses.
    pub(crate) knowledge: Facts,
}

/// Reports of departing bursts that a component requires; each kind includes the previous ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bursts {
    /// Bursts that leave while nothing is in flight.
    #[default]
    AfterSilence,
    /// All bursts that leave.
    Every,
    /// All bursts: the controller estimates the path's capacity from them.
    Capacity,
}

/// A window and threshold after a congestion event, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// New window; raised to the minimum when it is set.
    pub(crate) window: u64,
    /// New slow start threshold.
    pub(crate) ssthresh: u64,
}

/// Defines the enum of one kind's components, with a variant for each, and implements their trait's methods on it by
/// calling the variant's method. The first variant is the default.
///
/// A method that is not listed here cannot be called on the enum, so none can be forgotten.
macro_rules! dispatch {
    (enum $kind:ident $variants:tt
        $(fn $name:ident(&$($receiver:ident)+ $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)+
    ) => {
        crate::component::dispatch!(@enum $kind $variants);

        impl $kind {
            $(
                #[inline]
                pub(crate) fn $name(&$($receiver)+ $(, $argument: $type)*) $(-> $result)? {
                    crate::component::dispatch!(@each [$($receiver)+] $variants $name($($argument),*))
                }
            )+
        }
    };
    (@enum $kind:ident { $first:ident $(, $(#[$feature:meta])? $variant:ident)* }) => {
        #[derive(Clone, Debug)]
        pub(crate) enum $kind {
            $first($first),
            $($(#[$feature])? $variant($variant),)*
        }

        impl Default for $kind {
            fn default() -> Self {
                Self::$first($first::default())
            }
        }
    };
    (@each [mut $this:ident] $($rest:tt)+) => {
        crate::component::dispatch!(@each [$this] $($rest)+)
    };
    (@each [$this:ident] { $($(#[$feature:meta])? $variant:ident),+ } $name:ident $arguments:tt) => {
        match $this {
            $($(#[$feature])? Self::$variant(component) => component.$name $arguments,)+
        }
    };
}
pub(crate) use dispatch;
