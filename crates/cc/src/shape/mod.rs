//! Shaping parts: what of a law's window is published, given what is known of the video.
//!
//! The law goes on working with its own window; shaping only changes what the transport sees. A new one is a file here, an
//! arm of [`Shape`] and a row in `registry/builtin.rs`; one that needs knowledge it does not have returns the
//! law's window as it is.

mod video;

use crate::compose::{Core, Needs};
use crate::registry::{Entry, Key};
use crate::{Facts, Phase};

use video::{PlayoutBuffer, RateFloor};
pub(crate) use video::{playout_buffer, rate_floor};

/// All shaping parts.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// The law's window as it is.
    None,
    RateFloor(RateFloor),
    PlayoutBuffer(PlayoutBuffer),
}

impl Shape {
    /// What it asks of its surroundings.
    pub(crate) fn needs(&self) -> Needs {
        match self {
            Self::None => Needs::default(),
            Self::RateFloor(_) => Needs::knowledge(Facts::AVERAGE_RATE),
            Self::PlayoutBuffer(_) => Needs::knowledge(Facts::PLAYOUT_BUFFER),
        }
    }

    /// The window to publish, bytes, from `core.window()`. Asked after every event, in every phase (`core.phase()`):
    /// the papers shape in congestion avoidance only. The caller keeps it within its bounds.
    #[inline]
    pub(crate) fn apply(&self, core: &Core) -> u64 {
        match self {
            Self::RateFloor(part) if core.phase() == Phase::Avoidance => part.apply(core),
            Self::PlayoutBuffer(part) if core.phase() == Phase::Avoidance => part.apply(core),
            Self::None | Self::RateFloor(_) | Self::PlayoutBuffer(_) => core.window(),
        }
    }
}

pub(crate) fn none() -> Entry {
    Entry::part(Key::Shape, "none")
        .about("the law's window is used as it is", "RFC 9002 §7")
        .shape(|_| Shape::None)
}
