//! Plays titles over HTTP/3 with a modelled playout buffer, and reports what the viewer would have seen.
//!
//! What belongs here: playout clocks, bit rate adaptation, the quality report, the download loop. The binary is a thin command line over it.
//!
//! - [`playout`] is the player: sans-IO, two clocks, one definition of every number.
//! - [`Session`] downloads a title past it, on any [`quinn::Runtime`].
//! - [`dash`] is a player that chooses among representations, segment by segment, of a ladder or a manifest.
//! - [`cmcd`] and [`cmsd`] are what player and server tell each other.
//! - [`QualityReport`] is what comes out, as values, text and JSON.

pub mod cmcd;
pub mod cmsd;
pub mod dash;
mod error;
mod frames;
pub mod observer;
pub mod playout;
pub mod report;
mod session;
mod sink;
mod throughput;
mod url;

pub use error::PlayError;
pub use frames::FrameSource;
pub use observer::{Observer, Progress};
pub use report::QualityReport;
pub use session::{PlayOptions, Played, Session};
pub use sink::{Discard, Sink};
pub use throughput::Throughput;
pub use url::{TitleUrl, UrlError};
