//! One client's session: from its handshake to its summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use playrate_cc::VideoKnowledge;
use playrate_transport::telemetry::Monitor;
use playrate_transport::{ConnectionController, Incoming};
use playrate_units::{Bitrate, Bytes};
use tokio::sync::mpsc;

use super::arms::ArmChoice;
use super::connection::ActiveConnection;
use super::observe::{ConnectionInfo, PlayerReport, SessionEnd, SessionSummary};
use super::playback::PlaybackTracker;
use super::throughput::Throughput;
use super::{WorkerContext, exchange};
use crate::admission::AdmissionSlot;

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
        control = control.with_alternatives(&arms.controllers());
    }
    let mut session = match incoming.establish(control).await {
        Ok(session) => session,
        Err(lost) => {
            tracing::debug!(connection = id, peer = %info.peer, %lost, "a handshake failed");
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
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
    tracing::info!(
        connection = session.connection.id,
        peer = %session.connection.peer,
        arm = state.arm,
        controller = state.controller,
        seconds = (state.age.as_secs_f64() * 1e3).round() / 1e3,
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
