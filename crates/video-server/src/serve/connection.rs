//! One client's connection: its controller, its requests, its summary.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use playrate_cc::{Playback, VideoKnowledge};
use playrate_transport::telemetry::{Monitor, Sample};
use playrate_transport::{ConnectionController, Incoming};
use playrate_units::{Bitrate, Bytes};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::arms::{ArmChoice, Arms};
use super::observe::{ConnectionInfo, PlayerReport, SessionEnd, SessionSummary};
use super::playback::PlaybackTracker;
use super::throughput::Throughput;
use super::{WorkerContext, exchange};
use crate::admission::AdmissionSlot;

/// Name of the protocol of every connection whose state is known, as `http::Version` writes it.
const PROTOCOL: &str = "HTTP/3.0";

/// State and counters of one connection, shared by its exchanges.
#[derive(Debug)]
pub(super) struct ActiveConnection {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) began: Instant,
    pub(super) control: ConnectionController,
    pub(super) arm: ArmChoice,
    pub(super) quinn: quinn::Connection,
    pub(super) playback: Arc<PlaybackTracker>,
    pub(super) throughput: Arc<Throughput>,
    pub(super) admission: AdmissionSlot,
    /// Objects that its player is going to request.
    #[cfg(feature = "object-store")]
    pub(super) ahead: playrate_origin::ReadAhead,
    pub(super) requests: AtomicU64,
    pub(super) responses: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Serves one client until its connection ends. `_alive` delays the server's shutdown until this task ends.
pub(super) async fn serve(
    incoming: Incoming,
    id: u64,
    context: Arc<WorkerContext>,
    _alive: mpsc::Sender<()>,
) {
    let (server, settings) = (&context.server, &context.server.settings);
    let info = ConnectionInfo {
        id,
        peer: incoming.peer(),
        controller: settings.controller.to_string(),
    };
    let knowledge = Arc::new(VideoKnowledge::new());
    knowledge.set_playout_buffer(settings.playout_buffer);
    let throughput = Arc::new(Throughput::default());
    let mut monitor = Monitor::new(settings.sample_interval)
        .named(id)
        .with_sink(Arc::clone(&throughput));
    for observer in &settings.observers {
        for sink in observer.connecting(&info) {
            monitor = monitor.with_sink(sink);
        }
    }
    let mut control = ConnectionController::new(settings.controller.clone())
        .with_monitor(Arc::new(monitor))
        .with_ack_request(settings.ack_request)
        .with_knowledge(Arc::clone(&knowledge));
    if let Some(arms) = &settings.arms {
        control = control.switchable(&arms.controllers());
    }
    let mut session = match incoming.establish(control).await {
        Ok(session) => session,
        Err(lost) => {
            tracing::info!(connection = id, peer = %info.peer, %lost, "a handshake failed");
            return;
        }
    };
    let began = context.runtime.now();
    tracing::debug!(connection = id, peer = %info.peer, controller = %info.controller, "connected");
    let connection = Arc::new(ActiveConnection {
        id,
        peer: info.peer,
        began,
        control: session.control().clone(),
        quinn: session.quinn().clone(),
        arm: ArmChoice::default(),
        playback: Arc::new(PlaybackTracker::new(knowledge, Arc::clone(&context.runtime))),
        throughput,
        #[cfg(feature = "object-store")]
        ahead: playrate_origin::ReadAhead::default(),
        admission: AdmissionSlot::new(Arc::clone(&context.admission)),
        requests: AtomicU64::new(0),
        responses: AtomicU64::new(0),
        aborted: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    server.state.lock().active.insert(id, Arc::clone(&connection));
    // Closed once the last exchange has ended.
    let (running, mut ended) = mpsc::channel::<()>(1);
    let end = loop {
        match session.accept().await {
            Ok(Some(arrival)) => {
                let task = exchange::serve(
                    arrival,
                    Arc::clone(&connection),
                    Arc::clone(&context),
                    running.clone(),
                );
                context.runtime.spawn(Box::pin(task));
            }
            Ok(None) => break SessionEnd::Orderly,
            Err(lost) => break SessionEnd::Lost(lost.to_string()),
        }
    };
    let ended_at = context.runtime.now();
    // Closes the connection, so that exchanges in progress end and are counted.
    drop(session);
    drop(running);
    let _ = ended.recv().await;
    let summary = SessionSummary {
        connection: info,
        state: connection.state(ended_at, settings.arms.as_ref()),
        other_arm_requests: connection.arm.mismatches(),
        aborted: connection.aborted.load(Relaxed),
        bytes: Bytes::new(connection.bytes.load(Relaxed)),
        transport: connection.quinn.stats(),
        end,
    };
    {
        // Under one lock, so that a snapshot contains it exactly once.
        let mut state = server.state.lock();
        state.active.remove(&id);
        state.totals.sessions += 1;
    }
    log(&summary);
    for observer in &settings.observers {
        observer.finished(&summary);
    }
}

fn log(session: &SessionSummary) {
    let (state, path) = (&session.state, &session.transport.path);
    let player = state.player.as_ref();
    let sessions = player
        .map(|player| player.sessions.join(" "))
        .filter(|sessions| !sessions.is_empty());
    let bits_per_second = Bitrate::as_bits_per_second;
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    tracing::info!(
        connection = session.connection.id,
        peer = %session.connection.peer,
        arm = state.arm,
        controller = state.controller,
        seconds = state.age.as_secs_f64(),
        requests = state.requests,
        responses = state.responses,
        aborted = session.aborted,
        other_arm_requests = state.arm.as_ref().map(|_| session.other_arm_requests),
        bytes = session.bytes.as_u64(),
        sent_bytes = session.transport.udp_tx.bytes,
        sent_packets = path.sent_packets,
        lost_packets = path.lost_packets,
        congestion_events = path.congestion_events,
        smoothed_rtt_ms = milliseconds(path.rtt),
        delivery_rate = state.delivery_rate.map(bits_per_second),
        player_sessions = sessions,
        player_requests = player.map(|player| player.requests),
        player_viewings = player.map(|player| player.viewings),
        player_starvations = player.map(|player| player.stalls),
        player_lowest_buffer_ms = player.and_then(|player| player.lowest_buffer).map(milliseconds),
        player_mean_buffer_ms = player.and_then(PlayerReport::mean_buffer).map(milliseconds),
        player_mean_bitrate = player.and_then(PlayerReport::mean_bitrate).map(bits_per_second),
        player_measured_throughput = player.and_then(|player| player.measured_throughput).map(bits_per_second),
        end = %session.end,
        "session finished"
    );
}

/// Present state of a connection.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionState {
    /// Number, as in [`ConnectionInfo`](super::ConnectionInfo).
    pub id: u64,
    /// Address of the client at the beginning of the connection.
    pub peer: SocketAddr,
    /// Arm chosen for it; `None` without arms, or if no request has chosen one.
    pub arm: Option<String>,
    /// Spec of its present controller.
    pub controller: String,
    /// Time since the end of the handshake.
    pub age: Duration,
    /// Number of requests that arrived whole.
    pub requests: u64,
    /// Number of responses that the client acknowledged whole.
    pub responses: u64,
    /// Number of responses that were aborted.
    pub aborted: u64,
    /// Last sample of its congestion control; `None` until the first acknowledgement.
    pub sample: Option<Sample>,
    /// Delivery rate while there was enough to send, over the last seconds of such time.
    pub delivery_rate: Option<Bitrate>,
    /// Rate of the video on it, if its controller knows it.
    pub video_rate: Option<Bitrate>,
    /// Lowest buffer level that its players reported last.
    pub buffered: Option<Duration>,
    /// Worst state that its players reported last.
    pub playback: Option<Playback>,
    /// Reports of its players so far (CMCD), if any.
    pub player: Option<PlayerReport>,
}

impl ConnectionState {
    /// The state as JSON, without the connection's number and the client's address: the client itself may read it.
    /// Rates are in bit/s, sizes in bytes; unknown values are null.
    pub fn to_json(&self) -> Value {
        let sample = self.sample.as_ref();
        let snapshot = sample.map(|sample| &sample.snapshot);
        let bytes = |get: fn(&Sample) -> Bytes| sample.map(|sample| get(sample).as_u64());
        json!({
            "protocol": PROTOCOL,
            "arm": self.arm,
            "controller": self.controller,
            "age_s": self.age.as_secs_f64(),
            "requests": self.requests,
            "responses": self.responses,
            "phase": snapshot.map(|snapshot| snapshot.phase.to_string()),
            "reason": snapshot.map(|snapshot| snapshot.reason.to_string()),
            "waiting_for": snapshot.map(|snapshot| snapshot.waiting_for.to_string()),
            "window": snapshot.map(|snapshot| snapshot.window.as_u64()),
            "ssthresh": snapshot.and_then(|snapshot| snapshot.ssthresh).map(Bytes::as_u64),
            "in_flight": bytes(|sample| sample.bytes_in_flight),
            "rtt_ms": milliseconds(sample.and_then(|sample| sample.smoothed_rtt)),
            "min_rtt_ms": milliseconds(snapshot.and_then(|snapshot| snapshot.min_rtt)),
            "sent": bytes(|sample| sample.sent).unwrap_or(0),
            "delivered": bytes(|sample| sample.delivered).unwrap_or(0),
            "lost": bytes(|sample| sample.lost).unwrap_or(0),
            "congestion_events": sample.map_or(0, |sample| sample.congestion_events),
            "delivery_rate": self.delivery_rate.map(Bitrate::as_bits_per_second),
            "video_rate": self.video_rate.map(Bitrate::as_bits_per_second),
            "buffer_s": self.buffered.map(|time| time.as_secs_f64()),
            "playback": self.playback.and_then(playback_name),
            "starvations": self.player.as_ref().map_or(0, |player| player.stalls),
        })
    }
}

fn milliseconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64() * 1e3)
}

/// Name of the state of a player in JSON and metrics.
pub fn playback_name(playback: Playback) -> Option<&'static str> {
    match playback {
        Playback::Playing => Some("playing"),
        Playback::Starting => Some("starting"),
        Playback::Starved => Some("starved"),
        _ => None,
    }
}

impl ActiveConnection {
    pub(super) fn state(&self, now: Instant, arms: Option<&Arms>) -> ConnectionState {
        let knowledge = self.control.knowledge();
        ConnectionState {
            id: self.id,
            peer: self.peer,
            arm: arms.and_then(|arms| self.arm.name(arms)),
            controller: self.control.to_string(),
            age: now.saturating_duration_since(self.began),
            requests: self.requests.load(Relaxed),
            responses: self.responses.load(Relaxed),
            aborted: self.aborted.load(Relaxed),
            sample: self.control.monitor().latest(),
            delivery_rate: self.throughput.estimate(),
            video_rate: knowledge.average_rate(),
            buffered: knowledge.buffered(),
            playback: self.playback.reported(),
            player: self.playback.report(),
        }
    }
}
