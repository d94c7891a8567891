//! [`PlayoutClock`]: determines the next step, its time and its effect from the state of the buffer.
//!
//! A frame is due as long after the start of playback as its presentation time is after the first frame's. If it is
//! missing then, a stall and one underflow event begin. What follows depends on the clock.
//!
//! Browsers and DASH players have the *rebuffer* clock (the 2021 paper): it stops when a frame is missing and continues
//! when enough is held again. Every frame is shown; the session takes longer instead.
//!
//! VLC has the *catch-up* clock in the papers of 2012 to 2015: it continues, then shows late frames faster and discards
//! those too late. This project defines what the papers leave open:
//!
//! - The underflow event ends when a frame is shown on time again, or with a rebase.
//! - After a stall, complete frames follow each other at [`CatchUp::speed_percent`] of the frame rate until they are on
//!   time. A frame whose turn comes more than [`CatchUp::late`] after its due time is discarded and takes no time.
//! - A frame still missing [`CatchUp::max_jitter`] after its due time rebases the clock: playback pauses until the
//!   playout buffer is full again, and that frame is then on time.

use std::time::Duration;

use super::buffer::{Buffer, Upcoming};
use super::config::scaled;
use super::event::PlayoutEventKind;
use super::record::Record;
use super::{CatchUp, Clock, Fill, PlayoutConfig, Start};

/// A change of state by a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Playback starts, or resumes after it was stopped.
    Run,
    /// The upcoming frame is shown or discarded.
    Turn,
    /// The upcoming frame is due and not complete.
    Stall,
    /// The upcoming frame has been missing for too long.
    Rebase,
    /// The title is over.
    End,
}

impl Step {
    /// Returns true if this step, or a later one without more data, removes bytes from the buffer.
    pub(super) fn makes_room(self) -> bool {
        matches!(self, Self::Run | Self::Turn | Self::End)
    }
}

/// A playout clock. Its results depend only on its settings, the buffer and its own phase. Times are since the session
/// began.
#[derive(Debug)]
pub(super) struct PlayoutClock {
    start: Start,
    /// Amount that must be held before stopped playback continues.
    refill: Fill,
    /// Settings of the catch-up clock; `None` for the rebuffer clock.
    catch_up: Option<CatchUp>,
    phase: ClockPhase,
}

#[derive(Debug)]
enum ClockPhase {
    Waiting,
    Playing {
        reference: Reference,
        /// The catch-up clock's last frame.
        last: Option<LastFrame>,
    },
    /// Rebased (catch-up) or stalled (rebuffer): waits for the buffer to fill.
    Stopped,
    Ended,
}

/// The frame before the upcoming one.
#[derive(Clone, Copy, Debug)]
struct LastFrame {
    pts: Duration,
    /// Time when a frame was last shown.
    shown_at: Duration,
}

impl PlayoutClock {
    /// The clock of a player before its start.
    pub(super) fn new(config: &PlayoutConfig) -> Self {
        let (catch_up, refill) = match &config.clock {
            Clock::CatchUp(settings) => (Some(settings.clone()), Fill::Bytes(config.playout_buffer)),
            Clock::Rebuffer(resume) => (None, *resume),
        };
        Self {
            start: config.start,
            refill,
            catch_up,
            phase: ClockPhase::Waiting,
        }
    }

    /// The next step that needs no further data, and its time; a time in the past means now. `stalled` is true during a
    /// stall.
    pub(super) fn next(&self, buffer: &Buffer, stalled: bool) -> Option<(Duration, Step)> {
        match self.phase {
            ClockPhase::Waiting => Some((start_time(self.start, buffer)?, Step::Run)),
            ClockPhase::Playing { reference, last } => {
                let pts = buffer.next_pts();
                let due = reference.due(pts);
                let turn = self.turn(due, pts, last);
                Some(match (buffer.upcoming(), &self.catch_up) {
                    (Some(Upcoming { complete: true, .. }), _) => (turn, Step::Turn),
                    (None, _) if buffer.has_ended() => (turn, Step::End),
                    (_, Some(settings)) if stalled => (due.saturating_add(settings.max_jitter), Step::Rebase),
                    _ => (turn, Step::Stall),
                })
            }
            ClockPhase::Stopped => {
                (ready(buffer) && buffer.is_filled(self.refill)).then_some((Duration::ZERO, Step::Run))
            }
            ClockPhase::Ended => None,
        }
    }

    /// Earliest turn of the frame with this `pts`: when it is `due`, or later, when its predecessor has been shown for
    /// its duration at catch-up speed.
    fn turn(&self, due: Duration, pts: Duration, last: Option<LastFrame>) -> Duration {
        self.catch_up.as_ref().zip(last).map_or(due, |(settings, last)| {
            let shown_for = scaled(pts.saturating_sub(last.pts), 100, settings.speed_percent);
            due.max(last.shown_at.saturating_add(shown_for))
        })
    }

    /// Applies the step returned by [`next`](Self::next), at its time or later.
    pub(super) fn apply(&mut self, (at, step): (Duration, Step), buffer: &mut Buffer, record: &mut Record) {
        match step {
            Step::Run => {
                match (&self.phase, &self.catch_up) {
                    (ClockPhase::Stopped, Some(_)) => record.push(at, PlayoutEventKind::Resumed),
                    (ClockPhase::Stopped, None) => {
                        record.end_stall(at);
                        record.end_underflow(at);
                    }
                    _ => record.start(at),
                }
                let pts = buffer.next_pts();
                self.phase = ClockPhase::Playing {
                    reference: Reference { at, pts },
                    last: None,
                };
            }
            Step::Turn => self.turn_comes(at, buffer, record),
            Step::Stall => {
                record.stall(at);
                if self.catch_up.is_none() {
                    self.phase = ClockPhase::Stopped;
                }
            }
            Step::Rebase => {
                record.rebase(at);
                self.phase = ClockPhase::Stopped;
            }
            Step::End => {
                record.end(at);
                self.phase = ClockPhase::Ended;
            }
        }
    }

    fn turn_comes(&mut self, at: Duration, buffer: &mut Buffer, record: &mut Record) {
        let (ClockPhase::Playing { reference, last }, Some(frame)) = (&mut self.phase, buffer.upcoming())
        else {
            return;
        };
        let late = at.saturating_sub(reference.due(frame.pts));
        buffer.take(&frame);
        let Some(settings) = &self.catch_up else {
            // Only a frame that was added after its due time can be late here. The clock waits for it as well.
            reference.at = reference.at.saturating_add(late);
            record.show(at, &frame, Duration::ZERO);
            return;
        };
        if !late.is_zero() {
            record.begin_underflow(at);
        }
        if late > settings.late {
            // A discarded frame takes no time, so the pace continues from the last shown frame.
            if let Some(last) = last {
                last.pts = frame.pts;
            }
            record.discard(at, &frame, late);
            return;
        }
        *last = Some(LastFrame {
            pts: frame.pts,
            shown_at: at,
        });
        record.show(at, &frame, late);
        if late.is_zero() {
            record.end_underflow(at);
        }
    }
}

/// Time when playback can start (zero means now); `None` if more data is needed first.
fn start_time(start: Start, buffer: &Buffer) -> Option<Duration> {
    if !ready(buffer) {
        return None;
    }
    match start {
        _ if buffer.has_ended() => Some(Duration::ZERO),
        Start::After(time) => Some(time),
        Start::Filled(fill) => buffer.is_filled(fill).then_some(Duration::ZERO),
    }
}

fn ready(buffer: &Buffer) -> bool {
    buffer.upcoming().map_or(buffer.has_ended(), |next| next.complete)
}

/// Maps presentation times to session times: `pts` is due at `at`.
#[derive(Clone, Copy, Debug)]
struct Reference {
    at: Duration,
    pts: Duration,
}

impl Reference {
    fn due(&self, pts: Duration) -> Duration {
        match pts.checked_sub(self.pts) {
            Some(ahead) => self.at.saturating_add(ahead),
            None => self.at.saturating_sub(self.pts.saturating_sub(pts)),
        }
    }
}
