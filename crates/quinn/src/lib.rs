//! Puts playrate's congestion controllers into any [`quinn`] program. No HTTP, no TLS, no sockets.
//!
//! A spec names a controller; each connection gets its own, which receives facts of the video while the connection
//! runs:
//!
//! ```
//! use playrate_cc::{Bitrate, Bytes};
//! use playrate_quinn::{ConnectionController, ControllerChoice};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let choice: ControllerChoice = "cubic+start=video-ssthresh".parse()?;
//!
//! // One for each connection, such as each time a server accepts one:
//! let controller = ConnectionController::new(choice);
//! let mut transport = quinn::TransportConfig::default();
//! controller.install(&mut transport);
//! controller.request_acks(&mut transport);
//! // … server_config.transport_config(Arc::new(transport)), then incoming.accept_with(Arc::new(server_config)).
//!
//! // While it runs, from any thread:
//! let knowledge = Arc::clone(controller.knowledge());
//! knowledge.set_average_rate(Some(Bitrate::from_kbps(5_240)));
//! knowledge.set_playout_buffer(Some(Bytes::from_kb(656)));
//! # Ok(())
//! # }
//! ```
//!
//! - [`ControllerChoice`] names a controller: one of playrate's specs, or a [`Baseline`] (quinn's own, unmodified).
//! - [`ConnectionController`] is one connection's congestion control; [`QuinnController`] is that of one of its paths.
//! - [`telemetry`] shows the controller's behaviour, as [`Sample`](telemetry::Sample)s.
//! - [`WireOverhead`] and [`UnsentBytes`] count the bytes that the application reports as written. Both are optional.
//!   Without the first, windows that follow the video's rate ignore the bytes that packets add. Without the second, a
//!   writer cannot wait for the send queue to drain.
//!
//! Code that is not specific to quinn is in `playrate-adapter`; this crate re-exports the types that programs need.
//! `playrate-transport` builds HTTP/3 on top of this crate.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod baseline;
mod controller;
mod stack;

pub use baseline::Baseline;
pub use controller::QuinnController;
pub use playrate_adapter::{AckRequest, UnsentBytes, WireOverhead};
pub use stack::Quinn;

/// One connection's congestion control, ready for quinn.
///
/// ```
/// use playrate_quinn::{ConnectionController, ControllerChoice};
///
/// let control = ConnectionController::new("cubic+start=hystartpp".parse::<ControllerChoice>()?);
/// let mut transport = quinn::TransportConfig::default();
/// control.install(&mut transport);
/// control.request_acks(&mut transport);
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
pub type ConnectionController = playrate_adapter::ConnectionController<Quinn>;

/// The controller of a connection. Its text form is a [`ControllerSpec`](playrate_cc::ControllerSpec) or the name of a
/// [`Baseline`].
///
/// ```
/// use playrate_quinn::ControllerChoice;
///
/// for name in ["cubic+start=hystartpp", "quinn-cubic"] {
///     let choice: ControllerChoice = name.parse()?;
///     assert_eq!(choice.to_string(), name);
/// }
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
pub type ControllerChoice = playrate_adapter::ControllerChoice<Quinn>;

/// Telemetry: a connection's congestion control as a stream of [`Sample`](telemetry::Sample)s.
pub mod telemetry {
    pub use playrate_adapter::telemetry::{Monitor, Sample, Sink, TimeSeries};
}

#[cfg(test)]
mod tests;
