//! Adjustments: the steps from the algorithm's window to the one that the transport receives.
//!
//! The algorithm continues with its own window. A controller may have three adjustments, which act in this order after
//! every event:
//!
//! - The *shaper* changes the window according to facts of the video. If it lacks a fact, it changes nothing.
//! - The *loss policy* answers losses for an algorithm that holds on them (`Algorithm::on_congestion` returned `None`).
//!   An algorithm that answers losses itself accepts only `standard`.
//! - The *ceiling* bounds the window from above, for example by the highest rate that the application needs. quinn has
//!   no pacing hook, so a pacing rate is a window of rate · srtt.
//!
//! While the loss policy or the ceiling bounds the window, the sender counts as limited and the algorithm gets no
//! allowance; a loss then reduces the bounded window.

mod guard;
pub(crate) mod pace;
pub(crate) mod video;

pub(crate) use guard::LossGuard;
pub(crate) use pace::Pace;
pub(crate) use video::Shaper;
