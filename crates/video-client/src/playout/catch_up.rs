//! The catch-up clock: runs on when a frame is missing, then shows late frames faster and discards those too late.
//!
//! This is what VLC does in the papers of 2012 to 2015, and where they are silent, what this project defined:
//!
//! - A frame is due at its distance from the first frame after playback started.
//! - Missing when due: the picture freezes and one underflow event begins. It ends when a frame is shown on time
//!   again, or with a rebase.
//! - After a freeze, complete frames follow each other at [`CatchUp::speed_percent`] of the frame rate until they are
//!   on time. One whose turn comes more than [`CatchUp::late`] after it was due is discarded and takes no time.
//! - A frame still missing [`CatchUp::max_jitter`] after it was due rebases the clock: playback pauses until the
//!   playout buffer is full again, and that frame is then on time.

use std::time::Duration;

use super::buffer::{Buffer, Upcoming, from_nanos};
use super::clock::{PlayoutClock, Reference, Step, can_resume, start_time};
use super::event::Happening;
use super::record::Record;
use super::{CatchUp, Fill, Start};

#[derive(Debug)]
pub(super) struct CatchUpClock {
    settings: CatchUp,
    start: Start,
    refill: Fill,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Waiting,
    Playing {
        reference: Reference,
        last: Option<Last>,
    },
    /// Rebased: waits for the playout buffer to fill.
    Refilling,
    Ended,
}

/// The frame before the upcoming one.
#[derive(Clone, Copy, Debug)]
struct Last {
    pts: Duration,
    /// When a frame was last shown.
    shown_at: Duration,
}

impl CatchUpClock {
    pub(super) fn new(settings: CatchUp, start: Start, refill: Fill) -> Self {
        Self {
            settings,
            start,
            refill,
            phase: Phase::Waiting,
        }
    }

    /// When the frame with this `pts` has its turn at the earliest: when due, and not before its predecessor has
    /// been on the screen for its share at catch-up speed.
    fn turn(&self, reference: Reference, last: Option<Last>, pts: Duration) -> Duration {
        let due = reference.due(pts);
        last.map_or(due, |last| {
            let shown_for = percent_of(pts.saturating_sub(last.pts), self.settings.speed_percent);
            due.max(last.shown_at.saturating_add(shown_for))
        })
    }

    /// The upcoming frame, or one that is expected, is not there.
    fn missing(
        &self,
        reference: Reference,
        last: Option<Last>,
        pts: Duration,
        frozen: bool,
    ) -> (Duration, Step) {
        if frozen {
            (
                reference.due(pts).saturating_add(self.settings.max_jitter),
                Step::Rebase,
            )
        } else {
            (self.turn(reference, last, pts), Step::Starve)
        }
    }

    fn turn_comes(&mut self, at: Duration, buffer: &mut Buffer, record: &mut Record) {
        let (Phase::Playing { reference, last }, Some(frame)) = (&mut self.phase, buffer.upcoming()) else {
            return;
        };
        let late = at.saturating_sub(reference.due(frame.pts));
        let bytes = buffer.take(&frame);
        if !late.is_zero() {
            record.begin_underflow(at);
        }
        if late > self.settings.late {
            // A discarded frame takes no time, so the pace goes on from the frame that was last shown.
            if let Some(last) = last {
                last.pts = frame.pts;
            }
            record.discard(at, &frame, late);
            return;
        }
        *last = Some(Last {
            pts: frame.pts,
            shown_at: at,
        });
        record.show(at, &frame, late, bytes);
        if late.is_zero() {
            record.end_underflow(at);
        }
    }
}

/// `time` at `percent` of its speed.
fn percent_of(time: Duration, percent: u32) -> Duration {
    from_nanos(time.as_nanos().saturating_mul(100) / u128::from(percent.max(1)))
}

impl PlayoutClock for CatchUpClock {
    fn next(&self, buffer: &Buffer, frozen: bool) -> Option<(Duration, Step)> {
        match self.phase {
            Phase::Waiting => Some((start_time(self.start, buffer)?, Step::Run)),
            Phase::Playing { reference, last } => Some(match buffer.upcoming() {
                Some(Upcoming {
                    pts, complete: true, ..
                }) => (self.turn(reference, last, pts), Step::Turn),
                Some(frame) => self.missing(reference, last, frame.pts, frozen),
                None if buffer.has_ended() => (self.turn(reference, last, buffer.known().until()), Step::End),
                None => self.missing(reference, last, buffer.known().until(), frozen),
            }),
            Phase::Refilling => can_resume(self.refill, buffer).then_some((Duration::ZERO, Step::Run)),
            Phase::Ended => None,
        }
    }

    fn make(&mut self, at: Duration, step: Step, buffer: &mut Buffer, record: &mut Record) {
        match step {
            Step::Run => {
                if matches!(self.phase, Phase::Refilling) {
                    record.push(at, Happening::Resumed);
                } else {
                    record.start(at);
                }
                let pts = buffer
                    .upcoming()
                    .map_or(buffer.known().until(), |frame| frame.pts);
                self.phase = Phase::Playing {
                    reference: Reference { at, pts },
                    last: None,
                };
            }
            Step::Turn => self.turn_comes(at, buffer, record),
            Step::Starve => record.freeze(at),
            Step::Rebase => {
                record.rebase(at);
                self.phase = Phase::Refilling;
            }
            Step::End => {
                record.end(at);
                self.phase = Phase::Ended;
            }
        }
    }
}
