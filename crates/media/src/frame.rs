//! [`Frame`] and [`TitleInfo`]: what a reader learns from a title.

use std::ops::Range;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

/// One coded video frame: where its bytes are and when it is decoded and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Where its first byte is, in bytes from the start of the file.
    pub offset: u64,
    /// How many bytes it has. They are contiguous.
    pub size: Bytes,
    /// When it is decoded, since the track's presentation start. Decoding that happens before that reads as zero.
    pub dts: Duration,
    /// When it is shown, since the track's presentation start: the first shown frame has zero.
    pub pts: Duration,
    /// Whether decoding can start here (a sync sample; in H.264 an IDR picture).
    pub key: bool,
}

impl Frame {
    /// Where its bytes are in the file.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.end()
    }

    /// Where its last byte ends, in bytes from the start of the file.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size.as_u64())
    }
}

/// How the frames of a title are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// One `moov` box with all tables before the media: playing can start as soon as media arrives.
    ProgressiveMoovFirst,
    /// The tables come after the media: a client that reads in order knows no frame until the end.
    ProgressiveMoovLast,
    /// Tables come piece by piece, in one `moof` box before each piece of media.
    Fragmented,
    /// No MP4 at all: frame sizes and times are a trace's, the payload is generated and not decodable.
    Trace,
}

/// What a `moov` box (or a trace) says about a title as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TitleInfo {
    /// The codecs as RFC 6381 writes them, video first: `avc1.64001f, mp4a.40.2`. Empty for a trace.
    pub codecs: String,
    /// Width of the picture in pixels as coded; zero for a trace.
    pub width: u32,
    /// Height of the picture in pixels as coded; zero for a trace.
    pub height: u32,
    /// Playing time. A fragmented file need not say it: then it is known only once the whole file has been read.
    pub duration: Option<Duration>,
    /// Video and audio bytes × 8 ÷ playing time, where the `moov` box tells it (not for fragmented files).
    pub average_rate: Option<Bitrate>,
    /// How the frames are laid out.
    pub layout: Layout,
    /// Whether there is at least one audio track.
    pub has_audio: bool,
}

/// Audio bytes and when they are heard: enough for rates. Nanoseconds since the track's presentation start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AudioSample {
    pub(crate) time_ns: u64,
    pub(crate) size: u32,
}

/// Where a fragment begins in the file, and the number of its first video frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentStart {
    pub(crate) offset: u64,
    pub(crate) first_frame: usize,
}
