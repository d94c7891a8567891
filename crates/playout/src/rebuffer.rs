//! The rebuffer clock: stops when a frame is missing and continues when enough is held again.
//!
//! Browsers and DASH players do this (the 2021 paper). Every frame is shown; the session takes longer instead.

use std::time::Duration;

use super::buffer::{Buffer, Upcoming};
use super::clock::{PlayoutClock, Reference, Step, can_resume, start_time};
use super::record::Record;
use super::{Rebuffer, Start};

#[derive(Debug)]
pub(super) struct RebufferClock {
    settings: Rebuffer,
    start: Start,
    phase: RebufferPhase,
}

#[derive(Debug)]
enum RebufferPhase {
    Waiting,
    Playing(Reference),
    Stalled,
    Ended,
}

impl RebufferClock {
    pub(super) fn new(settings: Rebuffer, start: Start) -> Self {
        Self {
            settings,
            start,
            phase: RebufferPhase::Waiting,
        }
    }

    fn turn_comes(&mut self, at: Duration, buffer: &mut Buffer, record: &mut Record) {
        let (RebufferPhase::Playing(reference), Some(frame)) = (&mut self.phase, buffer.upcoming()) else {
            return;
        };
        // Only a frame that was added after its due time can be late here: the clock waits for it, too.
        let late = at.saturating_sub(reference.due(frame.pts));
        reference.at = reference.at.saturating_add(late);
        buffer.take(&frame);
        record.show(at, &frame, Duration::ZERO);
    }
}

impl PlayoutClock for RebufferClock {
    fn next(&self, buffer: &Buffer, _stalled: bool) -> Option<(Duration, Step)> {
        match self.phase {
            RebufferPhase::Waiting => Some((start_time(self.start, buffer)?, Step::Run)),
            RebufferPhase::Playing(reference) => {
                let step = match buffer.upcoming() {
                    Some(Upcoming { complete: true, .. }) => Step::Turn,
                    None if buffer.has_ended() => Step::End,
                    _ => Step::Stall,
                };
                Some((reference.due(buffer.next_pts()), step))
            }
            RebufferPhase::Stalled => {
                can_resume(self.settings.resume, buffer).then_some((Duration::ZERO, Step::Run))
            }
            RebufferPhase::Ended => None,
        }
    }

    fn apply(&mut self, (at, step): (Duration, Step), buffer: &mut Buffer, record: &mut Record) {
        match step {
            Step::Run => {
                if matches!(self.phase, RebufferPhase::Stalled) {
                    record.end_stall(at);
                    record.end_underflow(at);
                } else {
                    record.start(at);
                }
                let pts = buffer.next_pts();
                self.phase = RebufferPhase::Playing(Reference { at, pts });
            }
            Step::Turn => self.turn_comes(at, buffer, record),
            // This clock never rebases: after a stall it continues where it stopped.
            Step::Stall | Step::Rebase => {
                record.stall(at);
                self.phase = RebufferPhase::Stalled;
            }
            Step::End => {
                record.end(at);
                self.phase = RebufferPhase::Ended;
            }
        }
    }
}
