//! Congestion controllers for video, composable and sans-IO.
//!
//! What belongs here: the laws of congestion control, their parts and estimators, and what a controller needs
//! to be told. What does not: sockets, clocks, async, randomness, any QUIC library. Time comes in as a
//! [`Timestamp`]; the answer goes out as a window in [`Bytes`].
//!
//! - [`CongestionController`] is the one trait; [`events`] are what it is told.
//! - [`VideoKnowledge`] is what the server knows of the video on one connection.
//! - [`Snapshot`] is what a controller tells telemetry.

pub mod events;

mod controller;
mod knowledge;
mod snapshot;
mod timestamp;

pub use controller::CongestionController;
pub use knowledge::VideoKnowledge;
pub use playrate_units::{Bitrate, Bytes};
pub use snapshot::{Phase, Reason, Snapshot};
pub use timestamp::Timestamp;
