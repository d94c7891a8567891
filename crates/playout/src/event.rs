//! Events of the player and the time series of its buffer.

use std::time::Duration;

use playrate_units::{Bytes, seconds};
use serde::Serialize;

/// A change in the player that is visible to the viewer, or to a measurer of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[expect(
    clippy::exhaustive_structs,
    reason = "an event is a time and a kind, and only kinds will be added"
)]
pub struct PlayoutEvent {
    /// Time since the session began.
    #[serde(rename = "at_s", with = "seconds")]
    pub at: Duration,
    /// The change and its data; in JSON only its name.
    #[serde(flatten)]
    pub kind: PlayoutEventKind,
}

/// The change that a [`PlayoutEvent`] reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PlayoutEventKind {
    /// Playback started with the first frame.
    Started,
    /// A frame was shown.
    Shown {
        /// Presentation time of the frame.
        #[serde(skip)]
        pts: Duration,
        /// Lateness after the due time; zero is on time.
        #[serde(skip)]
        late: Duration,
    },
    /// A frame was too late to be shown (catch-up clock only).
    Discarded {
        /// Presentation time of the frame.
        #[serde(skip)]
        pts: Duration,
        /// Lateness after the due time.
        #[serde(skip)]
        late: Duration,
    },
    /// A frame was due and not complete, or late. Begins one underflow event.
    UnderflowBegan,
    /// Catch-up: a frame was shown on time again, or the clock was rebased. Rebuffer: playback continued.
    UnderflowEnded,
    /// The clock stopped and restarts when the playout buffer is full (catch-up clock only).
    Rebased,
    /// Playback continued after a rebase.
    Resumed,
    /// The viewer jumped: the buffer was discarded, and playback starts again at another position.
    Seek {
        /// Presentation time of the frame where it starts.
        #[serde(skip)]
        pts: Duration,
    },
    /// The last frame has been shown for its time.
    Ended,
}

impl PlayoutEventKind {
    /// Returns true if a single frame was shown or discarded, as in nearly all events.
    pub fn is_of_frame(&self) -> bool {
        matches!(self, Self::Shown { .. } | Self::Discarded { .. })
    }
}

/// State of the player at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SeriesPoint {
    /// Time since the session began.
    pub at: Duration,
    /// Media bytes delivered and not yet shown. Bytes beyond the playout buffer's size wait in the receive buffer.
    pub held: Bytes,
    /// Playing time of the held bytes.
    pub held_time: Duration,
    /// Bytes delivered so far, boxes included.
    pub received: Bytes,
    /// Frames shown so far.
    pub shown: u64,
    /// Frames discarded so far.
    pub discarded: u64,
}
