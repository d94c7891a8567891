//! [`Driver`] and [`Link`]: the session loop, one connection and one request at a time.
//!
//! Time, timers and tasks come from the [`quinn::Runtime`], so the loop runs on sockets and in virtual time alike.

use std::future::poll_fn;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode};
use playrate_media::cmcd::Cmcd;
use playrate_transport::{Body, Client, Connection, ExchangeError, Target, time};
use playrate_units::Bytes;
use quinn::{AsyncTimer, Runtime};

use super::{NextStep, Played, SessionOptions, TitleSource};
use crate::cmsd::CmsdReport;
use crate::error::{PlayError, status_error};
use crate::observer::{Observer, Progress};
use crate::playout::PlayoutEvent;
use crate::report::{NetworkReport, Outcome, QualityReport, Rates};
use crate::sink::Sink;
use crate::throughput::Throughput;
use crate::transfer::Transfer;
use crate::url::TitleUrl;

/// Bytes that go to the player and the sink at once, at most. A read may give more when the reader was slow, and the
/// player must not count bytes as delivered that a slow sink has not been offered.
const PIECE: usize = 16 << 10;

/// The way to a title.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    client: Client,
    target: Target,
    /// Path and query of the title or its manifest.
    pub(crate) path: String,
}

impl Route {
    pub(crate) fn new(client: Client, target: Target, path: &str) -> Self {
        Self {
            client,
            target,
            path: path.to_owned(),
        }
    }

    fn runtime(&self) -> &Arc<dyn Runtime> {
        self.client.runtime()
    }

    fn url(&self) -> TitleUrl {
        TitleUrl {
            host: self.target.host.clone(),
            port: self.target.port,
            path: self.path.clone(),
        }
    }
}

/// A GET request and its CMCD.
pub(crate) struct Request {
    pub(crate) path: String,
    /// The wanted bytes; `None` for all.
    pub(crate) bytes: Option<Range<u64>>,
    pub(crate) cmcd: Cmcd,
}

/// A session while it runs: its clock, its observer and the network's part of the report.
pub(crate) struct Driver<'a, O> {
    route: &'a Route,
    options: &'a SessionOptions,
    observer: &'a mut O,
    began: Instant,
    timer: Option<Pin<Box<dyn AsyncTimer>>>,
    throughput: Throughput,
    connected: Option<Duration>,
    first_byte: Option<Duration>,
    cmsd: CmsdReport,
    events: Vec<PlayoutEvent>,
    next_progress: Duration,
}

/// Reason for the end of a wait.
enum WakeUp {
    Chunk(Result<Option<bytes::Bytes>, ExchangeError>),
    Timer,
}

impl<'a, O: Observer> Driver<'a, O> {
    /// A session that begins now.
    pub(crate) fn new(route: &'a Route, options: &'a SessionOptions, observer: &'a mut O) -> Self {
        Self {
            began: route.runtime().now(),
            route,
            options,
            observer,
            timer: None,
            throughput: Throughput::new(Duration::ZERO),
            connected: None,
            first_byte: None,
            cmsd: CmsdReport::default(),
            events: Vec::new(),
            next_progress: Duration::ZERO,
        }
    }

    /// Creates the timer now rather than at the first wait. In virtual time a timer draws its slack when it is
    /// created, so this order is part of what makes a run reproducible.
    pub(crate) fn with_timer(mut self) -> Self {
        self.timer = Some(self.route.runtime().new_timer(self.began));
        self
    }

    /// Plays `source` until it is done, something fails or `stop` resolves.
    pub(crate) async fn play<P: TitleSource, S: Sink>(
        mut self,
        mut source: P,
        sink: &mut S,
        stop: impl Future<Output = ()> + Send,
    ) -> Played {
        let result = unless_stopped(pin!(self.download(&mut source, sink)), pin!(stop)).await;
        let ended = self.now();
        if let Some(player) = source.playout_mut() {
            if result.is_ok() {
                player.finish(ended);
                player.run_out();
            } else {
                player.advance(ended);
            }
        }
        self.pass_on_events(&mut source);
        Played {
            report: self.report(&source, Outcome::of(&result), ended),
            result,
        }
    }

    async fn download<P: TitleSource, S: Sink>(
        &mut self,
        source: &mut P,
        sink: &mut S,
    ) -> Result<(), PlayError> {
        let connection = self.route.client.connect(&self.route.target).await?;
        self.connected = Some(self.now());
        self.throughput = Throughput::new(self.now());
        let mut link = Link {
            driver: self,
            connection: &connection,
        };
        let result = link.fetch_all(source, sink).await;
        connection.close();
        result
    }

    /// Time since the session began.
    pub(crate) fn now(&self) -> Duration {
        self.route.runtime().now().saturating_duration_since(self.began)
    }

    /// Passes events on to the observer and, from time to time, the progress.
    fn attend<P: TitleSource>(&mut self, source: &mut P) {
        let now = self.now();
        source.on_turn(now);
        self.pass_on_events(source);
        if now >= self.next_progress {
            let progress = self.progress(source, now);
            self.observer.progress(&progress);
            self.next_progress = now.saturating_add(self.options.progress_interval);
        }
    }

    fn pass_on_events<P: TitleSource>(&mut self, source: &mut P) {
        let Some(player) = source.playout_mut() else {
            return;
        };
        while let Some(event) = player.poll_event() {
            self.observer.event(&event);
            if !event.kind.is_of_frame() && self.events.len() < QualityReport::MAX_EVENTS {
                self.events.push(event);
            }
        }
    }

    /// The timer, set to `until` or the next call for the observer's progress, whichever is earlier.
    fn timer(&mut self, until: Duration) -> Pin<&mut dyn AsyncTimer> {
        let runtime = self.route.runtime();
        let timer = self.timer.get_or_insert_with(|| runtime.new_timer(runtime.now()));
        let until = until.min(self.next_progress);
        let mut timer = timer.as_mut();
        timer
            .as_mut()
            .reset(self.began.checked_add(until).unwrap_or(self.began));
        timer
    }

    /// Waits for the next bytes, unless reading is paused, or until `until` or earlier. Bytes go first.
    async fn wait(&mut self, body: &mut Body, paused: bool, until: Duration) -> WakeUp {
        let mut timer = self.timer(until);
        tokio::select! {
            biased;
            chunk = body.chunk(), if !paused => WakeUp::Chunk(chunk),
            () = poll_fn(|cx| timer.as_mut().poll(cx)) => WakeUp::Timer,
        }
    }

    fn progress<P: TitleSource>(&self, source: &P, now: Duration) -> Progress {
        let playout = source.playout();
        let mut progress = Progress {
            at: now,
            received: self.throughput.total(),
            promised: None,
            playout_buffer: playout.config().playout_buffer,
            playout_buffer_fill: playout.playout_buffer_fill(),
            held: playout.held(),
            held_time: playout.held_time(),
            reading_paused: source.reading_paused(),
            segments: None,
            representation: None,
            playback: playout.report(),
        };
        source.describe_progress(&mut progress);
        progress
    }

    fn report<P: TitleSource>(&self, source: &P, outcome: Outcome, ended: Duration) -> QualityReport {
        let playout = source.playout();
        let config = playout.config();
        let mut report = QualityReport {
            url: self.route.url().to_string(),
            outcome,
            title: None,
            average_rate: playout.average_rate(),
            playout_buffer: config.playout_buffer,
            receive_buffer: config.receive_buffer,
            clock: config.clock.kind(),
            playback: playout.report(),
            shown_time: playout.shown_time(),
            known_time: playout.known_time(),
            network: NetworkReport {
                connected: self.connected,
                first_byte: self.first_byte,
                ended,
                received: self.throughput.total(),
                promised: None,
                throughput: Rates::from(&self.throughput),
            },
            dash: None,
            cmsd: self.cmsd.clone(),
            notes: Vec::new(),
            events: self.events.clone(),
            series: playout.series().to_vec(),
        };
        source.describe_report(&mut report);
        report
    }
}

/// The connection of a running session.
pub(crate) struct Link<'d, 'a, O> {
    driver: &'d mut Driver<'a, O>,
    connection: &'d Connection,
}

/// A body and the bytes of it that have been read but not taken.
struct BodyReader {
    body: Body,
    pending: bytes::Bytes,
    /// True if the last chunk was the whole body.
    at_once: bool,
}

impl<O: Observer> Link<'_, '_, O> {
    /// Time since the session began.
    pub(crate) fn now(&self) -> Duration {
        self.driver.now()
    }

    async fn fetch_all<P: TitleSource, S: Sink>(
        &mut self,
        source: &mut P,
        sink: &mut S,
    ) -> Result<(), PlayError> {
        loop {
            match source.next(self, sink).await? {
                NextStep::Fetch(request) => self.fetch(*request, source, sink).await?,
                NextStep::WaitUntil(until) => self.sleep(until, source).await,
                NextStep::Done => break,
            }
        }
        sink.finish().await?;
        Ok(())
    }

    /// Passes the body of a response to the source and the sink, at the pace that both allow.
    async fn fetch<P: TitleSource, S: Sink>(
        &mut self,
        request: Request,
        source: &mut P,
        sink: &mut S,
    ) -> Result<(), PlayError> {
        let requested = self.now();
        let mut reader = self.open(request).await?;
        source.on_response(reader.body.promised().map(Bytes::new));
        let (mut first_byte, mut bytes) = (None, Bytes::ZERO);
        while let Some(piece) = self.piece(&mut reader, source).await? {
            let now = self.now();
            first_byte.get_or_insert(if reader.at_once { requested } else { now });
            bytes += Bytes::from(piece.len());
            source.on_bytes(now, &piece)?;
            sink.write(piece).await?;
        }
        source.on_end(Transfer {
            requested,
            first_byte: first_byte.unwrap_or(requested),
            finished: self.now(),
            bytes,
        })
    }

    /// Fetches a body of at most `limit` bytes into memory.
    pub(crate) async fn fetch_whole<P: TitleSource>(
        &mut self,
        request: Request,
        limit: Bytes,
        source: &mut P,
    ) -> Result<bytes::Bytes, PlayError> {
        let path = request.path.clone();
        let mut reader = self.open(request).await?;
        let mut whole = Vec::new();
        while let Some(piece) = self.piece(&mut reader, source).await? {
            whole.extend_from_slice(&piece);
            if Bytes::from(whole.len()) > limit {
                return Err(PlayError::TooLarge { path, limit });
            }
        }
        Ok(whole.into())
    }

    /// Length of the file at `path`, if the server declares it.
    pub(crate) async fn length(&mut self, path: &str) -> Result<Option<Bytes>, PlayError> {
        let connection = self.connection;
        let response = self.in_time(connection.head(path, HeaderMap::new())).await?;
        if response.status() != StatusCode::OK {
            return Err(status_error(&response, path));
        }
        let length = response.headers().get(http::header::CONTENT_LENGTH);
        let length = length.and_then(|value| value.to_str().ok()?.parse().ok());
        Ok(length.map(Bytes::new))
    }

    /// Sends a request and waits for the head of its response.
    async fn open(&mut self, request: Request) -> Result<BodyReader, PlayError> {
        let Request { path, bytes, cmcd } = request;
        let mut headers = HeaderMap::new();
        let with_cmcd = self.driver.options.cmcd.add(cmcd, &path, &mut headers);
        let connection = self.connection;
        let exchange = async {
            match &bytes {
                Some(range) => {
                    let last = Some(range.end.saturating_sub(1));
                    connection.get_range(&with_cmcd, range.start, last, headers).await
                }
                None => connection.get(&with_cmcd, headers).await,
            }
        };
        let (response, body) = self.in_time(exchange).await?;
        let expected = match bytes {
            Some(_) => StatusCode::PARTIAL_CONTENT,
            None => StatusCode::OK,
        };
        if response.status().is_success() {
            let now = self.now();
            self.driver.cmsd.read(response.headers(), now);
        }
        if response.status() != expected {
            return Err(status_error(&response, &path));
        }
        Ok(BodyReader {
            body,
            pending: bytes::Bytes::new(),
            at_once: false,
        })
    }

    /// The result of `exchange`, or an error when the timeout has passed.
    async fn in_time<T>(
        &mut self,
        exchange: impl Future<Output = Result<T, ExchangeError>>,
    ) -> Result<T, PlayError> {
        let timeout = self.driver.options.timeout;
        let result = time::timeout(&**self.driver.route.runtime(), timeout, exchange).await;
        Ok(result.map_err(|time::Elapsed| PlayError::Silent(timeout))??)
    }

    /// The next bytes of a body, at most [`PIECE`]; `None` at its end. Waits while the source has paused reading.
    async fn piece<P: TitleSource>(
        &mut self,
        reader: &mut BodyReader,
        source: &mut P,
    ) -> Result<Option<bytes::Bytes>, PlayError> {
        let driver = &mut *self.driver;
        let mut silent_since = driver.now();
        loop {
            // Read first: an observer may block, and that is no silence of the server.
            let now = driver.now();
            driver.attend(source);
            let paused = source.reading_paused();
            let until = if paused {
                silent_since = now;
                source.playout().next_deadline().unwrap_or(Duration::MAX)
            } else {
                silent_since.saturating_add(driver.options.timeout)
            };
            if !paused && now >= until {
                return Err(PlayError::Silent(driver.options.timeout));
            }
            if !paused && !reader.pending.is_empty() {
                let piece = reader.pending.split_to(reader.pending.len().min(PIECE));
                driver.throughput.record(now, Bytes::from(piece.len()));
                driver.first_byte.get_or_insert(now);
                return Ok(Some(piece));
            }
            match driver.wait(&mut reader.body, paused, until).await {
                WakeUp::Timer => {
                    let now = driver.now();
                    if let Some(player) = source.playout_mut() {
                        player.advance(now);
                    }
                }
                WakeUp::Chunk(chunk) => match chunk? {
                    Some(chunk) => {
                        reader.at_once = reader.body.promised() == Some(chunk.len() as u64);
                        reader.pending = chunk;
                    }
                    None => return Ok(None),
                },
            }
        }
    }

    async fn sleep<P: TitleSource>(&mut self, until: Duration, source: &mut P) {
        while self.driver.now() < until {
            self.driver.attend(source);
            let mut timer = self.driver.timer(until);
            poll_fn(|cx| timer.as_mut().poll(cx)).await;
        }
    }
}

/// The result of `work`, unless `stop` resolves before.
async fn unless_stopped(
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
