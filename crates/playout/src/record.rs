//! [`Record`]: the counts, events, stalled time and time series written by the clocks.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::Bytes;

use super::buffer::{Buffer, Upcoming};
use super::event::{PlayoutEvent, PlayoutEventKind, SeriesPoint};
use super::report::PlaybackReport;

/// Maximum number of points. When it is reached, every second one is dropped and the interval doubles, so memory is
/// bounded for a title of any length.
const MAX_POINTS: usize = 1 << 16;

#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) events: VecDeque<PlayoutEvent>,
    /// The counts so far; `stalled_time` excludes the current stall, and derived figures are not set.
    pub(super) report: PlaybackReport,
    /// Beginning of the current stall.
    stalled_since: Option<Duration>,
    in_underflow: bool,
    /// Media bytes of the frames shown.
    pub(super) shown_bytes: Bytes,
    pub(super) series: Vec<SeriesPoint>,
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

    pub(super) fn push(&mut self, at: Duration, kind: PlayoutEventKind) {
        self.events.push_back(PlayoutEvent { at, kind });
    }

    pub(super) fn start(&mut self, at: Duration) {
        self.report.startup_delay.get_or_insert(at);
        self.push(at, PlayoutEventKind::Started);
    }

    /// Begins a stall at `at`, and an underflow event unless one is in progress.
    pub(super) fn stall(&mut self, at: Duration) {
        self.stalled_since.get_or_insert(at);
        self.begin_underflow(at);
    }

    /// Playback stalls from `at` until the frame with this `pts` is shown. Not an underflow.
    pub(super) fn seek(&mut self, at: Duration, pts: Duration) {
        self.end_underflow(at);
        if self.report.startup_delay.is_some() {
            self.stalled_since.get_or_insert(at);
        }
        self.report.ended = None;
        self.push(at, PlayoutEventKind::Seek { pts });
    }

    pub(super) fn begin_underflow(&mut self, at: Duration) {
        if !self.in_underflow {
            self.in_underflow = true;
            self.report.underflow_events += 1;
            self.push(at, PlayoutEventKind::UnderflowBegan);
        }
    }

    pub(super) fn end_underflow(&mut self, at: Duration) {
        if self.in_underflow {
            self.in_underflow = false;
            self.push(at, PlayoutEventKind::UnderflowEnded);
        }
    }

    pub(super) fn rebase(&mut self, at: Duration) {
        self.end_underflow(at);
        self.report.rebases += 1;
        self.push(at, PlayoutEventKind::Rebased);
    }

    pub(super) fn end_stall(&mut self, at: Duration) {
        self.report.stalled_time = self.stalled_time(at);
        self.stalled_since = None;
    }

    pub(super) fn is_stalled(&self) -> bool {
        self.stalled_since.is_some()
    }

    pub(super) fn show(&mut self, at: Duration, frame: &Upcoming, late: Duration) {
        self.end_stall(at);
        self.report.frames_shown += 1;
        self.shown_bytes += Bytes::new(frame.weight);
        self.push(at, PlayoutEventKind::Shown { pts: frame.pts, late });
    }

    pub(super) fn discard(&mut self, at: Duration, frame: &Upcoming, late: Duration) {
        self.report.frames_discarded += 1;
        self.push(at, PlayoutEventKind::Discarded { pts: frame.pts, late });
    }

    pub(super) fn end(&mut self, at: Duration) {
        self.end_stall(at);
        self.end_underflow(at);
        self.report.ended = Some(at);
        self.push(at, PlayoutEventKind::Ended);
    }

    /// Total duration of stalls up to `now`, including the current one.
    pub(super) fn stalled_time(&self, now: Duration) -> Duration {
        let current = self
            .stalled_since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since));
        self.report.stalled_time.saturating_add(current)
    }

    /// Time of the next point of the series; `None` if no series is kept or playback is over.
    pub(super) fn next_point(&self) -> Option<Duration> {
        (!self.interval.is_zero() && self.report.ended.is_none() && self.next_point < Duration::MAX)
            .then_some(self.next_point)
    }

    /// Adds the point due now.
    pub(super) fn sample(&mut self, buffer: &Buffer) {
        self.series.push(SeriesPoint {
            at: self.next_point,
            held: buffer.held(),
            held_time: buffer.held_time(),
            received: buffer.received(),
            shown: self.report.frames_shown,
            discarded: self.report.frames_discarded,
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
