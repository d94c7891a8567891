//! [`Segment`]: the pieces of a title that can be fetched one by one.

use std::ops::Range;
use std::time::Duration;

use crate::frame::{FragmentStart, Frame};
use crate::title::Title;

/// A piece of a title: consecutive frames in decode order, and the bytes of the file that hold them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segment {
    /// When its first frame is shown, since the title's start.
    pub start: Duration,
    /// How long it is shown: until the next segment starts, or the title ends.
    pub duration: Duration,
    /// Its bytes in the file, with the audio between its frames and, of a fragment, its boxes.
    pub bytes: Range<u64>,
    /// Its frames, as indices into [`Title::frames`].
    pub frames: Range<usize>,
    /// Whether it begins with a key frame, so that playing can start with it.
    pub starts_with_key: bool,
}

/// One segment for each fragment that holds frames; fragments of audio alone belong to the segment before them.
pub(crate) fn of_fragments(title: &Title, fragments: &[FragmentStart], end: u64) -> Vec<Segment> {
    let mut starts: Vec<FragmentStart> = Vec::new();
    for (at, fragment) in fragments.iter().enumerate() {
        let next = fragments
            .get(at + 1)
            .map_or(title.frames().len(), |next| next.first_frame);
        if next > fragment.first_frame {
            starts.push(*fragment);
        }
    }
    assemble(title, &starts, end)
}

/// One segment for each key frame. The audio after the last frame belongs to the last segment.
pub(crate) fn of_key_frames(title: &Title, end: u64) -> Vec<Segment> {
    let starts: Vec<FragmentStart> = title
        .frames()
        .iter()
        .enumerate()
        .filter(|(at, frame)| frame.key || *at == 0)
        .map(|(first_frame, frame)| FragmentStart {
            offset: frame.offset,
            first_frame,
        })
        .collect();
    assemble(title, &starts, end)
}

fn assemble(title: &Title, starts: &[FragmentStart], end: u64) -> Vec<Segment> {
    let count = title.frames().len();
    let mut segments: Vec<Segment> = Vec::with_capacity(starts.len());
    for (at, first) in starts.iter().enumerate() {
        let next = starts.get(at + 1);
        let frames = first.first_frame..next.map_or(count, |next| next.first_frame);
        let held = title.frames().get(frames.clone()).unwrap_or_default();
        // Where a file puts its frames in another order than it decodes them, the frames alone say where it ends.
        let last = held.iter().map(Frame::end).max().unwrap_or(first.offset);
        let stop = next.map_or(end, |next| next.offset);
        let stop = if stop >= last { stop } else { last };
        segments.push(Segment {
            start: held.iter().map(|frame| frame.pts).min().unwrap_or_default(),
            duration: Duration::ZERO,
            bytes: first.offset..stop.max(first.offset),
            frames,
            starts_with_key: held.first().is_some_and(|frame| frame.key),
        });
    }
    let ends: Vec<Duration> = segments
        .iter()
        .skip(1)
        .map(|segment| segment.start)
        .chain([title.duration()])
        .collect();
    for (segment, end) in segments.iter_mut().zip(ends) {
        segment.duration = end.saturating_sub(segment.start);
    }
    segments
}
