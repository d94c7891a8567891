//! [`Clients`]: the clients of a server, and the decision on each new one.
//!
//! The source address of a client's first packet may be forged. Such a handshake occupies the server until
//! [`ServerOptions::request_timeout`](super::ServerOptions) at most, so these have a limit of their own and take no
//! connection's place. Once [`MAX_UNVALIDATED`] are in progress, or if there is no free place, the addresses of new
//! clients are validated first (Retry, RFC 9000 §8.1.2); the server keeps no state for that.
//!
//! A client takes one of the server's [`Places`] once its address is validated.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::activity::Activity;
use super::options::ServerOptions;
use super::places::{PlaceLimits, Places};
use crate::error::Refusal;
use crate::log_limit::LogLimit;
use playrate_quinn::ConnectionController;

/// With this many handshakes in progress, a Retry validates the addresses of new clients. It costs an honest client one
/// round trip, so it is not used below this number.
const MAX_UNVALIDATED: usize = 64;

/// Totals of a server's decisions on clients since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTotals {
    /// Number of Retry packets sent, each to validate a client's address.
    pub retried: u64,
    /// Number of clients refused because of a limit.
    pub refused: u64,
    /// Number of idle connections, and of handshakes with validated addresses, that made room for another client.
    pub evicted: u64,
    /// Number of handshakes that began and did not complete: the client left, was too slow, had to make room, or spoke
    /// no common version of TLS.
    pub failed_handshakes: u64,
}

/// Decision on a client that wants to connect.
#[derive(Debug)]
pub(super) enum Decision {
    /// It may continue with the handshake.
    Accepted(ClientPlace),
    /// Its address must be validated first.
    Retry,
    /// It is refused because of a limit.
    Refused,
}

/// Open connections and handshakes of one server, whose workers share it.
#[derive(Debug)]
pub(super) struct Clients {
    state: Mutex<ClientsState>,
}

#[derive(Debug)]
struct ClientsState {
    /// Number of handshakes in progress with addresses that may be forged.
    unvalidated: usize,
    /// Connections, and handshakes with validated addresses, which have no controller yet.
    connections: Places<Option<Arc<ConnectionController>>>,
    /// Does not include the evictions, which `connections` counts.
    totals: ClientTotals,
    retry_log: LogLimit,
    refusal_log: LogLimit,
}

impl Clients {
    pub(super) fn new(options: &ServerOptions) -> Arc<Self> {
        let state = ClientsState {
            unvalidated: 0,
            connections: Places::new(PlaceLimits {
                connections: options.max_connections,
                unused_per_address: options.max_connections_per_address,
                evict_after: options.evict_after,
            }),
            totals: ClientTotals::default(),
            retry_log: LogLimit::default(),
            refusal_log: LogLimit::default(),
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    pub(super) fn totals(&self) -> ClientTotals {
        let state = self.state.lock();
        ClientTotals {
            evicted: state.connections.evicted(),
            ..state.totals
        }
    }

    /// Lifts the congestion windows of all connections, directly before the endpoint is closed.
    pub(super) fn lift_windows(&self) {
        for control in self.state.lock().connections.occupants().flatten() {
            control.lift_window();
        }
    }

    /// Decides on a client at `peer` with `activity`; unless `is_validated`, its address may be forged, and no
    /// connection makes room for it.
    pub(super) fn decide(
        self: &Arc<Self>,
        peer: SocketAddr,
        is_validated: bool,
        activity: Activity,
    ) -> Decision {
        let now = activity.now();
        let mut state = self.state.lock();
        let number = if is_validated {
            state.connections.take(peer.ip(), activity.clone()).map(Some)
        } else if state.unvalidated < MAX_UNVALIDATED && state.connections.reached(Some(peer.ip())).is_none()
        {
            state.unvalidated += 1;
            Ok(None)
        } else {
            let line = state.turned_away(None, now);
            // A log that blocks must not hold up the other workers.
            drop(state);
            log(line, peer);
            return Decision::Retry;
        };
        match number {
            Ok(number) => Decision::Accepted(ClientPlace {
                clients: Arc::clone(self),
                peer,
                activity,
                number,
                is_complete: false,
            }),
            Err(refusal) => {
                let line = state.turned_away(Some(refusal), now);
                drop(state);
                log(line, peer);
                Decision::Refused
            }
        }
    }
}

impl ClientsState {
    /// Counts a refusal, or a Retry if `refusal` is `None`. Returns a line for the log if one is due.
    fn turned_away(&mut self, refusal: Option<Refusal>, now: Instant) -> Option<TurnedAway> {
        let (total, log) = match refusal {
            Some(_) => (&mut self.totals.refused, &mut self.refusal_log),
            None => (&mut self.totals.retried, &mut self.retry_log),
        };
        *total += 1;
        Some(TurnedAway {
            count: log.count(now)?,
            refusal,
            handshakes: self.unvalidated,
            connections: self.connections.taken(),
        })
    }
}

/// Line of the log about clients that were refused, or had to validate their address.
struct TurnedAway {
    count: u64,
    refusal: Option<Refusal>,
    handshakes: usize,
    connections: usize,
}

impl TurnedAway {
    fn log(self, peer: SocketAddr) {
        let (count, handshakes, connections) = (self.count, self.handshakes, self.connections);
        if let Some(refusal) = self.refusal {
            tracing::warn!(%peer, refused = count, handshakes, connections, "refused connections: {refusal}");
        } else {
            tracing::warn!(
                %peer,
                retried = count,
                handshakes,
                connections,
                "clients had to validate their address: many handshakes are in progress, or a limit is reached"
            );
        }
    }
}

fn log(line: Option<TurnedAway>, peer: SocketAddr) {
    if let Some(line) = line {
        line.log(peer);
    }
}

/// Counts one client until this is dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    clients: Arc<Clients>,
    peer: SocketAddr,
    activity: Activity,
    /// Number of its place; `None` during a handshake with an address that may be forged.
    number: Option<u64>,
    /// True once the handshake is complete.
    is_complete: bool,
}

impl ClientPlace {
    /// Activity of the client.
    pub(super) fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Counts the client as a connection with `control`, because its handshake is complete and has validated its
    /// address. An idle connection may have to make room for it.
    ///
    /// # Errors
    /// The limit that was reached.
    pub(super) fn establish(&mut self, control: &Arc<ConnectionController>) -> Result<(), Refusal> {
        self.is_complete = true;
        self.activity.restart();
        let mut state = self.clients.state.lock();
        let number = match self.number {
            Some(number) => number,
            None => match state.connections.take(self.peer.ip(), self.activity.clone()) {
                Ok(number) => number,
                Err(refusal) => {
                    let line = state.turned_away(Some(refusal), self.activity.now());
                    drop(state);
                    log(line, self.peer);
                    return Err(refusal);
                }
            },
        };
        state.unvalidated -= usize::from(self.number.replace(number).is_none());
        if let Some(occupant) = state.connections.occupant(number) {
            *occupant = Some(Arc::clone(control));
        }
        Ok(())
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut state = self.clients.state.lock();
        state.totals.failed_handshakes += u64::from(!self.is_complete);
        match self.number {
            Some(number) => state.connections.free(number),
            None => state.unvalidated -= 1,
        }
    }
}

#[cfg(test)]
mod tests;
