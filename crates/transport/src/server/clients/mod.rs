//! [`Clients`]: the clients of a server, and the decision on each new one.
//!
//! The source address of a client's first packet may be forged, and a token that validates an address can be used more
//! than once. A handshake occupies the server until [`ServerOptions::request_timeout`](super::ServerOptions) at most,
//! so handshakes have their own limits and take no connection's place. Once [`MAX_UNVALIDATED`] are in progress, the
//! addresses of new clients are validated first (Retry, RFC 9000 §8.1.2); the server keeps no state for that.
//! Handshakes with validated addresses have separate limits.
//!
//! A client takes one of the server's [`Places`] once its handshake is complete.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::activity::Activity;
use super::networks::Network;
use super::options::ServerOptions;
use super::places::{PlaceLimits, Places};
use crate::error::Refusal;
use crate::log_limit::LogLimit;
use playrate_quinn::ConnectionController;

/// With this many handshakes in progress, a Retry validates the addresses of new clients. It costs an honest client one
/// round trip, so it is not used below this number.
const MAX_UNVALIDATED: usize = 64;
/// Maximum number of additional handshakes in progress, with clients whose address is validated.
const MAX_VALIDATED: usize = 256;
/// Maximum number of these with one [`Network`], so that one network does not occupy them all. Clients beyond it count
/// as if their addresses were not validated.
const MAX_VALIDATED_PER_NETWORK: usize = 16;
/// With fewer validated handshakes in progress, each network may have one, so no network locks out others.
const MAX_FIRST_OF_NETWORK: usize = 1_024;

/// Totals of a server's decisions on clients since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTotals {
    /// Number of Retry packets sent, each to validate a client's address.
    pub retried: u64,
    /// Number of clients refused because of a limit.
    pub refused: u64,
    /// Number of idle connections that were closed to make room for another client.
    pub evicted: u64,
    /// Number of handshakes that began and did not complete: the client left, was too slow, or spoke no common TLS.
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
    /// Number of handshakes in progress that count toward [`MAX_UNVALIDATED`].
    unvalidated: usize,
    /// Networks of the handshakes in progress that count toward [`MAX_VALIDATED`].
    validated: Vec<Network>,
    connections: Places<Arc<ConnectionController>>,
    /// Does not include the evictions, which `connections` counts.
    totals: ClientTotals,
    retry_log: LogLimit,
    refusal_log: LogLimit,
}

impl Clients {
    pub(super) fn new(options: &ServerOptions) -> Arc<Self> {
        let state = ClientsState {
            unvalidated: 0,
            validated: Vec::new(),
            connections: Places::new(PlaceLimits {
                connections: options.max_connections,
                connections_per_address: options.max_connections_per_address,
                few: PlaceLimits::few_of(options.max_connections),
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
        for control in self.state.lock().connections.occupants() {
            control.lift_window();
        }
    }

    /// Decides on a client at `peer`; unless `is_validated`, its address may be forged. Evicts no connection.
    pub(super) fn decide(self: &Arc<Self>, peer: SocketAddr, is_validated: bool, now: Instant) -> Decision {
        let network = Network::of(peer.ip());
        let mut state = self.state.lock();
        let limit = if is_validated {
            state.connections.room(peer.ip(), now).err()
        } else {
            state.connections.reached(peer.ip())
        };
        let place = match limit {
            Some(limit) => Err(limit),
            None => state.begin(network, is_validated).ok_or(Refusal::Handshakes),
        };
        match place {
            Ok(place) => Decision::Accepted(ClientPlace {
                clients: Arc::clone(self),
                peer,
                place,
                is_refused: false,
            }),
            Err(refusal) => {
                let refusal = is_validated.then_some(refusal);
                let line = state.turned_away(refusal, now);
                // A log that blocks must not hold up the other workers.
                drop(state);
                if let Some(line) = line {
                    line.log(peer);
                }
                refusal.map_or(Decision::Retry, |_| Decision::Refused)
            }
        }
    }
}

impl ClientsState {
    /// Counts one more handshake with a client of `network`, if a limit of handshakes has room for it.
    fn begin(&mut self, network: Network, is_validated: bool) -> Option<Place> {
        let most = match self.validated.len() {
            0..MAX_VALIDATED => MAX_VALIDATED_PER_NETWORK,
            MAX_VALIDATED..MAX_FIRST_OF_NETWORK => 1,
            _ => 0,
        };
        let of_network = self.validated.iter().filter(|&&other| other == network);
        if is_validated && of_network.count() < most {
            self.validated.push(network);
            Some(Place::Validated(network))
        } else if self.unvalidated < MAX_UNVALIDATED {
            self.unvalidated += 1;
            Some(Place::Unvalidated)
        } else {
            None
        }
    }

    /// Counts a refusal, or a Retry if `refusal` is `None`. Returns a line for the log if one is due.
    fn turned_away(&mut self, refusal: Option<Refusal>, now: Instant) -> Option<TurnedAway> {
        let (total, log) = match refusal {
            Some(_) => (&mut self.totals.refused, &mut self.refusal_log),
            None => (&mut self.totals.retried, &mut self.retry_log),
        };
        *total += 1;
        Some(TurnedAway {
            count: log.due(*total, now)?,
            refusal,
            handshakes: self.unvalidated + self.validated.len(),
            connections: self.connections.taken(),
        })
    }

    /// Frees `place` for another client.
    fn free(&mut self, place: Place) {
        match place {
            Place::Unvalidated => self.unvalidated -= 1,
            Place::Validated(network) => {
                let position = self.validated.iter().position(|&other| other == network);
                position.map(|position| self.validated.swap_remove(position));
            }
            Place::Connection(number) => self.connections.free(number),
        }
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

/// Kind of place that a client takes.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A handshake with an address that may be forged, or beyond the limits of validated ones.
    Unvalidated,
    /// A handshake with a validated address of this network.
    Validated(Network),
    /// The connection of this number.
    Connection(u64),
}

/// Counts one client until this is dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    clients: Arc<Clients>,
    peer: SocketAddr,
    place: Place,
    is_refused: bool,
}

impl ClientPlace {
    /// Counts the client as a connection with `activity` and `control`, because its handshake is complete and has
    /// validated its address. An idle connection may have to make room for it.
    ///
    /// # Errors
    /// The limit that was reached.
    pub(super) fn establish(
        &mut self,
        activity: &Activity,
        control: &Arc<ConnectionController>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let mut state = self.clients.state.lock();
        let (peer, control) = (self.peer.ip(), Arc::clone(control));
        let number = match state.connections.take(peer, activity.clone(), control, now) {
            Ok(number) => number,
            Err(refusal) => {
                let line = state.turned_away(Some(refusal), now);
                drop(state);
                self.is_refused = true;
                if let Some(line) = line {
                    line.log(self.peer);
                }
                return Err(refusal);
            }
        };
        state.free(self.place);
        self.place = Place::Connection(number);
        Ok(())
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut state = self.clients.state.lock();
        if !self.is_refused && !matches!(self.place, Place::Connection(_)) {
            state.totals.failed_handshakes += 1;
        }
        state.free(self.place);
    }
}

#[cfg(test)]
mod tests;
