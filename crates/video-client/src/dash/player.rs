//! [`DashPlayer`]: a player of segments, sans-IO. It says what to fetch when, and works out what a viewer sees.

use std::sync::Arc;
use std::time::Duration;

use playrate_media::Frame;
use playrate_units::Bytes;

use super::abr::{Abr, Chooser, Situation};
use super::history::ThroughputHistory;
use super::presentation::{Presentation, PresentationError};
use super::report::{DashReport, SegmentRecord};
use crate::cmcd::CmcdOptions;
use crate::playout::{
    Clock, ConfigError, DEFAULT_SERIES_INTERVAL, Event, Fill, Playout, PlayoutConfig, Rebuffer, Start,
};

/// How much playing time a player wants in its buffer (dash.js 4.0.0, `Settings.js`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTargets {
    /// Below the top representation (`stableBufferTime`).
    pub stable: Duration,
    /// At the top representation (`bufferTimeAtTopQuality`).
    pub top: Duration,
    /// At the top representation of a long title (`bufferTimeAtTopQualityLongForm`).
    pub top_of_long: Duration,
    /// From which playing time on a title is long (`longFormContentDurationThreshold`).
    pub long: Duration,
}

impl Default for BufferTargets {
    fn default() -> Self {
        Self {
            stable: Duration::from_secs(12),
            top: Duration::from_secs(30),
            top_of_long: Duration::from_secs(60),
            long: Duration::from_secs(600),
        }
    }
}

impl BufferTargets {
    /// The target of a title of this playing time.
    fn of(self, title: Duration, at_top: bool) -> Duration {
        match at_top {
            true if title >= self.long => self.top_of_long,
            true => self.top,
            false => self.stable,
        }
    }
}

/// How to play a presentation.
#[derive(Clone, Debug)]
pub struct DashOptions {
    /// How representations are chosen.
    pub abr: Abr,
    /// Where in the title playback begins. Segments that end before are not fetched.
    pub start_at: Duration,
    /// How much is to be in the buffer.
    pub buffer: BufferTargets,
    /// How long after it was found full enough the buffer is looked at again (`scheduling.defaultTimeout`).
    pub poll: Duration,
    /// Segments that must be in for playback to start.
    pub start_segments: u32,
    /// Segments that must be in for playback to go on after a stall.
    pub resume_segments: u32,
    /// How long to wait for a response, and then for the next bytes of it.
    pub timeout: Duration,
    /// What the server is told with each request.
    pub cmcd: CmcdOptions,
    /// How often the observer hears of the progress.
    pub progress_interval: Duration,
    /// Distance of the points of the time series; zero keeps none.
    pub series_interval: Duration,
}

impl Default for DashOptions {
    fn default() -> Self {
        Self {
            abr: Abr::default(),
            start_at: Duration::ZERO,
            buffer: BufferTargets::default(),
            poll: Duration::from_millis(500),
            start_segments: 2,
            resume_segments: 1,
            timeout: Duration::from_secs(30),
            cmcd: CmcdOptions::default(),
            progress_interval: Duration::from_millis(100),
            series_interval: DEFAULT_SERIES_INTERVAL,
        }
    }
}

impl DashOptions {
    /// How much the buffer holds when it is full: the target at the top representation, at its rate.
    pub fn playout_buffer(&self, presentation: &Presentation) -> Bytes {
        let top = presentation.representations().last();
        let target = self.buffer.of(presentation.duration(), true);
        top.map_or(Bytes::ZERO, |top| top.rate * target)
    }

    /// The modelled player of such a session. A segment that has been asked for is taken whole, so nothing pauses reading.
    fn playout(&self, presentation: &Presentation) -> PlayoutConfig {
        let most = self.playout_buffer(presentation);
        PlayoutConfig {
            playout_buffer: most,
            receive_buffer: most,
            start: Start::Filled(Fill::Segments(self.start_segments)),
            clock: Clock::Rebuffer(Rebuffer {
                resume: Fill::Segments(self.resume_segments),
            }),
            series_interval: self.series_interval,
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Fetch this segment now, and tell [`DashPlayer::fetched`].
    Fetch {
        /// Of which representation, from 0.
        representation: usize,
        /// Which segment, from 0.
        segment: usize,
    },
    /// There is enough: ask again at this time.
    WaitUntil(Duration),
    /// The whole title is in.
    Done,
}

/// A segment that came. Times are since the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// When it was asked for.
    pub requested: Duration,
    /// When its first byte came.
    pub first_byte: Duration,
    /// When its last byte came.
    pub finished: Duration,
    /// How many there were.
    pub bytes: Bytes,
    /// How many pictures they hold, if that was looked at; else the presentation is believed.
    pub pictures: Option<u32>,
}

/// A player of a [`Presentation`]. Sans-IO: it is told the time and what came, and says what to fetch.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use playrate_units::{Bitrate, Bytes};
/// use video_client::dash::{DashOptions, DashPlayer, Decision, Fetched, MediaSegment, Presentation, Representation};
///
/// let segments = |name: &str| -> Vec<_> {
///     (0..4).map(|n| MediaSegment { path: format!("/{name}/{n}"), bytes: None, duration: Duration::from_secs(3), pictures: 75 }).collect()
/// };
/// let rates = [("low", Bitrate::from_kbps(440)), ("high", Bitrate::from_kbps(2_640))];
/// let film = Presentation::new(rates.map(|(name, rate)| Representation { name: name.into(), rate, initialization: None, segments: segments(name) }).into())?;
/// let mut player = DashPlayer::new(Arc::new(film), &DashOptions::default())?;
/// let mut now = Duration::ZERO;
/// while let Decision::Fetch { representation, .. } = player.decide(now) {
///     let first_byte = now + Duration::from_millis(40);
///     let finished = first_byte + Duration::from_millis(200); // 6 Mbit/s or more
///     let bytes = Bytes::new(if representation == 0 { 165_000 } else { 990_000 });
///     player.fetched(Fetched { requested: now, first_byte, finished, bytes, pictures: None });
///     now = finished;
/// }
/// let chosen: Vec<_> = player.report().segments.iter().map(|it| it.representation).collect();
/// assert_eq!(chosen, [0, 1, 1, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DashPlayer {
    presentation: Arc<Presentation>,
    buffer: BufferTargets,
    poll: Duration,
    /// The first segment fetched, and how much of it is not shown.
    first: usize,
    skipped: Duration,
    playout: Playout,
    chooser: Chooser,
    history: ThroughputHistory,
    records: Vec<SegmentRecord>,
    /// When the buffer is looked at next.
    look_at: Duration,
    /// Bytes of segments in the player.
    received: u64,
    /// Playing time of them.
    known: Duration,
    /// Buffer when the segment on its way was asked for.
    held: Duration,
}

/// A player that cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The representation asked for is not there.
    #[error(transparent)]
    Presentation(#[from] PresentationError),
    /// Playback cannot begin where it should.
    #[error(
        "the title plays for {}, so nothing begins at {}: write an earlier time",
        playrate_units::duration::display(*.plays), playrate_units::duration::display(*.asked)
    )]
    StartsBeyond {
        /// What was asked for.
        asked: Duration,
        /// How long the title is.
        plays: Duration,
    },
    /// The modelled player cannot be.
    #[error(transparent)]
    Playout(#[from] ConfigError),
}

impl DashPlayer {
    /// A player at time zero that has nothing.
    ///
    /// # Errors
    /// If `options` ask for a representation or a time that is not there.
    pub fn new(presentation: Arc<Presentation>, options: &DashOptions) -> Result<Self, SetupError> {
        let asked = options.start_at;
        let (first, begins) = presentation.segment_at(asked).ok_or(SetupError::StartsBeyond {
            asked,
            plays: presentation.duration(),
        })?;
        Ok(Self {
            first,
            skipped: asked.saturating_sub(begins),
            playout: Playout::new(options.playout(&presentation))?,
            chooser: Chooser::new(&options.abr, &presentation)?,
            buffer: options.buffer,
            poll: options.poll.max(Duration::from_millis(1)),
            history: ThroughputHistory::default(),
            records: Vec::new(),
            look_at: Duration::ZERO,
            received: 0,
            known: Duration::ZERO,
            held: Duration::ZERO,
            presentation,
        })
    }

    /// What to do at `now`, while no segment is on its way.
    pub fn decide(&mut self, now: Duration) -> Decision {
        self.playout.advance(now);
        let segment = self.next_segment();
        let Some(next) = self.presentation.segment(0, segment) else {
            return Decision::Done;
        };
        if now < self.look_at {
            return Decision::WaitUntil(self.look_at);
        }
        let held = self.playout.held_time();
        if held < self.target() {
            let now = Situation {
                held,
                segments: self.records.len(),
                duration: next.duration,
            };
            let before = self.chooser.current();
            let representation = self.chooser.choose(&self.history, now);
            // Another representation may want less in the buffer.
            if representation == before || held < self.target() {
                self.held = held;
                return Decision::Fetch {
                    representation,
                    segment,
                };
            }
        }
        self.look_at = now.saturating_add(self.poll);
        Decision::WaitUntil(self.look_at)
    }

    /// The segment to be fetched next, from 0.
    fn next_segment(&self) -> usize {
        self.first.saturating_add(self.records.len())
    }

    fn target(&self) -> Duration {
        self.buffer
            .of(self.presentation.duration(), self.chooser.is_at_top())
    }

    /// The segment that was asked for is in.
    pub fn fetched(&mut self, came: Fetched) {
        let index = self.next_segment();
        let representation = self.chooser.current();
        let measured = self
            .history
            .push(came.requested, came.first_byte, came.finished, came.bytes);
        if let Some(segment) = self.presentation.segment(representation, index) {
            let skipped = std::mem::take(&mut self.skipped);
            let shown = segment.duration.saturating_sub(skipped);
            let count = came.pictures.unwrap_or(segment.pictures);
            let share = u128::from(count) * shown.as_nanos() / segment.duration.as_nanos().max(1);
            let count = u32::try_from(share).unwrap_or(u32::MAX);
            let frames = pictures(count, shown, self.known, self.received, came.bytes);
            self.known = self.known.saturating_add(shown);
            self.playout.add_frames(came.finished, &frames);
        }
        self.playout.deliver(came.finished, came.bytes);
        self.playout.end_segment(came.finished);
        self.received = self.received.saturating_add(came.bytes.as_u64());
        self.records.push(SegmentRecord {
            representation,
            requested: came.requested,
            first_byte: came.first_byte,
            finished: came.finished,
            bytes: came.bytes,
            held: self.held,
            instantaneous: measured.throughput,
            counted: measured.counted,
            smoothed: self.history.smoothed().unwrap_or_default(),
        });
        self.look_at = came.finished;
        if self.next_segment() >= self.presentation.segment_count() {
            self.playout.finish(came.finished);
        }
    }

    /// Time has come to `now`: what is due by then is shown.
    pub fn advance(&mut self, now: Duration) {
        self.playout.advance(now);
    }

    /// Plays what is in to its end, once the whole title is.
    pub fn run_out(&mut self) {
        self.playout.run_out();
    }

    /// The next thing that happened in the player and was not asked for yet.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.playout.poll_event()
    }

    /// The modelled player.
    pub fn playout(&self) -> &Playout {
        &self.playout
    }

    /// What is played.
    pub fn presentation(&self) -> &Arc<Presentation> {
        &self.presentation
    }

    /// The representation of the last choice, from 0.
    pub fn representation(&self) -> usize {
        self.chooser.current()
    }

    /// What the player takes the network for: the [smoothed](ThroughputHistory::smoothed) throughput.
    pub fn throughput(&self) -> Option<playrate_units::Bitrate> {
        self.history.smoothed()
    }

    /// Segments that came, and how many there are to fetch.
    pub fn segments(&self) -> (usize, usize) {
        let all = self.presentation.segment_count().saturating_sub(self.first);
        (self.records.len(), all)
    }

    /// What was fetched so far.
    pub fn report(&self) -> DashReport {
        DashReport {
            representations: self
                .presentation
                .representations()
                .iter()
                .map(|it| (it.name.clone(), it.rate))
                .collect(),
            segment_count: self.presentation.segment_count(),
            first_segment: self.first,
            segments: self.records.clone(),
        }
    }
}

/// `count` pictures of a segment that begins at `start` and at byte `offset`, evenly spaced over `shown`.
fn pictures(count: u32, shown: Duration, start: Duration, offset: u64, bytes: Bytes) -> Vec<Frame> {
    let count = count.max(1);
    let share = |number: u32| {
        let part = u128::from(bytes.as_u64()) * u128::from(number) / u128::from(count);
        offset.saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
    };
    (0..count)
        .map(|number| {
            let nanos = shown.as_nanos() * u128::from(number) / u128::from(count);
            let pts = start.saturating_add(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)));
            Frame {
                offset: share(number),
                size: Bytes::new(share(number + 1).saturating_sub(share(number))),
                dts: pts,
                pts,
                key: number == 0,
            }
        })
        .collect()
}
