//! The code that playrate's adapters to QUIC stacks share. It depends on no QUIC stack.
//!
//! An adapter implements [`QuicStack`], creates a [`PathController`] for each path of a connection, and passes the
//! stack's calls to it. This crate does the rest:
//!
//! - [`ControllerChoice`] names a controller: one of playrate's specs, or one of the stack's own.
//! - [`ConnectionController`] is one connection's congestion control, with the knowledge of its video.
//! - [`telemetry`] shows the controller's behaviour, as [`Sample`](telemetry::Sample)s.
//! - [`Probe`] decides how much padding an application writes to find out what the path carries.
//! - [`WireOverhead`] and [`UnsentBytes`] count the bytes that the application reports as written.
//!
//! `playrate-quinn` is the adapter to quinn, `playrate-noq` the one to noq.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod choice;
mod connection;
mod estimator;
mod observed;
mod overhead;
mod path;
mod probe;
mod share;
mod stack;
mod switching;
pub mod telemetry;
mod unsent;

pub use choice::ControllerChoice;
pub use connection::{AckRequest, ConnectionController};
pub use overhead::WireOverhead;
pub use path::PathController;
pub use probe::Probe;
pub use stack::{AckedPacket, BaselineMetrics, CongestionReport, QuicStack};
pub use switching::ReplayHistory;
pub use unsent::UnsentBytes;

#[cfg(test)]
mod tests;
