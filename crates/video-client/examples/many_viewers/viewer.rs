//! [`Viewer`]: fetches segments on a fixed schedule and reports their lateness.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{HeaderMap, StatusCode, header};
use playrate_transport::{Client, Connection, Target, time};
use quinn::{Runtime, TokioRuntime};

/// Counts over the viewers of a stage.
#[derive(Default)]
pub(crate) struct Seen {
    /// Lateness of segments due after all viewers had arrived.
    pub(crate) lateness: Vec<Duration>,
    /// Such segments that were incomplete when the next one was due.
    pub(crate) missed: u64,
    /// Viewers that missed at least one.
    pub(crate) stalled: u64,
    /// Viewers that were never admitted, and the number of refusals.
    pub(crate) turned_away: u64,
    pub(crate) refusals: u64,
    /// Viewers whose connection failed.
    pub(crate) failed: u64,
    pub(crate) watched: u64,
    /// Bytes received after all viewers had arrived until the stage's end, and in total.
    pub(crate) counted_bytes: u64,
    pub(crate) bytes: u64,
}

pub(crate) struct Viewer {
    pub(crate) client: Client,
    pub(crate) target: Target,
    pub(crate) path: String,
    pub(crate) segment: Duration,
    pub(crate) size: u64,
    pub(crate) patient: bool,
    /// Lateness counts from this time on.
    pub(crate) counts_from: Instant,
    pub(crate) ends: Instant,
    pub(crate) seen: Rc<RefCell<Seen>>,
}

/// Outcome of a request for a segment.
enum FetchOutcome {
    Whole,
    TurnedAway { again: Option<Duration> },
    Failed,
}

impl Viewer {
    pub(crate) async fn watch(self, begins: Instant) {
        sleep_until(begins).await;
        let Ok(connection) = self.client.connect(&self.target).await else {
            self.seen.borrow_mut().failed += 1;
            return;
        };
        let (mut due, mut stalled, mut inside) = (begins, false, false);
        while due < self.ends {
            sleep_until(due).await;
            // A segment that has not arrived by then counts as arriving then.
            let left = (self.ends + self.segment).saturating_duration_since(TokioRuntime.now());
            let fetched = time::timeout(&TokioRuntime, left, self.fetch(&connection)).await;
            let now = TokioRuntime.now();
            let mut seen = self.seen.borrow_mut();
            match fetched {
                Ok(FetchOutcome::Failed) => {
                    seen.failed += 1;
                    break;
                }
                Ok(FetchOutcome::TurnedAway { again }) => {
                    seen.refusals += 1;
                    due = now + again.unwrap_or(self.segment);
                    if !self.patient || due >= self.ends {
                        seen.turned_away += 1;
                        break;
                    }
                    continue;
                }
                Ok(FetchOutcome::Whole) | Err(time::Elapsed) => {}
            }
            seen.watched += u64::from(!std::mem::replace(&mut inside, true));
            let lateness = now.saturating_duration_since(due);
            if due >= self.counts_from {
                seen.lateness.push(lateness);
                if lateness > self.segment {
                    seen.missed += 1;
                    seen.stalled += u64::from(!std::mem::replace(&mut stalled, true));
                }
            }
            // A player with an empty buffer requests the next segment at once.
            due = now.max(due + self.segment);
        }
        connection.close();
    }

    async fn fetch(&self, connection: &Connection) -> FetchOutcome {
        let fields = HeaderMap::new();
        let asked = connection.get_range(&self.path, 0, Some(self.size - 1), fields);
        let Ok((response, mut body)) = asked.await else {
            return FetchOutcome::Failed;
        };
        let inside = response.status() == StatusCode::PARTIAL_CONTENT;
        loop {
            match body.chunk().await {
                Ok(Some(chunk)) if inside => {
                    let (length, now) = (chunk.len() as u64, TokioRuntime.now());
                    let mut seen = self.seen.borrow_mut();
                    seen.bytes += length;
                    if (self.counts_from..self.ends).contains(&now) {
                        seen.counted_bytes += length;
                    }
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return FetchOutcome::Failed,
            }
        }
        if inside {
            return FetchOutcome::Whole;
        }
        if response.status() != StatusCode::SERVICE_UNAVAILABLE {
            return FetchOutcome::Failed;
        }
        let again = response.headers().get(header::RETRY_AFTER);
        FetchOutcome::TurnedAway {
            again: again
                .and_then(|value| value.to_str().ok()?.parse().ok())
                .map(Duration::from_secs),
        }
    }
}

pub(crate) async fn sleep_until(at: Instant) {
    let runtime = TokioRuntime;
    time::sleep(&runtime, at.saturating_duration_since(runtime.now())).await;
}
