//! [`DashSource`]: the requests of a [`DashPlayer`], with the manifest and the initialisation segments they need.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::cmcd::{Cmcd, ObjectType};
use playrate_media::{Limits, MediaError, StreamParser, TitleInfo};
use playrate_units::{Bitrate, Bytes};

use super::manifest;
use super::player::{DashOptions, DashPlayer, Decision};
use super::presentation::{Presentation, Resource};
use crate::error::{PlayError, SetupError};
use crate::observer::{Observer, Progress};
use crate::playout::{Clock, Fill, Playout, PlayoutConfig, Rebuffer};
use crate::report::QualityReport;
use crate::session::{Link, NextStep, Request, TitleSource};
use crate::sink::Sink;
use crate::transfer::Transfer;

/// Factor on the rate that a segment needs, for `rtp` (`cmcd.rtpSafetyFactor` of dash.js).
const RTP_FACTOR: u64 = 5;
/// Smallest buffer length in the computation of `rtp`.
const RTP_MIN_BUFFER: Duration = Duration::from_millis(500);

pub(super) struct DashSource<'a> {
    options: &'a DashOptions,
    /// Path of the manifest; identifier of the title in CMCD.
    path: &'a str,
    player: Option<DashPlayer>,
    /// Stands for the player until the manifest has been read.
    idle: Playout,
    /// The initialisation segments fetched so far, by representation.
    initializations: BTreeMap<usize, bytes::Bytes>,
    /// Representation of the one that the sink was given last.
    initialized: Option<usize>,
    title: Option<TitleInfo>,
    /// Parts of the title that are not fetched, in words.
    notes: Vec<String>,
    /// Underflow events that CMCD has reported.
    reported_underflows: u64,
    /// The segment being fetched, if it has boxes to count frames by.
    boxes: Option<SegmentBoxes>,
}

/// The boxes of a segment and the frames found in them.
struct SegmentBoxes {
    path: String,
    parser: StreamParser,
    frames: usize,
}

impl<'a> DashSource<'a> {
    pub(super) fn new(
        options: &'a DashOptions,
        path: &'a str,
        presentation: Option<&Arc<Presentation>>,
    ) -> Result<Self, SetupError> {
        let player = presentation.map(|presentation| DashPlayer::new(Arc::clone(presentation), options));
        let clock = Clock::Rebuffer(Rebuffer {
            resume: Fill::Segments(options.resume_segments),
        });
        Ok(Self {
            options,
            path,
            player: player.transpose()?,
            idle: Playout::new(PlayoutConfig::new(Bytes::ZERO, clock))?,
            initializations: BTreeMap::new(),
            initialized: None,
            title: None,
            notes: Vec::new(),
            reported_underflows: 0,
            boxes: None,
        })
    }

    /// A request for an object of this type, with the CMCD that every request has.
    pub(super) fn request(&self, resource: &Resource, object: ObjectType) -> Request {
        let playout = self.playout();
        let playing = playout.report().startup_delay.is_some() && !playout.is_stalled();
        let mut cmcd = Cmcd::default();
        cmcd.content = Some(self.path.to_owned());
        cmcd.streaming_format = Some(if is_hls(self.path) { 'h' } else { 'd' });
        cmcd.object_type = Some(object);
        cmcd.startup = !playing;
        Request {
            path: resource.path.clone(),
            bytes: resource.bytes.clone(),
            cmcd,
        }
    }

    /// A request for a segment of this rate and playing time.
    fn segment_request(&mut self, resource: &Resource, rate: Bitrate, duration: Duration) -> Request {
        let mut request = self.request(resource, ObjectType::Video);
        let held = self.playout().held_time();
        let underflows = self.playout().report().underflow_events;
        let player = self.player.as_ref();
        let representations = player.map(|player| player.presentation().representations());
        let bytes = rate * duration;
        let useful = bytes.per(held.max(RTP_MIN_BUFFER)).map(|needed| {
            let most = needed.as_bits_per_second().saturating_mul(RTP_FACTOR);
            Bitrate::from_bits_per_second(most).max(rate)
        });
        let cmcd = &mut request.cmcd;
        cmcd.bitrate = Some(rate);
        cmcd.buffer_length = Some(held);
        cmcd.underflow = underflows > self.reported_underflows;
        cmcd.object_duration = Some(duration);
        cmcd.deadline = Some(held).filter(|_| !cmcd.startup);
        cmcd.measured_throughput = player.and_then(DashPlayer::throughput);
        cmcd.requested_throughput = useful;
        cmcd.top_bitrate = representations.and_then(|all| all.last().map(|top| top.rate));
        self.reported_underflows = underflows;
        request
    }

    /// The initialisation segment of a representation, fetched at its first use.
    async fn initialization<O: Observer>(
        &mut self,
        representation: usize,
        resource: &Resource,
        link: &mut Link<'_, '_, O>,
    ) -> Result<bytes::Bytes, PlayError> {
        if let Some(known) = self.initializations.get(&representation) {
            return Ok(known.clone());
        }
        let request = self.request(resource, ObjectType::Initialization);
        let bytes = link
            .fetch_whole(request, manifest::MAX_INITIALIZATION, self)
            .await?;
        self.initializations.insert(representation, bytes.clone());
        Ok(bytes)
    }

    /// Prepares a request for a segment; writes an initialisation segment to `sink` where another is needed.
    async fn fetch<O: Observer, S: Sink>(
        &mut self,
        (representation, segment): (usize, usize),
        link: &mut Link<'_, '_, O>,
        sink: &mut S,
    ) -> Result<NextStep, PlayError> {
        let presentation = self
            .player
            .as_ref()
            .map(|player| Arc::clone(player.presentation()));
        let chosen = presentation.as_ref().and_then(|presentation| {
            let chosen = presentation.representations().get(representation)?;
            Some((chosen, chosen.segments.get(segment)?, presentation.duration()))
        });
        let Some((chosen, segment, duration)) = chosen else {
            return Ok(NextStep::Done);
        };
        let resource = Resource {
            path: segment.path.clone(),
            bytes: segment.bytes.clone(),
        };
        self.boxes = None;
        if let Some(initialization) = &chosen.initialization {
            let bytes = self.initialization(representation, initialization, link).await?;
            if self.initialized.replace(representation) != Some(representation) {
                sink.write(bytes.clone()).await?;
            }
            let mut parser = StreamParser::new(Limits::default());
            parser
                .push(&bytes)
                .map_err(|problem| unreadable(&initialization.path, problem))?;
            if let (None, Some(info)) = (&self.title, parser.info()) {
                let mut info = info.clone();
                info.duration = Some(duration);
                self.title = Some(info);
            }
            self.boxes = Some(SegmentBoxes {
                path: resource.path.clone(),
                parser,
                frames: 0,
            });
        }
        let request = self.segment_request(&resource, chosen.rate, segment.duration);
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

    fn on_turn(&mut self, now: Duration) {
        if let Some(player) = &mut self.player {
            player.playout_mut().advance(now);
        }
    }

    async fn next<O: Observer, S: Sink>(
        &mut self,
        link: &mut Link<'_, '_, O>,
        sink: &mut S,
    ) -> Result<NextStep, PlayError> {
        if self.player.is_none() {
            let (presentation, notes) = manifest::fetch(link, self, self.path).await?;
            self.notes = notes;
            self.player = Some(DashPlayer::new(Arc::new(presentation), self.options)?);
        }
        let now = link.now();
        let decision = self.player.as_mut().map(|player| player.decide(now));
        match decision {
            Some(Decision::Fetch {
                representation,
                segment,
            }) => self.fetch((representation, segment), link, sink).await,
            Some(Decision::WaitUntil(until)) => Ok(NextStep::WaitUntil(until)),
            Some(Decision::Done) | None => Ok(NextStep::Done),
        }
    }

    fn refresh(&self, cmcd: &mut Cmcd) {
        if cmcd.buffer_length.is_some() {
            let held = self.playout().held_time();
            cmcd.buffer_length = Some(held);
            cmcd.deadline = cmcd.deadline.map(|_| held);
        }
    }

    fn on_bytes(&mut self, _now: Duration, bytes: &[u8]) -> Result<(), PlayError> {
        if let Some(SegmentBoxes { path, parser, frames }) = &mut self.boxes {
            parser.push(bytes).map_err(|problem| unreadable(path, problem))?;
            *frames = frames.saturating_add(parser.drain_frames().count());
        }
        Ok(())
    }

    fn on_end(&mut self, transfer: Transfer) -> Result<(), PlayError> {
        let frames = match &self.boxes {
            None => None,
            Some(boxes) if boxes.frames == 0 => return Err(unreadable(&boxes.path, MediaError::NoFrames)),
            Some(boxes) => Some(u32::try_from(boxes.frames).unwrap_or(u32::MAX)),
        };
        if let Some(player) = &mut self.player {
            player.fetched(transfer, frames);
        }
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
    }
}

/// Returns true if `path` is that of an HLS playlist.
fn is_hls(path: &str) -> bool {
    let path = path.split('?').next().unwrap_or_default();
    path.to_ascii_lowercase().ends_with(".m3u8")
}

fn unreadable(path: &str, problem: MediaError) -> PlayError {
    PlayError::Segment {
        path: path.to_owned(),
        problem,
    }
}
