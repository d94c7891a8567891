//! [`Activity`]: a client's use of its connection; it decides when the connection ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::Runtime;
use tokio::sync::watch;

use crate::time;

/// Exchanges of a session, or the start of the time without any. Clones belong to the same session.
#[derive(Clone, Debug)]
pub struct Activity {
    runtime: Arc<dyn Runtime>,
    state: Arc<watch::Sender<ActivityState>>,
}

#[derive(Clone, Copy, Debug)]
struct ActivityState {
    /// Number of exchanges in progress.
    exchanges: usize,
    /// Number of these exchanges whose request has arrived.
    requested: usize,
    /// End of the last exchange, or the session's beginning.
    idle_since: Instant,
    /// End of the last exchange whose request had arrived, or the session's beginning.
    unrequested_since: Instant,
    /// True if a request has arrived.
    is_used: bool,
    /// True if the session has to make room for another client.
    is_evicted: bool,
}

impl Activity {
    /// Activity of a session that begins now.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        let now = runtime.now();
        let state = ActivityState {
            exchanges: 0,
            requested: 0,
            idle_since: now,
            unrequested_since: now,
            is_used: false,
            is_evicted: false,
        };
        Self {
            runtime,
            state: Arc::new(watch::Sender::new(state)),
        }
    }

    /// Present time of the session's runtime.
    pub(super) fn now(&self) -> Instant {
        self.runtime.now()
    }

    /// Begins the session again, because its handshake is complete.
    pub(super) fn restart(&self) {
        let now = self.now();
        self.state
            .send_modify(|state| (state.idle_since, state.unrequested_since) = (now, now));
    }

    /// Counts one more exchange, whose request has arrived, until the returned value is dropped. Returns `None` if the
    /// session is being closed to make room for another client.
    pub fn begin(&self) -> Option<CountedExchange> {
        let mut exchange = self.begin_arrival()?;
        exchange.requested().then_some(exchange)
    }

    /// Counts one more exchange, whose request is still arriving, like [`begin`](Self::begin). It does not prevent the
    /// session from making room.
    pub(super) fn begin_arrival(&self) -> Option<CountedExchange> {
        let begun = self.state.send_if_modified(|state| {
            state.exchanges += usize::from(!state.is_evicted);
            !state.is_evicted
        });
        begun.then(|| CountedExchange {
            activity: self.clone(),
            is_requested: false,
        })
    }

    /// Waits until no exchange is in progress, or the session is evicted. Requests still arriving after an eviction are
    /// not answered.
    pub(super) async fn without_exchanges(&self) {
        // `self` holds the sender, so it cannot be gone.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| state.exchanges == 0 || state.is_evicted)
            .await;
    }

    /// Idleness of the session, unless it has an exchange whose request has arrived.
    pub(super) fn idleness(&self) -> Option<Idleness> {
        let state = self.state.borrow();
        (state.requested == 0).then_some(Idleness {
            is_used: state.is_used,
            since: state.unrequested_since,
        })
    }

    /// Ends the session as if it had been idle for too long, if it has been [idle](Self::idleness) since `since`.
    /// Returns false if a request has arrived in the meantime.
    pub(super) fn evict(&self, since: Instant) -> bool {
        self.state.send_if_modified(|state| {
            let is_idle = state.requested == 0 && state.unrequested_since == since;
            state.is_evicted |= is_idle;
            is_idle
        })
    }

    /// Waits until there has been no exchange for `limit` (if any), or until the session is evicted.
    pub async fn expired(&self, limit: Option<Duration>) {
        let mut states = self.state.subscribe();
        loop {
            let state = *states.borrow_and_update();
            if state.is_evicted {
                return;
            }
            // Both end with the next change of the state; `self` holds the sender, so it cannot be gone.
            match limit.filter(|_| state.exchanges == 0) {
                None => {
                    let _ = states.changed().await;
                }
                Some(limit) => {
                    let idle = self.runtime.now().saturating_duration_since(state.idle_since);
                    let left = limit.saturating_sub(idle);
                    if time::timeout(&*self.runtime, left, states.changed())
                        .await
                        .is_err()
                    {
                        return;
                    }
                }
            }
        }
    }
}

/// Counts as one exchange until it is dropped.
#[derive(Debug)]
pub struct CountedExchange {
    activity: Activity,
    /// True if its request has arrived.
    is_requested: bool,
}

impl CountedExchange {
    /// Notes that the request has arrived, if it had not. Returns false if the session is being closed to make room for
    /// another client; then the request must not be answered.
    #[must_use]
    pub(super) fn requested(&mut self) -> bool {
        let is_requested = &mut self.is_requested;
        self.activity.state.send_if_modified(|state| {
            if !*is_requested && !state.is_evicted {
                *is_requested = true;
                state.requested += 1;
                state.is_used = true;
            }
            *is_requested
        })
    }
}

impl Drop for CountedExchange {
    fn drop(&mut self) {
        let now = self.activity.runtime.now();
        self.activity.state.send_modify(|state| {
            state.exchanges = state.exchanges.saturating_sub(1);
            state.idle_since = now;
            if self.is_requested {
                state.requested = state.requested.saturating_sub(1);
                state.unrequested_since = now;
            }
        });
    }
}

/// Idleness of a session: it may have to make room for another client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Idleness {
    /// True if a request has arrived.
    pub(super) is_used: bool,
    /// End of its last exchange whose request had arrived, or its beginning.
    pub(super) since: Instant,
}

#[cfg(test)]
pub(super) mod tests;
