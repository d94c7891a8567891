//! Congestion controllers for video, composable and sans-IO.
//!
//! What belongs here: the laws of congestion control, their parts and estimators, and what a controller needs
//! to be told. What does not: sockets, clocks, async, randomness, any QUIC library. Time comes in as a
//! [`Timestamp`]; the answer goes out as a window in [`Bytes`].
//!
//! - [`CongestionController`] is the one trait; [`events`] are what it is told.
//! - [`ControllerSpec`] names a controller and builds it; [`registry`] holds what can be named.
//! - [`VideoKnowledge`] is what the server knows of the video on one connection.
//! - [`Snapshot`] is what a controller tells telemetry.

pub mod events;
pub mod registry;

mod avoidance;
mod ceiling;
mod compose;
mod controller;
mod estimators;
mod idle;
mod knowledge;
mod loss;
mod path;
mod shape;
mod snapshot;
mod spec;
mod startup;
mod timestamp;

pub use controller::CongestionController;
pub use knowledge::VideoKnowledge;
pub use path::Path;
pub use playrate_units::{Bitrate, Bytes};
pub use registry::Registry;
pub use snapshot::{Phase, Reason, Snapshot};
pub use spec::{Choice, ControllerSpec, SpecError};
pub use timestamp::Timestamp;
