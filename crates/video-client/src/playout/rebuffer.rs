//! The rebuffer clock: stops when a frame is missing and goes on when enough is in again.
//!
//! This is what browsers and DASH players do (the 2021 paper). Every frame is shown; what suffers is time.

use std::time::Duration;

use super::buffer::{Buffer, Upcoming};
use super::clock::{PlayoutClock, Reference, Step, can_resume, start_time};
use super::record::Record;
use super::{Rebuffer, Start};

#[derive(Debug)]
pub(super) struct RebufferClock {
    settings: Rebuffer,
    start: Start,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
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
            phase: Phase::Waiting,
        }
    }

    fn turn_comes(&mut self, at: Duration, buffer: &mut Buffer, record: &mut Record) {
        let (Phase::Playing(reference), Some(frame)) = (&mut self.phase, buffer.upcoming()) else {
            return;
        };
        // Only a frame that was made known after it was due can be late here: the clock waits for it, too.
        let late = at.saturating_sub(reference.due(frame.pts));
        reference.at = reference.at.saturating_add(late);
        let bytes = buffer.take(&frame);
        record.show(at, &frame, Duration::ZERO, bytes);
    }
}

impl PlayoutClock for RebufferClock {
    fn next(&self, buffer: &Buffer, _frozen: bool) -> Option<(Duration, Step)> {
        match self.phase {
            Phase::Waiting => Some((start_time(self.start, buffer)?, Step::Run)),
            Phase::Playing(reference) => Some(match buffer.upcoming() {
                Some(Upcoming {
                    pts, complete: true, ..
                }) => (reference.due(pts), Step::Turn),
                Some(frame) => (reference.due(frame.pts), Step::Starve),
                None if buffer.has_ended() => (reference.due(buffer.known().until()), Step::End),
                None => (reference.due(buffer.known().until()), Step::Starve),
            }),
            Phase::Stalled => can_resume(self.settings.resume, buffer).then_some((Duration::ZERO, Step::Run)),
            Phase::Ended => None,
        }
    }

    fn make(&mut self, at: Duration, step: Step, buffer: &mut Buffer, record: &mut Record) {
        match step {
            Step::Run => {
                if matches!(self.phase, Phase::Stalled) {
                    record.thaw(at);
                    record.end_underflow(at);
                } else {
                    record.start(at);
                }
                let pts = buffer
                    .upcoming()
                    .map_or(buffer.known().until(), |frame| frame.pts);
                self.phase = Phase::Playing(Reference { at, pts });
            }
            Step::Turn => self.turn_comes(at, buffer, record),
            // A stall: this clock never rebases, it simply starts anew from where it stopped.
            Step::Starve | Step::Rebase => {
                record.freeze(at);
                self.phase = Phase::Stalled;
            }
            Step::End => {
                record.end(at);
                self.phase = Phase::Ended;
            }
        }
    }
}
