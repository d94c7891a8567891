//! [`Metrics`]: counters and histograms for Prometheus.
//!
//! Counters of the paths grow with the samples of the connections' congestion control. Values of whole
//! sessions go into histograms by arm when the session ends. Gauges and totals of the server are read at each
//! scrape.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant, UNIX_EPOCH};

use playrate_transport::telemetry::{Sample, Sink};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use quinn::{Runtime, TokioRuntime};
use video_server::library::FaultKind;
use video_server::serve::{
    ConnectionInfo, ConnectionState, Observer, SessionSummary, VideoServer, playback_name,
};

use super::arm_totals::ArmTotals;
use super::exposition::{Labels, counter, encode, gauge, occurrences, sums, totals_of};
use crate::cli::certificate::Leaf;
use crate::cli::tcp::TcpTotals;
use crate::cli::{acme, logging};

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// Metrics of a server's connections; over TCP, only the totals of decisions on clients.
#[derive(Debug)]
pub(crate) struct Metrics {
    began: Instant,
    path: Arc<PathCounters>,
    sessions: Family<Labels, Counter>,
    stalls: Family<Labels, Counter>,
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
    /// Registry of everything exported about `server`; these metrics must be its observer.
    pub(super) fn registry(self: &Arc<Self>, server: VideoServer) -> Registry {
        let mut whole = Registry::default();
        #[cfg(target_os = "linux")]
        whole.register_collector(Box::new(super::process::ProcessCollector));
        let registry = whole.sub_registry_with_prefix("playrate");
        #[cfg(feature = "object-store")]
        registry
            .sub_registry_with_prefix("origin")
            .register_collector(Box::new(super::origin::OriginCollector(server.clone())));
        registry.register_collector(Box::new(ServerCollector {
            server,
            metrics: Arc::clone(self),
        }));
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
        let arm = vec![
            ("arm", state.arm.clone().unwrap_or_default()),
            ("controller", state.controller.clone()),
        ];
        self.sessions.get_or_create(&arm).inc();
        let stalls = state.player.as_ref().map_or(0, |player| player.stalls);
        self.stalls.get_or_create(&arm).inc_by(stalls);
        self.durations
            .get_or_create(&arm)
            .observe(state.age.as_secs_f64());
        self.rtts
            .get_or_create(&arm)
            .observe(session.transport.path.rtt.as_secs_f64());
        if let Some(rate) = state.delivery_rate {
            self.rates
                .get_or_create(&arm)
                .observe(rate.as_bits_per_second() as f64 / 8.0);
        }
    }
}

/// Reads the metrics and the state of a server at each scrape.
#[derive(Debug)]
struct ServerCollector {
    server: VideoServer,
    metrics: Arc<Metrics>,
}

impl Collector for ServerCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let Self { server, metrics } = self;
        let (live, totals, load) = (server.connections(), server.totals(), server.admission().load());
        let (clients, datagrams) = (server.transport().clients(), server.transport().forwarded());
        let (library, tcp) = (server.library(), &metrics.tcp);
        let cache = library.cache_totals();
        let PathCounters([sent, delivered, lost, congestion]) = &*metrics.path;
        let sampled = live.iter().filter_map(|connection| connection.sample.as_ref());
        let estimates = sampled.clone().filter_map(|sample| sample.estimate);
        let player = |connection: &ConnectionState| {
            let state = connection.playback.and_then(playback_name);
            state.unwrap_or("silent").to_owned()
        };
        let workers = server.transport().workers().iter().enumerate();
        let workers = workers.map(|(number, worker)| (number.to_string(), worker.open_connections()));
        let events = server.site().player_events().into_iter();
        let events = events.map(|((event, state), count)| ([("event", event), ("state", state)], count));
        let replies = server.site().replied().into_iter();
        let replies = replies.map(|((protocol, code), count)| {
            (
                [("protocol", protocol.to_owned()), ("code", code.to_string())],
                count,
            )
        });
        let access = server.settings().access.iter();
        let unauthorized = access.flat_map(|access| access.refused());
        let unauthorized = unauthorized.map(|(reason, count)| ([("reason", reason.to_string())], count));
        // `build_info` is not the info type of OpenMetrics, which `promtool check metrics` does not read.
        encode! { &mut encoder,
            /// Version of the server.
            build_info = occurrences("version", [env!("CARGO_PKG_VERSION").to_owned()]);
            /// In packets, without UDP and IP headers.
            sent [Bytes] = *sent;
            /// Of packets that were acknowledged.
            delivered [Bytes] = *delivered;
            /// Of packets declared lost.
            lost [Bytes] = *lost;
            /// Congestion events of all paths.
            congestion_events = *congestion;
            /// Sessions that have ended.
            sessions = metrics.sessions;
            /// Requests that report an empty buffer after start-up (CMCD bs), of sessions that have ended.
            player_starvations = metrics.stalls;
            /// Events that players reported to --cmcd-events, by CMCD e and sta.
            player_events = totals_of(events);
            /// Duration of sessions that have ended.
            session_duration [Seconds] = metrics.durations;
            /// Rate that the path carried, at the end of sessions.
            session_delivery_rate [Other("bytes_per_second".to_owned())] = metrics.rates;
            /// Smoothed RTT at the end of sessions.
            session_smoothed_rtt [Seconds] = metrics.rtts;
            /// Responses that have begun, by version of HTTP and status code.
            http_responses = totals_of(replies);
            /// Connections by phase of their controller.
            phases = occurrences("phase", sampled.map(|sample| sample.snapshot.phase.to_string()));
            /// Connections by what limited the last estimate of their path's rate.
            estimates = occurrences("source", estimates.map(|estimate| estimate.source.to_string()));
            /// Connections by the last report (CMCD) of the player that is worst off.
            players = occurrences("state", live.iter().map(player));
            /// Connections over HTTP/3 of each worker, including those being set up or taken down.
            worker_connections = sums("worker", workers);
            /// Connections over HTTP/3 now.
            connections = gauge(live.len());
            /// Connections over TCP for media now.
            tcp_connections = gauge(tcp.open());
            /// Titles of the media directory that cannot be played.
            unplayable_titles = gauge(library.faults(FaultKind::Title).len());
            /// Manifests of the media directory that cannot be used.
            unusable_manifests = gauge(library.faults(FaultKind::Manifest).len());
            /// Directories below the media directory that cannot be read.
            unreadable_directories = gauge(library.faults(FaultKind::Directory).len());
            /// Connections admitted to media, over TCP as well.
            admitted_sessions = gauge(load.sessions);
            /// Requests of new sessions that were answered with 503.
            refused_requests = counter(load.refused);
            /// Size of the bytes of files that are kept in memory.
            cache [Bytes] = gauge(cache.size.as_u64());
            /// Reads of files that found their bytes in memory.
            cache_hits = counter(cache.hits);
            /// Reads of files that took their bytes from the file system.
            cache_misses = counter(cache.misses);
            /// Datagrams that arrived at the wrong worker and were forwarded to that of their connection.
            forwarded_datagrams = counter(datagrams.forwarded);
            /// Datagrams for another worker that were lost because too many waited for it or they were too long.
            lost_forwarded_datagrams = counter(datagrams.lost);
            /// Handshakes over HTTP/3 that did not complete.
            failed_handshakes = counter(clients.failed_handshakes);
            /// Connections over TCP for media that were accepted.
            tcp_connections_accepted = counter(tcp.accepted.load(Relaxed));
            /// TLS handshakes over TCP, or PROXY headers in front of them, that failed or timed out.
            failed_tcp_handshakes = counter(tcp.failed_handshakes.load(Relaxed));
            /// Clients over HTTP/3 that had to validate their address (Retry).
            retried_handshakes = counter(clients.retried);
            /// Connections over HTTP/3 that were refused because of a limit.
            refused_connections = counter(clients.refused);
            /// Requests without a valid token, by reason.
            unauthorized_requests = totals_of(unauthorized);
            /// Idle connections over HTTP/3 that were closed to make room for another client.
            evicted_connections = counter(clients.evicted);
            /// Connections over TCP for media that were refused because of a limit.
            refused_tcp_connections = counter(tcp.refused.load(Relaxed));
            /// Idle connections over TCP for media that were closed to make room for another client.
            evicted_tcp_connections = counter(tcp.evicted.load(Relaxed));
            /// Lateness that one timer in ten exceeds; 0 unless --max-lag or --max-cpu is given.
            timer_lag [Seconds] = ConstGauge::new(load.lag.unwrap_or_default().as_secs_f64());
            /// Share of the processors' time; 0 unless --max-lag or --max-cpu is given.
            processor_time [Ratios] = ConstGauge::new(load.cpu.unwrap_or_default());
            /// Expiry of each certificate, since the epoch.
            certificate_expiry_timestamp [Seconds] = certificate_expiries(server);
            /// Attempts to obtain or renew the certificate by ACME that failed.
            certificate_renewal_failures = counter(acme::failures());
            /// Lines of the log that were dropped because its reader was too slow, or could not be written.
            dropped_log_lines = counter(logging::dropped_lines());
            /// Lines of the access log that were dropped because its reader was too slow, or could not be written.
            lost_access_log_lines = counter(logging::ACCESS.lost());
            /// Responses that were acknowledged whole.
            responses = counter(totals.responses);
            /// Of responses that have ended.
            content [Bytes] = counter(totals.bytes.as_u64());
        }
        Ok(())
    }
}

/// Times at which the certificates in use expire.
fn certificate_expiries(server: &VideoServer) -> Family<Labels, Gauge> {
    let expiries = Family::<Labels, Gauge>::default();
    let identities = server.transport().certificates().identities();
    for leaf in identities.iter().filter_map(|identity| Leaf::of(identity).ok()) {
        let end = leaf.end.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let end = end.try_into().unwrap_or(i64::MAX);
        let expiry = expiries.get_or_create(&vec![("name", leaf.name)]);
        // The first to expire of those with the same first name.
        expiry.set(match expiry.get() {
            0 => end,
            other => end.min(other),
        });
    }
    expiries
}
