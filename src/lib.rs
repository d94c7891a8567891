//! Congestion control that knows it is carrying video, for quinn.
//!
//! This crate is the face of the workspace: it re-exports the controllers ([`cc`]) and what drives quinn with
//! them ([`transport`]).
//!
//! # Use it in your quinn program
//!
//! A controller is named by a spec, made for each connection, and may be told at any time what is known of the video:
//!
//! ```
//! use playrate::cc::{Bitrate, Bytes};
//! use playrate::transport::{ConnectionController, ControllerChoice};
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let choice: ControllerChoice = "cubic+start=video-ssthresh".parse()?;
//!
//! // One for each connection, such as each time a server accepts one:
//! let controller = ConnectionController::new(choice);
//! let mut transport = quinn::TransportConfig::default();
//! controller.install(&mut transport);
//! // … server_config.transport_config(Arc::new(transport)), then incoming.accept_with(Arc::new(server_config)).
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
pub use playrate_transport as transport;

/// The README's examples, held to compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
