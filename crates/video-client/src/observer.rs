//! [`Observer`]: hears of a session while it runs.

use std::time::Duration;

use playrate_units::Bytes;

use crate::playout::{Event, PlayoutReport};

/// Hears of a session while it runs. Called between reads: it must not block.
pub trait Observer: Send {
    /// Something happened in the player.
    fn event(&mut self, event: &Event) {
        let _ = event;
    }

    /// How things stand, every [`PlayOptions::progress_interval`](crate::PlayOptions::progress_interval).
    fn progress(&mut self, progress: &Progress) {
        let _ = progress;
    }
}

/// Hears nothing.
impl Observer for () {}

/// How a session stands.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// Since the session began.
    pub at: Duration,
    /// Bytes of the title received.
    pub received: Bytes,
    /// Bytes the server promised.
    pub promised: Option<Bytes>,
    /// Size of the playout buffer.
    pub playout_buffer: Bytes,
    /// Bytes in the playout buffer.
    pub playout_buffer_fill: Bytes,
    /// Bytes delivered and not yet shown, those behind the playout buffer included.
    pub held: Bytes,
    /// How long playback could go on with them.
    pub held_time: Duration,
    /// Whether the client has stopped reading because its buffers are full.
    pub reading_paused: bool,
    /// Segments fetched, and how many there are; of an adaptive title.
    pub segments: Option<(usize, usize)>,
    /// The representation that the last one was chosen in.
    pub representation: Option<String>,
    /// What the viewer has seen so far.
    pub seen: PlayoutReport,
}
