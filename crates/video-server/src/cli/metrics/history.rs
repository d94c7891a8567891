//! [`History`]: samples of the last minutes, so that the page shows the time before it was opened.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use playrate_transport::time;
use quinn::TokioRuntime;
use serde_json::Value;
use video_server::serve::{ConnectionState, VideoServer};

use super::Metrics;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of samples of a connection: three minutes, as many as the page shows.
const SAMPLES: usize = 180;
/// Number of connections with a history: the oldest ones, as many as the page lists. They take at most 5 MB.
const CONNECTIONS: usize = 100;

/// Samples of the last minutes as JSON, by the number of the connection.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<BTreeMap<u64, VecDeque<Box<str>>>>);

/// Names in `/connections.json` of the values whose past the page draws.
const DRAWN: [&str; 9] = [
    "sent",
    "delivered",
    "lost",
    "window",
    "in_flight",
    "rtt_ms",
    "min_rtt_ms",
    "video_rate",
    "buffer_s",
];

impl History {
    /// Adds the states at the time `at` since the server started. Forgets all other connections.
    fn add(&self, states: &[ConnectionState], at: Duration) {
        let states = states.get(..CONNECTIONS).unwrap_or(states);
        let mut all = self.0.lock();
        all.retain(|id, _| states.iter().any(|state| state.id == *id));
        for state in states {
            let samples = all
                .entry(state.id)
                .or_insert_with(|| VecDeque::with_capacity(SAMPLES));
            if samples.len() == SAMPLES {
                samples.pop_front();
            }
            let mut sample = state.to_json();
            if let Value::Object(values) = &mut sample {
                values.retain(|name, _| DRAWN.contains(&name.as_str()));
            }
            sample["t"] = at.as_secs_f64().into();
            samples.push_back(sample.to_string().into());
        }
    }

    /// The samples as JSON, the oldest first, in the units of `/connections.json`.
    pub(super) fn describe(&self) -> String {
        let all = self.0.lock();
        let connections = all.iter().map(|(id, samples)| {
            let samples: Vec<&str> = samples.iter().map(AsRef::as_ref).collect();
            format!("{{\"id\":{id},\"samples\":[{}]}}", samples.join(","))
        });
        format!(
            "{{\"connections\":[{}]}}",
            connections.collect::<Vec<_>>().join(",")
        )
    }
}

/// Adds the states of the connections of `server` to `history` at regular intervals, without end.
pub(super) async fn keep(history: Arc<History>, metrics: Arc<Metrics>, server: VideoServer) {
    loop {
        time::sleep(&TokioRuntime, INTERVAL).await;
        history.add(&server.connections(), metrics.age());
    }
}
