//! [`Places`]: the limited connections of a server, and the choice of the one that makes room for another.
//!
//! If all places are taken, the connection that has been without a request in progress for the longest makes room for a
//! new client. Without any request yet, it ages [`UNUSED_AGES`] times as fast. So connections that request nothing
//! displace each other before players, from however many addresses they come. None makes room before its client had
//! time for a first request.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::activity::{Activity, Idleness};
use crate::error::Refusal;

/// Minimum time for which a connection stays without any request yet. A client sends one as soon as it is connected:
/// over QUIC together with the end of the handshake, which took a round trip or more, and over TLS within one. A client
/// with a longer round trip over TCP, or after a Retry, may be displaced if as many new connections as there are places
/// arrive within one round trip.
const FIRST_REQUEST: Duration = Duration::from_millis(100);
/// Number of times as fast as others that a connection without any request yet ages.
const UNUSED_AGES: u32 = 10;

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a server sets all of them")]
pub struct PlaceLimits {
    /// Maximum number of connections at once.
    pub connections: usize,
    /// Maximum number of connections without any request yet of one IPv4 address or one IPv6 /64 network.
    pub unused_per_address: usize,
    /// Minimum time without a request in progress after which a connection that had one makes room for another client.
    pub evict_after: Duration,
}

/// A connection that takes a place.
#[derive(Debug)]
struct Occupied<T> {
    /// `None` if no address is to be limited.
    network: Option<u128>,
    activity: Activity,
    occupant: T,
}

/// Connections of a server, each with an occupant `T`.
#[derive(Debug)]
pub struct Places<T> {
    limits: PlaceLimits,
    /// By their numbers, which increase from connection to connection.
    connections: BTreeMap<u64, Occupied<T>>,
    /// Number of the next connection.
    next: u64,
    evicted: u64,
}

impl<T: Default> Places<T> {
    /// Places that are all free.
    pub fn new(limits: PlaceLimits) -> Self {
        Self {
            limits,
            connections: BTreeMap::new(),
            next: 0,
            evicted: 0,
        }
    }

    /// Number of occupied places.
    pub fn taken(&self) -> usize {
        self.connections.len()
    }

    /// Number of connections that had to make room so far.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Occupants of all places, oldest first.
    pub fn occupants(&self) -> impl Iterator<Item = &T> {
        self.connections.values().map(|connection| &connection.occupant)
    }

    /// Occupant of the place of the connection `number`, which is its default at first. `None` if the connection
    /// has made room for another.
    pub fn occupant(&mut self, number: u64) -> Option<&mut T> {
        let connection = self.connections.get_mut(&number)?;
        Some(&mut connection.occupant)
    }

    /// The limit that one more connection from `address` would exceed, if any.
    pub(super) fn reached(&self, address: Option<IpAddr>) -> Option<Refusal> {
        let network = address.map(network);
        let all = self.connections.values();
        let own = all.filter(|connection| connection.network == network);
        let own_unused =
            own.filter(|connection| connection.activity.idleness().is_some_and(|idle| !idle.is_used));
        let most = self.limits.unused_per_address;
        if network.is_some() && own_unused.take(most).count() >= most {
            Some(Refusal::Address)
        } else {
            (self.connections.len() >= self.limits.connections).then_some(Refusal::Connections)
        }
    }

    /// Checks for room for one more connection from `address`. Returns the connection that has to make room, if any,
    /// and the start of its idleness.
    fn room(&self, address: Option<IpAddr>, now: Instant) -> Result<Option<(Instant, u64)>, Refusal> {
        let network = address.map(network);
        let is_own = |connection: &Occupied<T>| connection.network == network;
        let is_unused = |idle: &Idleness| !idle.is_used;
        let Some(limit) = self.reached(address) else {
            return Ok(None);
        };
        let candidates = self.connections.iter().filter_map(|(&number, connection)| {
            let idle = connection.activity.idleness()?;
            let (since, time) = (idle.since, now.saturating_duration_since(idle.since));
            let (least, age) = if idle.is_used {
                (self.limits.evict_after, time)
            } else {
                (FIRST_REQUEST, time * UNUSED_AGES)
            };
            let may_go = limit == Refusal::Connections || is_own(connection) && is_unused(&idle);
            (may_go && time >= least).then_some((age, Reverse(number), since))
        });
        let (_, number, since) = candidates.max().ok_or(limit)?;
        Ok(Some((since, number.0)))
    }

    /// Takes a place for a connection from `address` with `activity`. An idle connection may have to make room for it.
    /// Connections of many clients, from a proxy, have no address and no limit per address.
    /// Returns the connection's number, to [free](Self::free) its place.
    ///
    /// # Errors
    /// The limit that was reached.
    pub fn take(&mut self, address: impl Into<Option<IpAddr>>, activity: Activity) -> Result<u64, Refusal> {
        let address = address.into();
        // This loop ends: a connection that became busy in the meantime is no longer idle.
        while let Some((since, number)) = self.room(address, activity.now())? {
            if self.connections[&number].activity.evict(since) {
                self.free(number);
                self.evicted += 1;
            }
        }
        let connection = Occupied {
            network: address.map(network),
            activity,
            occupant: T::default(),
        };
        let number = self.next;
        self.next += 1;
        self.connections.insert(number, connection);
        Ok(number)
    }

    /// Frees the place of the connection `number`, unless it has made room before.
    pub fn free(&mut self, number: u64) {
        self.connections.remove(&number);
    }
}

/// Network of `address` with a limit of its own: an IPv4 address, or an IPv6 /64, since a site divides that up as it
/// likes (RFC 6177). IPv4 addresses received on an IPv6 socket count as IPv4.
fn network(address: IpAddr) -> u128 {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits() & (u128::MAX << 64),
    }
}

#[cfg(test)]
mod tests;
