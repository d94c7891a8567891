//! What the clocks write down: counts, events, frozen time, and the time series.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::Bytes;

use super::buffer::{Buffer, Upcoming};
use super::event::{Event, Happening, Point};

/// Points kept at most. When full, every second one is dropped and the interval doubles, so memory is bounded
/// whatever the title's length.
const MAX_POINTS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) events: VecDeque<Event>,
    pub(super) started: Option<Duration>,
    pub(super) ended: Option<Duration>,
    pub(super) shown: u64,
    pub(super) discarded: u64,
    pub(super) missing: u64,
    pub(super) underflows: u64,
    pub(super) rebases: u64,
    /// Time frozen in freezes that are over.
    frozen: Duration,
    /// Since when the picture has been frozen.
    frozen_since: Option<Duration>,
    in_underflow: bool,
    /// Media bytes that left the buffer for the screen.
    pub(super) shown_bytes: Bytes,
    pub(super) series: Vec<Point>,
    interval: Duration,
    next_point: Duration,
}

impl Record {
    pub(super) fn new(interval: Duration) -> Self {
        Self {
            interval,
            ..Self::default()
        }
    }

    pub(super) fn push(&mut self, at: Duration, what: Happening) {
        self.events.push_back(Event { at, what });
    }

    pub(super) fn start(&mut self, at: Duration) {
        self.started = Some(at);
        self.push(at, Happening::Started);
    }

    /// The picture freezes at `at`; a new underflow event unless one is going on.
    pub(super) fn freeze(&mut self, at: Duration) {
        self.frozen_since.get_or_insert(at);
        self.begin_underflow(at);
    }

    pub(super) fn begin_underflow(&mut self, at: Duration) {
        if !self.in_underflow {
            self.in_underflow = true;
            self.underflows += 1;
            self.push(at, Happening::UnderflowBegan);
        }
    }

    pub(super) fn end_underflow(&mut self, at: Duration) {
        if self.in_underflow {
            self.in_underflow = false;
            self.push(at, Happening::UnderflowEnded);
        }
    }

    pub(super) fn rebase(&mut self, at: Duration) {
        self.end_underflow(at);
        self.rebases += 1;
        self.push(at, Happening::Rebased);
    }

    /// The picture moves again.
    pub(super) fn thaw(&mut self, at: Duration) {
        if let Some(since) = self.frozen_since.take() {
            self.frozen = self.frozen.saturating_add(at.saturating_sub(since));
        }
    }

    pub(super) fn is_frozen(&self) -> bool {
        self.frozen_since.is_some()
    }

    /// A frame is shown and takes `bytes` out of the buffer.
    pub(super) fn show(&mut self, at: Duration, frame: &Upcoming, late: Duration, bytes: Bytes) {
        self.thaw(at);
        self.shown += 1;
        self.shown_bytes += bytes;
        self.push(at, Happening::Shown { pts: frame.pts, late });
    }

    pub(super) fn discard(&mut self, at: Duration, frame: &Upcoming, late: Duration) {
        self.discarded += 1;
        self.push(at, Happening::Discarded { pts: frame.pts, late });
    }

    pub(super) fn end(&mut self, at: Duration) {
        self.thaw(at);
        self.end_underflow(at);
        self.ended = Some(at);
        self.push(at, Happening::Ended);
    }

    /// Time the picture was frozen, up to `now`.
    pub(super) fn frozen(&self, now: Duration) -> Duration {
        let current = self
            .frozen_since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.frozen.saturating_add(current)
    }

    /// When the next point of the series is due; `None` if none is kept or playback is over.
    pub(super) fn next_point(&self) -> Option<Duration> {
        (!self.interval.is_zero() && self.ended.is_none() && self.next_point < Duration::MAX)
            .then_some(self.next_point)
    }

    /// Adds the point due now.
    pub(super) fn sample(&mut self, buffer: &Buffer) {
        self.series.push(Point {
            at: self.next_point,
            held: buffer.held(),
            held_time: buffer.held_time(),
            received: buffer.received(),
            shown: self.shown,
            discarded: self.discarded,
        });
        if self.series.len() >= MAX_POINTS {
            let mut keep = false;
            self.series.retain(|_| {
                keep = !keep;
                keep
            });
            self.interval = self.interval.saturating_mul(2);
            self.next_point = self.series.last().map_or(Duration::ZERO, |point| point.at);
        }
        self.next_point = self.next_point.saturating_add(self.interval);
    }
}
