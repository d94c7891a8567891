//! [`Segment`]: the pieces of a title that can be fetched separately.

use std::ops::Range;
use std::time::Duration;

use crate::frame::{FragmentStart, Frame};

/// A piece of a title: consecutive frames in decode order, and the bytes of the file that hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// Presentation time of the first frame, since the title's start.
    pub start: Duration,
    /// Playing time: until the next segment starts, or the title ends.
    pub duration: Duration,
    /// Byte range in the file, including the audio between the frames and the boxes of a fragment.
    pub bytes: Range<u64>,
    /// Indices of the frames in [`Title::frames`](crate::Title::frames).
    pub frames: Range<usize>,
    /// True if it begins with a key frame, so that playback can start with it.
    pub starts_with_key: bool,
}

/// The `starts` with frames; a fragment with audio only belongs to the segment before it.
pub(crate) fn with_frames(starts: &[FragmentStart], frames: usize) -> Vec<FragmentStart> {
    let ends = starts.iter().skip(1).map(|next| next.first_frame).chain([frames]);
    let pairs = starts.iter().zip(ends);
    pairs
        .filter(|(fragment, end)| *end > fragment.first_frame)
        .map(|(fragment, _)| *fragment)
        .collect()
}

/// The segments that begin at `starts`, of a title that ends at the byte `end` and plays for `duration`.
pub(crate) fn cut(frames: &[Frame], starts: &[FragmentStart], end: u64, duration: Duration) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::with_capacity(starts.len());
    for (at, first) in starts.iter().enumerate() {
        let next = starts.get(at + 1);
        let numbers = first.first_frame..next.map_or(frames.len(), |next| next.first_frame);
        let held = frames.get(numbers.clone()).unwrap_or_default();
        // If a file stores its frames in another order than the decode order, only the frames show where it ends.
        let last = held.iter().map(Frame::end).max().unwrap_or(first.offset);
        let stop = next.map_or(end, |next| next.offset).max(last);
        segments.push(Segment {
            start: held.iter().map(|frame| frame.pts).min().unwrap_or_default(),
            duration: Duration::ZERO,
            bytes: first.offset..stop.max(first.offset),
            frames: numbers,
            starts_with_key: held.first().is_some_and(|frame| frame.key),
        });
    }
    let later = segments.iter().skip(1).map(|segment| segment.start);
    let ends: Vec<Duration> = later.chain([duration]).collect();
    for (segment, end) in segments.iter_mut().zip(ends) {
        segment.duration = end.saturating_sub(segment.start);
    }
    segments
}
