//! [`DashSession`]: fetches over HTTP/3 what a [`DashPlayer`] asks for.
//!
//! Time, timers and tasks come from the [`quinn::Runtime`], so it runs on sockets and in virtual time alike.

use std::pin::pin;
use std::sync::Arc;

use playrate_media::{Limits, MediaError, StreamParser};
use playrate_transport::{Client, Connection, Target};
use playrate_units::Bytes;
use quinn::Runtime;

use super::manifest;
use super::player::{DashOptions, DashPlayer, Decision, Fetched, SetupError};
use super::presentation::{MediaSegment, Presentation, Resource};
use super::run::Run;
use crate::cmcd::ObjectType;
use crate::error::PlayError;
use crate::observer::Observer;
use crate::report::Outcome;
use crate::session::{Played, unless_stopped, url_of};
use crate::sink::Sink;
use crate::throughput::Throughput;

/// A title to be played once: one connection, one request at a time.
#[derive(Clone, Debug)]
pub struct DashSession {
    runtime: Arc<dyn Runtime>,
    client: Client,
    target: Target,
    name: String,
    /// `None`: the manifest says.
    presentation: Option<Arc<Presentation>>,
    options: DashOptions,
}

/// The initialisation segments fetched so far.
#[derive(Default)]
struct Initializations {
    /// By representation.
    known: Vec<Option<bytes::Bytes>>,
    /// Whose was given to the sink last.
    written: Option<usize>,
}

impl DashSession {
    /// Plays `presentation` from the server at `target`. `name` is a path that stands for it in the report, such as that of its
    /// manifest.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        client: Client,
        target: Target,
        name: &str,
        presentation: Arc<Presentation>,
        options: DashOptions,
    ) -> Self {
        Self {
            runtime,
            client,
            target,
            name: name.to_owned(),
            presentation: Some(presentation),
            options,
        }
    }

    /// Plays the title whose manifest (DASH `.mpd`, HLS `.m3u8`) is at `path` (with its query) of the server at `target`.
    /// The pictures of one set of representations, H.264 in fMP4, are fetched; the report's notes say what is not.
    pub fn of_manifest(
        runtime: Arc<dyn Runtime>,
        client: Client,
        target: Target,
        path: &str,
        options: DashOptions,
    ) -> Self {
        Self {
            runtime,
            client,
            target,
            name: path.to_owned(),
            presentation: None,
            options,
        }
    }

    /// Plays the title until it is in, something fails or `stop` resolves. The session's time begins now. The bytes of the
    /// segments go to `sink` in the order of playing, behind the initialisation segment whenever another is needed.
    ///
    /// Once the title is in, nothing can change what the viewer sees, so the report runs to the title's end without
    /// waiting for it. The connection is closed; [`Client::wait_idle`] waits until the server can know.
    ///
    /// # Errors
    /// Only if the player cannot be set up. Everything later is in [`Played::result`], beside the report so far.
    pub async fn play<S: Sink, O: Observer>(
        &self,
        sink: &mut S,
        observer: &mut O,
        stop: impl Future<Output = ()> + Send,
    ) -> Result<Played, SetupError> {
        let format = if is_hls(&self.name) { 'h' } else { 'd' };
        let mut run = Run::begin(&self.runtime, &self.options, &self.name, format)?;
        if let Some(presentation) = &self.presentation {
            run.player = Some(DashPlayer::new(Arc::clone(presentation), &self.options)?);
        }
        let result = unless_stopped(pin!(self.download(&mut run, sink, observer)), pin!(stop)).await;
        let ended = run.now();
        if let Some(player) = &mut run.player {
            match &result {
                Ok(()) => player.run_out(),
                Err(_) => player.advance(ended),
            }
        }
        run.tell(observer);
        Ok(Played {
            report: run.report(url_of(&self.target, &self.name), Outcome::of(&result), ended),
            result,
        })
    }

    async fn download<S: Sink, O: Observer>(
        &self,
        run: &mut Run,
        sink: &mut S,
        observer: &mut O,
    ) -> Result<(), PlayError> {
        let connection = self.client.connect(&self.target).await?;
        run.connected = Some(run.now());
        run.throughput = Throughput::new(run.now());
        let result = self.fetch_all(run, &connection, sink, observer).await;
        connection.close();
        result
    }

    async fn fetch_all<S: Sink, O: Observer>(
        &self,
        run: &mut Run,
        connection: &Connection,
        sink: &mut S,
        observer: &mut O,
    ) -> Result<(), PlayError> {
        let presentation = if let Some(presentation) = &self.presentation {
            Arc::clone(presentation)
        } else {
            let (presentation, notes) = manifest::fetch(run, connection, &self.name, observer).await?;
            run.notes = notes;
            let presentation = Arc::new(presentation);
            run.player = Some(DashPlayer::new(Arc::clone(&presentation), &self.options)?);
            presentation
        };
        let mut initializations = Initializations::default();
        loop {
            let now = run.now();
            let decision = run
                .player
                .as_mut()
                .map_or(Decision::Done, |player| player.decide(now));
            let (representation, segment) = match decision {
                Decision::Done => break,
                Decision::WaitUntil(until) => {
                    run.sleep(until, observer).await;
                    continue;
                }
                Decision::Fetch {
                    representation,
                    segment,
                } => (representation, segment),
            };
            let Some(of) = presentation.representations().get(representation) else {
                break;
            };
            let Some(segment) = of.segments.get(segment) else {
                break;
            };
            let parser = match &of.initialization {
                None => None,
                Some(resource) => {
                    let bytes = initializations
                        .fetch(representation, resource, run, connection, observer)
                        .await?;
                    if initializations.written.replace(representation) != Some(representation) {
                        sink.write(bytes.clone()).await?;
                    }
                    let parser =
                        parser_behind(&bytes).map_err(|problem| unreadable(&resource.path, problem))?;
                    if let Some(info) = parser.info()
                        && run.title.is_none()
                    {
                        let mut info = info.clone();
                        info.duration = Some(presentation.duration());
                        run.title = Some(info);
                    }
                    Some(parser)
                }
            };
            let said = run.said_of_segment(of.rate, segment.duration);
            let mut fetching = Fetching {
                run: &mut *run,
                connection,
                segment,
                parser,
            };
            fetching.fetch(&said, sink, observer).await?;
        }
        sink.finish().await?;
        Ok(())
    }
}

/// Whether the path is that of an HLS playlist.
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

/// A reader of what comes behind this initialisation segment.
fn parser_behind(initialization: &[u8]) -> Result<StreamParser, MediaError> {
    let mut parser = StreamParser::new(Limits::default());
    parser.push(initialization)?;
    Ok(parser)
}

impl Initializations {
    async fn fetch<O: Observer>(
        &mut self,
        representation: usize,
        resource: &Resource,
        run: &mut Run,
        connection: &Connection,
        observer: &mut O,
    ) -> Result<bytes::Bytes, PlayError> {
        if self.known.len() <= representation {
            self.known.resize(representation + 1, None);
        }
        if let Some(Some(known)) = self.known.get(representation) {
            return Ok(known.clone());
        }
        let what = (ObjectType::Initialization, manifest::INITIALIZATION);
        let bytes = run.fetch_whole(connection, resource, what, observer).await?;
        if let Some(place) = self.known.get_mut(representation) {
            *place = Some(bytes.clone());
        }
        Ok(bytes)
    }
}

/// A segment on its way.
struct Fetching<'a> {
    run: &'a mut Run,
    connection: &'a Connection,
    segment: &'a MediaSegment,
    /// Counts its pictures.
    parser: Option<StreamParser>,
}

impl Fetching<'_> {
    /// Fetches it, and tells the player when it is whole.
    async fn fetch<S: Sink, O: Observer>(
        &mut self,
        said: &crate::cmcd::Cmcd,
        sink: &mut S,
        observer: &mut O,
    ) -> Result<(), PlayError> {
        let run = &mut *self.run;
        let requested = run.now();
        let resource = Resource {
            path: self.segment.path.clone(),
            bytes: self.segment.bytes.clone(),
        };
        let mut body = run.ask(self.connection, &resource, said).await?;
        let promised = body.promised();
        let mut first_byte = None;
        let mut bytes = 0_u64;
        let mut pictures = 0_usize;
        while let Some(chunk) = run.chunk(&mut body, observer).await? {
            let count = chunk.len() as u64;
            bytes = bytes.saturating_add(count);
            // As in browsers: of a response that comes at once it is not seen when it began to come.
            let at_once = promised == Some(count);
            first_byte.get_or_insert(if at_once { requested } else { run.now() });
            if let Some(parser) = &mut self.parser {
                parser
                    .push(&chunk)
                    .map_err(|problem| unreadable(&resource.path, problem))?;
                pictures = pictures.saturating_add(parser.drain_frames().count());
            }
            sink.write(chunk).await?;
        }
        if self.parser.is_some() && pictures == 0 {
            return Err(unreadable(&resource.path, MediaError::NoFrames));
        }
        let finished = run.now();
        if let Some(player) = &mut run.player {
            player.fetched(Fetched {
                requested,
                first_byte: first_byte.unwrap_or(requested),
                finished,
                bytes: Bytes::new(bytes),
                pictures: self
                    .parser
                    .as_ref()
                    .map(|_| u32::try_from(pictures).unwrap_or(u32::MAX)),
            });
        }
        Ok(())
    }
}
