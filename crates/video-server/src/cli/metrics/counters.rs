//! [`Metrics`]: counters and histograms for Prometheus.
//!
//! Counters of the paths grow with the samples of the connections' congestion control. Values of whole
//! sessions go into histograms by arm when the session ends. Gauges and totals of the server are read at each
//! scrape.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use playrate_transport::telemetry::{Sample, Sink};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use quinn::{Runtime, TokioRuntime};
use video_server::library::Library;
use video_server::pages;
use video_server::serve::{ConnectionInfo, ConnectionState, Observer, SessionSummary, VideoServer};

use super::arm_totals::ArmTotals;
use super::process::ProcessCollector;
use crate::cli::tcp::TcpTotals;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ArmLabels {
    arm: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PhaseLabel {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WorkerLabel {
    worker: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlayerLabel {
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ResponseLabels {
    protocol: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabel {
    version: &'static str,
}

type Histograms = Family<ArmLabels, Histogram, fn() -> Histogram>;

/// Metrics of a server's connections, over TCP only the totals of decisions on clients.
#[derive(Debug)]
pub(crate) struct Metrics {
    began: Instant,
    path: Arc<PathCounters>,
    sessions: Family<ArmLabels, Counter>,
    stalls: Family<ArmLabels, Counter>,
    durations: Histograms,
    rates: Histograms,
    rtts: Histograms,
    arm_totals: ArmTotals,
    tcp: Arc<TcpTotals>,
}

/// Totals over all connections' paths: bytes sent, delivered and lost, and congestion events.
#[derive(Debug, Default)]
struct PathCounters([Counter; 4]);

/// Adds the growth of one connection's samples to [`PathCounters`].
#[derive(Debug)]
struct PathGrowth {
    totals: Arc<PathCounters>,
    counted: [AtomicU64; 4],
}

impl Sink for PathGrowth {
    fn take(&self, sample: &Sample) {
        let now = [
            sample.sent.as_u64(),
            sample.delivered.as_u64(),
            sample.lost.as_u64(),
            sample.congestion_events,
        ];
        for ((counter, counted), now) in self.totals.0.iter().zip(&self.counted).zip(now) {
            counter.inc_by(now.saturating_sub(counted.fetch_max(now, Relaxed)));
        }
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            began: TokioRuntime.now(),
            path: Arc::default(),
            sessions: Family::default(),
            stalls: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(exponential_buckets(1.0, 2.0, 14))),
            rates: Family::new_with_constructor(|| Histogram::new(exponential_buckets(31_250.0, 2.0, 14))),
            rtts: Family::new_with_constructor(|| Histogram::new(exponential_buckets(0.001, 2.0, 12))),
            arm_totals: ArmTotals::default(),
            tcp: Arc::default(),
        }
    }
}

impl Metrics {
    /// Registry of everything that is exported of `server`, whose observer these metrics are.
    pub(super) fn registry(&self, server: VideoServer) -> Registry {
        let mut whole = Registry::default();
        whole.register_collector(Box::new(ProcessCollector));
        let registry = whole.sub_registry_with_prefix("playrate");
        // Not the info type of OpenMetrics, which `promtool check metrics` does not read.
        let build = Family::<BuildLabel, Gauge>::default();
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&BuildLabel { version }).set(1);
        registry.register("build_info", "Version of the server", build);
        #[cfg(feature = "object-store")]
        registry
            .sub_registry_with_prefix("origin")
            .register_collector(Box::new(super::origin::OriginCollector(server.clone())));
        registry.register_collector(Box::new(ServerCollector {
            server,
            tcp: Arc::clone(&self.tcp),
        }));
        let PathCounters([sent, delivered, lost, congestion]) = &*self.path;
        for (name, help, counter) in [
            ("sent", "In packets, without UDP and IP headers", sent),
            ("delivered", "Of packets that were acknowledged", delivered),
            ("lost", "Of packets declared lost", lost),
        ] {
            registry.register_with_unit(name, help, Unit::Bytes, counter.clone());
        }
        registry.register(
            "congestion_events",
            "Congestion events of all paths",
            congestion.clone(),
        );
        registry.register("sessions", "Sessions that have ended", self.sessions.clone());
        registry.register(
            "player_starvations",
            "Requests that report an empty buffer after start-up (CMCD bs), of sessions that have ended",
            self.stalls.clone(),
        );
        registry.register_with_unit(
            "session_duration",
            "Duration of sessions that have ended",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register_with_unit(
            "session_delivery_rate",
            "Delivery rate while there was enough to send, at the end of sessions",
            Unit::Other("bytes_per_second".to_owned()),
            self.rates.clone(),
        );
        registry.register_with_unit(
            "session_smoothed_rtt",
            "Smoothed RTT at the end of sessions",
            Unit::Seconds,
            self.rtts.clone(),
        );
        whole
    }

    /// Time since these metrics were created.
    pub(super) fn age(&self) -> Duration {
        TokioRuntime.now().saturating_duration_since(self.began)
    }

    /// Totals of decisions on TCP connections, for the server over TCP to count in.
    pub(crate) fn tcp(&self) -> Arc<TcpTotals> {
        Arc::clone(&self.tcp)
    }

    pub(super) fn arm_totals(&self) -> &ArmTotals {
        &self.arm_totals
    }
}

impl Observer for Metrics {
    fn connecting(&self, _: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        vec![Arc::new(PathGrowth {
            totals: Arc::clone(&self.path),
            counted: Default::default(),
        })]
    }

    fn finished(&self, session: &SessionSummary) {
        self.arm_totals.add(session);
        let state = &session.state;
        let arm = ArmLabels {
            arm: state.arm.clone().unwrap_or_default(),
            controller: state.controller.clone(),
        };
        self.sessions.get_or_create(&arm).inc();
        let stalls = state.player.as_ref().map_or(0, |player| player.stalls);
        self.stalls.get_or_create(&arm).inc_by(stalls);
        self.durations
            .get_or_create(&arm)
            .observe(state.age.as_secs_f64());
        self.rtts
            .get_or_create(&arm)
            .observe(session.totals.smoothed_rtt.as_secs_f64());
        if let Some(rate) = state.delivery_rate {
            self.rates
                .get_or_create(&arm)
                .observe(rate.as_bits_per_second() as f64 / 8.0);
        }
    }
}

/// Reads the state of a server at each scrape.
#[derive(Debug)]
struct ServerCollector {
    server: VideoServer,
    tcp: Arc<TcpTotals>,
}

impl ServerCollector {
    /// Name, help and value of each total of decisions on clients, and of reads of files.
    fn totals(&self) -> [(&'static str, &'static str, u64); 12] {
        let (clients, cache) = (self.server.clients(), self.server.library().cache_totals());
        let datagrams = self.server.forwarded();
        [
            (
                "cache_hits",
                "Reads of files that found their bytes in memory.",
                cache.hits,
            ),
            (
                "cache_misses",
                "Reads of files, requested again or new, that took their bytes from the file system.",
                cache.misses,
            ),
            (
                "forwarded_datagrams",
                "Datagrams that arrived at another worker than that of their connection, and went on to it.",
                datagrams.forwarded,
            ),
            (
                "lost_forwarded_datagrams",
                "Datagrams for another worker that were lost, as too many waited for it or they were too long.",
                datagrams.lost,
            ),
            (
                "failed_handshakes",
                "Handshakes over HTTP/3 that did not complete.",
                clients.failed_handshakes,
            ),
            (
                "tcp_connections_accepted",
                "Connections over TCP for media that were accepted.",
                self.tcp.accepted.load(Relaxed),
            ),
            (
                "failed_tcp_handshakes",
                "TLS handshakes over TCP that failed or timed out.",
                self.tcp.failed_handshakes.load(Relaxed),
            ),
            (
                "retried_handshakes",
                "Clients over HTTP/3 that had to validate their address (Retry).",
                clients.retried,
            ),
            (
                "refused_connections",
                "Connections over HTTP/3 that were refused because of a limit.",
                clients.refused,
            ),
            (
                "evicted_connections",
                "Idle connections over HTTP/3 that were closed to make room for another client.",
                clients.evicted,
            ),
            (
                "refused_tcp_connections",
                "Connections over TCP for media that were refused because of a limit.",
                self.tcp.refused.load(Relaxed),
            ),
            (
                "evicted_tcp_connections",
                "Idle connections over TCP for media that were closed to make room for another client.",
                self.tcp.evicted.load(Relaxed),
            ),
        ]
    }

    /// Names, descriptions and values of the numbers that have no labels and may fall.
    fn present(&self, library: &Library, connections: usize) -> [(&'static str, &'static str, usize); 5] {
        [
            ("connections", "Connections over HTTP/3 now.", connections),
            (
                "tcp_connections",
                "Connections over TCP for media now.",
                usize::try_from(self.tcp.open()).unwrap_or(usize::MAX),
            ),
            (
                "unplayable_titles",
                "Titles of the media directory that cannot be played.",
                library.bad_titles().len(),
            ),
            (
                "unusable_manifests",
                "Manifests of the media directory that cannot be used.",
                library.bad_manifests().len(),
            ),
            (
                "unreadable_directories",
                "Directories below the media directory that cannot be read.",
                library.unreadable_directories().len(),
            ),
        ]
    }
}

impl Collector for ServerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let live = self.server.connections();
        let (phases, players) = by_state(&live);
        let (totals, load) = (self.server.totals(), self.server.admission().load());
        let gauge = |count: usize| ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        let mut put = |name, help, unit: Option<&Unit>, metric: &dyn EncodeMetric| {
            metric.encode(encoder.encode_descriptor(name, help, unit, metric.metric_type())?)
        };
        put(
            "http_responses",
            "Responses that have begun, by version of HTTP and status code.",
            None,
            &responses(&self.server),
        )?;
        put(
            "phases",
            "Connections by phase of their controller.",
            None,
            &phases,
        )?;
        put(
            "players",
            "Connections by the last report (CMCD) of the player that is worst off.",
            None,
            &players,
        )?;
        put(
            "worker_connections",
            "Connections over HTTP/3 of each worker, those being set up or taken down included.",
            None,
            &by_worker(&self.server),
        )?;
        let library = self.server.library();
        for (name, help, count) in self.present(&library, live.len()) {
            put(name, help, None, &gauge(count))?;
        }
        put(
            "admitted_sessions",
            "Connections admitted to media, over TCP as well.",
            None,
            &gauge(load.sessions),
        )?;
        put(
            "refused_requests",
            "Requests of new sessions that were answered with 503.",
            None,
            &ConstCounter::new(load.refused),
        )?;
        put(
            "cache",
            "Size of the bytes of files that are kept in memory.",
            Some(&Unit::Bytes),
            &gauge(library.cache_totals().size.as_usize()),
        )?;
        for (name, help, count) in self.totals() {
            put(name, help, None, &ConstCounter::new(count))?;
        }
        put(
            "timer_lag",
            "Lateness that one timer in ten exceeds; 0 unless --max-lag or --max-cpu is given.",
            Some(&Unit::Seconds),
            &ConstGauge::new(load.lag.unwrap_or_default().as_secs_f64()),
        )?;
        put(
            "processor_time",
            "Share of the processors' time; 0 unless --max-lag or --max-cpu is given.",
            Some(&Unit::Ratios),
            &ConstGauge::new(load.cpu.unwrap_or_default()),
        )?;
        put(
            "responses",
            "Responses that were acknowledged whole.",
            None,
            &ConstCounter::new(totals.responses),
        )?;
        put(
            "content",
            "Of responses that have ended.",
            Some(&Unit::Bytes),
            &ConstCounter::new(totals.bytes.as_u64()),
        )
    }
}

/// Numbers of responses by version of HTTP and status code.
fn responses(server: &VideoServer) -> Family<ResponseLabels, Counter> {
    let responses = Family::<ResponseLabels, Counter>::default();
    for (protocol, code, count) in server.site().replied().all() {
        let labels = ResponseLabels { protocol, code };
        responses.get_or_create(&labels).inc_by(count);
    }
    responses
}

/// Numbers of connections by worker.
fn by_worker(server: &VideoServer) -> Family<WorkerLabel, Gauge> {
    let workers = Family::<WorkerLabel, Gauge>::default();
    for (worker, count) in server.worker_connections().into_iter().enumerate() {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        workers.get_or_create(&WorkerLabel { worker }).set(count);
    }
    workers
}

/// Numbers of connections by phase of their controller and by state of their player.
fn by_state(live: &[ConnectionState]) -> (Family<PhaseLabel, Gauge>, Family<PlayerLabel, Gauge>) {
    let (phases, players) = (Family::<PhaseLabel, Gauge>::default(), Family::default());
    for connection in live {
        if let Some(sample) = &connection.sample {
            let phase = sample.snapshot.phase.to_string();
            phases.get_or_create(&PhaseLabel { phase }).inc();
        }
        let state = connection.playback.and_then(pages::playback_name);
        let state = state.unwrap_or("silent");
        let player: &Family<PlayerLabel, Gauge> = &players;
        player.get_or_create(&PlayerLabel { state }).inc();
    }
    (phases, players)
}
