//! [`Run`]: what a running session has learnt so far, and how it waits for more.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Response, StatusCode};
use playrate_media::TitleInfo;
use playrate_transport::{Body, Connection, ExchangeError, time};
use playrate_units::{Bitrate, Bytes};
use quinn::{AsyncTimer, Runtime};

use super::player::{DashOptions, DashPlayer};
use super::presentation::Resource;
use crate::cmcd::{Cmcd, CmcdOptions, ObjectType};
use crate::cmsd::CmsdReport;
use crate::error::{PlayError, status_error};
use crate::observer::{Observer, Progress};
use crate::playout::{Clock, ConfigError, Event, Fill, Happening, Playout, PlayoutConfig, Rebuffer};
use crate::report::{NetworkReport, Outcome, QualityReport, Rates};
use crate::throughput::Throughput;

/// How many times its rate a segment may come at, as dash.js has it (`cmcd.rtpSafetyFactor`).
const RTP_FACTOR: u64 = 5;
/// An empty buffer counts as this much there.
const RTP_LEAST: Duration = Duration::from_millis(500);

/// A session while it runs.
pub(super) struct Run {
    runtime: Arc<dyn Runtime>,
    began: Instant,
    timer: Pin<Box<dyn AsyncTimer>>,
    /// From when the manifest is known.
    pub(super) player: Option<DashPlayer>,
    /// Stands for the player before that.
    idle: Playout,
    pub(super) throughput: Throughput,
    pub(super) connected: Option<Duration>,
    first_byte: Option<Duration>,
    /// What the title says of itself.
    pub(super) title: Option<TitleInfo>,
    /// What of it is left out.
    pub(super) notes: Vec<String>,
    cmcd: CmcdOptions,
    cmsd: CmsdReport,
    content: String,
    format: char,
    /// Underflows that the server has been told of.
    underflows_told: u64,
    timeout: Duration,
    events: Vec<Event>,
    next_progress: Duration,
    progress_interval: Duration,
}

/// Why a wait for bytes is over.
enum Wake {
    Chunk(Result<Option<bytes::Bytes>, ExchangeError>),
    Timer,
}

impl Run {
    /// A session that begins now. `content` names the title, `format` is CMCD's `sf`.
    pub(super) fn begin(
        runtime: &Arc<dyn Runtime>,
        options: &DashOptions,
        content: &str,
        format: char,
    ) -> Result<Self, ConfigError> {
        let rebuffer = Rebuffer {
            resume: Fill::Segments(options.resume_segments),
        };
        Ok(Self {
            began: runtime.now(),
            timer: runtime.new_timer(runtime.now()),
            runtime: Arc::clone(runtime),
            player: None,
            idle: Playout::new(PlayoutConfig::new(Bytes::ZERO, Clock::Rebuffer(rebuffer)))?,
            throughput: Throughput::new(Duration::ZERO),
            connected: None,
            first_byte: None,
            title: None,
            notes: Vec::new(),
            cmcd: options.cmcd.clone(),
            cmsd: CmsdReport::default(),
            content: content.to_owned(),
            format,
            underflows_told: 0,
            timeout: options.timeout,
            events: Vec::new(),
            next_progress: Duration::ZERO,
            progress_interval: options.progress_interval,
        })
    }

    pub(super) fn now(&self) -> Duration {
        self.runtime.now().saturating_duration_since(self.began)
    }

    fn playout(&self) -> &Playout {
        self.player.as_ref().map_or(&self.idle, DashPlayer::playout)
    }

    /// Asks for `resource` and waits for the beginning of what was asked for.
    pub(super) async fn ask(
        &mut self,
        connection: &Connection,
        resource: &Resource,
        said: &Cmcd,
    ) -> Result<Body, PlayError> {
        let mut headers = HeaderMap::new();
        let path = said.apply(&self.cmcd, &resource.path, &mut headers);
        let request = async {
            match &resource.bytes {
                Some(range) => {
                    let last = Some(range.end.saturating_sub(1));
                    connection.get_range(&path, range.start, last, headers).await
                }
                None => connection.get(&path, headers).await,
            }
        };
        let (response, body) = time::timeout(&*self.runtime, self.timeout, request)
            .await
            .map_err(|time::Elapsed| PlayError::Silent(self.timeout))??;
        check(&response, resource)?;
        self.cmsd.read(response.headers(), self.now());
        Ok(body)
    }

    /// How many bytes there are at `path`, if the server says.
    pub(super) async fn length(
        &mut self,
        connection: &Connection,
        path: &str,
    ) -> Result<Option<Bytes>, PlayError> {
        let request = connection.head(path, HeaderMap::new());
        let response = time::timeout(&*self.runtime, self.timeout, request)
            .await
            .map_err(|time::Elapsed| PlayError::Silent(self.timeout))??;
        if response.status() != StatusCode::OK {
            return Err(status_error(&response, path));
        }
        let length = response.headers().get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(length.map(Bytes::new))
    }

    /// The next bytes of `body`, `None` at its end.
    pub(super) async fn chunk<O: Observer>(
        &mut self,
        body: &mut Body,
        observer: &mut O,
    ) -> Result<Option<bytes::Bytes>, PlayError> {
        let silence = self.now().saturating_add(self.timeout);
        loop {
            self.attend(observer);
            match self.wait(body, silence).await {
                Wake::Timer if self.now() >= silence => return Err(PlayError::Silent(self.timeout)),
                Wake::Timer => {}
                Wake::Chunk(chunk) => {
                    let chunk = chunk?;
                    if let Some(chunk) = &chunk {
                        let now = self.now();
                        self.throughput.record(now, Bytes::from(chunk.len()));
                        self.first_byte.get_or_insert(now);
                    }
                    return Ok(chunk);
                }
            }
        }
    }

    /// Fetches something that is kept as a whole.
    pub(super) async fn fetch_whole<O: Observer>(
        &mut self,
        connection: &Connection,
        resource: &Resource,
        (object, limit): (ObjectType, Bytes),
        observer: &mut O,
    ) -> Result<bytes::Bytes, PlayError> {
        let said = self.said(object);
        let mut body = self.ask(connection, resource, &said).await?;
        let mut whole = Vec::new();
        while let Some(chunk) = self.chunk(&mut body, observer).await? {
            whole.extend_from_slice(&chunk);
            if Bytes::from(whole.len()) > limit {
                return Err(PlayError::TooLarge {
                    path: resource.path.clone(),
                    limit,
                });
            }
        }
        Ok(whole.into())
    }

    /// What goes for every request.
    fn said(&self, object: ObjectType) -> Cmcd {
        let playout = self.playout();
        let playing = playout.report().startup_delay.is_some() && !playout.is_frozen();
        Cmcd {
            content: Some(self.content.clone()),
            format: Some(self.format),
            object: Some(object),
            startup: !playing,
            ..Cmcd::default()
        }
    }

    /// What the player says of itself when it asks for a segment of this rate and playing time.
    pub(super) fn said_of_segment(&mut self, rate: Bitrate, duration: Duration) -> Cmcd {
        let said = self.said(ObjectType::Video);
        let held = self.playout().held_time();
        let underflows = self.playout().report().underflows;
        let starved = underflows > self.underflows_told;
        self.underflows_told = underflows;
        let player = self.player.as_ref();
        let top =
            player.and_then(|player| player.presentation().representations().last().map(|top| top.rate));
        let bytes = rate * duration;
        let useful = bytes.per(held.max(RTP_LEAST)).map(|needed| {
            let most = needed.as_bits_per_second().saturating_mul(RTP_FACTOR);
            Bitrate::from_bits_per_second(most).max(rate)
        });
        Cmcd {
            bitrate: Some(rate),
            buffer: Some(held),
            starved,
            duration: Some(duration),
            deadline: Some(held).filter(|_| !said.startup),
            throughput: player.and_then(DashPlayer::throughput),
            requested: useful,
            top,
            ..said
        }
    }

    /// Sets the timer to `until`, or the next time that the observer is to hear of the progress.
    fn set_timer(&mut self, until: Duration) {
        let until = until.min(self.next_progress);
        let at = self.began.checked_add(until).unwrap_or(self.began);
        self.timer.as_mut().reset(at);
    }

    /// Waits for the next bytes, or until `until` or earlier. Bytes go first.
    async fn wait(&mut self, body: &mut Body, until: Duration) -> Wake {
        self.set_timer(until);
        let timer = &mut self.timer;
        tokio::select! {
            biased;
            chunk = body.chunk() => Wake::Chunk(chunk),
            () = poll_fn(|cx| timer.as_mut().poll(cx)) => Wake::Timer,
        }
    }

    pub(super) async fn sleep<O: Observer>(&mut self, until: Duration, observer: &mut O) {
        while self.now() < until {
            self.attend(observer);
            self.set_timer(until);
            let timer = &mut self.timer;
            poll_fn(|cx| timer.as_mut().poll(cx)).await;
        }
    }

    /// Shows what is due, and tells the observer what happened and, from time to time, how things stand.
    fn attend<O: Observer>(&mut self, observer: &mut O) {
        let now = self.now();
        if let Some(player) = &mut self.player {
            player.advance(now);
        }
        self.tell(observer);
        if now >= self.next_progress {
            observer.progress(&self.progress(now));
            self.next_progress = now.saturating_add(self.progress_interval);
        }
    }

    /// Passes on what happened in the player.
    pub(super) fn tell<O: Observer>(&mut self, observer: &mut O) {
        let Some(player) = &mut self.player else { return };
        while let Some(event) = player.poll_event() {
            observer.event(&event);
            let of_a_frame = matches!(event.what, Happening::Shown { .. } | Happening::Discarded { .. });
            if !of_a_frame && self.events.len() < QualityReport::MAX_EVENTS {
                self.events.push(event);
            }
        }
    }

    fn progress(&self, now: Duration) -> Progress {
        let playout = self.playout();
        let seen = playout.report();
        let player = self.player.as_ref();
        let representation = player.and_then(|player| {
            let all = player.presentation().representations();
            all.get(player.representation()).map(|it| it.name.clone())
        });
        Progress {
            at: now,
            received: self.throughput.total(),
            promised: None,
            playout_buffer: playout.config().playout_buffer,
            playout_buffer_fill: playout.playout_buffer_fill(),
            held: seen.held,
            held_time: playout.held_time(),
            reading_paused: false,
            segments: player.map(DashPlayer::segments),
            representation,
            seen,
        }
    }

    pub(super) fn report(&self, url: String, outcome: Outcome, ended: Duration) -> QualityReport {
        let playout = self.playout();
        let config = playout.config();
        let seen = playout.report();
        QualityReport {
            url,
            outcome,
            title: self.title.clone(),
            average_rate: seen.average_rate,
            playout_buffer: config.playout_buffer,
            receive_buffer: config.receive_buffer,
            playout: seen,
            network: NetworkReport {
                connected: self.connected,
                first_byte: self.first_byte,
                ended,
                received: self.throughput.total(),
                promised: None,
                throughput: Rates::from(&self.throughput),
            },
            dash: self.player.as_ref().map(DashPlayer::report),
            cmsd: self.cmsd.clone(),
            notes: self.notes.clone(),
            events: self.events.clone(),
            series: playout.series().to_vec(),
        }
    }
}

/// Whether the response is what was asked for.
fn check(response: &Response<()>, resource: &Resource) -> Result<(), PlayError> {
    let right = match resource.bytes {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    if response.status() == right {
        return Ok(());
    }
    Err(status_error(response, &resource.path))
}
