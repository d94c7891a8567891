//! [`DashSession`]: fetches over HTTP/3 what a [`DashPlayer`] asks for.
//!
//! Time, timers and tasks come from the [`quinn::Runtime`], so it runs on sockets and in virtual time alike.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{HeaderMap, Response, StatusCode};
use playrate_transport::{Body, Client, Connection, ExchangeError, Target, time};
use playrate_units::Bytes;
use quinn::{AsyncTimer, Runtime};

use super::player::{DashOptions, DashPlayer, Decision, Fetched, SetupError};
use super::presentation::{MediaSegment, Presentation};
use crate::observer::{Observer, Progress};
use crate::playout::{Event, Happening};
use crate::report::{NetworkReport, Outcome, QualityReport, Rates};
use crate::session::{PlayError, Played, status_error, url_of};
use crate::sink::Sink;
use crate::throughput::Throughput;

/// A presentation to be played once: one connection, one request at a time.
#[derive(Clone, Debug)]
pub struct DashSession {
    runtime: Arc<dyn Runtime>,
    client: Client,
    target: Target,
    name: String,
    presentation: Arc<Presentation>,
    options: DashOptions,
}

/// What a running session has learnt so far.
struct Run {
    runtime: Arc<dyn Runtime>,
    began: Instant,
    timer: Pin<Box<dyn AsyncTimer>>,
    player: DashPlayer,
    throughput: Throughput,
    connected: Option<Duration>,
    first_byte: Option<Duration>,
    events: Vec<Event>,
    next_progress: Duration,
    progress_interval: Duration,
}

/// Why a wait for bytes is over.
enum Wake {
    Chunk(Result<Option<bytes::Bytes>, ExchangeError>),
    Timer,
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
            presentation,
            options,
        }
    }

    /// Plays the title until it is in, something fails or `stop` resolves. The session's time begins now. The bytes of the
    /// segments go to `sink` in the order of playing.
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
        let mut run = Run {
            runtime: Arc::clone(&self.runtime),
            began: self.runtime.now(),
            timer: self.runtime.new_timer(self.runtime.now()),
            player: DashPlayer::new(Arc::clone(&self.presentation), &self.options)?,
            throughput: Throughput::new(Duration::ZERO),
            connected: None,
            first_byte: None,
            events: Vec::new(),
            next_progress: Duration::ZERO,
            progress_interval: self.options.progress_interval,
        };
        let result = {
            let work = self.download(&mut run, sink, observer);
            let (mut work, mut stop) = (pin!(work), pin!(stop));
            poll_fn(|cx| {
                if stop.as_mut().poll(cx).is_ready() {
                    return std::task::Poll::Ready(Err(PlayError::Stopped));
                }
                work.as_mut().poll(cx)
            })
            .await
        };
        let ended = run.now();
        match &result {
            Ok(()) => run.player.run_out(),
            Err(_) => run.player.advance(ended),
        }
        run.tell(observer);
        let outcome = match &result {
            Ok(()) => Outcome::Complete,
            Err(PlayError::Stopped) => Outcome::Stopped,
            Err(error) => Outcome::Failed(error.to_string()),
        };
        Ok(Played {
            report: run.report(url_of(&self.target, &self.name), outcome, ended),
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
        loop {
            let now = run.now();
            match run.player.decide(now) {
                Decision::Done => break,
                Decision::WaitUntil(until) => run.sleep(until, observer).await,
                Decision::Fetch {
                    representation,
                    segment,
                } => {
                    if let Some(segment) = self.presentation.segment(representation, segment) {
                        self.fetch(run, connection, segment, sink, observer).await?;
                    }
                }
            }
        }
        sink.finish().await?;
        Ok(())
    }

    /// Fetches one segment, and tells the player when it is whole.
    async fn fetch<S: Sink, O: Observer>(
        &self,
        run: &mut Run,
        connection: &Connection,
        segment: &MediaSegment,
        sink: &mut S,
        observer: &mut O,
    ) -> Result<(), PlayError> {
        let requested = run.now();
        let waited = self.options.timeout;
        let request = async {
            match &segment.bytes {
                Some(range) => {
                    let last = Some(range.end.saturating_sub(1));
                    connection
                        .get_range(&segment.path, range.start, last, HeaderMap::new())
                        .await
                }
                None => connection.get(&segment.path, HeaderMap::new()).await,
            }
        };
        let (response, mut body) = time::timeout(&*self.runtime, waited, request)
            .await
            .map_err(|time::Elapsed| PlayError::Silent(waited))??;
        check(&response, segment)?;
        let promised = body.promised();
        let mut first_byte = None;
        let mut silent_since = run.now();
        let mut bytes = 0_u64;
        loop {
            run.attend(observer);
            let silence = silent_since.saturating_add(waited);
            match run.wait(&mut body, silence).await {
                Wake::Timer if run.now() >= silence => return Err(PlayError::Silent(waited)),
                Wake::Timer => {}
                Wake::Chunk(chunk) => {
                    let Some(chunk) = chunk? else { break };
                    let now = run.now();
                    silent_since = now;
                    let count = chunk.len() as u64;
                    bytes = bytes.saturating_add(count);
                    run.throughput.record(now, Bytes::new(count));
                    run.first_byte.get_or_insert(now);
                    // As in browsers: of a response that comes at once it is not seen when it began to come.
                    let at_once = promised == Some(count);
                    first_byte.get_or_insert(if at_once { requested } else { now });
                    sink.write(chunk).await?;
                }
            }
        }
        let finished = run.now();
        run.player.fetched(Fetched {
            requested,
            first_byte: first_byte.unwrap_or(requested),
            finished,
            bytes: Bytes::new(bytes),
        });
        Ok(())
    }
}

/// Whether the response is the segment.
fn check(response: &Response<()>, segment: &MediaSegment) -> Result<(), PlayError> {
    let right = match segment.bytes {
        Some(_) => StatusCode::PARTIAL_CONTENT,
        None => StatusCode::OK,
    };
    if response.status() == right {
        return Ok(());
    }
    Err(status_error(response, &segment.path))
}

impl Run {
    fn now(&self) -> Duration {
        self.runtime.now().saturating_duration_since(self.began)
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

    async fn sleep<O: Observer>(&mut self, until: Duration, observer: &mut O) {
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
        self.player.advance(now);
        self.tell(observer);
        if now >= self.next_progress {
            observer.progress(&self.progress(now));
            self.next_progress = now.saturating_add(self.progress_interval);
        }
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
        let playout = self.player.playout();
        let seen = playout.report();
        Progress {
            at: now,
            received: self.throughput.total(),
            promised: None,
            playout_buffer: playout.config().playout_buffer,
            playout_buffer_fill: playout.playout_buffer_fill(),
            held: seen.held,
            held_time: playout.held_time(),
            reading_paused: false,
            seen,
        }
    }

    fn report(&self, url: String, outcome: Outcome, ended: Duration) -> QualityReport {
        let playout = self.player.playout();
        let config = playout.config();
        let seen = playout.report();
        QualityReport {
            url,
            outcome,
            title: None,
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
            dash: Some(self.player.report()),
            events: self.events.clone(),
            series: playout.series().to_vec(),
        }
    }
}
