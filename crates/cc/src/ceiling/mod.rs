//! Ceilings: bounds on the published window from above, such as a rate that the application needs no more than.
//!
//! quinn has no pacing hook, so a pacing rate is a window of rate · srtt. While a ceiling bounds the window, the law is told that
//! the sender is limited and gets no credit; a loss then starts from the bounded window. A new one is a file here,
//! an arm of [`Ceiling`] and a row in `registry/builtin.rs`.

pub(crate) mod pace;

use crate::compose::{Core, Needs};
use crate::registry::{Entry, Key};
use pace::Pace;

/// All ceilings.
#[derive(Clone, Debug)]
pub(crate) enum Ceiling {
    /// No bound but `u32::MAX`.
    None,
    Pace(Pace),
}

impl Ceiling {
    /// What it asks of its surroundings.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::None => Needs::default(),
            Self::Pace(_) => Pace::needs(),
        }
    }

    /// Bounds the window from above, bytes. The caller keeps the result at or above the minimum.
    #[inline]
    pub(crate) fn limit(&self, core: &Core, window: u64) -> u64 {
        match self {
            Self::None => window,
            Self::Pace(part) => part.ceiling(core).map_or(window, |ceiling| window.min(ceiling)),
        }
    }
}

pub(crate) fn none() -> Entry {
    Entry::part(Key::Ceiling, "none")
        .about("no bound from above", "RFC 9002 §7")
        .ceiling(|_| Ceiling::None)
}
