//! Ceilings: upper bounds of the published window, such as the highest rate that the application needs.
//!
//! quinn has no pacing hook, so a pacing rate is a window of rate · srtt. While a ceiling bounds the window, the sender
//! counts as limited and the algorithm gets no allowance; a loss then reduces the bounded window. To add one, write a
//! file here that implements [`Ceiling`] and has an `entry()`; below, add its `mod` line, a variant of [`AnyCeiling`]
//! and a row of [`entries`].

mod pace;

use crate::component::{Needs, dispatch};
use crate::entry::{Entry, Make};
use crate::state::Core;
use pace::Pace;

/// Upper bound of the published window.
pub(crate) trait Ceiling {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The upper bound in bytes; `None` if only `u32::MAX` bounds the window. The caller keeps the window at or above
    /// the minimum.
    fn ceiling(&self, _core: &Core) -> Option<u64> {
        None
    }
}

dispatch! {
    enum AnyCeiling { Unbounded, Pace }
    fn needs(&self) -> Needs;
    fn ceiling(&self, core: &Core) -> Option<u64>;
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Unbounded;

impl Ceiling for Unbounded {}

/// All ceilings, the default first.
pub(crate) fn entries() -> Vec<Entry> {
    let none = Entry::new("none", Make::Ceiling(|_| AnyCeiling::Unbounded(Unbounded)))
        .about("no bound from above", "RFC 9002 §7");
    vec![none, pace::entry()]
}
