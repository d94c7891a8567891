//! [`Clients`]: the clients of a server, and the decision on every further one.
//!
//! The source address of a client's first packet may be forged, and a token that validates an address can be used more
//! than once. A handshake occupies the server until [`ServerOptions::request_timeout`](super::ServerOptions) at most,
//! so handshakes are limited by themselves and take no connection's place: once [`MAX_UNVALIDATED`] are in progress,
//! the addresses of further clients are validated first (Retry, RFC 9000 §8.1.2), for which the server keeps no state.
//! Handshakes with validated addresses have limits of their own.
//!
//! A client takes a place once its handshake is done. Where all places are taken, an idle connection makes room: one of
//! the same network, or of a network that has more connections. So a network displaces only itself or a larger one.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::ServerOptions;
use super::activity::Activity;
use crate::log_limit::LogLimit;
use playrate_quinn::ConnectionController;

/// Number of handshakes in progress from which on a Retry validates the addresses of further clients. It costs an
/// honest client one round trip, so there is none below.
const MAX_UNVALIDATED: usize = 64;
/// Number of further handshakes in progress at most, with clients whose address is validated.
const MAX_VALIDATED: usize = 256;
/// Number of these with one [`Network`], so that one does not occupy them all. Beyond it a client counts as one whose
/// address is not validated.
const MAX_VALIDATED_PER_NETWORK: usize = 16;
/// Bytes of an IPv6 address that name a site's network (RFC 4291 §2.5.4); the site chooses the others.
const IPV6_NETWORK: usize = 8;

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
}

/// Address or network that has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Network {
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address.
    V6([u8; IPV6_NETWORK]),
}

impl Network {
    /// Network of `address`. An IPv4 address that an IPv6 socket received is one.
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let mut network = [0; IPV6_NETWORK];
                for (to, from) in network.iter_mut().zip(address.octets()) {
                    *to = from;
                }
                Self::V6(network)
            }
        }
    }
}

/// Limit because of which a server refused a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The server has as many connections as it may have.
    Connections,
    /// The client's network has as many connections as it may have.
    Address,
    /// The client's address is validated, and too many handshakes with such clients are in progress.
    Handshakes,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Connections => "too many connections are open",
            Self::Address => "too many connections are open from its address",
            Self::Handshakes => "too many handshakes are in progress",
        })
    }
}

/// Decision on a client that wants to connect.
#[derive(Debug)]
pub(super) enum Decision {
    /// It may go on with the handshake.
    Accepted(ClientPlace),
    /// Its address is to be validated first.
    Retry,
    /// It is refused because of a limit.
    Refused,
}

/// Open connections and handshakes of one endpoint.
#[derive(Debug)]
pub(super) struct Clients {
    /// Most connections at once.
    max: usize,
    /// Most connections of one [`Network`] at once.
    max_per_network: usize,
    /// Least time without an exchange after which a connection makes room for another client.
    evict_after: Duration,
    state: Mutex<ClientsState>,
}

#[derive(Debug, Default)]
struct ClientsState {
    /// Number of handshakes in progress that count toward [`MAX_UNVALIDATED`].
    unvalidated: usize,
    /// Handshakes in progress that count toward [`MAX_VALIDATED`].
    validated: NetworkCounts,
    /// Connections by number, in the order in which they were established.
    connections: BTreeMap<u64, ClientConnection>,
    by_network: NetworkCounts,
    /// Number of the next connection.
    next: u64,
    totals: ClientTotals,
    retry_log: LogLimit,
    refusal_log: LogLimit,
}

#[derive(Debug)]
struct ClientConnection {
    network: Network,
    activity: Activity,
    control: Arc<ConnectionController>,
}

/// Numbers of clients by network, without those that have none.
#[derive(Debug, Default)]
struct NetworkCounts(BTreeMap<Network, usize>);

impl NetworkCounts {
    fn of(&self, network: Network) -> usize {
        self.0.get(&network).copied().unwrap_or(0)
    }

    fn total(&self) -> usize {
        self.0.values().sum()
    }

    fn add(&mut self, network: Network) {
        *self.0.entry(network).or_default() += 1;
    }

    fn remove(&mut self, network: Network) {
        if let Some(count) = self.0.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&network);
            }
        }
    }
}

impl Clients {
    pub(super) fn new(options: &ServerOptions) -> Arc<Self> {
        Arc::new(Self {
            max: options.max_connections,
            max_per_network: options.max_connections_per_address,
            evict_after: options.evict_after,
            state: Mutex::default(),
        })
    }

    pub(super) fn totals(&self) -> ClientTotals {
        self.state().totals
    }

    /// Lifts the congestion windows of all connections, right before the endpoint is closed.
    pub(super) fn lift_windows(&self) {
        for client in self.state().connections.values() {
            client.control.lift_window();
        }
    }

    /// Decides on a client at `peer`, whose address `is_validated` or may be forged. Evicts no connection.
    pub(super) fn decide(self: &Arc<Self>, peer: SocketAddr, is_validated: bool, now: Instant) -> Decision {
        let network = Network::of(peer.ip());
        let mut state = self.state();
        let limit = if is_validated {
            self.room(&state, network, now).err()
        } else {
            self.reached(&state, network)
        };
        let place = match limit {
            Some(limit) => Err(limit),
            None => state.begin(network, is_validated).ok_or(Refusal::Handshakes),
        };
        let (decision, warning) = match place {
            Ok(place) => {
                let clients = Arc::clone(self);
                let place = ClientPlace { clients, peer, place };
                (Decision::Accepted(place), None)
            }
            Err(refusal) if is_validated => (Decision::Refused, state.refused(refusal, peer, now)),
            Err(_) => (Decision::Retry, state.retried(peer, now)),
        };
        drop(state);
        if let Some(warning) = warning {
            warning.log();
        }
        decision
    }

    /// Limit that one more connection of `network` would exceed.
    fn reached(&self, state: &ClientsState, network: Network) -> Option<Refusal> {
        if state.by_network.of(network) >= self.max_per_network {
            Some(Refusal::Address)
        } else if state.connections.len() >= self.max {
            Some(Refusal::Connections)
        } else {
            None
        }
    }

    /// Checks for room for one more connection of `network`. Returns the connection that has to make room, if one has
    /// to, and the time since which it has been idle. It is the one idle for the longest of all that may be displaced,
    /// and has been for [`evict_after`](Self::evict_after) at least.
    fn room(
        &self,
        state: &ClientsState,
        network: Network,
        now: Instant,
    ) -> Result<Option<(Instant, u64)>, Refusal> {
        let Some(limit) = self.reached(state, network) else {
            return Ok(None);
        };
        let own = state.by_network.of(network);
        let candidates = state.connections.iter().filter(|(_, client)| {
            client.network == network
                || (limit == Refusal::Connections && state.by_network.of(client.network) > own)
        });
        let idle = candidates.filter_map(|(&number, client)| {
            let since = client.activity.idle_since()?;
            (now.saturating_duration_since(since) >= self.evict_after).then_some((since, number))
        });
        idle.min().map(Some).ok_or(limit)
    }

    /// Has idle connections make room for one of `network` if a limit is reached.
    fn make_room(&self, state: &mut ClientsState, network: Network, now: Instant) -> Result<(), Refusal> {
        // Ends: a connection that became busy meanwhile is idle no more.
        while let Some((since, number)) = self.room(state, network, now)? {
            state.evict(number, since);
        }
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, ClientsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientsState {
    /// Counts one more handshake with a client of `network`, if a limit of handshakes has room for it.
    fn begin(&mut self, network: Network, is_validated: bool) -> Option<Place> {
        if is_validated
            && self.validated.total() < MAX_VALIDATED
            && self.validated.of(network) < MAX_VALIDATED_PER_NETWORK
        {
            self.validated.add(network);
            Some(Place::Validated(network))
        } else if self.unvalidated < MAX_UNVALIDATED {
            self.unvalidated += 1;
            Some(Place::Unvalidated)
        } else {
            None
        }
    }

    /// Counts a Retry; returns the warning that is due.
    fn retried(&mut self, peer: SocketAddr, now: Instant) -> Option<Warning> {
        self.totals.retried += 1;
        let count = self.retry_log.due(self.totals.retried, now)?;
        Some(self.warning(peer, count, None))
    }

    /// Counts a refusal; returns the warning that is due.
    fn refused(&mut self, refusal: Refusal, peer: SocketAddr, now: Instant) -> Option<Warning> {
        self.totals.refused += 1;
        let count = self.refusal_log.due(self.totals.refused, now)?;
        Some(self.warning(peer, count, Some(refusal)))
    }

    fn warning(&self, peer: SocketAddr, count: u64, refusal: Option<Refusal>) -> Warning {
        Warning {
            peer,
            count,
            refusal,
            handshakes: self.unvalidated + self.validated.total(),
            connections: self.connections.len(),
        }
    }

    /// Has the connection `number` make room, if it has been idle since `since`.
    fn evict(&mut self, number: u64, since: Instant) {
        let is_evicted = |client: &ClientConnection| client.activity.evict(since);
        if self.connections.get(&number).is_some_and(is_evicted) {
            self.remove(number);
            self.totals.evicted += 1;
        }
    }

    /// Forgets the connection `number`, which may have made room before.
    fn remove(&mut self, number: u64) {
        if let Some(client) = self.connections.remove(&number) {
            self.by_network.remove(client.network);
        }
    }

    /// Forgets what takes `place`.
    fn free(&mut self, place: Place) {
        match place {
            Place::Unvalidated => self.unvalidated -= 1,
            Place::Validated(network) => self.validated.remove(network),
            Place::Connection(number) => self.remove(number),
        }
    }
}

/// Log line on decisions, written when the lock is free again.
#[derive(Debug)]
struct Warning {
    peer: SocketAddr,
    /// Number of decisions since the last such line.
    count: u64,
    /// `None` for a Retry.
    refusal: Option<Refusal>,
    handshakes: usize,
    connections: usize,
}

impl Warning {
    fn log(self) {
        let Self {
            peer,
            count,
            refusal,
            handshakes,
            connections,
        } = self;
        if let Some(refusal) = refusal {
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
    /// A handshake with an address that may be forged, or with one beyond the limits of validated ones.
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
}

impl ClientPlace {
    /// Counts the client as a connection with `activity` and `control`, since its handshake is done and has validated
    /// its address. An idle connection may have to make room for it.
    ///
    /// # Errors
    /// The limit that is reached.
    pub(super) fn establish(
        &mut self,
        activity: &Activity,
        control: &Arc<ConnectionController>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let network = Network::of(self.peer.ip());
        let mut state = self.clients.state();
        if let Err(refusal) = self.clients.make_room(&mut state, network, now) {
            let warning = state.refused(refusal, self.peer, now);
            drop(state);
            if let Some(warning) = warning {
                warning.log();
            }
            return Err(refusal);
        }
        let number = state.next;
        state.next += 1;
        let client = ClientConnection {
            network,
            activity: activity.clone(),
            control: Arc::clone(control),
        };
        state.connections.insert(number, client);
        state.by_network.add(network);
        state.free(self.place);
        self.place = Place::Connection(number);
        Ok(())
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        self.clients.state().free(self.place);
    }
}

#[cfg(test)]
mod tests;
