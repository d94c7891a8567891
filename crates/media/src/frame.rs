//! [`Frame`] and [`TitleInfo`]: the contents of a title's index.

use std::ops::Range;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

/// A coded video frame: the place of its bytes, its decode and presentation times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "drivers of the playout model write frames as literals"
)]
pub struct Frame {
    /// Offset of the first byte in the file.
    pub offset: u64,
    /// Size; the bytes are contiguous.
    pub size: Bytes,
    /// Decode time on the movie's clock; zero if it is before the movie's start.
    pub dts: Duration,
    /// Presentation time on the movie's clock, after the edit list: zero if the movie starts with this frame.
    pub pts: Duration,
    /// True if decoding can start here (a sync sample; an IDR access unit in H.264).
    pub key: bool,
}

impl Frame {
    /// Byte range in the file.
    pub fn bytes(&self) -> Range<u64> {
        self.offset..self.end()
    }

    /// Offset of the byte after the frame.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size.as_u64())
    }
}

/// Layout of the frames of a title.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// One `moov` box with all tables before the media: playback can start as soon as media arrives.
    ProgressiveMoovFirst,
    /// The tables come after the media: a client that reads in order learns of no frame until the end.
    ProgressiveMoovLast,
    /// The tables come piece by piece, in one `moof` box before each piece of media.
    Fragmented,
    /// No MP4 at all: a trace supplies frame sizes and times; the payload is generated and not decodable.
    #[default]
    Trace,
}

/// Description of a title in its `moov` box or trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TitleInfo {
    /// The codecs as RFC 6381 writes them, video first: `avc1.64001f, mp4a.40.2`. Empty for a trace.
    pub codecs: String,
    /// Coded width in pixels; zero for a trace.
    pub width: u32,
    /// Coded height in pixels; zero for a trace.
    pub height: u32,
    /// Playing time. A fragmented file may omit it; it is then known only after the whole file has been read.
    pub duration: Option<Duration>,
    /// Video and audio bytes × 8 ÷ playing time, if the `moov` box says so (not for fragmented files).
    pub average_rate: Option<Bitrate>,
    /// Layout of the frames.
    pub layout: Layout,
    /// True if there is at least one audio track.
    pub has_audio: bool,
    /// True if there is a video track. The frames of a title without one are those of its first audio track.
    pub has_video: bool,
    /// Protection scheme of an encrypted title, such as `cenc`; its frames cannot be decoded without a key.
    pub encryption: Option<String>,
}

/// Sizes and presentation times of audio, to compute rates from. Times are on the movie's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AudioSample {
    pub(crate) time: Duration,
    pub(crate) size: u32,
}

/// Offset of a place where a segment may begin, and the number of the first shown frame from there on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FragmentStart {
    pub(crate) offset: u64,
    pub(crate) first_frame: usize,
}
