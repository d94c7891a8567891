//! [`ProgressiveSource`]: a title of one file, in one response.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::cmcd::Cmcd;
use playrate_media::{Limits, MediaSource};
use playrate_units::Bytes;

use crate::cmcd::playback_rate;
use crate::error::PlayError;
use crate::frames::{FrameParser, FrameSource};
use crate::observer::{Observer, Progress};
use crate::playout::{ConfigError, Playout, PlayoutConfig};
use crate::report::QualityReport;
use crate::session::{Driver, NextStep, Request, Seek, SessionOptions, TitleSource};
use crate::sink::Sink;
use crate::transfer::Transfer;

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
    /// Bounds on an untrusted MP4 file.
    pub limits: Limits,
    /// Timeout, CMCD and progress. CMCD's buffer length is left out: one response carries the whole title, so it would
    /// only be true at the beginning.
    pub session: SessionOptions,
}

pub(crate) struct ProgressiveSource {
    player: Playout,
    parser: FrameParser,
    /// `None` once it has been sent.
    request: Option<Request>,
    /// Length of the title as declared by the server.
    declared: Option<Bytes>,
    path: String,
    /// Remaining jumps, and the title index that they need.
    seeks: VecDeque<Seek>,
    index: Option<Arc<dyn MediaSource>>,
    cmcd: Cmcd,
}

impl ProgressiveSource {
    pub(crate) fn new(options: &PlayOptions, path: &str) -> Result<Self, ConfigError> {
        let mut cmcd = Cmcd::default();
        cmcd.content = Some(path.to_owned());
        cmcd.streaming_format = Some('o');
        cmcd.playback_rate = playback_rate(options.playout.speed_percent);
        let index = match &options.frames {
            FrameSource::Index(source) => Some(Arc::clone(source)),
            FrameSource::Boxes => None,
        };
        Ok(Self {
            player: Playout::new(options.playout.clone())?,
            parser: FrameParser::new(&options.frames, options.limits),
            request: Some(Request {
                path: path.to_owned(),
                bytes: None,
                cmcd: cmcd.clone(),
            }),
            declared: None,
            path: path.to_owned(),
            seeks: index
                .iter()
                .flat_map(|_| &options.session.seeks)
                .copied()
                .collect(),
            index,
            cmcd,
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

    fn next_seek(&self) -> Duration {
        self.seeks.front().map_or(Duration::MAX, |seek| seek.at)
    }

    fn seek(&mut self, now: Duration) {
        let (Some(seek), Some(index)) = (self.seeks.pop_front(), &self.index) else {
            return;
        };
        let offset = self.player.seek(now, index.title().frames(), seek.to);
        self.request = Some(Request {
            path: self.path.clone(),
            bytes: Some(offset..index.len()),
            cmcd: self.cmcd.clone(),
        });
    }

    async fn next<O: Observer, S: Sink>(
        driver: &mut Driver<'_, O, Self>,
        _sink: &mut S,
    ) -> Result<NextStep, PlayError> {
        let Self { request, seeks, .. } = &mut driver.source;
        let next = request.take().map(|request| NextStep::Fetch(Box::new(request)));
        let seek = seeks.front().map(|seek| NextStep::WaitUntil(seek.at));
        Ok(next.or(seek).unwrap_or(NextStep::Done))
    }

    fn on_response(&mut self, length: Option<Bytes>) {
        self.declared = length;
    }

    /// Adds the frames in the bytes, then the bytes.
    fn on_bytes(&mut self, now: Duration, bytes: &[u8]) -> Result<(), PlayError> {
        let player = &mut self.player;
        let parsed = self.parser.push(bytes, |frames| player.add_frames(now, frames));
        player.deliver(now, Bytes::from(bytes.len()));
        parsed.map_err(PlayError::Media)
    }

    fn on_end(&mut self, _transfer: Transfer) -> Result<(), PlayError> {
        self.parser.finish().map_err(PlayError::Media)
    }

    fn describe_progress(&self, progress: &mut Progress) {
        progress.promised = self.declared;
    }

    fn describe_report(&self, report: &mut QualityReport) {
        report.title = self.parser.info().cloned();
        report.average_rate = self.parser.average_rate();
        report.network.promised = self.declared;
    }
}
