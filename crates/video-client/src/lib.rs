//! Plays titles over HTTP/3 with a modelled playout buffer, and reports what the viewer would have seen.
//!
//! In scope: bit rate adaptation, the quality report, the session loop. The binary is a thin command line over them.
//!
//! - [`playout`] is the modelled player, a crate of its own: sans-IO, two clocks, one definition of every number.
//! - [`Session`] plays a title in one file or in segments, on any [`quinn::Runtime`].
//! - [`dash`] is a player that chooses among the representations of a ladder or a manifest, segment by segment.
//! - [`cmcd`] and [`cmsd`] are the client side of the data that players and servers exchange.
//! - [`QualityReport`] is the result, as values, text and JSON.

pub mod cmcd;
pub mod cmsd;
mod columns;
pub mod dash;
mod error;
mod estimates;
pub mod observer;
mod play;
mod progressive;
pub mod report;
mod session;
mod sink;
mod throughput;
mod transfer;
mod url;

pub use error::PlayError;
pub use observer::{Observer, Progress};
pub use play::{Player, Session};
pub use playrate_playout as playout;
pub use progressive::{FrameSource, PlayOptions};
pub use report::QualityReport;
pub use session::{Played, ReconnectOptions, Seek, SessionOptions, SharedConnection};
pub use sink::{Discard, Sink};
pub use throughput::Throughput;
pub use transfer::Transfer;
pub use url::{TitleUrl, UrlError};
