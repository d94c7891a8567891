//! Adaptive streaming: a title in several representations, fetched segment by segment.
//!
//! The model is dash.js 4.0.0 with its throughput rule (the player of Yanev et al., 2022), read from its published
//! bundle (npm `dashjs` 4.0.0-npm):
//!
//! - one request at a time on one connection; a segment counts once it is complete;
//! - the throughput of segments is measured and smoothed, and [`Abr::Throughput`] chooses by it;
//! - the next segment is requested while the buffer holds less than its target ([`BufferTargets`]), which is
//!   checked when a segment has arrived and every half second from then on: hence the pauses between requests;
//! - playback has the rebuffer clock ([`crate::playout::Clock::Rebuffer`]): it starts with two segments and continues
//!   after a stall with one;
//! - if [`DashOptions::fast_switch`] is set, a switch up replaces buffered segments.
//!
//! [`DashPlayer`] is the player, sans-IO; a [`Session`](crate::Session) fetches the segments of a known
//! [`Presentation`] or of a manifest. Not modelled: dash.js's audio and its rules for dropped frames.

mod abr;
mod history;
mod manifest;
mod order;
mod packaged;
mod player;
mod presentation;
mod source;
mod switch_history;
#[cfg(test)]
pub(crate) mod tests;

pub use abr::{Abr, AbrError};
pub use player::{BufferTargets, DashOptions, DashPlayer, Decision};
pub use presentation::{MediaSegment, Presentation, Representation, Resource};
pub(crate) use source::DashSource;

pub use crate::error::{PresentationError, SetupError, TitleError};
pub use crate::report::{DashReport, Estimates, PassedOver, RepresentationRecord, SegmentRecord};
