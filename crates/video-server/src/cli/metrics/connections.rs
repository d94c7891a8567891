//! `/connections.json`: the present state of every connection over HTTP/3. Rates are in bit/s, sizes in
//! bytes; unknown values are null.

use serde_json::{Value, json};
use video_server::serve::{ConnectionState, VideoServer};

use super::counters::Metrics;

/// The server, its arms and its connections.
pub(super) fn describe(server: &VideoServer, metrics: &Metrics) -> Value {
    let (states, totals) = server.snapshot();
    let settings = server.settings();
    let controller = settings.controller.to_string();
    let arms = settings.arms.as_ref();
    let arms = arms.map_or_else(Vec::new, |arms| metrics.arm_totals().rows(arms, &controller));
    let connections: Vec<_> = states.iter().map(connection).collect();
    json!({
        "at_s": metrics.age().as_secs_f64(),
        "controller": controller,
        "arms": arms,
        "sessions": totals.sessions,
        "responses": totals.responses,
        "bytes": totals.bytes.as_u64(),
        "refused": server.admission().load().refused,
        "connections": connections,
        "tcp_connections": metrics.tcp().open(),
    })
}

fn connection(state: &ConnectionState) -> Value {
    let mut described = state.to_json();
    described["id"] = state.id.into();
    described["peer"] = state.peer.to_string().into();
    described
}
