//! [`PlayoutClock`]: determines the next step, its time and its effect from the state of the buffer.

use std::time::Duration;

use super::buffer::Buffer;
use super::record::Record;
use super::{Fill, Start};

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

/// A playout clock. Its results depend only on the buffer and its own phase. Times are since the session began.
pub(super) trait PlayoutClock: std::fmt::Debug + Send + Sync {
    /// The next step that needs no further data, and its time; a time in the past means now. `stalled` is true during a
    /// stall.
    fn next(&self, buffer: &Buffer, stalled: bool) -> Option<(Duration, Step)>;

    /// Applies the step returned by [`next`](Self::next), at its time or later.
    fn apply(&mut self, due: (Duration, Step), buffer: &mut Buffer, record: &mut Record);
}

/// Time when playback can start (zero means now); `None` if more data is needed first.
pub(super) fn start_time(start: Start, buffer: &Buffer) -> Option<Duration> {
    if !ready(buffer) {
        return None;
    }
    match start {
        _ if buffer.has_ended() => Some(Duration::ZERO),
        Start::After(time) => Some(time),
        Start::Filled(fill) => buffer.is_filled(fill).then_some(Duration::ZERO),
    }
}

/// Returns true if stopped playback can continue.
pub(super) fn can_resume(fill: Fill, buffer: &Buffer) -> bool {
    ready(buffer) && buffer.is_filled(fill)
}

fn ready(buffer: &Buffer) -> bool {
    buffer.upcoming().map_or(buffer.has_ended(), |next| next.complete)
}

/// Maps presentation times to session times: `pts` is due at `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reference {
    pub(super) at: Duration,
    pub(super) pts: Duration,
}

impl Reference {
    pub(super) fn due(&self, pts: Duration) -> Duration {
        match pts.checked_sub(self.pts) {
            Some(ahead) => self.at.saturating_add(ahead),
            None => self.at.saturating_sub(self.pts.saturating_sub(pts)),
        }
    }
}
