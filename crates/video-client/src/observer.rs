//! [`Observer`]: receives the events and the progress of a running session.

use std::time::Duration;

use playrate_units::Bytes;

use crate::playout::{PlaybackReport, PlayoutEvent};

/// Receives the events and the progress of a running session. Called between reads, so it must not block.
pub trait Observer: Send {
    /// An event of the player.
    fn event(&mut self, _event: &PlayoutEvent) {}

    /// The progress, every [`SessionOptions::progress_interval`](crate::SessionOptions::progress_interval).
    fn progress(&mut self, _progress: &Progress) {}
}

/// Ignores everything; for callers without an observer.
impl Observer for () {}

/// State of a running session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Time since the session began.
    pub at: Duration,
    /// Bytes of the title received.
    pub received: Bytes,
    /// Bytes that the server declared (`Content-Length`).
    pub promised: Option<Bytes>,
    /// Bytes delivered and not yet shown, including those queued behind the playout buffer.
    pub held: Bytes,
    /// Playing time of these bytes.
    pub held_time: Duration,
    /// True while the client does not read because its buffers are full.
    pub reading_paused: bool,
    /// False while the client has no connection to the server and tries to reconnect.
    pub connected: bool,
    /// Number of fetched segments and of all segments, for an adaptive title.
    pub segments: Option<(usize, usize)>,
    /// Name of the representation of the last segment.
    pub representation: Option<String>,
    /// The viewer's numbers so far.
    pub playback: PlaybackReport,
}
