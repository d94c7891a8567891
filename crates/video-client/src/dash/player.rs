//! [`DashPlayer`]: a player of segments, sans-IO. It decides which segment to fetch when, and feeds the playout model.

use std::sync::Arc;
use std::time::Duration;

use playrate_media::Frame;
use playrate_units::Bytes;

use super::abr::{Abr, Chooser};
use super::history::ThroughputHistory;
use super::order::FetchOrder;
use super::presentation::Presentation;
use crate::error::SetupError;
use crate::playout::{Clock, DEFAULT_SERIES_INTERVAL, Fill, Playout, PlayoutConfig, Start};
use crate::report::{DashReport, PassedOver, SegmentRecord};
use crate::session::SessionOptions;
use crate::transfer::Transfer;

/// Time between checks of a buffer that has reached its target (dash.js 4.0.0, `scheduling.defaultTimeout`).
const POLL: Duration = Duration::from_millis(500);
/// Playing time ahead of playback that is never replaced (dash.js 4.0.0, `StreamProcessor.js`).
const KEPT: Duration = Duration::from_millis(1_500);

/// Playing time that a player aims to hold in its buffer (dash.js 4.0.0, `Settings.js`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferTargets {
    /// Target below the top representation (`stableBufferTime`).
    pub stable: Duration,
    /// Target at the top representation (`bufferTimeAtTopQuality`).
    pub top: Duration,
    /// Target at the top representation of a long title (`bufferTimeAtTopQualityLongForm`).
    pub top_of_long: Duration,
    /// Playing time above which a title is long (`longFormContentDurationThreshold`).
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
    /// The target for a title of this playing time.
    fn of(self, title: Duration, at_top: bool) -> Duration {
        match at_top {
            true if title >= self.long => self.top_of_long,
            true => self.top,
            false => self.stable,
        }
    }
}

/// Options of a [`DashPlayer`] and its session.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DashOptions {
    /// The title's segments. If `None`, a session reads them from the manifest (DASH `.mpd`, HLS `.m3u8`). It then
    /// fetches the video of one set of representations, H.264 in fMP4, and the report's notes list omissions.
    pub presentation: Option<Arc<Presentation>>,
    /// Rule that chooses the representation.
    pub abr: Abr,
    /// Position in the title where playback begins. Segments that end before it are not fetched.
    pub start_at: Duration,
    /// Playing time that the player aims to hold.
    pub buffer: BufferTargets,
    /// Fetches the buffer again after a switch up, from 1.5 s ahead of playback on: `fastSwitchEnabled`, on by default
    /// in dash.js 4.0.0.
    pub fast_switch: bool,
    /// Fetches the last buffered segment again when the representation changes. dash.js does so if the end of its
    /// buffer, in whole microseconds, is before the start of the next segment: with 24 frames per second, but not with
    /// 25.
    pub refetches_last: bool,
    /// Playback speed in per cent; at least 1.
    pub speed_percent: u32,
    /// Whole segments needed for playback to start; one in dash.js.
    pub start_segments: u32,
    /// Whole segments needed for playback to continue after a stall.
    pub resume_segments: u32,
    /// Timeout, CMCD and progress of its session.
    pub session: SessionOptions,
    /// Time between points of the series; zero keeps no series.
    pub series_interval: Duration,
}

impl Default for DashOptions {
    fn default() -> Self {
        Self {
            presentation: None,
            abr: Abr::default(),
            start_at: Duration::ZERO,
            buffer: BufferTargets::default(),
            fast_switch: false,
            refetches_last: false,
            speed_percent: 100,
            start_segments: 2,
            resume_segments: 1,
            session: SessionOptions::default(),
            series_interval: DEFAULT_SERIES_INTERVAL,
        }
    }
}

impl DashOptions {
    /// Size of the full buffer: the target at the top representation, at its rate.
    pub fn playout_buffer(&self, presentation: &Presentation) -> Bytes {
        let top = presentation.representations().last();
        let target = self.buffer.of(presentation.duration(), true);
        top.map_or(Bytes::ZERO, |top| top.rate * target)
    }

    /// Settings of the modelled player. A requested segment is taken completely, so reading never pauses.
    fn playout(&self, presentation: &Presentation) -> PlayoutConfig {
        let size = self.playout_buffer(presentation);
        let resume = Fill::Segments(self.resume_segments);
        let mut config = PlayoutConfig::new(size, Clock::Rebuffer(resume));
        config.receive_buffer = size;
        config.start = Start::Filled(Fill::Segments(self.start_segments));
        config.series_interval = self.series_interval;
        config.speed_percent = self.speed_percent;
        config
    }
}

/// The next step of a [`DashPlayer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Fetch this segment now, then call [`DashPlayer::fetched`].
    Fetch {
        /// Index of the representation.
        representation: usize,
        /// Index of the segment.
        segment: usize,
    },
    /// The buffer has reached its target: decide again at this time.
    WaitUntil(Duration),
    /// The whole title has been fetched.
    Done,
}

/// A player of a [`Presentation`]. Sans-IO: its driver passes in the time and the arriving segments.
///
/// ```
/// use std::{sync::Arc, time::Duration};
/// use playrate_units::{Bitrate, Bytes};
/// use video_client::Transfer;
/// use video_client::dash::{DashOptions, DashPlayer, Decision, MediaSegment, Presentation, Representation};
///
/// let segments = |name: &str| -> Vec<_> {
///     (0..4)
///         .map(|n| MediaSegment {
///             path: format!("/{name}/{n}"),
///             bytes: None,
///             duration: Duration::from_secs(3),
///             frames: 75,
///             hidden: Duration::ZERO,
///             is_gap: false,
///         })
///         .collect()
/// };
/// let rates = [("low", Bitrate::from_kbps(440)), ("high", Bitrate::from_kbps(2_640))];
/// let representation = |(name, rate): (&str, Bitrate)| Representation {
///     name: name.to_owned(),
///     rate,
///     initializations: Vec::new(),
///     segments: segments(name),
/// };
/// let film = Presentation::new(rates.map(representation).into())?;
/// let mut player = DashPlayer::new(Arc::new(film), &DashOptions::default())?;
/// let mut now = Duration::ZERO;
/// while let Decision::Fetch { representation, .. } = player.decide(now) {
///     let first_byte = now + Duration::from_millis(40);
///     let finished = first_byte + Duration::from_millis(200); // 6 Mbit/s or more
///     let bytes = Bytes::new(if representation == 0 { 165_000 } else { 990_000 });
///     player.fetched(Transfer { requested: now, first_byte, finished, bytes }, None);
///     now = finished;
/// }
/// let chosen: Vec<_> = player.report().segments.iter().map(|it| it.representation).collect();
/// assert_eq!(chosen, [0, 1, 1, 1]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DashPlayer {
    presentation: Arc<Presentation>,
    options: DashOptions,
    /// Playing time shown before the last jump.
    shown_before: Duration,
    /// Playing time at the start of the first segment that is not shown.
    skipped: Duration,
    order: FetchOrder,
    playout: Playout,
    chooser: Chooser,
    history: ThroughputHistory,
    records: Vec<SegmentRecord>,
    passed_over: Vec<PassedOver>,
    /// Number of segments passed over without a buffered one in their place.
    pub(super) missing: usize,
    /// Time of the next check of the buffer.
    look_at: Duration,
    /// Sum of the sizes of the fetched segments.
    received: u64,
    /// Sum of their playing times.
    known: Duration,
    /// Playing time in the buffer at the last request.
    held: Duration,
}

impl DashPlayer {
    /// Creates a player at time zero with an empty buffer.
    ///
    /// # Errors
    /// If `options` name a representation or a time that does not exist in the presentation.
    pub fn new(presentation: Arc<Presentation>, options: &DashOptions) -> Result<Self, SetupError> {
        let requested = options.start_at;
        let (first, begins) = presentation
            .segment_at(requested)
            .ok_or(SetupError::StartsBeyond {
                requested,
                duration: presentation.duration(),
            })?;
        Ok(Self {
            shown_before: Duration::ZERO,
            order: FetchOrder::from(first),
            skipped: requested.saturating_sub(begins),
            playout: Playout::new(options.playout(&presentation))?,
            chooser: Chooser::new(&options.abr, &presentation)?,
            options: options.clone(),
            history: ThroughputHistory::default(),
            records: Vec::new(),
            passed_over: Vec::new(),
            missing: 0,
            look_at: Duration::ZERO,
            received: 0,
            known: Duration::ZERO,
            held: Duration::ZERO,
            presentation,
        })
    }

    /// Decides on the next step. Call it only while no segment is being fetched.
    pub fn decide(&mut self, now: Duration) -> Decision {
        self.playout.advance(now);
        if self.has_all() {
            return Decision::Done;
        }
        let Some(next) = self.presentation.segment(0, self.order.next) else {
            return Decision::Done;
        };
        if now < self.look_at {
            return Decision::WaitUntil(self.look_at);
        }
        let held = self.playout.config().media_time(self.playout.held_time());
        if held < self.target() {
            let before = self.chooser.current;
            let representation = self
                .chooser
                .choose(&self.history, (held, self.records.len(), next.duration));
            if representation != before {
                self.switch_to(representation, held);
            }
            // Another representation may have a lower target.
            if representation == before || held < self.target() {
                self.held = held;
                return Decision::Fetch {
                    representation,
                    segment: self.order.next,
                };
            }
        }
        self.look_at = now.saturating_add(POLL);
        Decision::WaitUntil(self.look_at)
    }

    /// Jumps to the segment at `to` in the title, or to the last one. Discards the buffer.
    pub fn seek(&mut self, now: Duration, to: Duration) {
        let last = self.presentation.segment_count().saturating_sub(1);
        let there = self.presentation.segment_at(to);
        self.order = FetchOrder::from(there.map_or(last, |(segment, _)| segment));
        self.shown_before = self.shown();
        self.skipped = Duration::ZERO;
        self.playout.restart(now, Bytes::new(self.received), &[]);
        self.look_at = now;
    }

    /// Playing time shown since the session began.
    fn shown(&self) -> Duration {
        self.playout.config().media_time(self.playout.shown_time())
    }

    /// Returns true if every segment has been fetched or passed over.
    fn has_all(&self) -> bool {
        self.order.end() >= self.presentation.segment_count()
    }

    /// Decides which segment a new representation begins with.
    fn switch_to(&mut self, representation: usize, held: Duration) {
        self.order.append(self.options.refetches_last);
        if self.options.fast_switch && held >= KEPT {
            let shown = self.shown().saturating_sub(self.shown_before);
            self.order.replace(shown.saturating_add(KEPT), representation);
        }
    }

    fn target(&self) -> Duration {
        self.options
            .buffer
            .of(self.presentation.duration(), self.chooser.is_at_top())
    }

    /// Takes the segment of the last [`Decision::Fetch`]. `frames` is the number counted in its boxes; `None` takes the
    /// number from the presentation.
    pub fn fetched(&mut self, transfer: Transfer, frames: Option<u32>) {
        let index = self.order.next;
        let representation = self.chooser.current;
        let Transfer { finished, bytes, .. } = transfer;
        let (instantaneous, counted) = self.history.push(&transfer);
        let segment = self.presentation.segment(representation, index);
        let shown = segment.map_or(Duration::ZERO, |it| it.duration.saturating_sub(self.skipped));
        // A segment that replaces a buffered one plays when the buffered one would have played.
        let is_new = self.order.advance(representation, shown);
        if is_new && let Some(segment) = segment {
            self.skipped = Duration::ZERO;
            let count = frames.unwrap_or(segment.frames);
            let whole = segment.duration.saturating_add(segment.hidden);
            let share = u128::from(count) * shown.as_nanos() / whole.as_nanos().max(1);
            let count = u32::try_from(share).unwrap_or(u32::MAX);
            let frames = self.spread_frames(count, shown, bytes);
            self.known = self.known.saturating_add(shown);
            self.playout.add_frames(finished, &frames);
        }
        if is_new {
            self.playout.deliver(finished, bytes);
            self.playout.end_segment(finished);
            self.received = self.received.saturating_add(bytes.as_u64());
        } else {
            self.playout.advance(finished);
        }
        self.records.push(SegmentRecord {
            segment: index,
            representation,
            transfer,
            held: self.held,
            instantaneous,
            counted,
            smoothed: self.history.smoothed().unwrap_or_default(),
        });
        self.look_at = finished;
        if self.has_all() {
            self.playout.finish(finished);
        }
    }

    /// Passes over the segment of the last [`Decision::Fetch`], which is missing or broken. Playback goes on with the
    /// next one, as in players that jump over gaps.
    pub fn pass_over(&mut self, now: Duration, reason: String) {
        self.passed_over.push(PassedOver {
            at: now,
            segment: self.order.next,
            representation: self.chooser.current,
            reason,
        });
        if self.order.advance(self.chooser.current, Duration::ZERO) {
            self.skipped = Duration::ZERO;
            self.missing += 1;
        }
        self.playout.advance(now);
        self.look_at = now;
        if self.has_all() && self.has_fetched() {
            self.playout.finish(now);
        }
    }

    /// Returns true if at least one segment has been fetched.
    pub(super) fn has_fetched(&self) -> bool {
        !self.records.is_empty()
    }

    /// The frames of a segment that follows the known ones: `count` frames share its bytes and `shown` evenly.
    fn spread_frames(&self, count: u32, shown: Duration, bytes: Bytes) -> Vec<Frame> {
        let count = count.max(1);
        let share = |number: u32| {
            let part = u128::from(bytes.as_u64()) * u128::from(number) / u128::from(count);
            self.received
                .saturating_add(u64::try_from(part).unwrap_or(u64::MAX))
        };
        let frame = |number| {
            let nanos = shown.as_nanos() * u128::from(number) / u128::from(count);
            let after = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
            let pts = self.known.saturating_add(after);
            Frame {
                offset: share(number),
                size: Bytes::new(share(number + 1).saturating_sub(share(number))),
                dts: pts,
                pts,
                key: number == 0,
            }
        };
        (0..count).map(frame).collect()
    }

    /// The modelled player of the buffer.
    pub fn playout(&self) -> &Playout {
        &self.playout
    }

    /// The modelled player, to advance its time and take its events.
    pub fn playout_mut(&mut self) -> &mut Playout {
        &mut self.playout
    }

    /// The title being played.
    pub fn presentation(&self) -> &Arc<Presentation> {
        &self.presentation
    }

    /// Index of the last chosen representation.
    pub fn representation(&self) -> usize {
        self.chooser.current
    }

    /// The player's estimate: the mean of the last throughputs, less a tenth.
    pub fn throughput(&self) -> Option<playrate_units::Bitrate> {
        self.history.smoothed()
    }

    /// Number of different segments fetched, and of all segments to fetch.
    pub fn segments(&self) -> (usize, usize) {
        let all = self.presentation.segment_count().saturating_sub(self.order.first);
        (self.order.count(), all)
    }

    /// The report on the segments so far.
    pub fn report(&self) -> DashReport {
        let representations = self.presentation.representations().iter();
        let mut report = DashReport::new(
            representations.map(|it| (it.name.clone(), it.rate)),
            self.presentation.segment_count(),
            self.order.first,
            self.records.clone(),
        );
        report.passed_over.clone_from(&self.passed_over);
        report
    }
}
