//! `/connections.json`: the present state of every connection over HTTP/3. Rates are in bit/s, sizes in
//! bytes; unknown values are null.

use std::time::Duration;

use serde_json::{Value, json};
use video_server::pages;
use video_server::serve::{ConnectionState, VideoServer};

use super::arm_totals::ArmTotals;

/// The server, its arms and its connections, `at` after the server started.
pub(super) fn describe(server: &VideoServer, totals_by_arm: &ArmTotals, at: Duration) -> Value {
    let (states, totals) = server.snapshot();
    let settings = server.settings();
    let controller = settings.controller.to_string();
    let arms = settings.arms.as_ref();
    let arms = arms.map_or_else(Vec::new, |arms| totals_by_arm.rows(arms, &controller));
    let connections: Vec<_> = states.iter().map(connection).collect();
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
    let mut described = pages::describe(state);
    described["id"] = state.id.into();
    described["peer"] = state.peer.to_string().into();
    described
}
