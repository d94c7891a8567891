//! `/connections.json`: the present state of every connection over HTTP/3. Rates are in bit/s, sizes in
//! bytes; unknown values are null.

use std::time::Duration;

use playrate_cc::Playback;
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};
use serde_json::{Value, json};
use video_server::serve::{ConnectionState, VideoServer};

use super::arm_totals::ArmTotals;

/// The server, its arms and its connections, `at` after the server started.
pub(super) fn describe(server: &VideoServer, totals_by_arm: &ArmTotals, at: Duration) -> Value {
    let totals = server.totals();
    let settings = server.settings();
    let controller = settings.controller.to_string();
    let arms = settings.arms.as_ref();
    let arms = arms.map_or_else(Vec::new, |arms| totals_by_arm.rows(arms, &controller));
    let connections: Vec<_> = server.connections().iter().map(connection).collect();
    json!({
        "at_s": at.as_secs_f64(),
        "controller": controller,
        "arms": arms,
        "sessions": totals.sessions,
        "responses": totals.responses,
        "bytes": totals.bytes.as_u64(),
        "refused": server.admission().load().refused,
        "connections": connections,
    })
}

fn connection(state: &ConnectionState) -> Value {
    let sample = state.sample.as_ref();
    let snapshot = sample.map(|sample| &sample.snapshot);
    let bytes = |get: fn(&Sample) -> Bytes| sample.map(|sample| get(sample).as_u64());
    json!({
        "id": state.id,
        "peer": state.peer.to_string(),
        "arm": state.arm,
        "controller": state.controller,
        "age_s": state.age.as_secs_f64(),
        "requests": state.requests,
        "responses": state.responses,
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
        "delivery_rate": state.delivery_rate.map(Bitrate::as_bits_per_second),
        "video_rate": state.video_rate.map(Bitrate::as_bits_per_second),
        "buffer_s": state.buffered.map(|time| time.as_secs_f64()),
        "playback": state.playback.and_then(name),
        "starvations": state.player.as_ref().map_or(0, |player| player.stalls),
    })
}

fn milliseconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64() * 1e3)
}

/// Word for the state of a player.
pub(super) fn name(playback: Playback) -> Option<&'static str> {
    match playback {
        Playback::Playing => Some("playing"),
        Playback::Starting => Some("starting"),
        Playback::Starved => Some("starved"),
        _ => None,
    }
}
