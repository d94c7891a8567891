//! Congestion control that knows it is carrying video, for quinn.
//!
//! This crate re-exports the controllers ([`cc`]), the adapter that puts them into any quinn program
//! ([`mod@quinn`]), and HTTP/3 endpoints that use it (`transport`, with the feature `http3`, which is on by default).
//! With `default-features = false` it depends on quinn and six small crates.
//!
//! # Use it in your quinn program
//!
//! A controller is named by a spec, made for each connection, and informed of the video at any time:
//!
//! ```
//! use playrate::cc::{Bitrate, Bytes};
//! use playrate::quinn::ConnectionController;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // One for each connection, such as each time a server accepts one:
//! let controller = ConnectionController::new("video".parse()?);
//! let transport = controller.transport(|transport| {
//!     transport.keep_alive_interval(Some(std::time::Duration::from_secs(5)));
//! });
//! // … server_config.transport_config(transport), then incoming.accept_with(Arc::new(server_config)).
//!
//! // While it runs, from any thread:
//! let known = Arc::clone(controller.knowledge());
//! known.set_average_rate(Some(Bitrate::from_kbps(5_240)));
//! known.set_playout_buffer(Some(Bytes::from_kb(656)));
//! # Ok(())
//! # }
//! ```
//!
//! To write a controller of your own, see [`cc`]. To serve and play video rather than bytes, see the workspace's
//! `video-server` and `video-client` crates.

pub use playrate_cc as cc;
pub use playrate_quinn as quinn;
#[cfg(feature = "http3")]
pub use playrate_transport as transport;

/// Compiles the README's examples as doc tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
