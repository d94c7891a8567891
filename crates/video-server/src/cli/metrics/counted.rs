//! [`Metrics`]: what is counted for Prometheus.
//!
//! Counters grow while connections run, from the samples of their congestion control; what only a whole session can say goes into
//! histograms as it ends, by arm. Gauges are looked up when somebody asks.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use playrate_transport::telemetry::{Sample, Sink};
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use quinn::{Runtime, TokioRuntime};
use video_server::serve::{ConnectionInfo, Observer, SessionSummary, VideoServer};

use super::connections;
use super::finished::Finished;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Arm {
    arm: String,
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Phase {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

type Histograms = Family<Arm, Histogram, fn() -> Histogram>;

/// Counts what happens on a server's connections over HTTP/3.
pub(crate) struct Metrics {
    registry: Registry,
    began: Instant,
    /// Two that ask at once would add the same growth twice.
    asking: Mutex<()>,
    path: Arc<PathTotals>,
    connections: Gauge,
    phases: Family<Phase, Gauge>,
    players: Family<State, Gauge>,
    admitted: Gauge,
    refused: Counter,
    lag: Gauge<f64, AtomicU64>,
    cpu: Gauge<f64, AtomicU64>,
    responses: Counter,
    content: Counter,
    sessions: Family<Arm, Counter>,
    starvations: Family<Arm, Counter>,
    durations: Histograms,
    rates: Histograms,
    rtts: Histograms,
    finished: Finished,
}

/// What all connections' paths carried so far.
#[derive(Debug, Default)]
struct PathTotals {
    sent: Counter,
    delivered: Counter,
    lost: Counter,
    congestion: Counter,
}

/// Adds what one connection's samples show that the ones before did not.
#[derive(Debug)]
struct Growth {
    totals: Arc<PathTotals>,
    sent: AtomicU64,
    delivered: AtomicU64,
    lost: AtomicU64,
    congestion: AtomicU64,
}

impl Sink for Growth {
    fn take(&self, sample: &Sample) {
        let grow = |counter: &Counter, before: &AtomicU64, now: u64| {
            counter.inc_by(now.saturating_sub(before.fetch_max(now, Relaxed)));
        };
        let totals = &self.totals;
        grow(&totals.sent, &self.sent, sample.sent.as_u64());
        grow(&totals.delivered, &self.delivered, sample.delivered.as_u64());
        grow(&totals.lost, &self.lost, sample.lost.as_u64());
        grow(&totals.congestion, &self.congestion, sample.congestion_events);
    }
}

impl Default for Metrics {
    fn default() -> Self {
        fn seconds() -> Histogram {
            Histogram::new(exponential_buckets(1.0, 2.0, 14))
        }
        fn rates() -> Histogram {
            Histogram::new(exponential_buckets(250_000.0, 2.0, 14))
        }
        fn rtts() -> Histogram {
            Histogram::new(exponential_buckets(0.001, 2.0, 12))
        }
        let mut metrics = Self {
            registry: Registry::with_prefix("playrate"),
            began: TokioRuntime.now(),
            asking: Mutex::default(),
            path: Arc::default(),
            connections: Gauge::default(),
            phases: Family::default(),
            players: Family::default(),
            admitted: Gauge::default(),
            refused: Counter::default(),
            lag: Gauge::default(),
            cpu: Gauge::default(),
            responses: Counter::default(),
            content: Counter::default(),
            sessions: Family::default(),
            starvations: Family::default(),
            durations: Family::new_with_constructor(seconds),
            rates: Family::new_with_constructor(rates),
            rtts: Family::new_with_constructor(rtts),
            finished: Finished::default(),
        };
        metrics.register();
        metrics
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Metrics {
    fn register(&mut self) {
        let Self { registry, path, .. } = self;
        registry.register(
            "connections",
            "Connections over HTTP/3 now",
            self.connections.clone(),
        );
        registry.register(
            "phases",
            "Connections by phase of their controller",
            self.phases.clone(),
        );
        registry.register(
            "players",
            "Connections by what the player that is worst off said last (CMCD)",
            self.players.clone(),
        );
        for (name, help, counter) in [
            ("sent", "In packets, without UDP and IP headers", &path.sent),
            ("delivered", "Of packets that were acknowledged", &path.delivered),
            ("lost", "Of packets declared lost", &path.lost),
            ("content", "Of responses that have ended", &self.content),
        ] {
            registry.register_with_unit(name, help, Unit::Bytes, counter.clone());
        }
        registry.register(
            "admitted_sessions",
            "Connections that were let in to media, over TCP as well",
            self.admitted.clone(),
        );
        registry.register(
            "refused_requests",
            "Requests of new sessions that were turned away with 503",
            self.refused.clone(),
        );
        registry.register_with_unit(
            "timer_lag",
            "How late one timer in ten fires; 0 unless --max-lag or --max-cpu is given",
            Unit::Seconds,
            self.lag.clone(),
        );
        registry.register_with_unit(
            "processor_time",
            "Share of all processors' time; 0 unless --max-lag or --max-cpu is given",
            Unit::Ratios,
            self.cpu.clone(),
        );
        registry.register(
            "congestion_events",
            "How often paths signalled congestion",
            path.congestion.clone(),
        );
        registry.register(
            "responses",
            "Responses that were acknowledged whole",
            self.responses.clone(),
        );
        registry.register("sessions", "Sessions that have ended", self.sessions.clone());
        registry.register(
            "player_starvations",
            "Requests that said that a buffer had run empty (CMCD bs), of sessions that have ended",
            self.starvations.clone(),
        );
        registry.register_with_unit(
            "session_duration",
            "How long sessions lasted",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register(
            "session_delivery_rate",
            "Delivery rate, bit/s, while there was enough to send, as sessions ended",
            self.rates.clone(),
        );
        registry.register_with_unit(
            "session_smoothed_rtt",
            "Smoothed RTT as sessions ended",
            Unit::Seconds,
            self.rtts.clone(),
        );
    }

    /// Since it began to count.
    pub(super) fn age(&self) -> Duration {
        TokioRuntime.now().saturating_duration_since(self.began)
    }

    /// What the sessions that have ended came to.
    pub(super) fn finished(&self) -> &Finished {
        &self.finished
    }

    /// Everything as text (`OpenMetrics` 1.0).
    pub(super) fn encode(&self, server: &VideoServer) -> Result<String, fmt::Error> {
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let live = server.connections();
        self.connections
            .set(i64::try_from(live.len()).unwrap_or(i64::MAX));
        self.phases.clear();
        self.players.clear();
        for connection in &live {
            if let Some(sample) = &connection.sample {
                let phase = sample.snapshot.phase.to_string();
                self.phases.get_or_create(&Phase { phase }).inc();
            }
            let state = connection.playback.and_then(connections::name);
            let state = state.unwrap_or("silent");
            self.players.get_or_create(&State { state }).inc();
        }
        let (totals, load) = (server.totals(), server.admission().load());
        self.admitted
            .set(i64::try_from(load.sessions).unwrap_or(i64::MAX));
        self.lag.set(load.lag.unwrap_or_default().as_secs_f64());
        self.cpu.set(load.cpu.unwrap_or_default());
        let grow = |counter: &Counter, now: u64| counter.inc_by(now.saturating_sub(counter.get()));
        grow(&self.refused, load.refused);
        grow(&self.responses, totals.responses);
        grow(&self.content, totals.bytes.as_u64());
        let mut written = String::new();
        text::encode(&mut written, &self.registry)?;
        Ok(written)
    }
}

impl Observer for Metrics {
    fn connecting(&self, _: &ConnectionInfo) -> Vec<Arc<dyn Sink>> {
        vec![Arc::new(Growth {
            totals: Arc::clone(&self.path),
            sent: AtomicU64::new(0),
            delivered: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            congestion: AtomicU64::new(0),
        })]
    }

    fn finished(&self, session: &SessionSummary) {
        self.finished.take(session);
        let arm = Arm {
            arm: session.arm.clone().unwrap_or_default(),
            controller: session.controller.clone(),
        };
        self.sessions.get_or_create(&arm).inc();
        let starvations = session.player.as_ref().map_or(0, |player| player.starvations);
        self.starvations.get_or_create(&arm).inc_by(starvations);
        self.durations
            .get_or_create(&arm)
            .observe(session.duration.as_secs_f64());
        self.rtts
            .get_or_create(&arm)
            .observe(session.totals.smoothed_rtt.as_secs_f64());
        if let Some(rate) = session.delivery_rate {
            self.rates
                .get_or_create(&arm)
                .observe(rate.as_bits_per_second() as f64);
        }
    }
}
