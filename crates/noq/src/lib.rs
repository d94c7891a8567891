//! Puts playrate's congestion controllers into any [`noq`] program, and into those of iroh, which is built on noq. No
//! HTTP, no TLS, no sockets.
//!
//! A spec names a controller; each connection gets its own, which receives facts of the video while the connection
//! runs:
//!
//! ```
//! use playrate_noq::cc::{Bitrate, Bytes};
//! use playrate_noq::{ConnectionController, ControllerChoice};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let choice: ControllerChoice = "video".parse()?;
//!
//! // One for each connection, such as each time a server accepts one:
//! let controller = ConnectionController::new(choice);
//! let transport = controller.transport(|_| {});
//! // … server_config.transport_config(transport), then incoming.accept_with(Arc::new(server_config)).
//!
//! // While it runs, from any thread:
//! let knowledge = Arc::clone(controller.knowledge());
//! knowledge.set_average_rate(Some(Bitrate::from_kbps(5_240)));
//! knowledge.set_playout_buffer(Some(Bytes::from_kb(656)));
//! # Ok(())
//! # }
//! ```
//!
//! - [`ControllerChoice`] names a controller: one of playrate's specs, or a [`Baseline`] (noq's own, unmodified).
//! - [`ConnectionController`] is one connection's congestion control; [`NoqController`] is that of one of its paths.
//! - [`EndpointFactory`] builds controllers for all connections of an endpoint; [`NoqController::of`] finds that of a
//!   path.
//! - [`telemetry`] shows the controller's behaviour, as [`Sample`](telemetry::Sample)s.
//! - [`Probe`] says how much padding an application should write to find out what the path carries. It is off unless
//!   called.
//! - [`WireOverhead`] and [`UnsentBytes`] count the bytes that the application reports as written.
//!
//! # noq's own controllers
//!
//! | name | controller |
//! |---|---|
//! | `noq-newreno` | `NewReno` (RFC 6582, RFC 9002) |
//! | `noq-cubic` | `Cubic`, noq's default (after RFC 8312) |
//! | `noq-bbr3` | `Bbr3` (draft-ietf-ccwg-bbr) |
//!
//! # Differences from `playrate-quinn`
//!
//! - noq paces by the rate of `bbr`, `copa` and `video`, so their windows only bound the flight. It paces the others as
//!   quinn does, at 1.25 windows per round trip.
//! - noq reports losses that were spurious. `cubic` and `reno`, among others, then undo their reduction.
//! - noq's path statistics show the controller's capacity estimate (`bandwidth_estimate`).
//!
//! # iroh
//!
//! iroh 1.4 takes the factory as it is:
//!
//! ```text
//! let factory = Arc::new(EndpointFactory::new("video".parse()?));
//! let transport = QuicTransportConfig::builder().congestion_controller_factory(factory).build();
//! let endpoint = Endpoint::builder(presets::N0).transport_config(transport).bind().await?;
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod baseline;
mod controller;
mod endpoint;
mod stack;

use noq_proto::congestion::ControllerMetrics;
use playrate_units::Bitrate;

pub use baseline::Baseline;
pub use controller::NoqController;
pub use endpoint::EndpointFactory;
pub use playrate_adapter::{AckRequest, Probe, UnsentBytes, WireOverhead};
pub use playrate_cc as cc;
pub use stack::Noq;

/// One connection's congestion control, ready for noq. All paths of the connection share it.
///
/// ```
/// use playrate_noq::{ConnectionController, ControllerChoice};
///
/// let control = ConnectionController::new("cubic+start=hystartpp".parse::<ControllerChoice>()?);
/// let mut transport = noq::TransportConfig::default();
/// control.install(&mut transport);
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
pub type ConnectionController = playrate_adapter::ConnectionController<Noq>;

/// The controller of a connection. Its text form is a [`ControllerSpec`](playrate_cc::ControllerSpec) or the name of a
/// [`Baseline`].
///
/// ```
/// use playrate_noq::ControllerChoice;
///
/// for name in ["cubic+start=hystartpp", "noq-cubic"] {
///     let choice: ControllerChoice = name.parse()?;
///     assert_eq!(choice.to_string(), name);
/// }
/// # Ok::<(), playrate_cc::SpecError>(())
/// ```
pub type ControllerChoice = playrate_adapter::ControllerChoice<Noq>;

/// Shows `capacity` in noq's path statistics. moq-noq has no such field, so `examples/moq/adapter` compiles the modules
/// of this crate with another root.
fn show_capacity(metrics: &mut ControllerMetrics, capacity: Option<Bitrate>) {
    metrics.bandwidth_estimate = capacity.map(Bitrate::as_bits_per_second);
}

/// Telemetry: a connection's congestion control as a stream of [`Sample`](telemetry::Sample)s.
pub mod telemetry {
    pub use playrate_adapter::telemetry::{Monitor, Sample, Sink, TimeSeries};
}

/// The examples of the README, as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
