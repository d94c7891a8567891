//! What a playout clock is: given the buffer, it says what happens next and when; told to, it makes it happen.

use std::time::Duration;

use super::buffer::Buffer;
use super::record::Record;
use super::{Fill, Start};

/// What a clock does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Playback starts, or resumes after it was stopped.
    Run,
    /// The upcoming frame is shown or discarded.
    Turn,
    /// The upcoming frame is due and not there.
    Starve,
    /// The upcoming frame has been missing for too long.
    Rebase,
    /// The title is over.
    End,
}

impl Step {
    /// Whether this step takes something out of the buffer, or leads to steps that do, without more data.
    pub(super) fn makes_room(self) -> bool {
        matches!(self, Self::Run | Self::Turn | Self::End)
    }
}

/// A playout clock. Pure: same buffer, same answers. Times are since the session began.
pub(super) trait PlayoutClock: std::fmt::Debug + Send + Sync {
    /// The next step that needs no further data, and its time; times before the present mean at once.
    /// `frozen` says whether the picture is frozen.
    fn next(&self, buffer: &Buffer, frozen: bool) -> Option<(Duration, Step)>;

    /// Makes the step that [`next`](Self::next) announced happen at `at`.
    fn make(&mut self, at: Duration, step: Step, buffer: &mut Buffer, record: &mut Record);
}

/// When playback can start: at once, at a later time, or not without more data.
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

/// Whether stopped playback can go on.
pub(super) fn can_resume(fill: Fill, buffer: &Buffer) -> bool {
    ready(buffer) && buffer.is_filled(fill)
}

fn ready(buffer: &Buffer) -> bool {
    buffer.upcoming().map_or(buffer.has_ended(), |next| next.complete)
}

/// How presentation times map to session times: `pts` is due at `at`.
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
