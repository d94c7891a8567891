//! The catch-up clock: continues when a frame is missing, then shows late frames faster and discards those too late.
//!
//! VLC does this in the papers of 2012 to 2015. This project defines what they leave open:
//!
//! - A frame's due time is its distance from the first frame after playback started.
//! - If it is missing when due, a stall and one underflow event begin. The event ends when a frame is shown on time
//!   again, or with a rebase.
//! - After a stall, complete frames follow each other at [`CatchUp::speed_percent`] of the frame rate until they are on
//!   time. A frame whose turn comes more than [`CatchUp::late`] after its due time is discarded and takes no time.
//! - A frame still missing [`CatchUp::max_jitter`] after its due time rebases the clock: playback pauses until the
//!   playout buffer is full again, and that frame is then on time.

use std::time::Duration;

use super::buffer::{Buffer, Upcoming};
use super::clock::{PlayoutClock, Reference, Step, can_resume, start_time};
use super::event::PlayoutEventKind;
use super::record::Record;
use super::{CatchUp, Fill, Start, from_nanos};

#[derive(Debug)]
pub(super) struct CatchUpClock {
    settings: CatchUp,
    start: Start,
    refill: Fill,
    phase: CatchUpPhase,
}

#[derive(Debug)]
enum CatchUpPhase {
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
    /// Time when a frame was last shown.
    shown_at: Duration,
}

impl CatchUpClock {
    pub(super) fn new(settings: CatchUp, start: Start, refill: Fill) -> Self {
        Self {
            settings,
            start,
            refill,
            phase: CatchUpPhase::Waiting,
        }
    }

    /// Earliest turn of the frame with this `pts`: its due time, or later, when its predecessor has been shown for its
    /// duration at catch-up speed.
    fn turn(&self, reference: Reference, last: Option<Last>, pts: Duration) -> Duration {
        let due = reference.due(pts);
        last.map_or(due, |last| {
            let shown_for = percent_of(pts.saturating_sub(last.pts), self.settings.speed_percent);
            due.max(last.shown_at.saturating_add(shown_for))
        })
    }

    fn turn_comes(&mut self, at: Duration, buffer: &mut Buffer, record: &mut Record) {
        let (CatchUpPhase::Playing { reference, last }, Some(frame)) = (&mut self.phase, buffer.upcoming())
        else {
            return;
        };
        let late = at.saturating_sub(reference.due(frame.pts));
        buffer.take(&frame);
        if !late.is_zero() {
            record.begin_underflow(at);
        }
        if late > self.settings.late {
            // A discarded frame takes no time, so the pace continues from the last shown frame.
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
        record.show(at, &frame, late);
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
    fn next(&self, buffer: &Buffer, stalled: bool) -> Option<(Duration, Step)> {
        match self.phase {
            CatchUpPhase::Waiting => Some((start_time(self.start, buffer)?, Step::Run)),
            CatchUpPhase::Playing { reference, last } => {
                let pts = buffer.next_pts();
                let turn = self.turn(reference, last, pts);
                Some(match buffer.upcoming() {
                    Some(Upcoming { complete: true, .. }) => (turn, Step::Turn),
                    None if buffer.has_ended() => (turn, Step::End),
                    _ if stalled => {
                        let patience = self.settings.max_jitter;
                        (reference.due(pts).saturating_add(patience), Step::Rebase)
                    }
                    _ => (turn, Step::Stall),
                })
            }
            CatchUpPhase::Refilling => can_resume(self.refill, buffer).then_some((Duration::ZERO, Step::Run)),
            CatchUpPhase::Ended => None,
        }
    }

    fn apply(&mut self, (at, step): (Duration, Step), buffer: &mut Buffer, record: &mut Record) {
        match step {
            Step::Run => {
                if matches!(self.phase, CatchUpPhase::Refilling) {
                    record.push(at, PlayoutEventKind::Resumed);
                } else {
                    record.start(at);
                }
                let pts = buffer.next_pts();
                self.phase = CatchUpPhase::Playing {
                    reference: Reference { at, pts },
                    last: None,
                };
            }
            Step::Turn => self.turn_comes(at, buffer, record),
            Step::Stall => record.stall(at),
            Step::Rebase => {
                record.rebase(at);
                self.phase = CatchUpPhase::Refilling;
            }
            Step::End => {
                record.end(at);
                self.phase = CatchUpPhase::Ended;
            }
        }
    }
}
