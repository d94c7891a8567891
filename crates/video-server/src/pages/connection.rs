//! The state of a connection as JSON, for pages. Rates are in bit/s, sizes in bytes; unknown values are null.

use std::time::Duration;

use playrate_cc::Playback;
use playrate_transport::telemetry::Sample;
use playrate_units::{Bitrate, Bytes};
use serde_json::{Value, json};

use crate::serve::ConnectionState;

/// Name of the protocol of every connection whose state is known, as `http::Version` writes it.
const PROTOCOL: &str = "HTTP/3.0";

/// The state of a connection, without its number and its client's address, so that its own client may read it.
pub fn describe(state: &ConnectionState) -> Value {
    let sample = state.sample.as_ref();
    let snapshot = sample.map(|sample| &sample.snapshot);
    let bytes = |get: fn(&Sample) -> Bytes| sample.map(|sample| get(sample).as_u64());
    json!({
        "protocol": PROTOCOL,
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
        "playback": state.playback.and_then(playback_name),
        "starvations": state.player.as_ref().map_or(0, |player| player.stalls),
    })
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
