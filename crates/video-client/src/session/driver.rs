//! [`Driver`]: a running session with its clock, its connection, its observer and its report; it plays a
//! [`TitleSource`].
//!
//! Time, timers and tasks come from the [`quinn::Runtime`], so it runs both on sockets and in virtual time.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_media::cmcd::Cmcd;
use playrate_transport::{Body, Client, ConnectError, Connection, ExchangeError, Target};
use playrate_units::Bytes;
use quinn::{AsyncTimer, Runtime};

use super::reconnect::Backoff;
use super::{Played, Seek, SessionOptions, SharedConnection};
use crate::cmsd::{CmsdReport, CmsdSample};
use crate::error::{PlayError, Result};
use crate::observer::{Observer, Progress};
use crate::playout::{Playout, PlayoutEvent};
use crate::report::{InterruptionLog, NetworkReport, Outcome, PlayerSettings, QualityReport, Rates};
use crate::sink::Sink;
use crate::throughput::Throughput;
use crate::transfer::Transfer;
use crate::url::TitleUrl;

/// The way to a title.
#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) client: Client,
    pub(crate) target: Target,
    /// Path and query of the title or its manifest.
    pub(crate) path: String,
    /// Shared connection to use instead of its own.
    pub(crate) shared: Option<SharedConnection>,
}

impl Route {
    pub(super) fn runtime(&self) -> &Arc<dyn Runtime> {
        self.client.runtime()
    }

    pub(super) async fn connect(&self) -> Result<Connection, ConnectError> {
        let connect = || self.client.connect(&self.target);
        match &self.shared {
            Some(shared) => shared.0.get_or_try_init(connect).await.cloned(),
            None => connect().await,
        }
    }

    /// The error of a connection attempt abandoned after `waited`.
    pub(super) fn no_answer(&self, waited: Duration) -> ConnectError {
        let waited = in_millis(waited);
        match self.target.addresses.last() {
            Some(&address) => ConnectError::NoAnswer { address, waited },
            None => ConnectError::Name {
                host: self.target.host.clone(),
                reason: "the name has no address".to_owned(),
            },
        }
    }

    fn url(&self, path: &str) -> TitleUrl {
        TitleUrl {
            host: self.target.host.clone(),
            port: self.target.port,
            path: path.to_owned(),
        }
    }
}

/// A GET request and its CMCD.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) path: String,
    /// The requested bytes; `None` for all.
    pub(crate) bytes: Option<Range<u64>>,
    pub(crate) cmcd: Cmcd,
}

/// The next step of a session.
pub(crate) enum NextStep {
    /// Send this request; pass its body to the source and the sink.
    Fetch(Box<Request>),
    /// Request nothing before this time.
    WaitUntil(Duration),
    /// Everything has been fetched.
    Done,
}

/// A kind of title: it decides what to request and feeds the modelled player.
pub(crate) trait TitleSource: Send + Sized {
    fn playout(&self) -> &Playout;

    /// The player, if it exists already: for a title with a manifest, after reading the manifest.
    fn playout_mut(&mut self) -> Option<&mut Playout>;

    /// Returns true while bytes must not be read because the player's buffers are full.
    fn reading_paused(&self) -> bool {
        false
    }

    /// Returns true if the viewer can jump within the title, given what is known of it by now.
    fn can_seek(&self) -> bool;

    /// Makes the viewer jump to `to` in media time. Abandons the response in progress.
    fn seek(&mut self, now: Duration, to: Duration);

    /// Decides on the next step of `driver`, which plays this source. May fetch descriptions of the title and write
    /// them to `sink`.
    fn next<O: Observer, S: Sink>(
        driver: &mut Driver<'_, O, Self>,
        sink: &mut S,
    ) -> impl Future<Output = Result<NextStep>> + Send;

    /// Updates the keys of `cmcd` that depend on the player's state, for a repeated request.
    fn refresh(&mut self, _cmcd: &mut Cmcd) {}

    /// A response has begun, with this length if the server declared one.
    fn on_response(&mut self, _length: Option<Bytes>) {}

    /// More bytes of the body of the last [`NextStep::Fetch`] have arrived.
    fn on_bytes(&mut self, now: Duration, bytes: &[u8]) -> Result<()>;

    /// That body is complete.
    fn on_end(&mut self, transfer: Transfer) -> Result<()>;

    /// The last [`NextStep::Fetch`] failed.
    ///
    /// # Errors
    /// `error`, if the session cannot continue.
    fn on_failure(&mut self, _now: Duration, error: PlayError) -> Result<()> {
        Err(error)
    }

    /// Adds to `progress` what only the source knows.
    fn describe_progress(&self, progress: &mut Progress);

    /// Adds to `report` what only the source knows.
    fn describe_report(&self, report: &mut QualityReport);
}

/// A running session: its clock, its connection, its observer and the network's part of the report.
pub(crate) struct Driver<'a, O, P> {
    pub(crate) source: P,
    pub(super) route: &'a Route,
    pub(super) options: &'a SessionOptions,
    observer: &'a mut O,
    /// Remaining jumps of the viewer.
    pub(super) seeks: VecDeque<Seek>,
    began: Instant,
    timer: Pin<Box<dyn AsyncTimer>>,
    throughput: Throughput,
    connected: Option<Duration>,
    first_byte: Option<Duration>,
    pub(super) cmsd: Vec<CmsdSample>,
    pub(super) interruptions: InterruptionLog,
    events: Vec<PlayoutEvent>,
    pub(super) next_progress: Duration,
    /// `None` from its loss until the next one is established.
    pub(super) connection: Option<Connection>,
    /// Round-trip time of the last connection when it was lost.
    pub(super) rtt: Duration,
    /// `None` if an interruption ends the session.
    pub(super) backoff: Option<Backoff>,
    /// True once there was a successful response.
    pub(super) has_begun: bool,
}

impl<'a, O: Observer, P: TitleSource> Driver<'a, O, P> {
    /// Creates a session that begins now and plays `source`.
    pub(crate) fn new(source: P, route: &'a Route, options: &'a SessionOptions, observer: &'a mut O) -> Self {
        let began = route.runtime().now();
        Self {
            source,
            began,
            route,
            options,
            observer,
            seeks: options.seeks.iter().copied().collect(),
            timer: route.runtime().new_timer(began),
            throughput: Throughput::new(Duration::ZERO),
            connected: None,
            first_byte: None,
            cmsd: Vec::new(),
            interruptions: InterruptionLog::default(),
            events: Vec::new(),
            next_progress: Duration::ZERO,
            connection: None,
            rtt: Duration::ZERO,
            backoff: options.reconnect.as_ref().map(Backoff::new),
            has_begun: false,
        }
    }

    /// Plays the source until it is done, something fails or `stop` resolves.
    pub(crate) async fn play<S: Sink>(
        mut self,
        sink: &mut S,
        stop: impl Future<Output = ()> + Send,
    ) -> Played {
        let result = tokio::select! {
            biased;
            () = stop => Err(PlayError::Stopped),
            result = self.download(sink) => result,
        };
        let ended = self.now();
        if let Some(player) = self.source.playout_mut() {
            if result.is_ok() {
                player.finish(ended);
                player.run_out();
            } else {
                player.advance(ended);
            }
        }
        self.pass_on_events();
        let report = self.report(Outcome::of(&result), ended);
        Played { report, result }
    }

    async fn download<S: Sink>(&mut self, sink: &mut S) -> Result<()> {
        self.connection = Some(self.route.connect().await?);
        self.connected = Some(self.now());
        self.throughput = Throughput::new(self.now());
        let result = self.fetch_all(sink).await;
        self.close();
        result
    }

    /// Time since the session began.
    pub(crate) fn now(&self) -> Duration {
        self.route.runtime().now().saturating_duration_since(self.began)
    }

    /// The URL of another file of the server.
    pub(crate) fn url(&self, path: &str) -> TitleUrl {
        self.route.url(path)
    }

    /// Counts bytes received at `now`.
    pub(super) fn count(&mut self, now: Duration, bytes: Bytes) {
        self.throughput.record(now, bytes);
        self.first_byte.get_or_insert(now);
    }

    /// Makes the player show what is due by now.
    pub(super) fn advance(&mut self) {
        let now = self.now();
        if let Some(player) = self.source.playout_mut() {
            player.advance(now);
        }
    }

    /// Makes the player show what is due, passes events and, at intervals, the progress to the observer.
    pub(super) fn attend(&mut self) {
        self.advance();
        let now = self.now();
        self.pass_on_events();
        if now >= self.next_progress {
            let progress = self.progress(now);
            self.observer.progress(&progress);
            self.next_progress = now.saturating_add(self.options.progress_interval);
        }
    }

    fn pass_on_events(&mut self) {
        let Some(player) = self.source.playout_mut() else {
            return;
        };
        while let Some(event) = player.poll_event() {
            self.observer.event(&event);
            if !event.kind.is_of_frame() && self.events.len() < QualityReport::MAX_EVENTS {
                self.events.push(event);
            }
        }
    }

    /// The timer, set to `until` or the observer's next progress call, whichever is earlier.
    fn timer(&mut self, until: Duration) -> Pin<&mut dyn AsyncTimer> {
        let until = until.min(self.next_progress);
        let at = self.began.checked_add(until).unwrap_or(self.began);
        self.timer.as_mut().reset(at);
        self.timer.as_mut()
    }

    /// Waits for the next bytes, unless reading is paused; `None` if there are none by `until`. Bytes take precedence.
    pub(super) async fn wait(
        &mut self,
        body: &mut Body,
        paused: bool,
        until: Duration,
    ) -> Option<Result<Option<bytes::Bytes>, ExchangeError>> {
        let mut timer = self.timer(until);
        tokio::select! {
            biased;
            chunk = body.chunk(), if !paused => Some(chunk),
            () = poll_fn(|cx| timer.as_mut().poll(cx)) => None,
        }
    }

    /// Plays on while `work` is in progress; `None` if it is not done by `until`. Work takes precedence.
    pub(super) async fn play_on<T>(
        &mut self,
        until: Duration,
        work: impl Future<Output = T> + Send,
    ) -> Option<T> {
        let mut work = pin!(work);
        while self.now() < until {
            self.attend();
            let mut timer = self.timer(until);
            tokio::select! {
                biased;
                done = work.as_mut() => return Some(done),
                () = poll_fn(|cx| timer.as_mut().poll(cx)) => {}
            }
        }
        None
    }

    fn progress(&self, now: Duration) -> Progress {
        let playout = self.source.playout();
        let mut progress = Progress {
            at: now,
            received: self.throughput.total(),
            promised: None,
            held: playout.held(),
            held_time: playout.held_time(),
            reading_paused: self.source.reading_paused(),
            connected: self.interruptions.disconnected_since.is_none(),
            segments: None,
            representation: None,
            playback: playout.report(),
        };
        self.source.describe_progress(&mut progress);
        progress
    }

    fn report(self, outcome: Outcome, ended: Duration) -> QualityReport {
        let playout = self.source.playout();
        let config = playout.config();
        let mut report = QualityReport {
            url: self.route.url(&self.route.path).to_string(),
            outcome,
            title: None,
            average_rate: playout.average_rate(),
            player: PlayerSettings {
                clock: config.clock.kind(),
                playout_buffer: config.playout_buffer,
                receive_buffer: config.receive_buffer,
            },
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
                retransmissions: None,
                interruptions: self.interruptions.finish(ended),
            },
            dash: None,
            cmsd: CmsdReport::of(self.cmsd),
            notes: Vec::new(),
            events: self.events,
            series: playout.series().to_vec(),
        };
        self.source.describe_report(&mut report);
        if let (Outcome::Complete, Some(title)) = (&report.outcome, &report.title)
            && let Some(scheme) = &title.encryption
        {
            report.outcome = Outcome::Encrypted(scheme.clone());
        }
        report
    }
}

/// Truncates `time` to milliseconds, for error messages.
pub(super) fn in_millis(time: Duration) -> Duration {
    time.saturating_sub(Duration::from_nanos(u64::from(time.subsec_nanos() % 1_000_000)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_transport::{ClientOptions, Trust};

    #[tokio::test]
    async fn the_error_of_an_attempt_without_an_answer_has_no_nanoseconds() {
        let options = ClientOptions::new(Trust::Insecure);
        let client = Client::bind(Arc::new(quinn::TokioRuntime), options).unwrap();
        let route = Route {
            client,
            target: Target::at("localhost", ([127, 0, 0, 1], 4433).into()),
            path: "/film.mp4".to_owned(),
            shared: None,
        };
        let error = route.no_answer(Duration::from_nanos(4_544_596_475)).to_string();
        assert!(error.ends_with("within 4.544s"), "{error}");
    }
}
