//! Adaptive streaming as DASH players do it: a title in several representations, fetched segment by segment.
//!
//! The model is dash.js 4.0.0 with its throughput rule (the player of Yanev et al., 2022), read from its published bundle
//! (npm `dashjs` 4.0.0-npm):
//!
//! - one request at a time on one connection; a segment counts when it is whole;
//! - [`ThroughputHistory`] measures segments and smooths the measurements, [`Abr::Throughput`] chooses by them;
//! - the next segment is asked for while less than the buffer's target ([`BufferTargets`]) is in, which is looked at when a
//!   segment is in and every [`DashOptions::poll`] from then on: hence the pauses between requests;
//! - playback has the rebuffer clock ([`crate::playout::Rebuffer`]): it starts with two segments and goes on after a stall with one.
//!
//! [`DashPlayer`] is all that, sans-IO; [`DashSession`] fetches what it asks for, of a [`Presentation`] that is known or of a
//! manifest. What of dash.js is left out: audio, fetching anew what is buffered in a lower quality (`fastSwitchEnabled`), the rules for dropped frames.

mod abr;
mod history;
mod manifest;
mod packaged;
mod player;
mod presentation;
mod report;
mod run;
mod session;
mod switch_history;
#[cfg(test)]
mod tests;

pub use abr::{Abr, AbrError};
pub use history::{Measured, ThroughputHistory};
pub use packaged::TitleError;
pub use player::{BufferTargets, DashOptions, DashPlayer, Decision, Fetched, SetupError};
pub use presentation::{MediaSegment, Presentation, PresentationError, Representation, Resource};
pub use report::{DashReport, Estimates, SegmentRecord};
pub use session::DashSession;
