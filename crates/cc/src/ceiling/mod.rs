//! Ceilings: bounds on the published window from above, such as a rate that the application needs no more
//! than.
//!
//! quinn has no pacing hook, so a pacing rate is a window of rate · srtt. While a ceiling bounds the window,
//! the sender counts as limited and the algorithm gets no allowance; a loss then starts from the bounded
//! window. A new one is a file here that implements [`Ceiling`] and gives a `component()`; below it needs its
//! `mod` line, a variant of [`AnyCeiling`] and a row of [`components`].

mod pace;

use crate::component::{Component, Description, Needs, dispatch};
use crate::state::Core;
use pace::Pace;

/// Upper bound of the published window.
pub(crate) trait Ceiling {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The upper bound, bytes; `None` for no bound but `u32::MAX`. The caller keeps the window at or above
    /// the minimum.
    fn ceiling(&self, _core: &Core) -> Option<u64> {
        None
    }
}

#[derive(Clone, Debug)]
pub(crate) enum AnyCeiling {
    None(Unbounded),
    Pace(Pace),
}

dispatch! {
    impl AnyCeiling { None, Pace }
    fn needs(&self) -> Needs;
    fn ceiling(&self, core: &Core) -> Option<u64>;
}

#[derive(Clone, Debug)]
pub(crate) struct Unbounded;

impl Ceiling for Unbounded {}

/// All ceilings, the default first.
pub(crate) fn components() -> Vec<Component<AnyCeiling>> {
    let none = Description::new("none", "no bound from above", "RFC 9002 §7")
        .made_by(|_| AnyCeiling::None(Unbounded));
    vec![none, pace::component()]
}
