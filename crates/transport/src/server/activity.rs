//! [`Activity`]: the use that a client makes of its connection, which decides when that ends.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn::Runtime;
use tokio::sync::watch;

use crate::time;

/// Exchanges of a session, or the time since which it has had none. Clones are of the same session.
#[derive(Clone, Debug)]
pub struct Activity {
    runtime: Arc<dyn Runtime>,
    state: Arc<watch::Sender<ActivityState>>,
}

#[derive(Clone, Copy, Debug)]
struct ActivityState {
    /// Number of exchanges in progress.
    exchanges: usize,
    /// End of the last exchange, or the session's beginning.
    idle_since: Instant,
    /// True if there has been an exchange.
    is_used: bool,
    /// True if the session has to make room for another client.
    is_evicted: bool,
}

impl Activity {
    /// Activity of a session that begins now.
    pub fn new(runtime: Arc<dyn Runtime>) -> Self {
        let state = ActivityState {
            exchanges: 0,
            idle_since: runtime.now(),
            is_used: false,
            is_evicted: false,
        };
        Self {
            runtime,
            state: Arc::new(watch::Sender::new(state)),
        }
    }

    /// Counts one more exchange, until the returned value is dropped. Returns `None` if the session is being
    /// closed to make room for another client.
    pub fn begin(&self) -> Option<CountedExchange> {
        let begun = self.state.send_if_modified(|state| {
            state.exchanges += usize::from(!state.is_evicted);
            state.is_used |= !state.is_evicted;
            !state.is_evicted
        });
        begun.then(|| CountedExchange(self.clone()))
    }

    /// Waits until no exchange is in progress.
    pub(super) async fn without_exchanges(&self) {
        // The sender is `self`, so it cannot be gone.
        let _ = self
            .state
            .subscribe()
            .wait_for(|state| state.exchanges == 0)
            .await;
    }

    /// Time since which there has been no exchange, if there is none.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let state = *self.state.borrow();
        (state.exchanges == 0).then_some(state.idle_since)
    }

    /// Returns true if there has been no exchange yet.
    pub(super) fn is_unused(&self) -> bool {
        !self.state.borrow().is_used
    }

    /// Ends the session as if it had been idle for too long, if it has been [idle since](Self::idle_since) `since`.
    /// Returns false if an exchange has begun meanwhile.
    pub(super) fn evict(&self, since: Instant) -> bool {
        self.state.send_if_modified(|state| {
            let is_idle = state.exchanges == 0 && state.idle_since == since;
            state.is_evicted |= is_idle;
            is_idle
        })
    }

    /// Waits until there has been no exchange for `limit`, if there is one, or the session is evicted.
    pub async fn expired(&self, limit: Option<Duration>) {
        let mut states = self.state.subscribe();
        loop {
            let state = *states.borrow_and_update();
            if state.is_evicted {
                return;
            }
            // Both end with the next change of the state; the sender is `self`, so it cannot be gone.
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
pub struct CountedExchange(Activity);

impl Drop for CountedExchange {
    fn drop(&mut self) {
        let now = self.0.runtime.now();
        self.0.state.send_modify(|state| {
            state.exchanges = state.exchanges.saturating_sub(1);
            state.idle_since = now;
        });
    }
}

#[cfg(test)]
mod tests;
