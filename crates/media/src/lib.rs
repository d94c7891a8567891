//! Titles: what is in an MP4 file, frame by frame.
//!
//! - [`StreamParser`] reads a progressive or fragmented MP4 file as its bytes arrive and tells the frames (sans-IO);
//! - [`Title`] is the whole index of a file: frames, average and peak rate, segments;
//! - [`MediaSource`] is what a server serves: a file, memory, or payload generated from a [`FrameTrace`];
//! - [`Ladder`] is a title in several representations, cut into segments of equal length, for adaptive players;
//! - [`manifest`] reads the DASH and HLS manifests of packaged titles;
//! - `assets` holds the title that comes with the project (feature `embedded-title`).
//!
//! Files are taken to be hostile: what they may ask for is bounded by [`Limits`], and a bad one gives a [`MediaError`]
//! that names the box, its offset and the mend.
//!
//! What belongs here: reading MP4, codec strings, rates, segments. What does not: network, playout, writing into a
//! bitstream.

#[cfg(feature = "embedded-title")]
pub mod assets;
mod boxes;
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
mod tables;
mod title;
mod trace;

pub use error::{BoxName, MediaError};
pub use frame::{Frame, Layout, TitleInfo};
pub use ladder::{Ladder, Representation, SegmentSizes};
pub use limits::Limits;
pub use segment_index::{IndexedSegment, segment_index};
pub use segments::Segment;
pub use source::{FileSource, MAX_READ, MediaSource, MemorySource, TraceSource};
pub use stream::StreamParser;
pub use title::Title;
pub use trace::FrameTrace;
