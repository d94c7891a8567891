//! Titles: the frames, rates and segments of MP4 files, the manifests of packaged titles, and the data about them that
//! players and servers exchange.
//!
//! - [`StreamParser`] reads a progressive or fragmented MP4 file as its bytes arrive and returns its frames
//!   (sans-IO);
//! - [`Title`] is the whole index of a file: frames, average and peak rate, segments;
//! - [`MediaSource`] is a title to be served: a file in memory, or payload generated from a [`FrameTrace`];
//! - [`Ladder`] is a title in several representations, cut into segments of equal length, for adaptive players;
//! - [`manifest`] reads the DASH and HLS manifests of packaged titles;
//! - [`cmcd`] and [`cmsd`] are the data that players and servers exchange with requests and responses;
//! - `assets` holds the title that comes with the project (feature `embedded-title`).
//!
//! Files are assumed to be hostile: [`Limits`] bound them, and an invalid one causes a [`MediaError`] that names the
//! box, its offset and the fix.
//!
//! In scope: reading MP4 and manifests, codec strings, rates, segments, CMCD and CMSD. Out of scope: network, playout,
//! writing into a bitstream.

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[cfg(feature = "embedded-title")]
pub mod assets;
mod boxes;
pub mod cmcd;
pub mod cmsd;
mod codec;
mod error;
mod fragment;
mod frame;
mod index;
mod ladder;
mod limits;
pub mod manifest;
mod movie;
mod rates;
mod segment_index;
mod segments;
mod source;
mod stream;
mod structured;
mod tables;
mod title;
mod trace;

pub use error::{BoxName, MediaError};
pub use frame::{Frame, Layout, TitleInfo};
pub use ladder::{Ladder, LadderRepresentation, SegmentSizes};
pub use limits::Limits;
pub use segment_index::{IndexedSegment, segment_index};
pub use segments::Segment;
pub use source::{MAX_READ, MediaSource, MemorySource, TraceSource};
pub use stream::StreamParser;
pub use title::Title;
pub use trace::FrameTrace;
