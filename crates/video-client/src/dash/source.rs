//! [`DashSource`]: the requests of a [`DashPlayer`], with their manifest and initialisation segments.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_media::{Limits, StreamParser, TitleInfo};
use playrate_units::{Bitrate, Bytes};

use super::player::{DashOptions, DashPlayer, Decision};
use super::presentation::Resource;
use crate::cmcd::playback_rate;
use crate::error::{PlayError, Result, SetupError, TitleError, unplayable};
use crate::observer::{Observer, Progress};
use crate::playout::{Clock, Fill, Playout, PlayoutConfig};
use crate::report::{Outcome, QualityReport};
use crate::session::{Driver, NextStep, Request, TitleSource};
use crate::sink::Sink;
use crate::transfer::Transfer;

/// Factor on the rate that a segment needs, for `rtp` (`cmcd.rtpSafetyFactor` of dash.js).
const RTP_FACTOR: u64 = 5;
/// Smallest buffer length in the computation of `rtp`.
const RTP_MIN_BUFFER: Duration = Duration::from_millis(500);
/// Largest initialisation segment or segment index accepted.
pub(super) const MAX_INITIALIZATION: Bytes = Bytes::from_mib(1);

/// Number of consecutive segments that cannot be fetched or parsed, after which the session fails.
const MAX_FAILURES: u32 = 10;

pub(crate) struct DashSource<'a> {
    options: &'a DashOptions,
    /// Path of the manifest; identifier of the title in CMCD.
    pub(super) path: &'a str,
    player: Option<DashPlayer>,
    /// Used in place of the player until the manifest has been read.
    idle: Playout,
    /// The initialisation segments fetched so far, by representation and number.
    initializations: BTreeMap<(usize, usize), bytes::Bytes>,
    /// The one that the sink received last.
    initialized: Option<(usize, usize)>,
    /// Error of the first segment that was passed over since the last one that arrived.
    failure: Option<PlayError>,
    /// Segments that could not be fetched or parsed since then.
    failures: u32,
    title: Option<TitleInfo>,
    /// Notes on the parts of the title that are not fetched.
    notes: Vec<String>,
    /// Underflow events that CMCD has reported.
    reported_underflows: u64,
    /// The manifest declares only sound.
    pub(super) is_sound: bool,
    /// The segment being fetched.
    arriving: Option<ArrivingSegment>,
}

/// A segment being fetched and the number of its frames: 1 if it has no boxes to count them by.
struct ArrivingSegment {
    path: String,
    parser: Option<StreamParser>,
    frames: usize,
    /// The representation has no other segment, so it may be a whole MP4 file.
    is_only: bool,
}

impl<'a> DashSource<'a> {
    pub(crate) fn new(options: &'a DashOptions, path: &'a str) -> Result<Self, SetupError> {
        let presentation = options.presentation.as_ref();
        let player = presentation.map(|presentation| DashPlayer::new(Arc::clone(presentation), options));
        let clock = Clock::Rebuffer(Fill::Segments(options.resume_segments));
        Ok(Self {
            options,
            path,
            player: player.transpose()?,
            idle: Playout::new(PlayoutConfig::new(Bytes::ZERO, clock))?,
            initializations: BTreeMap::new(),
            initialized: None,
            failure: None,
            failures: 0,
            title: None,
            notes: Vec::new(),
            reported_underflows: 0,
            is_sound: false,
            arriving: None,
        })
    }

    /// A request for an object of this type, with the CMCD common to all requests.
    pub(super) fn request(&self, resource: &Resource, object: ObjectType) -> Request {
        let mut cmcd = Cmcd::default();
        cmcd.content = Some(self.path.to_owned());
        cmcd.streaming_format = Some(if is_hls(self.path) { "h" } else { "d" });
        cmcd.object_type = Some(object);
        cmcd.playback_rate = playback_rate(self.options.speed_percent);
        self.describe_playback(&mut cmcd);
        Request {
            path: resource.path.clone(),
            bytes: resource.bytes.clone(),
            cmcd,
        }
    }

    /// Sets the keys that say whether the player shows nothing: before it starts, and in stalls.
    fn describe_playback(&self, cmcd: &mut Cmcd) {
        let playout = self.playout();
        let state = match playout.report().startup_delay {
            None => "s",
            Some(_) if playout.is_stalled() => "r",
            Some(_) => "p",
        };
        (cmcd.startup, cmcd.state) = (state != "p", Some(state));
    }

    /// A request for a segment of this rate and playing time.
    pub(super) fn segment_request(
        &mut self,
        resource: &Resource,
        rate: Bitrate,
        duration: Duration,
    ) -> Request {
        let title = self.title.as_ref();
        let object = if title.map_or(self.is_sound, |title| !title.has_video) {
            ObjectType::Audio
        } else {
            ObjectType::Video
        };
        let mut request = self.request(resource, object);
        let player = self.player.as_ref();
        let representations = player.map(|player| player.presentation().representations());
        let cmcd = &mut request.cmcd;
        cmcd.bitrate = Some(rate);
        cmcd.object_duration = Some(duration);
        cmcd.top_bitrate = representations.and_then(|all| all.last().map(|top| top.rate));
        cmcd.lowest_bitrate = representations.and_then(|all| all.first().map(|lowest| lowest.rate));
        self.describe_state(&mut request.cmcd, rate, duration);
        request
    }

    /// Sets the keys of a segment request that depend on the player's state. Each underflow is reported in one request.
    fn describe_state(&mut self, cmcd: &mut Cmcd, rate: Bitrate, duration: Duration) {
        let held = self.playout().held_time();
        let underflows = self.playout().report().underflow_events;
        let bytes = rate * duration;
        let useful = bytes.per(held.max(RTP_MIN_BUFFER)).map(|needed| {
            let most = needed.as_bits_per_second().saturating_mul(RTP_FACTOR);
            Bitrate::from_bits_per_second(most).max(rate)
        });
        self.describe_playback(cmcd);
        cmcd.buffer_length = Some(self.playout().config().media_time(held));
        cmcd.underflow = underflows > self.reported_underflows;
        cmcd.deadline = Some(held).filter(|_| !cmcd.startup);
        cmcd.measured_throughput = self.player.as_ref().and_then(DashPlayer::throughput);
        cmcd.requested_throughput = useful;
        self.reported_underflows = underflows;
    }

    /// The initialisation segment of this representation and number, fetched on first use.
    async fn initialization<O: Observer>(
        driver: &mut Driver<'_, O, Self>,
        key: (usize, usize),
        resource: &Resource,
    ) -> Result<bytes::Bytes> {
        if let Some(known) = driver.source.initializations.get(&key) {
            return Ok(known.clone());
        }
        let request = driver.source.request(resource, ObjectType::Initialization);
        let bytes = driver.fetch_whole(request, MAX_INITIALIZATION).await?;
        driver.source.initializations.insert(key, bytes.clone());
        Ok(bytes)
    }

    /// Prepares a request for a segment; writes an initialisation segment to `sink` if a different one is needed.
    async fn fetch<O: Observer, S: Sink>(
        driver: &mut Driver<'_, O, Self>,
        (representation, number): (usize, usize),
        sink: &mut S,
    ) -> Result<NextStep> {
        let player = driver.source.player.as_ref();
        let presentation = player.map(|player| Arc::clone(player.presentation()));
        let chosen = presentation.as_ref().and_then(|presentation| {
            let chosen = presentation.representations().get(representation)?;
            Some((chosen, chosen.segments.get(number)?, presentation.duration()))
        });
        let Some((chosen, segment, duration)) = chosen else {
            return Ok(NextStep::Done);
        };
        let resource = Resource {
            path: segment.path.clone(),
            bytes: segment.bytes.clone(),
        };
        let mut parser = None;
        if segment.is_gap {
            return Err(unplayable(&segment.path, TitleError::Gap));
        }
        if let Some((at, initialization)) = chosen.initialization(number) {
            let key = (representation, at);
            let bytes = Self::initialization(driver, key, initialization).await?;
            let source = &mut driver.source;
            if source.initialized.replace(key) != Some(key) {
                sink.write(bytes.clone()).await.map_err(PlayError::Sink)?;
            }
            let parser = parser.insert(StreamParser::new(Limits::default()));
            parser
                .push(&bytes)
                .map_err(|problem| unplayable(&initialization.path, problem))?;
            if let (None, Some(info)) = (&source.title, parser.info()) {
                let mut info = info.clone();
                info.duration = Some(duration);
                source.title = Some(info);
            }
        }
        driver.source.arriving = Some(ArrivingSegment {
            path: resource.path.clone(),
            parser,
            frames: 0,
            is_only: chosen.segments.len() == 1,
        });
        let request = driver
            .source
            .segment_request(&resource, chosen.rate, segment.duration);
        Ok(NextStep::Fetch(Box::new(request)))
    }
}

impl TitleSource for DashSource<'_> {
    fn playout(&self) -> &Playout {
        self.player.as_ref().map_or(&self.idle, DashPlayer::playout)
    }

    fn playout_mut(&mut self) -> Option<&mut Playout> {
        self.player.as_mut().map(DashPlayer::playout_mut)
    }

    fn can_seek(&self) -> bool {
        self.player.is_some()
    }

    fn seek(&mut self, now: Duration, to: Duration) {
        if let Some(player) = &mut self.player {
            player.seek(now, to);
        }
    }

    async fn next<O: Observer, S: Sink>(driver: &mut Driver<'_, O, Self>, sink: &mut S) -> Result<NextStep> {
        if driver.source.player.is_none() {
            let (presentation, notes) = driver.presentation().await?;
            let source = &mut driver.source;
            source.notes = notes;
            source.player = Some(DashPlayer::new(Arc::new(presentation), source.options)?);
        }
        let now = driver.now();
        let decision = driver.source.player.as_mut().map(|player| player.decide(now));
        match decision {
            Some(Decision::Fetch {
                representation,
                segment,
            }) => match Self::fetch(driver, (representation, segment), sink).await {
                Err(error) => {
                    let now = driver.now();
                    driver.source.on_failure(now, error)?;
                    Ok(NextStep::WaitUntil(now))
                }
                step => step,
            },
            Some(Decision::WaitUntil(until)) => Ok(NextStep::WaitUntil(until)),
            Some(Decision::Done) | None => {
                let has_fetched = driver.source.player.as_ref().is_some_and(DashPlayer::has_fetched);
                let failure = driver.source.failure.take().filter(|_| !has_fetched);
                failure.map_or(Ok(NextStep::Done), Err)
            }
        }
    }

    fn refresh(&mut self, cmcd: &mut Cmcd) {
        match (cmcd.bitrate, cmcd.object_duration) {
            (Some(rate), Some(duration)) => self.describe_state(cmcd, rate, duration),
            _ => self.describe_playback(cmcd),
        }
    }

    fn on_bytes(&mut self, _now: Duration, bytes: &[u8]) -> Result<()> {
        let Some(ArrivingSegment {
            path,
            parser,
            frames,
            is_only,
        }) = &mut self.arriving
        else {
            return Ok(());
        };
        if *is_only && parser.is_none() && *frames == 0 && bytes.get(4..8) == Some(b"ftyp") {
            *parser = Some(StreamParser::new(Limits::default()));
        }
        let Some(parser) = parser else {
            *frames = 1;
            return Ok(());
        };
        parser.push(bytes).map_err(|problem| unplayable(path, problem))?;
        *frames = frames.saturating_add(parser.drain_frames().count());
        Ok(())
    }

    fn on_end(&mut self, transfer: Transfer) -> Result<()> {
        let frames = match self.arriving.take() {
            Some(segment) if segment.frames == 0 => return Err(unplayable(&segment.path, TitleError::Empty)),
            Some(segment) if segment.parser.is_some() => {
                Some(u32::try_from(segment.frames).unwrap_or(u32::MAX))
            }
            _ => None,
        };
        (self.failure, self.failures) = (None, 0);
        if let Some(player) = &mut self.player {
            player.fetched(transfer, frames);
        }
        Ok(())
    }

    fn on_failure(&mut self, now: Duration, error: PlayError) -> Result<()> {
        match &mut self.player {
            Some(player) if error.is_of_file() => player.pass_over(now, error.to_string()),
            _ => return Err(error),
        }
        let is_gap = matches!(&error, PlayError::Title { problem, .. } if *problem == TitleError::Gap);
        self.failures += u32::from(!is_gap);
        let earlier = self.failure.take().filter(|_| is_gap || self.failures > 1);
        let first = earlier.unwrap_or(error);
        if self.failures == MAX_FAILURES {
            return Err(first);
        }
        self.failure = Some(first);
        Ok(())
    }

    fn describe_progress(&self, progress: &mut Progress) {
        let Some(player) = &self.player else { return };
        let all = player.presentation().representations();
        progress.segments = Some(player.segments());
        progress.representation = all.get(player.representation()).map(|chosen| chosen.name.clone());
    }

    fn describe_report(&self, report: &mut QualityReport) {
        report.title.clone_from(&self.title);
        report.notes.clone_from(&self.notes);
        report.dash = self.player.as_ref().map(DashPlayer::report);
        let missing = self.player.as_ref().map_or(0, |player| player.missing);
        if report.outcome == Outcome::Complete && missing > 0 {
            report.outcome = Outcome::Incomplete(missing);
        }
    }
}

/// Returns true if `path` names an HLS playlist.
fn is_hls(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.to_ascii_lowercase().ends_with(".m3u8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dash::tests::{self, changed, ms, presentation};

    fn options() -> DashOptions {
        changed(|it| it.presentation = Some(presentation(20)))
    }

    fn resource(path: &str) -> Resource {
        let path = path.to_owned();
        Resource { path, bytes: None }
    }

    fn fetch(source: &mut DashSource<'_>, at: u64) {
        tests::fetch(source.player.as_mut().unwrap(), at).expect("there is room for a segment");
    }

    fn repeat(source: &mut DashSource<'_>, request: &Request, at: u64) -> Cmcd {
        let mut cmcd = request.cmcd.clone();
        source.playout_mut().unwrap().advance(ms(at));
        source.refresh(&mut cmcd);
        cmcd
    }

    #[test]
    fn a_repeated_request_describes_the_present_and_reports_each_underflow_once() {
        let options = options();
        let mut source = DashSource::new(&options, "/film.mpd").unwrap();
        let request = |source: &mut DashSource<'_>| {
            source.segment_request(&resource("/720p/2.m4s"), Bitrate::from_kbps(2_640), ms(3_000))
        };
        fetch(&mut source, 0);
        fetch(&mut source, 1_000);
        // Six seconds are shown from 1.5 s on, and then nothing.
        source.playout_mut().unwrap().advance(ms(10_000));
        let stalled = request(&mut source);
        assert!(stalled.cmcd.underflow && stalled.cmcd.startup && stalled.cmcd.deadline.is_none());
        assert!(
            !repeat(&mut source, &stalled, 10_100).underflow,
            "it was reported"
        );

        for at in [11_000, 12_000, 13_000] {
            fetch(&mut source, at);
        }
        let playing = repeat(&mut source, &stalled, 14_000);
        assert!(!playing.startup && playing.deadline.is_some());
        assert_ne!(playing.requested_throughput, stalled.cmcd.requested_throughput);
        assert_eq!(playing, request(&mut source).cmcd, "as of a request made now");

        assert!(repeat(&mut source, &stalled, 60_000).underflow, "another one");
        assert!(!repeat(&mut source, &stalled, 61_000).underflow);
    }

    #[test]
    fn a_faster_player_reports_its_speed_and_its_buffer_in_media_time() {
        let options = DashOptions {
            speed_percent: 200,
            ..options()
        };
        let mut source = DashSource::new(&options, "/film.mpd").unwrap();
        fetch(&mut source, 0);
        fetch(&mut source, 1_000);
        // Six seconds of media from 1.5 s on, shown in three.
        source.playout_mut().unwrap().advance(ms(2_500));
        let resource = resource("/720p/2.m4s");
        let request = source.segment_request(&resource, Bitrate::from_kbps(2_640), ms(3_000));
        let cmcd = request.cmcd;
        assert_eq!(cmcd.playback_rate, Some(2.0));
        let (level, deadline) = (cmcd.buffer_length.unwrap(), cmcd.deadline.unwrap());
        assert_eq!(level, deadline * 2);
        assert!(deadline.abs_diff(ms(2_000)) <= ms(20), "{deadline:?}");
    }

    #[test]
    fn a_repeated_request_for_what_precedes_segments_says_no_more_than_before() {
        let options = options();
        let mut source = DashSource::new(&options, "/film.mpd").unwrap();
        let request = source.request(&resource("/film.mpd"), ObjectType::Manifest);
        assert_eq!(repeat(&mut source, &request, 1_000), request.cmcd);
    }
}
