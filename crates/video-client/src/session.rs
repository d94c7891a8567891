//! The download loop: one title, progressively, over HTTP/3, past the modelled player.
//!
//! Time, timers and tasks come from the [`quinn::Runtime`], so the loop runs on sockets and in virtual time alike.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::{HeaderMap, Response, StatusCode};
use playrate_media::Limits;
use playrate_transport::{Body, Client, ExchangeError, Target, time};
use playrate_units::Bytes;
use quinn::{AsyncTimer, Runtime};

use crate::cmcd::{Cmcd, CmcdOptions};
use crate::cmsd::CmsdReport;
use crate::error::{PlayError, status_error};
use crate::frames::{FrameSource, Framing};
use crate::observer::{Observer, Progress};
use crate::playout::{ConfigError, Event, Happening, Playout, PlayoutConfig};
use crate::report::{NetworkReport, Outcome, QualityReport, Rates};
use crate::sink::Sink;
use crate::throughput::Throughput;

/// How to play a title.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// The modelled player.
    pub playout: PlayoutConfig,
    /// Where the player learns of the title's frames.
    pub frames: FrameSource,
    /// What an untrusted MP4 may ask for.
    pub limits: Limits,
    /// How long to wait for a response, and then for the next bytes of it while the player wants them.
    pub timeout: Duration,
    /// What the server is told with the request. One response carries the whole title, so nothing is said of the buffer, which
    /// would be true only at its beginning.
    pub cmcd: CmcdOptions,
    /// How often the observer hears of the progress.
    pub progress_interval: Duration,
}

impl Default for PlayOptions {
    fn default() -> Self {
        Self {
            playout: PlayoutConfig::default(),
            frames: FrameSource::default(),
            limits: Limits::default(),
            timeout: Duration::from_secs(30),
            cmcd: CmcdOptions::default(),
            progress_interval: Duration::from_millis(100),
        }
    }
}

/// What `work` comes to, unless `stop` resolves before.
pub(crate) async fn unless_stopped(
    mut work: Pin<&mut impl Future<Output = Result<(), PlayError>>>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> Result<(), PlayError> {
    poll_fn(|cx| {
        if stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(PlayError::Stopped));
        }
        work.as_mut().poll(cx)
    })
    .await
}

/// The URL of `path` at `target`.
pub(crate) fn url_of(target: &Target, path: &str) -> String {
    if target.host.contains(':') {
        format!("https://[{}]:{}{path}", target.host, target.port)
    } else {
        format!("https://{}:{}{path}", target.host, target.port)
    }
}

/// One title to be played once.
#[derive(Clone, Debug)]
pub struct Session {
    runtime: Arc<dyn Runtime>,
    client: Client,
    target: Target,
    path: String,
    options: PlayOptions,
}

/// What came of it.
#[derive(Debug)]
#[non_exhaustive]
pub struct Played {
    /// The report, of as much as was played.
    pub report: QualityReport,
    /// Whether the whole title came.
    pub result: Result<(), PlayError>,
}

/// Bytes that go to the player and the sink at once, at most. quinn hands out megabytes when the reader was slow, and
/// the player must not count as delivered what a slow sink has not even been offered.
const PIECE: usize = 16 << 10;

/// Why the loop wakes up.
enum Wake {
    Chunk(Result<Option<bytes::Bytes>, ExchangeError>),
    Timer,
}

/// What a running session has learnt so far.
struct Run {
    runtime: Arc<dyn Runtime>,
    began: Instant,
    player: Playout,
    framing: Framing,
    throughput: Throughput,
    connected: Option<Duration>,
    first_byte: Option<Duration>,
    promised: Option<Bytes>,
    cmsd: CmsdReport,
    events: Vec<Event>,
}

impl Session {
    /// Plays `path` (with its query) of the server at `target`.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        client: Client,
        target: Target,
        path: &str,
        options: PlayOptions,
    ) -> Self {
        Self {
            runtime,
            client,
            target,
            path: path.to_owned(),
            options,
        }
    }

    /// Plays the title until it is in, something fails or `stop` resolves. The session's time begins now.
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
    ) -> Result<Played, ConfigError> {
        let mut run = Run {
            runtime: Arc::clone(&self.runtime),
            began: self.runtime.now(),
            player: Playout::new(self.options.playout.clone())?,
            framing: Framing::new(&self.options.frames, self.options.limits),
            throughput: Throughput::new(Duration::ZERO),
            connected: None,
            first_byte: None,
            promised: None,
            cmsd: CmsdReport::default(),
            events: Vec::new(),
        };
        let result = unless_stopped(pin!(self.download(&mut run, sink, observer)), pin!(stop)).await;
        let ended = run.now();
        match &result {
            Ok(()) => {
                run.player.finish(ended);
                run.player.run_out();
            }
            Err(_) => run.player.advance(ended),
        }
        run.tell(observer);
        Ok(Played {
            report: run.report(url_of(&self.target, &self.path), Outcome::of(&result), ended),
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
        let waited = self.options.timeout;
        let mut headers = HeaderMap::new();
        let said = Cmcd {
            content: Some(self.path.clone()),
            format: Some('o'),
            ..Cmcd::default()
        };
        let path = said.apply(&self.options.cmcd, &self.path, &mut headers);
        let request = connection.get(&path, headers);
        let (response, body) = time::timeout(&*self.runtime, waited, request)
            .await
            .map_err(|time::Elapsed| PlayError::Silent(waited))??;
        run.cmsd.read(response.headers(), run.now());
        let result = match self.check(&response) {
            Ok(()) => self.pull(run, body, sink, observer).await,
            Err(error) => Err(error),
        };
        connection.close();
        result
    }

    fn check(&self, response: &Response<()>) -> Result<(), PlayError> {
        if response.status() == StatusCode::OK {
            return Ok(());
        }
        Err(status_error(response, &self.path))
    }

    /// Reads the body to its end, at the pace that the player's buffers and the sink allow.
    async fn pull<S: Sink, O: Observer>(
        &self,
        run: &mut Run,
        mut body: Body,
        sink: &mut S,
        observer: &mut O,
    ) -> Result<(), PlayError> {
        run.promised = body.promised().map(Bytes::new);
        let mut timer = self.runtime.new_timer(self.runtime.now());
        let mut next_progress = run.now();
        let mut silent_since = run.now();
        let mut pending = bytes::Bytes::new();
        loop {
            let now = run.now();
            run.tell(observer);
            if now >= next_progress {
                observer.progress(&run.progress(now));
                next_progress = now.saturating_add(self.options.progress_interval);
            }
            let paused = run.player.reading_paused();
            let wake = if paused {
                silent_since = now;
                run.player.next_deadline().unwrap_or(Duration::MAX)
            } else {
                silent_since.saturating_add(self.options.timeout)
            };
            if !paused && now >= wake {
                return Err(PlayError::Silent(self.options.timeout));
            }
            if paused || pending.is_empty() {
                match run
                    .wait(&mut body, paused, &mut timer, wake.min(next_progress))
                    .await
                {
                    Wake::Timer => run.player.advance(run.now()),
                    Wake::Chunk(chunk) => match chunk? {
                        Some(chunk) => pending = chunk,
                        None => break,
                    },
                }
                continue;
            }
            let piece = pending.split_to(pending.len().min(PIECE));
            run.take(&piece)?;
            sink.write(piece).await?;
            silent_since = run.now();
        }
        run.framing.finish()?;
        sink.finish().await?;
        Ok(())
    }
}

impl Run {
    fn now(&self) -> Duration {
        self.runtime.now().saturating_duration_since(self.began)
    }

    /// Waits for the next bytes, unless reading is paused, or until `until`. Bytes go first.
    async fn wait(
        &self,
        body: &mut Body,
        paused: bool,
        timer: &mut Pin<Box<dyn AsyncTimer>>,
        until: Duration,
    ) -> Wake {
        timer
            .as_mut()
            .reset(self.began.checked_add(until).unwrap_or(self.began));
        tokio::select! {
            biased;
            chunk = body.chunk(), if !paused => Wake::Chunk(chunk),
            () = poll_fn(|cx| timer.as_mut().poll(cx)) => Wake::Timer,
        }
    }

    /// Counts the bytes in, after learning from them which frames they belong to.
    fn take(&mut self, chunk: &bytes::Bytes) -> Result<(), PlayError> {
        let now = self.now();
        let bytes = Bytes::from(chunk.len());
        self.first_byte.get_or_insert(now);
        self.throughput.record(now, bytes);
        let player = &mut self.player;
        let parsed = self.framing.push(chunk, |frames| player.add_frames(now, frames));
        self.player.deliver(now, bytes);
        Ok(parsed?)
    }

    /// Passes on what happened in the player.
    fn tell<O: Observer>(&mut self, observer: &mut O) {
        while let Some(event) = self.player.poll_event() {
            observer.event(&event);
            let of_a_frame = matches!(event.what, Happening::Shown { .. } | Happening::Discarded { .. });
            if !of_a_frame && self.events.len() < QualityReport::MAX_EVENTS {
                self.events.push(event);
            }
        }
    }

    fn progress(&self, now: Duration) -> Progress {
        let seen = self.player.report();
        Progress {
            at: now,
            received: self.throughput.total(),
            promised: self.promised,
            playout_buffer: self.player.config().playout_buffer,
            playout_buffer_fill: self.player.playout_buffer_fill(),
            held: seen.held,
            held_time: self.player.held_time(),
            reading_paused: self.player.reading_paused(),
            segments: None,
            representation: None,
            seen,
        }
    }

    fn report(&self, url: String, outcome: Outcome, ended: Duration) -> QualityReport {
        let config = self.player.config();
        QualityReport {
            url,
            outcome,
            title: self.framing.info().cloned(),
            average_rate: self.framing.average_rate(),
            playout_buffer: config.playout_buffer,
            receive_buffer: config.receive_buffer,
            playout: self.player.report(),
            network: NetworkReport {
                connected: self.connected,
                first_byte: self.first_byte,
                ended,
                received: self.throughput.total(),
                promised: self.promised,
                throughput: Rates::from(&self.throughput),
            },
            dash: None,
            cmsd: self.cmsd.clone(),
            notes: Vec::new(),
            events: self.events.clone(),
            series: self.player.series().to_vec(),
        }
    }
}
