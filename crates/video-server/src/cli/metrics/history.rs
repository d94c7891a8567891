//! [`History`]: samples of the last minutes, so that the page shows what was before it was opened.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playrate_transport::time;
use playrate_units::{Bitrate, Bytes};
use quinn::TokioRuntime;
use serde_json::{Value, json};
use video_server::serve::{ConnectionState, VideoServer};

use super::Metrics;

/// Time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// Number of samples of a connection: three minutes, as many as the page shows.
const SAMPLES: usize = 180;
/// Number of connections with a history, as many as the page lists: the oldest ones. They take at most 2 MB.
const CONNECTIONS: usize = 100;

/// Samples of the last minutes, by the number of the connection.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<BTreeMap<u64, VecDeque<PastSample>>>);

/// State of a connection in the past, as far as the page draws it.
#[derive(Clone, Copy, Debug)]
struct PastSample {
    /// Time since the server started.
    at: Duration,
    sent: Bytes,
    delivered: Bytes,
    lost: Bytes,
    window: Option<Bytes>,
    in_flight: Option<Bytes>,
    rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    video_rate: Option<Bitrate>,
    buffered: Option<Duration>,
}

impl PastSample {
    fn new(state: &ConnectionState, at: Duration) -> Self {
        let sample = state.sample.as_ref();
        let snapshot = sample.map(|sample| &sample.snapshot);
        Self {
            at,
            sent: sample.map_or(Bytes::ZERO, |sample| sample.sent),
            delivered: sample.map_or(Bytes::ZERO, |sample| sample.delivered),
            lost: sample.map_or(Bytes::ZERO, |sample| sample.lost),
            window: snapshot.map(|snapshot| snapshot.window),
            in_flight: sample.map(|sample| sample.bytes_in_flight),
            rtt: sample.and_then(|sample| sample.smoothed_rtt),
            min_rtt: snapshot.and_then(|snapshot| snapshot.min_rtt),
            video_rate: state.video_rate,
            buffered: state.buffered,
        }
    }

    fn describe(&self) -> Value {
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        json!({
            "t": self.at.as_secs_f64(),
            "sent": self.sent.as_u64(),
            "delivered": self.delivered.as_u64(),
            "lost": self.lost.as_u64(),
            "window": self.window.map(Bytes::as_u64),
            "in_flight": self.in_flight.map(Bytes::as_u64),
            "rtt_ms": self.rtt.map(milliseconds),
            "min_rtt_ms": self.min_rtt.map(milliseconds),
            "video_rate": self.video_rate.map(Bitrate::as_bits_per_second),
            "buffer_s": self.buffered.map(|time| time.as_secs_f64()),
        })
    }
}

impl History {
    /// Adds the states `at` a time since the server started. Connections that are not among them are forgotten.
    fn add(&self, states: &[ConnectionState], at: Duration) {
        let states = states.get(..CONNECTIONS).unwrap_or(states);
        let mut all = self.lock();
        all.retain(|id, _| states.iter().any(|state| state.id == *id));
        for state in states {
            let samples = all.entry(state.id).or_default();
            if samples.len() == SAMPLES {
                samples.pop_front();
            }
            samples.push_back(PastSample::new(state, at));
        }
    }

    /// The samples as JSON, the oldest first, in the units of `/connections.json`.
    pub(super) fn describe(&self) -> Value {
        // Copied, so that JSON is not written under the lock.
        let all = self.lock().clone();
        let connections: Vec<_> = all
            .iter()
            .map(|(id, samples)| {
                let samples: Vec<_> = samples.iter().map(PastSample::describe).collect();
                json!({ "id": id, "samples": samples })
            })
            .collect();
        json!({ "connections": connections })
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, VecDeque<PastSample>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the states of the connections of `server` to `history` at regular intervals, without end.
pub(super) async fn keep(history: Arc<History>, metrics: Arc<Metrics>, server: VideoServer) {
    loop {
        time::sleep(&TokioRuntime, INTERVAL).await;
        history.add(&server.connections(), metrics.age());
    }
}
