//! [`ProgressiveSource`]: a title of one file, in one response.

use std::sync::Arc;
use std::time::Duration;

use playrate_media::cmcd::Cmcd;
use playrate_media::{Limits, MediaSource, StreamParser};
use playrate_units::Bytes;

use crate::cmcd::playback_rate;
use crate::error::{PlayError, Result};
use crate::observer::{Observer, Progress};
use crate::playout::{ConfigError, Playout, PlayoutConfig};
use crate::report::QualityReport;
use crate::session::{Driver, NextStep, Request, SessionOptions, TitleSource};
use crate::sink::Sink;
use crate::transfer::Transfer;

/// Origin of the index that maps bytes of the response to frames.
#[derive(Clone, Debug, Default)]
pub enum FrameSource {
    /// The title's own boxes, as they arrive.
    #[default]
    Boxes,
    /// The index of this title, whose bytes the response must equal: payload generated from a frame trace has no boxes.
    /// The player knows all frames from the first byte on, as with a progressive file whose `moov` box comes first.
    Index(Arc<dyn MediaSource>),
}

/// Options of a [`Session`](crate::Session) with a title of one file.
///
/// ```
/// let mut options = video_client::PlayOptions::default();
/// options.session.timeout = std::time::Duration::from_secs(5);
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct PlayOptions {
    /// Settings of the modelled player.
    pub playout: PlayoutConfig,
    /// Origin of the title's frame index.
    pub frames: FrameSource,
    /// Timeout, CMCD and progress. CMCD's buffer length is left out: one response carries the whole title, so it would
    /// only be true at the beginning.
    pub session: SessionOptions,
}

pub(crate) struct ProgressiveSource {
    player: Playout,
    frames: FrameSource,
    /// Unused with an index.
    parser: Box<StreamParser>,
    /// True once the player has the frames of the index.
    has_indexed: bool,
    /// The first request, or that of the last jump.
    request: Request,
    /// False once it has been sent.
    is_due: bool,
    /// Length of the title as declared by the server.
    declared: Option<Bytes>,
}

impl ProgressiveSource {
    pub(crate) fn new(options: &PlayOptions, path: &str) -> Result<Self, ConfigError> {
        let mut cmcd = Cmcd::default();
        cmcd.content = Some(path.to_owned());
        cmcd.streaming_format = Some("o");
        cmcd.playback_rate = playback_rate(options.playout.speed_percent);
        Ok(Self {
            player: Playout::new(options.playout.clone())?,
            frames: options.frames.clone(),
            parser: Box::new(StreamParser::new(Limits::default())),
            has_indexed: false,
            request: Request {
                path: path.to_owned(),
                bytes: None,
                cmcd,
            },
            is_due: true,
            declared: None,
        })
    }
}

impl TitleSource for ProgressiveSource {
    fn playout(&self) -> &Playout {
        &self.player
    }

    fn playout_mut(&mut self) -> Option<&mut Playout> {
        Some(&mut self.player)
    }

    fn reading_paused(&self) -> bool {
        self.player.reading_paused()
    }

    fn can_seek(&self) -> bool {
        matches!(self.frames, FrameSource::Index(_))
    }

    fn seek(&mut self, now: Duration, to: Duration) {
        let FrameSource::Index(index) = &self.frames else {
            return;
        };
        let offset = self.player.seek(now, index.title().frames(), to);
        self.request.bytes = Some(offset..index.len());
        self.is_due = true;
    }

    async fn next<O: Observer, S: Sink>(driver: &mut Driver<'_, O, Self>, _sink: &mut S) -> Result<NextStep> {
        let is_due = std::mem::take(&mut driver.source.is_due);
        let request = is_due.then(|| Box::new(driver.source.request.clone()));
        Ok(request.map_or(NextStep::Done, NextStep::Fetch))
    }

    fn on_response(&mut self, length: Option<Bytes>) {
        self.declared = length;
    }

    /// Adds the frames in the bytes, including those before an error, then the bytes.
    fn on_bytes(&mut self, now: Duration, bytes: &[u8]) -> Result<()> {
        let mut parsed = Ok(());
        match &self.frames {
            FrameSource::Boxes => {
                parsed = self.parser.push(bytes);
                let frames: Vec<_> = self.parser.drain_frames().collect();
                if !frames.is_empty() {
                    self.player.add_frames(now, &frames);
                }
            }
            FrameSource::Index(index) => {
                if !std::mem::replace(&mut self.has_indexed, true) {
                    self.player.add_frames(now, index.title().frames());
                }
            }
        }
        self.player.deliver(now, Bytes::from(bytes.len()));
        parsed.map_err(PlayError::Media)
    }

    fn on_end(&mut self, _transfer: Transfer) -> Result<()> {
        match self.frames {
            FrameSource::Boxes => {
                let finished = self.parser.finish().map_err(PlayError::Media);
                // A box that runs to the end of the file is known to be complete only now.
                let frames: Vec<_> = self.parser.drain_frames().collect();
                self.player.add_frames(self.player.now(), &frames);
                finished
            }
            FrameSource::Index(_) => Ok(()),
        }
    }

    fn describe_progress(&self, progress: &mut Progress) {
        progress.promised = self.declared;
    }

    fn describe_report(&self, report: &mut QualityReport) {
        let (info, bytes, time) = match &self.frames {
            FrameSource::Boxes => {
                let parser = &self.parser;
                (parser.info(), parser.media_bytes(), parser.playing_time())
            }
            FrameSource::Index(index) if self.has_indexed => {
                let title = index.title();
                (Some(title.info()), title.media_bytes(), title.duration())
            }
            FrameSource::Index(_) => (None, Bytes::ZERO, Duration::ZERO),
        };
        report.title = info.cloned();
        if let Some(title) = &mut report.title {
            title.duration.get_or_insert(time);
        }
        report.notes = self.parser.notes().to_vec();
        report.average_rate = bytes.per(time);
        // The player takes the duration of the last frame from those before it.
        if report.playback.frames == 1 {
            report.known_time = time;
            report.shown_time = time.saturating_mul(u32::from(report.playback.frames_shown > 0));
        }
        report.network.promised = self.declared;
    }
}
