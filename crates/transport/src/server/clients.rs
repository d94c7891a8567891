//! [`Clients`]: the clients of a server, and the decision on every further one.
//!
//! The source address of a client's first packet may be forged. A handshake with such an address occupies the server
//! until [`ServerOptions::request_timeout`](super::ServerOptions) at most, so handshakes are limited by themselves and
//! take no connection's place: once [`MAX_UNPROVED`] are in progress, further clients have to prove their address
//! first (Retry, RFC 9000 §8.1.2), for which the server keeps no state.
//!
//! Where all places are taken, a connection that does nothing makes room for a client that proved its address.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::activity::Activity;
use crate::log_limit::LogLimit;
use playrate_quinn::ConnectionController;

/// Number of handshakes in progress with unproved addresses from which on further clients are sent a Retry. It costs an
/// honest client one round trip, so there is none below.
const MAX_UNPROVED: usize = 64;
/// Bytes of an IPv6 address that name a site's network (RFC 4291 §2.5.4); the site chooses the others.
const IPV6_NETWORK: usize = 8;

/// Least time without an exchange after which a connection makes room for another client: longer than a page or player
/// takes between two requests while it needs data.
const MIN_IDLE: Duration = Duration::from_secs(1);

/// Totals of a server's decisions on clients since it was started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientTotals {
    /// Number of Retry packets sent, to clients that had to prove their address.
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

/// Limit because of which a client is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The server has as many connections as it may have.
    Connections,
    /// The client's network has as many connections as it may have.
    Address,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Connections => "too many connections are open",
            Self::Address => "too many connections are open from its address",
        })
    }
}

/// Decision on a client that wants to connect.
#[derive(Debug)]
pub(super) enum Decision {
    /// It may go on with the handshake.
    Accepted(ClientPlace),
    /// It has to prove its address first.
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
    state: Mutex<ClientsState>,
}

#[derive(Debug, Default)]
struct ClientsState {
    /// Number of handshakes in progress with unproved addresses.
    unproved: usize,
    /// Clients whose address is proved, by number: connections, and handshakes after a Retry.
    proved: BTreeMap<u64, ProvedClient>,
    /// Number of them by network, from 1 on.
    by_network: BTreeMap<Network, usize>,
    /// Number of the next client.
    next: u64,
    totals: ClientTotals,
    retry_log: LogLimit,
    refusal_log: LogLimit,
}

#[derive(Debug)]
struct ProvedClient {
    network: Network,
    /// `None` during its handshake.
    session: Option<ClientSession>,
}

#[derive(Debug)]
struct ClientSession {
    activity: Activity,
    control: Arc<ConnectionController>,
}

impl Clients {
    pub(super) fn new(max: usize, max_per_network: usize) -> Arc<Self> {
        Arc::new(Self {
            max,
            max_per_network,
            state: Mutex::default(),
        })
    }

    pub(super) fn totals(&self) -> ClientTotals {
        self.state().totals
    }

    /// Has the windows of all connections give way to their closes, right before the endpoint is closed.
    pub(super) fn closing(&self) {
        let state = self.state();
        for session in state.proved.values().filter_map(|client| client.session.as_ref()) {
            session.control.closing();
        }
    }

    /// Decides on a client at `peer`, whose address `is_proved` or may be forged.
    pub(super) fn decide(self: &Arc<Self>, peer: SocketAddr, is_proved: bool, now: Instant) -> Decision {
        let network = Network::of(peer.ip());
        let mut state = self.state();
        let place = if is_proved {
            match self.take(&mut state, network, None, now) {
                Ok(number) => Place::Proved(number),
                Err(refusal) => {
                    state.refused(refusal, peer, now);
                    return Decision::Refused;
                }
            }
        } else if state.unproved >= MAX_UNPROVED || self.room(&state, network).is_err() {
            state.retried(peer, now);
            return Decision::Retry;
        } else {
            state.unproved += 1;
            Place::Unproved(network)
        };
        drop(state);
        Decision::Accepted(ClientPlace {
            clients: Arc::clone(self),
            place,
        })
    }

    /// Checks the limits for one more connection of `network`.
    fn room(&self, state: &ClientsState, network: Network) -> Result<(), Refusal> {
        let of_network = state.by_network.get(&network).copied().unwrap_or(0);
        if of_network >= self.max_per_network {
            Err(Refusal::Address)
        } else if state.proved.len() >= self.max {
            Err(Refusal::Connections)
        } else {
            Ok(())
        }
    }

    /// Counts one more connection of `network`, for which an idle one may have to make room; returns its number.
    fn take(
        &self,
        state: &mut ClientsState,
        network: Network,
        session: Option<ClientSession>,
        now: Instant,
    ) -> Result<u64, Refusal> {
        match self.room(state, network) {
            Err(Refusal::Connections) if state.evict(now) => {}
            room => room?,
        }
        let number = state.next;
        state.next += 1;
        state.proved.insert(number, ProvedClient { network, session });
        *state.by_network.entry(network).or_default() += 1;
        Ok(number)
    }

    fn state(&self) -> MutexGuard<'_, ClientsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientsState {
    fn retried(&mut self, peer: SocketAddr, now: Instant) {
        self.totals.retried += 1;
        if let Some(retried) = self.retry_log.due(self.totals.retried, now) {
            tracing::warn!(
                %peer,
                retried,
                handshakes = self.unproved,
                connections = self.proved.len(),
                "clients had to prove their address: many handshakes are in progress, or a limit is reached"
            );
        }
    }

    fn refused(&mut self, refusal: Refusal, peer: SocketAddr, now: Instant) {
        self.totals.refused += 1;
        if let Some(refused) = self.refusal_log.due(self.totals.refused, now) {
            tracing::warn!(%peer, refused, connections = self.proved.len(), "refused connections: {refusal}");
        }
    }

    /// Has the connection that has been idle for the longest make room, if one has been so for long enough.
    fn evict(&mut self, now: Instant) -> bool {
        let idle = self.proved.iter().filter_map(|(&number, client)| {
            let since = client.session.as_ref()?.activity.idle_since()?;
            (now.saturating_duration_since(since) >= MIN_IDLE).then_some((since, number))
        });
        let Some((_, number)) = idle.min() else {
            return false;
        };
        if let Some(session) = self.remove(number).and_then(|client| client.session) {
            session.activity.evict();
        }
        self.totals.evicted += 1;
        true
    }

    /// Forgets the connection `number`.
    fn remove(&mut self, number: u64) -> Option<ProvedClient> {
        let client = self.proved.remove(&number)?;
        let network = client.network;
        if let Some(count) = self.by_network.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.by_network.remove(&network);
            }
        }
        Some(client)
    }
}

/// Kind of place that a client takes.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// A handshake with an address that may be forged.
    Unproved(Network),
    /// The connection of this number.
    Proved(u64),
}

/// Counts one client until this is dropped.
#[derive(Debug)]
pub(super) struct ClientPlace {
    clients: Arc<Clients>,
    place: Place,
}

impl ClientPlace {
    /// Counts the client, which is at `peer`, as a connection with `activity` and `control`, since its handshake is
    /// done and has proved its address.
    ///
    /// # Errors
    /// The limit that was reached meanwhile.
    pub(super) fn establish(
        &mut self,
        peer: SocketAddr,
        activity: &Activity,
        control: &Arc<ConnectionController>,
        now: Instant,
    ) -> Result<(), Refusal> {
        let mut state = self.clients.state();
        let session = Some(ClientSession {
            activity: activity.clone(),
            control: Arc::clone(control),
        });
        let network = match self.place {
            Place::Unproved(network) => network,
            Place::Proved(number) => {
                if let Some(client) = state.proved.get_mut(&number) {
                    client.session = session;
                }
                return Ok(());
            }
        };
        match self.clients.take(&mut state, network, session, now) {
            Ok(number) => {
                state.unproved -= 1;
                self.place = Place::Proved(number);
                Ok(())
            }
            Err(refusal) => {
                state.refused(refusal, peer, now);
                Err(refusal)
            }
        }
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        let mut state = self.clients.state();
        match self.place {
            Place::Unproved(_) => state.unproved -= 1,
            Place::Proved(number) => {
                state.remove(number);
            }
        }
    }
}

#[cfg(test)]
mod tests;
