//! The modelled player: bytes arrive at times, frames fall due. Sans-IO; it reads no clock and keeps no payload.
//!
//! Times are durations since the session began. The driver tells the model which [`Frame`]s it learnt of
//! ([`Playout::add_frames`]), how many bytes were delivered ([`Playout::deliver`]) and that the title is in
//! ([`Playout::finish`]); the model says when its state next changes ([`Playout::next_deadline`]), whether reading
//! should pause ([`Playout::reading_paused`]), what happened ([`Playout::poll_event`]) and how good it was
//! ([`Playout::report`]).
//!
//! Definitions (they follow the papers of 2012 to 2021, and say what those leave open):
//!
//! - *Delivered*: handed to the application in stream order. A frame is complete when its last byte is delivered.
//! - *Held*: delivered and not yet shown, from the first frame's first byte on. Sound and fragment boxes count with
//!   the frame they precede; the boxes before the first frame do not count.
//! - The *playout buffer* holds the first [`PlayoutConfig::playout_buffer`] bytes of what is held. The rest waits in the
//!   receive buffer; when [`PlayoutConfig::receive_buffer`] bytes are held in all, reading pauses. It never pauses
//!   while the player needs more data to go on, so no title can lock it up, whatever its layout.
//! - Deliveries at an instant go before deadlines at the same instant: a frame that comes just when it is due is on time.
//!
//! Two clocks say what happens when a frame is due and not there: [`CatchUp`] and [`Rebuffer`].
//!
//! ```
//! use std::time::Duration;
//! use playrate_media::Frame;
//! use playrate_units::Bytes;
//! use video_client::playout::{CatchUp, Clock, Playout, PlayoutConfig};
//!
//! let ms = Duration::from_millis;
//! let mut player = Playout::new(PlayoutConfig::new(Bytes::new(2_000), Clock::CatchUp(CatchUp::default())))?;
//! let frames: Vec<Frame> = (0..3)
//!     .map(|n| Frame {
//!         offset: 1_000 * n,
//!         size: Bytes::new(1_000),
//!         dts: ms(40 * n),
//!         pts: ms(40 * n),
//!         key: n == 0,
//!     })
//!     .collect();
//! player.add_frames(ms(50), &frames);
//! player.deliver(ms(50), Bytes::new(2_000)); // the playout buffer is full: frame 0 is shown, frame 1 follows at 90 ms
//! player.deliver(ms(180), Bytes::new(1_000)); // frame 2 was due at 130 ms
//! player.finish(ms(180));
//! player.run_out();
//! let seen = player.report();
//! assert_eq!(seen.startup_delay, Some(ms(50)));
//! assert_eq!((seen.shown, seen.discarded, seen.underflows, seen.frozen), (3, 0, 1, ms(50)));
//! # Ok::<(), video_client::playout::ConfigError>(())
//! ```

mod buffer;
mod catch_up;
mod clock;
mod config;
mod event;
mod rebuffer;
mod record;
mod report;
#[cfg(test)]
mod tests;

use std::time::Duration;

use playrate_media::Frame;
use playrate_units::Bytes;

pub use config::{
    CatchUp, Clock, ClockKind, ConfigError, DEFAULT_CATCH_UP_PERCENT, DEFAULT_LATE, DEFAULT_MAX_JITTER,
    DEFAULT_SERIES_INTERVAL, Fill, PLAYOUT_BUFFER_448, PLAYOUT_BUFFER_897, PLAYOUT_BUFFER_1345,
    PlayoutConfig, READ_AHEAD, RECEIVE_BUFFER_PAPERS, Rebuffer, Start,
};
pub use event::{Event, Happening, Point};
pub use report::PlayoutReport;

use buffer::Buffer;
use catch_up::CatchUpClock;
use clock::{PlayoutClock, Step};
use rebuffer::RebufferClock;
use record::Record;

/// A player that shows nothing to anyone, but knows what a viewer would have seen.
#[derive(Debug)]
pub struct Playout {
    config: PlayoutConfig,
    clock: Box<dyn PlayoutClock>,
    buffer: Buffer,
    record: Record,
    now: Duration,
}

impl Playout {
    /// A player at time zero that knows no frame. Fails if the parts of `config` do not fit together.
    pub fn new(config: PlayoutConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let clock: Box<dyn PlayoutClock> = match &config.clock {
            Clock::CatchUp(settings) => Box::new(CatchUpClock::new(
                settings.clone(),
                config.start,
                Fill::Bytes(config.playout_buffer),
            )),
            Clock::Rebuffer(settings) => Box::new(RebufferClock::new(settings.clone(), config.start)),
        };
        Ok(Self {
            record: Record::new(config.series_interval),
            config,
            clock,
            buffer: Buffer::default(),
            now: Duration::ZERO,
        })
    }

    /// What this player was made with.
    pub fn config(&self) -> &PlayoutConfig {
        &self.config
    }

    /// The driver learnt of `frames` at `now`, in the order in which they lie in the stream. Frames whose bytes have
    /// been delivered already are complete at once.
    pub fn add_frames<'a>(&mut self, now: Duration, frames: impl IntoIterator<Item = &'a Frame>) {
        self.run_before(now);
        for frame in frames {
            self.buffer.add(frame);
        }
        self.buffer.settle();
    }

    /// `bytes` more bytes of the stream were delivered at `now`.
    pub fn deliver(&mut self, now: Duration, bytes: Bytes) {
        self.run_before(now);
        self.buffer.receive(bytes);
    }

    /// The bytes delivered so far end a whole segment (for [`Fill::Segments`]).
    pub fn end_segment(&mut self, now: Duration) {
        self.run_before(now);
        self.buffer.end_segment();
    }

    /// The whole title was in at `now`. Frames that are not complete are counted as missing and not waited for.
    pub fn finish(&mut self, now: Duration) {
        self.run_before(now);
        self.record.missing += self.buffer.end();
    }

    /// Time has come to `now`: everything due by then happens.
    pub fn advance(&mut self, now: Duration) {
        while let Some((at, step)) = self.next_step()
            && at <= now
        {
            self.make(at, step);
        }
        while self.record.next_point().is_some_and(|at| at <= now) {
            self.record.sample(&self.buffer);
        }
        self.now = self.now.max(now);
    }

    /// Plays what is in to its end, however far in the future that is. Does nothing before [`finish`](Self::finish).
    ///
    /// Once everything is in, nothing the network does can change what the viewer sees, so nobody needs to wait for it.
    pub fn run_out(&mut self) {
        while self.buffer.has_ended()
            && let Some((at, step)) = self.next_step()
        {
            self.make(at, step);
            self.now = at;
        }
    }

    /// When the player's state next changes if nothing more is delivered: the driver calls
    /// [`advance`](Self::advance) then. `None` while everything depends on data.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.next_step().map(|(at, _)| at)
    }

    /// Whether the receive buffer is full: the driver stops reading, so that flow control stops the sender.
    pub fn reading_paused(&self) -> bool {
        self.buffer.held() >= self.config.receive_buffer
            && self.next_step().is_some_and(|(_, step)| step.makes_room())
    }

    /// The next thing that happened and was not asked for yet. Drivers ask regularly; unread events wait in memory.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.record.events.pop_front()
    }

    /// The latest time the player has been told of.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Media bytes delivered and not yet shown, in the playout buffer and behind it.
    pub fn held(&self) -> Bytes {
        self.buffer.held()
    }

    /// Media bytes in the playout buffer, never more than its size.
    pub fn playout_buffer_fill(&self) -> Bytes {
        self.buffer.held().min(self.config.playout_buffer)
    }

    /// How long playback could go on with what is held.
    pub fn held_time(&self) -> Duration {
        self.buffer.held_time()
    }

    /// Bytes delivered so far, boxes included.
    pub fn received(&self) -> Bytes {
        self.buffer.received()
    }

    /// Whether playback has started, and is over.
    pub fn is_over(&self) -> bool {
        self.record.ended.is_some()
    }

    /// Whether the picture stands still though a frame was due.
    pub fn is_frozen(&self) -> bool {
        self.record.is_frozen()
    }

    /// The time series so far: a point at every multiple of [`PlayoutConfig::series_interval`], with what happened up to
    /// that instant. Past 65,536 points every second one is dropped and the interval doubles.
    pub fn series(&self) -> &[Point] {
        &self.record.series
    }

    /// What the viewer has seen so far.
    pub fn report(&self) -> PlayoutReport {
        PlayoutReport::new(&self.config, &self.buffer, &self.record, self.now)
    }

    fn next_step(&self) -> Option<(Duration, Step)> {
        let (at, step) = self.clock.next(&self.buffer, self.record.is_frozen())?;
        Some((at.max(self.now), step))
    }

    /// Everything due before `now` happens, not what is due just then: what comes in at `now` goes first.
    fn run_before(&mut self, now: Duration) {
        while let Some((at, step)) = self.next_step()
            && at < now
        {
            self.make(at, step);
        }
        while self.record.next_point().is_some_and(|at| at < now) {
            self.record.sample(&self.buffer);
        }
        self.now = self.now.max(now);
    }

    /// Makes a step happen, after the points of the series that lie before it.
    fn make(&mut self, at: Duration, step: Step) {
        while self.record.next_point().is_some_and(|point| point < at) {
            self.record.sample(&self.buffer);
        }
        self.now = at;
        self.clock.make(at, step, &mut self.buffer, &mut self.record);
    }
}
