//! Shapers: change the published window by what is known of the video.
//!
//! The algorithm continues with its own window; a shaper only changes the one that the transport receives. To add one,
//! write a file here that implements [`Shaper`] and has an `entry()`; below, add its `mod` line, a variant of
//! [`AnyShaper`] and a row of [`entries`]. A shaper that lacks a fact of the video returns the window unchanged.

mod video;

use crate::component::{Needs, dispatch};
use crate::entry::{Entry, Make};
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

    /// The window to publish, bytes, from `core.window()`. Called after every event in congestion avoidance and, if it
    /// [acts there](Self::acts_in_recovery), in recovery: the papers shape in no other phase. The caller keeps the
    /// result within its bounds.
    fn shape(&self, core: &Core) -> u64 {
        core.window()
    }
}

dispatch! {
    enum AnyShaper { Unshaped, RateFloor, PlayoutBuffer }
    fn needs(&self) -> Needs;
    fn acts_in_recovery(&self) -> bool;
    fn shape(&self, core: &Core) -> u64;
}

/// Publishes the algorithm's window as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unshaped;

impl Shaper for Unshaped {}

/// All shapers, the default first.
pub(crate) fn entries() -> Vec<Entry> {
    let none = Entry::new("none", Make::Shaper(|_| AnyShaper::Unshaped(Unshaped)))
        .about("the algorithm's window is used as it is", "RFC 9002 §7");
    vec![none, video::rate_floor(), video::playout_buffer()]
}
