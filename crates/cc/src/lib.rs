//! Congestion controllers for video, composable and sans-IO.
//!
//! Belongs here: congestion avoidance algorithms, the components that complete them, estimators, and the events that a
//! controller receives. Does not belong here: sockets, clocks, async, randomness, any QUIC library. Time comes in as a
//! [`Timestamp`]; the answer goes out as a window in [`Bytes`].
//!
//! - [`CongestionController`] is the one trait; it receives [`events`].
//! - [`ControllerSpec`] names a controller and builds it; [`registry`] holds all names.
//! - [`VideoKnowledge`] holds the facts of the video on one connection.
//! - [`Snapshot`] is a controller's state for telemetry.
//! - [`Estimate`] is the rate that a path was observed to carry; adapters measure it.
//!
//! ```
//! use std::sync::Arc;
//! use playrate_cc::{Bytes, ControllerSpec, Path, VideoKnowledge};
//!
//! let spec: ControllerSpec = "cubic+start=hystartpp".parse()?;
//! let known = Arc::new(VideoKnowledge::new());
//! let controller = spec.build(&Path::new(Bytes::new(1_452)), known);
//! assert_eq!(controller.window(), Bytes::new(14_520));
//! # Ok::<(), playrate_cc::SpecError>(())
//! ```
//!
//! # Composition
//!
//! A spec is `ALGORITHM[(args)][+KEY=COMPONENT[(args)]]…`. The algorithm governs congestion avoidance and the cost of a
//! loss; `start` is slow start; `shape` changes the published window by what is known of the video; `idle` is the cost
//! of a pause; `loss` answers losses for algorithms that do not; `ceiling` bounds the window from above. Components not
//! named in a spec have defaults, and a component that lacks a fact of the video behaves as its plain counterpart. All
//! components share one core: window, ssthresh, RTT, rounds, recovery. An ACK frame passes through the idle policy,
//! then slow start or the algorithm, then shaper, loss policy and ceiling; every change of phase has a [`Reason`].
//!
//! # Features
//!
//! - `papers`: the parameters `counting`, `ssthresh` and `recovery` and the component `start=hystart`, which turn an
//!   algorithm into a TCP sender of 2010 to 2015, as papers measured them. Without the feature, a spec that uses one of
//!   them is an error that names the feature.
//! - `testing`: the module `testing`, a model that drives controllers in tests and fuzzers.
//!
//! # Write your own controller in 30 lines
//!
//! Implement [`CongestionController`] and register a builder. Its name then works wherever a spec is read.
//!
//! ```
//! use std::sync::Arc;
//! use playrate_cc::events::{AckFrame, Congestion, Sent};
//! use playrate_cc::registry::{Entry, Parameter, Registry};
//! use playrate_cc::{Bytes, CongestionController, Path, Snapshot, VideoKnowledge};
//!
//! /// Adds `gain` bytes for each byte acknowledged; a loss takes a quarter.
//! #[derive(Clone, Debug)]
//! struct Gentle { window: u64, minimum: u64, gain: f64 }
//!
//! impl CongestionController for Gentle {
//!     fn on_sent(&mut self, _: &Sent) {}
//!     fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Bytes {
//!         for run in event.acked.iter().filter(|run| !run.app_limited) {
//!             let grown = self.window as f64 + self.gain * run.bytes.as_f64();
//!             self.window = (grown as u64).min(u32::MAX.into());
//!         }
//!         self.window()
//!     }
//!     fn on_congestion(&mut self, _: &Congestion) {
//!         self.window = (self.window / 4 * 3).max(self.minimum);
//!     }
//!     fn on_mtu_change(&mut self, mtu: Bytes) {
//!         self.minimum = 2 * mtu.as_u64();
//!         self.window = self.window.max(self.minimum);
//!     }
//!     fn window(&self) -> Bytes { Bytes::new(self.window) }
//!     fn initial_window(&self) -> Bytes { Bytes::new(5 * self.minimum) }
//!     fn snapshot(&self) -> Snapshot { Snapshot::of_window(self.window()) }
//!     fn clone_box(&self) -> Box<dyn CongestionController> { Box::new(self.clone()) }
//! }
//!
//! let entry = Entry::custom("gentle", |path, arguments, _known| {
//!     let minimum = 2 * path.mtu.as_u64();
//!     Box::new(Gentle { window: 5 * minimum, minimum, gain: arguments.number("gain") })
//! })
//! .about("grows gently").defined_in("this page")
//! .with_parameters(&[Parameter::number("gain", 1.0, 0.0..=2.0).about("bytes per byte acknowledged")]);
//!
//! let mut registry = Registry::builtin();
//! registry.register(entry)?;
//! let spec = registry.parse("gentle(0.5)")?;
//! assert_eq!(spec.to_string(), "gentle(gain=0.5)");
//! let controller = spec.build(&Path::default(), Arc::new(VideoKnowledge::new()));
//! assert_eq!(controller.window(), Bytes::new(12_000));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Add an algorithm or another component
//!
//! Write one file in the folder of its kind (`src/algorithm`, `src/startup`, …), and add its `mod` line and a variant
//! to that folder's `mod.rs`; the compiler names anything missing. Its name, description and constructor are an entry
//! in the file of the same kind in `src/registry/builtin`. Shapers, loss policies and ceilings are in `src/adjustment`,
//! with a field of `Components` for each kind. Each `mod.rs` documents the input, units and time of the hooks;
//! `src/compose/mod.rs` documents the components' order. Tests of every spec in the registry then cover it, and one
//! requires its section in `docs/controllers/all.md`.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]
#![cfg_attr(not(test), warn(clippy::arithmetic_side_effects))]

pub mod events;
pub mod registry;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

mod adjustment;
mod algorithm;
mod component;
mod compose;
mod controller;
mod entry;
mod estimate;
mod estimator;
mod idle;
mod knowledge;
mod parameter;
mod path;
mod snapshot;
mod standalone;
mod startup;
mod state;
#[cfg(test)]
mod tests;
mod timestamp;

pub use algorithm::coupled::CoupledPaths;
pub use controller::CongestionController;
pub use estimate::{Estimate, EstimateSource};
pub use knowledge::{Facts, Playback, VideoKnowledge};
pub use path::Path;
pub use playrate_units::{Bitrate, Bytes, Probability};
pub use registry::{ControllerSpec, Registry, SpecError};
pub use snapshot::{Phase, Reason, Snapshot};
pub use timestamp::Timestamp;
