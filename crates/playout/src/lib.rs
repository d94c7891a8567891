//! A modelled video player: bytes arrive at given times, frames become due, and a report describes what the viewer saw.
//!
//! The model decodes nothing, reads no clock and keeps no payload. Its driver (a client on a network, a simulation, a
//! test) calls it with the time since the session began:
//!
//! | the driver | calls |
//! |---|---|
//! | has parsed the place and presentation time of more frames | [`Playout::add_frames`] |
//! | has received bytes of the title | [`Playout::deliver`] |
//! | has received the last byte | [`Playout::finish`] |
//! | needs the time of its next call if no data arrives | [`Playout::next_deadline`], then [`Playout::advance`] |
//! | needs to know whether to stop reading | [`Playout::reading_paused`] |
//! | reads events and the result | [`Playout::poll_event`], [`Playout::report`] |
//!
//! # Definitions
//!
//! These follow the papers of 2012 to 2021, and define what the papers leave open.
//!
//! - *Delivered* bytes have been handed to the application in stream order. A frame is complete when its last byte is
//!   delivered.
//! - *Held* bytes have been delivered and not yet shown, starting with the first frame's first byte. Sound and the
//!   boxes of fragments count with the frame that follows them; boxes before the first frame do not count.
//! - The *playout buffer* is the first [`PlayoutConfig::playout_buffer`] bytes of the held ones. The rest waits in the
//!   receive buffer; when [`PlayoutConfig::receive_buffer`] bytes are held in all, reading pauses. It never pauses
//!   while the player needs more data to continue, so no layout of a title can cause a deadlock.
//! - A delivery precedes a deadline at the same instant: a frame that arrives exactly at its due time is on time.
//!
//! # Two clocks
//!
//! If a frame is due and not complete, the screen keeps the last one: a *stall*. The clock decides how playback
//! continues. [`CatchUp`] does not stop: late frames are shown faster, frames that are too late are discarded.
//! [`Clock::Rebuffer`] stops: every frame is shown, later. The same deliveries under both:
//!
//! ```
//! use std::time::Duration;
//! use playrate_media::Frame;
//! use playrate_playout::{CatchUp, Clock, ConfigError, Fill, PlaybackReport, Playout, PlayoutConfig};
//! use playrate_units::Bytes;
//!
//! let ms = Duration::from_millis;
//! // Three frames of 1,000 bytes, 40 ms apart.
//! let frames: Vec<Frame> = (0..3)
//!     .map(|n| Frame {
//!         offset: 1_000 * n,
//!         size: Bytes::new(1_000),
//!         dts: ms(40 * n),
//!         pts: ms(40 * n),
//!         key: n == 0,
//!     })
//!     .collect();
//! let play = |clock: Clock| -> Result<PlaybackReport, ConfigError> {
//!     let mut player = Playout::new(PlayoutConfig::new(Bytes::new(2_000), clock))?;
//!     player.add_frames(ms(50), &frames);
//!     player.deliver(ms(50), Bytes::new(2_000)); // buffer full: frame 0 is shown now, frame 1 at 90 ms
//!     player.deliver(ms(400), Bytes::new(1_000)); // frame 2 was due at 130 ms
//!     player.finish(ms(400));
//!     player.run_out();
//!     Ok(player.report())
//! };
//!
//! let catch_up = play(Clock::CatchUp(CatchUp::default()))?;
//! assert_eq!(catch_up.startup_delay, Some(ms(50)));
//! assert_eq!((catch_up.frames_shown, catch_up.frames_discarded), (2, 1)); // 270 ms late, more than 200 ms
//! assert_eq!(catch_up.underflow_events, 1);
//!
//! let rebuffer = play(Clock::Rebuffer(Fill::Bytes(Bytes::new(2_000))))?;
//! assert_eq!((rebuffer.frames_shown, rebuffer.frames_discarded), (3, 0));
//! assert_eq!(rebuffer.stalled_time, ms(270));
//! assert_eq!(rebuffer.impaired_time(ms(120)), ms(270));
//! # Ok::<(), ConfigError>(())
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod buffer;
mod clock;
mod config;
mod event;
mod record;
mod report;
#[cfg(test)]
mod tests;

use std::time::Duration;

use playrate_media::Frame;
use playrate_units::{Bitrate, Bytes};

pub use config::{
    CatchUp, Clock, ClockKind, ConfigError, DEFAULT_CATCH_UP_PERCENT, DEFAULT_LATE, DEFAULT_MAX_JITTER,
    DEFAULT_SERIES_INTERVAL, Fill, PLAYOUT_BUFFER_448, PlayoutConfig, READ_AHEAD, RECEIVE_BUFFER_PAPERS,
    Start,
};
pub use event::{PlayoutEvent, PlayoutEventKind, SeriesPoint};
pub use report::PlaybackReport;

use buffer::Buffer;
use clock::{PlayoutClock, Step};
use record::Record;

/// The modelled player of one session.
#[derive(Debug)]
pub struct Playout {
    config: PlayoutConfig,
    clock: PlayoutClock,
    buffer: Buffer,
    record: Record,
    now: Duration,
}

impl Playout {
    /// Creates a player at time zero without frames.
    ///
    /// # Errors
    /// If the settings in `config` contradict each other.
    pub fn new(config: PlayoutConfig) -> Result<Self, ConfigError> {
        config.check()?;
        Ok(Self {
            record: Record::new(config.series_interval),
            clock: PlayoutClock::new(&config),
            config,
            buffer: Buffer::default(),
            now: Duration::ZERO,
        })
    }

    /// The settings of this player.
    pub fn config(&self) -> &PlayoutConfig {
        &self.config
    }

    /// Adds `frames`, in the order of their bytes in the stream. Their presentation times are divided by the playback
    /// speed, so all times of the player are those of the viewer's clock. A frame whose bytes have already been
    /// delivered is complete immediately.
    pub fn add_frames<'a>(&mut self, now: Duration, frames: impl IntoIterator<Item = &'a Frame>) {
        self.run_before(now);
        for frame in frames {
            let pts = self.config.viewing_time(frame.pts);
            self.buffer.add(&Frame { pts, ..*frame });
        }
        self.buffer.settle();
    }

    /// Jumps to the last key frame of `frames` up to `to` in media time. `frames` are those of the whole title. Returns
    /// the offset of that frame's first byte, which must be delivered next.
    pub fn seek(&mut self, now: Duration, frames: &[Frame], to: Duration) -> u64 {
        let target = frames.iter().rposition(|frame| frame.key && frame.pts <= to);
        let rest = frames.get(target.unwrap_or(0)..).unwrap_or_default();
        let offset = rest.first().map_or(0, |frame| frame.offset);
        self.restart(now, Bytes::new(offset), rest);
        offset
    }

    /// Discards the buffer and continues with `frames`. The next byte to be delivered is at `offset` of the stream.
    /// Playback continues as after the start; until then it is stalled.
    pub fn restart(&mut self, now: Duration, offset: Bytes, frames: &[Frame]) {
        self.run_before(now);
        self.clock = PlayoutClock::new(&self.config);
        let pts = |frame: &Frame| self.config.viewing_time(frame.pts);
        let first = frames.first().map_or_else(|| self.buffer.known().until(), pts);
        let frames = frames.iter().map(|frame| Frame {
            pts: pts(frame),
            ..*frame
        });
        self.buffer.restart(offset, frames);
        self.record.seek(now, first);
    }

    /// Delivers the next `bytes` bytes of the stream.
    pub fn deliver(&mut self, now: Duration, bytes: Bytes) {
        self.run_before(now);
        self.buffer.receive(bytes);
    }

    /// Marks the bytes delivered so far as the end of a whole segment (for [`Fill::Segments`]).
    pub fn end_segment(&mut self, now: Duration) {
        self.run_before(now);
        self.buffer.end_segment();
    }

    /// Ends the stream. Incomplete frames count as missing, and playback does not wait for them.
    pub fn finish(&mut self, now: Duration) {
        self.run_before(now);
        self.record.report.frames_missing += self.buffer.end();
    }

    /// Advances the time to `now` and applies everything due by then.
    pub fn advance(&mut self, now: Duration) {
        self.run(now, |at| at <= now);
    }

    /// Plays the rest of the title without waiting: after [`finish`](Self::finish) the network can no longer change
    /// what the viewer sees. Does nothing before.
    pub fn run_out(&mut self) {
        while self.buffer.has_ended()
            && let Some((at, step)) = self.next_step()
        {
            self.apply((at, step));
            self.now = at;
        }
    }

    /// Time of the player's next change of state if nothing more is delivered; the driver calls
    /// [`advance`](Self::advance) then. `None` while the player waits for data.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.next_step().map(|(at, _)| at)
    }

    /// Returns true if the receive buffer is full: the driver stops reading, so that flow control stops the sender.
    pub fn reading_paused(&self) -> bool {
        self.buffer.held() >= self.config.receive_buffer
            && self.next_step().is_some_and(|(_, step)| step.makes_room())
    }

    /// The oldest unread event. Unread events stay in memory, so drivers read them regularly.
    pub fn poll_event(&mut self) -> Option<PlayoutEvent> {
        self.record.events.pop_front()
    }

    /// The latest time of a call or of playback.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Media bytes delivered and not yet shown, in the playout buffer and beyond it.
    pub fn held(&self) -> Bytes {
        self.buffer.held()
    }

    /// Media bytes in the playout buffer, at most its size.
    pub fn playout_buffer_fill(&self) -> Bytes {
        self.buffer.held().min(self.config.playout_buffer)
    }

    /// Playing time of the held bytes.
    pub fn held_time(&self) -> Duration {
        self.buffer.held_time()
    }

    /// Bytes delivered so far, boxes included.
    pub fn received(&self) -> Bytes {
        self.buffer.received()
    }

    /// Returns true once the last frame has been shown for its time.
    pub fn is_over(&self) -> bool {
        self.record.report.ended.is_some()
    }

    /// Returns true during a stall: a frame is due and not complete.
    pub fn is_stalled(&self) -> bool {
        self.record.is_stalled()
    }

    /// The time series so far: a point at every multiple of [`PlayoutConfig::series_interval`], including the events of
    /// that instant. Beyond 65,536 points every second one is dropped and the interval doubles.
    pub fn series(&self) -> &[SeriesPoint] {
        &self.record.series
    }

    /// Playing time of the frames shown so far.
    pub fn shown_time(&self) -> Duration {
        self.buffer.known().time_of(self.record.report.frames_shown)
    }

    /// Playing time of the frames known so far; the title's duration once all are known.
    pub fn known_time(&self) -> Duration {
        let known = self.buffer.known();
        known.time_of(known.frames)
    }

    /// Media bytes of the known frames over their playing time: the title's average rate, λ in the papers.
    pub fn average_rate(&self) -> Option<Bitrate> {
        Bytes::new(self.buffer.known().bytes).per(self.known_time())
    }

    /// The viewer's numbers so far. A current stall is included.
    pub fn report(&self) -> PlaybackReport {
        let shown_time = self.shown_time();
        let mut report = self.record.report.clone();
        report.frames = self.buffer.known().frames;
        report.stalled_time = self.record.stalled_time(self.now);
        report.mean_bitrate = self.record.shown_bytes.per(shown_time);
        report.rebuffering_ratio = matches!(self.config.clock, Clock::Rebuffer(_)).then(|| {
            let total = report.stalled_time.saturating_add(shown_time).as_secs_f64();
            if total > 0.0 {
                report.stalled_time.as_secs_f64() / total
            } else {
                0.0
            }
        });
        report
    }

    fn next_step(&self) -> Option<(Duration, Step)> {
        let (at, step) = self.clock.next(&self.buffer, self.record.is_stalled())?;
        Some((at.max(self.now), step))
    }

    /// Applies everything due before `now`. Steps due at `now` itself wait, because deliveries at `now` come first.
    fn run_before(&mut self, now: Duration) {
        self.run(now, |at| at < now);
    }

    /// Applies the steps and records the points of the series that are due, and advances the time to `now`.
    fn run(&mut self, now: Duration, is_due: impl Fn(Duration) -> bool) {
        while let Some((at, step)) = self.next_step()
            && is_due(at)
        {
            self.apply((at, step));
        }
        while self.record.next_point().is_some_and(&is_due) {
            self.record.sample(&self.buffer);
        }
        self.now = self.now.max(now);
    }

    /// Applies a step, after the earlier points of the series.
    fn apply(&mut self, due: (Duration, Step)) {
        while self.record.next_point().is_some_and(|point| point < due.0) {
            self.record.sample(&self.buffer);
        }
        self.now = due.0;
        self.clock.apply(due, &mut self.buffer, &mut self.record);
    }
}

/// A time of this many nanoseconds, at most 2⁶⁴ − 1.
fn from_nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
