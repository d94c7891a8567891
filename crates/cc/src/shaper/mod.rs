//! Shapers: what of an algorithm's window is published, given what is known of the video.
//!
//! The algorithm goes on working with its own window; a shaper only changes the one that the transport
//! receives. A new one is a file here that implements [`Shaper`] and gives a `component()`; below it needs
//! its `mod` line, a variant of [`AnyShaper`] and a row of [`components`]. One that lacks a fact of the video
//! returns the window as it is.

mod video;

use crate::component::{Component, Description, Needs, dispatch};
use crate::state::Core;
use video::{PlayoutBuffer, RateFloor};

/// Change of the published window by what is known of the video.
pub(crate) trait Shaper {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns true if it shapes in recovery, too.
    fn acts_in_recovery(&self) -> bool {
        false
    }

    /// The window to publish, bytes, from `core.window()`. Called after every event in congestion avoidance and, where
    /// it [acts there](Self::acts_in_recovery), in recovery: the papers shape in no other phase. The caller keeps the
    /// result within its bounds.
    fn shape(&self, core: &Core) -> u64 {
        core.window()
    }
}

#[derive(Clone, Debug)]
pub(crate) enum AnyShaper {
    None(Unshaped),
    RateFloor(RateFloor),
    PlayoutBuffer(PlayoutBuffer),
}

dispatch! {
    impl AnyShaper { None, RateFloor, PlayoutBuffer }
    fn needs(&self) -> Needs;
    fn acts_in_recovery(&self) -> bool;
    fn shape(&self, core: &Core) -> u64;
}

/// Publishes the algorithm's window as it is.
#[derive(Clone, Debug)]
pub(crate) struct Unshaped;

impl Shaper for Unshaped {}

/// All shapers, the default first.
pub(crate) fn components() -> Vec<Component<AnyShaper>> {
    let none = Description::new("none", "the algorithm's window is used as it is", "RFC 9002 §7")
        .made_by(|_| AnyShaper::None(Unshaped));
    vec![none, video::rate_floor(), video::playout_buffer()]
}
