//! The player's buffer: delivered bytes, complete frames and frames still to be shown, as counts without payload.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::time::Duration;

use playrate_media::Frame;
use playrate_units::Bytes;

use super::{Fill, from_nanos};

/// Presentation time of a frame, and its number in the order of addition. Frames are shown in the order of their keys.
type FrameKey = (Duration, u64);

/// The next frame to be shown or discarded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upcoming {
    key: FrameKey,
    pub(super) pts: Duration,
    pub(super) complete: bool,
    /// Bytes that the frame removes from the buffer.
    pub(super) weight: u64,
}

#[derive(Clone, Copy, Debug)]
struct BufferedFrame {
    /// First byte of the frame in the stream.
    offset: u64,
    /// Size of the frame and of the preceding bytes that belong to no frame: sound, and the boxes of fragments.
    weight: u64,
    complete: bool,
}

#[derive(Debug, Default)]
pub(super) struct Buffer {
    /// Frames still to be shown.
    pending: BTreeMap<FrameKey, BufferedFrame>,
    /// Ends, keys and weights of frames that are not complete.
    incoming: BinaryHeap<Reverse<(u64, FrameKey, u64)>>,
    /// Keys of the same frames.
    incomplete: BTreeSet<FrameKey>,
    /// Number of frames added.
    added: u64,
    /// Ends of whole segments that playback has not passed.
    segments: VecDeque<u64>,
    received: u64,
    /// Weights of complete frames still to be shown.
    complete_bytes: u64,
    ended: bool,
    known: Known,
}

/// Sums over the frames added so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    pub(super) frames: u64,
    /// Sum of all weights.
    pub(super) bytes: u64,
    first_pts: Duration,
    last_pts: Duration,
    /// End of the last frame in the byte stream.
    end: u64,
}

impl Known {
    fn add(&mut self, frame: &Frame) -> u64 {
        let gap = if self.frames == 0 {
            self.first_pts = frame.pts;
            0
        } else {
            frame.offset.saturating_sub(self.end)
        };
        let weight = frame.size.as_u64().saturating_add(gap);
        self.frames += 1;
        self.bytes = self.bytes.saturating_add(weight);
        self.first_pts = self.first_pts.min(frame.pts);
        self.last_pts = self.last_pts.max(frame.pts);
        self.end = self.end.max(frame.end());
        weight
    }

    /// Mean time between frames; zero while fewer than two are known.
    fn interval(&self) -> Duration {
        let nanos = self.last_pts.saturating_sub(self.first_pts).as_nanos();
        let intervals = u128::from(self.frames.saturating_sub(1));
        nanos.checked_div(intervals).map_or(Duration::ZERO, from_nanos)
    }

    /// End of the last known frame's display time, when the next frame is expected.
    pub(super) fn until(&self) -> Duration {
        self.last_pts.saturating_add(self.interval())
    }

    /// Playing time of `frames` of the known frames.
    pub(super) fn time_of(&self, frames: u64) -> Duration {
        let nanos = self.until().saturating_sub(self.first_pts).as_nanos();
        nanos
            .saturating_mul(u128::from(frames))
            .checked_div(u128::from(self.frames))
            .map_or(Duration::ZERO, from_nanos)
    }
}

impl Buffer {
    pub(super) fn add(&mut self, frame: &Frame) {
        let key = (frame.pts, self.added);
        self.added += 1;
        let weight = self.known.add(frame);
        let buffered = BufferedFrame {
            offset: frame.offset,
            weight,
            complete: false,
        };
        self.pending.insert(key, buffered);
        self.incomplete.insert(key);
        self.incoming.push(Reverse((frame.end(), key, weight)));
    }

    /// Discards everything and expects `frames`. The next byte is at `offset` of the stream. Keeps the sums over the
    /// frames known so far.
    pub(super) fn restart(&mut self, offset: Bytes, frames: impl IntoIterator<Item = Frame>) {
        let known = self.known;
        *self = Self {
            received: offset.as_u64(),
            ..Self::default()
        };
        for frame in frames {
            self.add(&frame);
        }
        self.known = known;
    }

    /// Marks the frames whose last byte has been received as complete.
    pub(super) fn settle(&mut self) {
        while let Some(&Reverse((end, key, weight))) = self.incoming.peek()
            && end <= self.received
        {
            self.incoming.pop();
            self.incomplete.remove(&key);
            if let Some(frame) = self.pending.get_mut(&key) {
                frame.complete = true;
                self.complete_bytes = self.complete_bytes.saturating_add(weight);
            }
        }
    }

    pub(super) fn receive(&mut self, bytes: Bytes) {
        self.received = self.received.saturating_add(bytes.as_u64());
        self.settle();
    }

    pub(super) fn end_segment(&mut self) {
        if let Some(offset) = self.next_offset() {
            while self.segments.front().is_some_and(|&end| end <= offset) {
                self.segments.pop_front();
            }
        }
        self.segments.push_back(self.received);
    }

    /// Offset of the upcoming frame.
    fn next_offset(&self) -> Option<u64> {
        self.pending.first_key_value().map(|(_, frame)| frame.offset)
    }

    /// Ends the stream. Returns the number of frames that will never be complete.
    pub(super) fn end(&mut self) -> u64 {
        self.ended = true;
        for key in &self.incomplete {
            self.pending.remove(key);
        }
        self.incoming.clear();
        let lost = std::mem::take(&mut self.incomplete);
        lost.len() as u64
    }

    /// The frame with the lowest presentation time among those still to be shown.
    pub(super) fn upcoming(&self) -> Option<Upcoming> {
        let (&key, frame) = self.pending.first_key_value()?;
        Some(Upcoming {
            key,
            pts: key.0,
            complete: frame.complete,
            weight: frame.weight,
        })
    }

    /// Presentation time of the upcoming frame, or the expected one of the next frame to be added.
    pub(super) fn next_pts(&self) -> Duration {
        self.upcoming().map_or(self.known.until(), |frame| frame.pts)
    }

    /// Removes the upcoming frame, which must be complete, from the buffer.
    pub(super) fn take(&mut self, frame: &Upcoming) {
        self.pending.remove(&frame.key);
        self.complete_bytes = self.complete_bytes.saturating_sub(frame.weight);
    }

    /// Media bytes delivered and not yet shown: complete frames, and the received bytes of the next one.
    pub(super) fn held(&self) -> Bytes {
        let part = self.incoming.peek().map_or(0, |Reverse((end, _, weight))| {
            self.received.saturating_sub(end.saturating_sub(*weight))
        });
        Bytes::new(self.complete_bytes.saturating_add(part))
    }

    /// Playing time from the upcoming frame to the first one that is not complete.
    pub(super) fn held_time(&self) -> Duration {
        let until = self
            .incomplete
            .first()
            .map_or(self.known.until(), |&(pts, _)| pts);
        self.upcoming()
            .map_or(Duration::ZERO, |next| until.saturating_sub(next.pts))
    }

    /// Returns true if at least `fill` is held, or the stream has ended.
    pub(super) fn is_filled(&self, fill: Fill) -> bool {
        self.ended
            || match fill {
                Fill::Bytes(bytes) => self.held() >= bytes,
                Fill::PlayingTime(time) => self.held_time() >= time,
                Fill::Segments(count) => self.whole_segments_ahead() >= count as usize,
            }
    }

    fn whole_segments_ahead(&self) -> usize {
        let Some(offset) = self.next_offset() else {
            return 0;
        };
        let passed = self.segments.partition_point(|&end| end <= offset);
        self.segments.len() - passed
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn received(&self) -> Bytes {
        Bytes::new(self.received)
    }

    pub(super) fn known(&self) -> &Known {
        &self.known
    }
}
