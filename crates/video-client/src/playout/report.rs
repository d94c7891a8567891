//! [`PlayoutReport`]: what the viewer saw, in numbers.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use super::buffer::Buffer;
use super::record::Record;
use super::{Clock, ClockKind, PlayoutConfig};

/// What a viewer has seen up to [`at`](Self::at).
#[derive(Clone, Debug, PartialEq)]
pub struct PlayoutReport {
    /// The clock that was used.
    pub clock: ClockKind,
    /// The time since the session began for which the report holds.
    pub at: Duration,
    /// From the session's begin to the first picture; `None` if playback never started.
    pub startup_delay: Option<Duration>,
    /// When the last frame had been shown for its time; `None` if that has not come.
    pub ended: Option<Duration>,
    /// Frames known so far; the whole title's, once it is in.
    pub frames: u64,
    /// Frames shown.
    pub shown: u64,
    /// Frames too late to be shown.
    pub discarded: u64,
    /// Frames whose data was not in when the title ended.
    pub missing: u64,
    /// Underflow events (catch-up clock) or stalls (rebuffer clock).
    pub underflows: u64,
    /// Time during which a frame was wanted and the picture stood still.
    pub frozen: Duration,
    /// Times the catch-up clock gave up and started anew.
    pub rebases: u64,
    /// Stalled time after the start ÷ (stalled time + time of the frames shown); rebuffer clock only.
    pub rebuffer_ratio: Option<f64>,
    /// Playing time of the frames shown.
    pub shown_time: Duration,
    /// Media bytes of the frames shown over their playing time.
    pub mean_bitrate: Option<Bitrate>,
    /// Average rate of the title, λ: media bytes of the known frames over their playing time.
    pub average_rate: Option<Bitrate>,
    /// Playing time of the known frames.
    pub title_time: Duration,
    /// Media bytes delivered and not yet shown.
    pub held: Bytes,
}

impl PlayoutReport {
    pub(super) fn new(config: &PlayoutConfig, buffer: &Buffer, record: &Record, now: Duration) -> Self {
        let known = buffer.known();
        let frozen = record.frozen(now);
        let shown_time = known.time_of(record.shown);
        let title_time = known.time_of(known.frames);
        let total = frozen.saturating_add(shown_time).as_secs_f64();
        Self {
            clock: config.clock.kind(),
            at: now,
            startup_delay: record.started,
            ended: record.ended,
            frames: known.frames,
            shown: record.shown,
            discarded: record.discarded,
            missing: record.missing,
            underflows: record.underflows,
            frozen,
            rebases: record.rebases,
            rebuffer_ratio: matches!(config.clock, Clock::Rebuffer(_)).then_some(if total > 0.0 {
                frozen.as_secs_f64() / total
            } else {
                0.0
            }),
            shown_time,
            mean_bitrate: record.shown_bytes.per(shown_time),
            average_rate: Bytes::new(known.bytes).per(title_time),
            title_time,
            held: buffer.held(),
        }
    }

    /// Frames that are neither shown, discarded nor missing: still to come.
    pub fn remaining(&self) -> u64 {
        self.frames
            .saturating_sub(self.shown)
            .saturating_sub(self.discarded)
            .saturating_sub(self.missing)
    }
}
