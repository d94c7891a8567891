//! What the viewer saw happen, and when.

use std::time::Duration;

use playrate_units::Bytes;

/// Something that happened in the player, at a time since the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Duration,
    /// What.
    pub what: Happening,
}

/// What can happen in the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Happening {
    /// Playback started.
    Started,
    /// A frame was shown.
    Shown {
        /// Its presentation time.
        pts: Duration,
        /// How long after it was due; zero is on time.
        late: Duration,
    },
    /// A frame was too late to be shown (catch-up clock only).
    Discarded {
        /// Its presentation time.
        pts: Duration,
        /// How long after it was due.
        late: Duration,
    },
    /// A frame was due and not there: the picture froze, or playback stalled. One underflow event.
    UnderflowBegan,
    /// Catch-up: a frame was shown on time again, or the clock was rebased. Rebuffer: playback went on.
    UnderflowEnded,
    /// The clock gave up waiting and starts anew when the playout buffer is full (catch-up clock only).
    Rebased,
    /// Playback went on after a rebase.
    Resumed,
    /// The last frame has been shown for its time.
    Ended,
}

/// One point of the time series of the player.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Since the session began.
    pub at: Duration,
    /// Media bytes delivered and not yet shown. What exceeds the playout buffer waits in the receive buffer.
    pub held: Bytes,
    /// How long playback can go on with them.
    pub held_time: Duration,
    /// Bytes delivered so far, boxes included.
    pub received: Bytes,
    /// Frames shown so far.
    pub shown: u64,
    /// Frames discarded so far.
    pub discarded: u64,
}
