//! One client's connection: its controller, its requests, its summary.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use playrate_cc::VideoKnowledge;
use playrate_transport::telemetry::Monitor;
use playrate_transport::{ConnectionController, Incoming};
use playrate_units::{Bitrate, Bytes};
use tokio::sync::mpsc;

use super::arms::{Arms, Decision};
use super::observe::{ConnectionInfo, PlayerReport, SessionEnd, SessionSummary};
use super::throughput::Throughput;
use super::watching::Watching;
use super::{Shared, exchange};
use crate::admission::Entrance;

/// What a connection's exchanges share and count.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) id: u64,
    pub(super) peer: SocketAddr,
    pub(super) began: Instant,
    pub(super) control: ConnectionController,
    pub(super) arm: Decision,
    pub(super) watching: Arc<Watching>,
    pub(super) throughput: Arc<Throughput>,
    pub(super) entrance: Entrance,
    pub(super) requests: AtomicU64,
    pub(super) responses: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Serves one client until it is gone. `_alive` tells the server that this task runs.
pub(super) async fn serve(incoming: Incoming, id: u64, shared: Arc<Shared>, _alive: mpsc::Sender<()>) {
    let settings = &shared.settings;
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
    if let Some(observer) = &settings.observer {
        for sink in observer.connecting(&info) {
            monitor = monitor.with_sink(sink);
        }
    }
    let mut control = ConnectionController::new(settings.controller.clone())
        .with_monitor(Arc::new(monitor))
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
    let began = shared.runtime.now();
    tracing::debug!(connection = id, peer = %info.peer, controller = %info.controller, "connected");
    let tally = Arc::new(Tally {
        id,
        peer: info.peer,
        began,
        control: session.control().clone(),
        arm: Decision::default(),
        watching: Arc::new(Watching::new(knowledge, Arc::clone(&shared.runtime))),
        throughput,
        entrance: Entrance::new(Arc::clone(&shared.admission)),
        requests: AtomicU64::new(0),
        responses: AtomicU64::new(0),
        aborted: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    shared.live.begin(&tally);
    // Yields nothing, and ends with the last exchange.
    let (running, mut ended) = mpsc::channel::<()>(1);
    let end = loop {
        match session.accept().await {
            Ok(Some(arrival)) => {
                let task = exchange::serve(arrival, Arc::clone(&tally), Arc::clone(&shared), running.clone());
                shared.runtime.spawn(Box::pin(task));
            }
            Ok(None) => break SessionEnd::Orderly,
            Err(lost) => break SessionEnd::Lost(lost.to_string()),
        }
    };
    let duration = shared.runtime.now().saturating_duration_since(began);
    let quinn = session.quinn().clone();
    let controller = tally.control.to_string();
    let decided = |arms: &Arms| tally.arm.arm(arms);
    // Closes the connection, so that the exchanges still running end and are counted.
    drop(session);
    drop(running);
    let _ = ended.recv().await;
    let summary = SessionSummary {
        connection: info,
        arm: settings.arms.as_ref().and_then(decided),
        controller,
        other_arm_requests: tally.arm.contrary(),
        duration,
        requests: tally.requests.load(Relaxed),
        responses: tally.responses.load(Relaxed),
        aborted: tally.aborted.load(Relaxed),
        bytes: Bytes::new(tally.bytes.load(Relaxed)),
        totals: quinn.stats().into(),
        delivery_rate: tally.throughput.estimate(),
        player: tally.watching.report(),
        end,
    };
    shared.live.end(&tally);
    shared.counted.sessions.fetch_add(1, Relaxed);
    log(&summary);
    if let Some(observer) = &settings.observer {
        observer.finished(&summary);
    }
}

fn log(session: &SessionSummary) {
    let totals = &session.totals;
    let player = session.player.as_ref();
    let sessions = player
        .map(|player| player.sessions.join(" "))
        .filter(|sessions| !sessions.is_empty());
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    tracing::info!(
        connection = session.connection.id,
        peer = %session.connection.peer,
        arm = session.arm,
        controller = session.controller,
        seconds = session.duration.as_secs_f64(),
        requests = session.requests,
        responses = session.responses,
        aborted = session.aborted,
        other_arm_requests = session.arm.as_ref().map(|_| session.other_arm_requests),
        bytes = session.bytes.as_u64(),
        sent_bytes = totals.sent_bytes.as_u64(),
        sent_packets = totals.sent_packets,
        lost_packets = totals.lost_packets,
        congestion_events = totals.congestion_events,
        smoothed_rtt_ms = milliseconds(totals.smoothed_rtt),
        delivery_rate = session.delivery_rate.map(Bitrate::as_bits_per_second),
        player_sessions = sessions,
        player_requests = player.map(|player| player.requests),
        player_viewings = player.map(|player| player.viewings),
        player_starvations = player.map(|player| player.starvations),
        player_lowest_buffer_ms = player.and_then(|player| player.lowest_buffer).map(milliseconds),
        player_mean_buffer_ms = player.and_then(PlayerReport::mean_buffer).map(milliseconds),
        player_mean_bitrate = player.and_then(PlayerReport::mean_bitrate).map(Bitrate::as_bits_per_second),
        player_measured_throughput = player.and_then(|player| player.measured_throughput).map(Bitrate::as_bits_per_second),
        end = %session.end,
        "session finished"
    );
}
