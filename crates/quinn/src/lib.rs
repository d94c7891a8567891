//! Puts playrate's congestion controllers into any [`quinn`] program. No HTTP, no TLS, no sockets.
//!
//! A spec names a controller; each connection gets its own, which receives facts of the video while the connection
//! runs:
//!
//! ```
//! use playrate_quinn::ConnectionController;
//! use playrate_quinn::cc::{Bitrate, SpecError};
//! use std::time::Duration;
//!
//! /// The program's own settings.
//! fn configure(transport: &mut quinn::TransportConfig) {
//!     transport.keep_alive_interval(Some(Duration::from_secs(5)));
//! }
//!
//! /// For each connection, before `incoming.accept_with(Arc::new(server))`.
//! fn control(server: &mut quinn::ServerConfig) -> Result<ConnectionController, SpecError> {
//!     let controller = ConnectionController::new("video".parse()?);
//!     server.transport_config(controller.transport(configure));
//!     Ok(controller)
//! }
//!
//! /// While it runs, from any thread.
//! fn inform(controller: &ConnectionController) {
//!     let known = controller.knowledge();
//!     known.set_average_rate(Some(Bitrate::from_kbps(5_240)));
//!     known.set_highest_rate(Some(Bitrate::from_mbps(8)));
//! }
//! ```
//!
//! - [`ControllerChoice`] names a controller: one of playrate's specs, or a [`Baseline`] (quinn's own, unmodified).
//! - [`ConnectionController`] is one connection's congestion control; [`QuinnController`] is that of one of its paths.
//! - [`EndpointFactory`] makes one for each connection of an endpoint; [`controller_of`] returns that of a connection.
//! - [`telemetry`] shows the controller's behaviour, as [`Sample`](telemetry::Sample)s.
//! - [`Probe`] says how much padding an application should write to find out what the path carries. It is off unless
//!   called.
//! - [`WireOverhead`] and [`UnsentBytes`] count the bytes that the application reports as written. Both are optional.
//!   Without the first, windows that follow the video's rate ignore the bytes that packets add. Without the second, a
//!   writer cannot wait for the send queue to drain.
//!
//! # A client that sends
//!
//! The sender's controller decides, so a client that uploads needs its own. It sets one for a connection, or an
//! [`EndpointFactory`] for all connections:
//!
//! ```
//! use playrate_quinn::ConnectionController;
//! use std::error::Error;
//! use std::net::SocketAddr;
//!
//! async fn upload(
//!     endpoint: &quinn::Endpoint,
//!     mut client: quinn::ClientConfig,
//!     server: SocketAddr,
//! ) -> Result<(), Box<dyn Error>> {
//!     let controller = ConnectionController::new("video".parse()?);
//!     client.transport_config(controller.transport(|_| {}));
//!     let connection = endpoint.connect_with(client, server, "localhost")?.await?;
//!     let mut stream = connection.open_uni().await?;
//!     stream.write_all(&[7; 100_000]).await?;
//!     stream.finish()?;
//!     stream.stopped().await?;
//!     println!("{:?}", controller.monitor().latest());
//!     Ok(())
//! }
//! ```
//!
//! # Controllers
//!
//! An algorithm takes components, such as `cubic+start=hystartpp`; the page [controllers/all.md] of the checkout has
//! all of them, their parameters, and the names that papers gave to some.
//!
//! | spec | congestion control |
//! | --- | --- |
//! | [`video`] | for video on any path: the queue stays short, and random losses cost nothing |
//! | [`cubic`] | CUBIC (RFC 9438), the standard |
//! | [`reno`] | NewReno (RFC 9002): one packet more per round trip, half the window on congestion |
//! | [`bbr`] | BBR, version 3 |
//! | [`copa`] | Copa: a few packets in the queue, more while other flows fill it |
//! | [`vegas`] | TCP Vegas: two to four segments in the queue |
//! | [`compound`] | Compound TCP: NewReno's window plus one that grows while the queue is empty |
//! | [`lia`] | NewReno whose paths together take one flow's share (RFC 6356); quinn has one path |
//! | [`olia`] | the same, and the windows move to the paths with the fewest losses |
//! | [`stream`] | TCP Stream: NewReno up to the video's rate, and a window above it that yields to others |
//! | [`ccp`] | half of what the path's storage has room for |
//! | [`ccpd`] | all of that room, damped by how fast it fills |
//! | [`quinn-newreno`](Baseline::NewReno) | quinn's own NewReno, unmodified |
//! | [`quinn-cubic`](Baseline::Cubic) | quinn's own Cubic (its default), unmodified |
//! | [`quinn-bbr`](Baseline::Bbr) | quinn's own BBR (version 1, experimental), unmodified |
//!
//! [`video`]: ../../../docs/controllers.md#video
//! [`cubic`]: ../../../docs/controllers.md#cubic
//! [`reno`]: ../../../docs/controllers.md#reno
//! [`bbr`]: ../../../docs/controllers.md#bbr
//! [`copa`]: ../../../docs/controllers.md#copa
//! [`vegas`]: ../../../docs/controllers.md#vegas
//! [`compound`]: ../../../docs/controllers/all.md#compound
//! [`lia`]: ../../../docs/controllers/all.md#lia
//! [`olia`]: ../../../docs/controllers/all.md#olia
//! [`stream`]: ../../../docs/controllers/all.md#stream
//! [`ccp`]: ../../../docs/controllers/all.md#ccp
//! [`ccpd`]: ../../../docs/controllers/all.md#ccpd
//! [controllers/all.md]: ../../../docs/controllers/all.md
//!
//! # Crates
//!
//! [`cc`] has the controllers. Code that is not specific to quinn is in `playrate-adapter`; this crate re-exports the
//! types that programs need. `playrate-transport` builds HTTP/3 on top of this crate. The program chooses quinn's
//! features, and with them the TLS provider.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod baseline;
mod controller;
mod endpoint;
mod stack;

pub use baseline::Baseline;
pub use controller::QuinnController;
pub use endpoint::{EndpointFactory, controller_of};
pub use playrate_adapter::{AckRequest, Probe, UnsentBytes, WireOverhead};
pub use playrate_cc as cc;
pub use stack::Quinn;

/// One connection's congestion control, ready for quinn.
///
/// ```
/// use playrate_quinn::{ConnectionController, ControllerChoice};
///
/// let control = ConnectionController::new("cubic+start=hystartpp".parse::<ControllerChoice>()?);
/// let transport = control.transport(|transport| {
///     transport.max_idle_timeout(None);
/// });
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

/// Compiles the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;
