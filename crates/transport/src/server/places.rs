//! [`Places`]: the connections that a server may have at once, and the choice of the one that makes room for another.
//!
//! Where all places are taken, an idle connection makes room: one of the same network, or of a network that has more
//! connections. So a network displaces only itself or a larger one.
//!
//! A client that keeps on connecting without a request would hold every place for as long as idle connections are left
//! alone. So a connection that has had no request yet makes room much sooner, for networks that have fewer connections
//! even after they were given its place: networks of the same size do not displace each other's in turns.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration, Instant};

use super::activity::Activity;
use super::clients::Refusal;

/// Bytes of an IPv6 address that name a site's network (RFC 4291 §2.5.4); the site chooses the others.
const IPV6_NETWORK: usize = 8;
/// Least time after which a connection without any request yet makes room for a smaller network. A client requests as
/// soon as it is connected, within a round trip over QUIC and within three over TCP and TLS.
const UNUSED: Duration = Duration::from_secs(2);

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a server sets all of them")]
pub struct PlaceLimits {
    /// Most connections at once.
    pub connections: usize,
    /// Most connections at once of one IPv4 address or one IPv6 /64 network.
    pub connections_per_address: usize,
    /// Least time without an exchange after which a connection makes room for another client. One that has had none yet
    /// makes room for a smaller network after 2 s.
    pub evict_after: Duration,
}

/// Address or network that has a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Network {
    V4(Ipv4Addr),
    /// The first 64 bits of an IPv6 address.
    V6([u8; IPV6_NETWORK]),
}

impl Network {
    /// Network of `address`. An IPv4 address that an IPv6 socket received is one.
    pub(super) fn of(address: IpAddr) -> Self {
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

/// Numbers of clients by network, without those that have none.
#[derive(Debug, Default)]
pub(super) struct NetworkCounts(BTreeMap<Network, usize>);

impl NetworkCounts {
    pub(super) fn of(&self, network: Network) -> usize {
        self.0.get(&network).copied().unwrap_or(0)
    }

    pub(super) fn total(&self) -> usize {
        self.0.values().sum()
    }

    pub(super) fn add(&mut self, network: Network) {
        *self.0.entry(network).or_default() += 1;
    }

    pub(super) fn remove(&mut self, network: Network) {
        if let Some(count) = self.0.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&network);
            }
        }
    }
}

/// A connection that takes a place.
#[derive(Debug)]
struct Occupied<T> {
    network: Network,
    activity: Activity,
    occupant: T,
}

/// Connections of a server, each with an occupant `T`.
#[derive(Debug)]
pub struct Places<T> {
    limits: PlaceLimits,
    /// By number, in the order in which they were established.
    connections: BTreeMap<u64, Occupied<T>>,
    by_network: NetworkCounts,
    /// Number of the next connection.
    next: u64,
    evicted: u64,
}

impl<T> Places<T> {
    /// Places that are all free.
    pub fn new(limits: PlaceLimits) -> Self {
        Self {
            limits,
            connections: BTreeMap::new(),
            by_network: NetworkCounts::default(),
            next: 0,
            evicted: 0,
        }
    }

    /// Number of places that are taken.
    pub fn taken(&self) -> usize {
        self.connections.len()
    }

    /// Number of connections that had to make room up to now.
    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    /// Occupants of all places, in the order in which they came.
    pub fn occupants(&self) -> impl Iterator<Item = &T> {
        self.connections.values().map(|connection| &connection.occupant)
    }

    /// Limit that one more connection from `address` would exceed.
    pub(super) fn reached(&self, address: IpAddr) -> Option<Refusal> {
        if self.by_network.of(Network::of(address)) >= self.limits.connections_per_address {
            Some(Refusal::Address)
        } else if self.connections.len() >= self.limits.connections {
            Some(Refusal::Connections)
        } else {
            None
        }
    }

    /// Checks for room for one more connection from `address`. Returns the connection that has to make room, if one has
    /// to, and the time since which it has been idle: the one idle for the longest of all that may be displaced.
    pub(super) fn room(&self, address: IpAddr, now: Instant) -> Result<Option<(Instant, u64)>, Refusal> {
        let Some(limit) = self.reached(address) else {
            return Ok(None);
        };
        let network = Network::of(address);
        let own = self.by_network.of(network);
        let candidates = self.connections.iter().filter_map(|(&number, client)| {
            let since = client.activity.idle_since()?;
            let idle = now.saturating_duration_since(since);
            let theirs = match limit {
                Refusal::Connections => self.by_network.of(client.network),
                _ => 0,
            };
            let is_idle = idle >= self.limits.evict_after && (client.network == network || theirs > own);
            let is_unused = idle >= UNUSED && theirs > own + 1 && client.activity.is_unused();
            (is_idle || is_unused).then_some((since, number))
        });
        candidates.min().map(Some).ok_or(limit)
    }

    /// Takes a place for a connection from `address` with `activity`. An idle connection may have to make room for it.
    /// Returns the connection's number, to [free](Self::free) its place.
    ///
    /// # Errors
    /// The limit that is reached.
    #[expect(
        clippy::too_many_arguments,
        reason = "the parts of a connection, and the time"
    )]
    pub fn take(
        &mut self,
        address: IpAddr,
        activity: Activity,
        occupant: T,
        now: Instant,
    ) -> Result<u64, Refusal> {
        // Ends: a connection that became busy meanwhile is idle no more.
        while let Some((since, number)) = self.room(address, now)? {
            self.evict(number, since);
        }
        let (network, number) = (Network::of(address), self.next);
        self.next += 1;
        self.by_network.add(network);
        let connection = Occupied {
            network,
            activity,
            occupant,
        };
        self.connections.insert(number, connection);
        Ok(number)
    }

    /// Has the connection `number` make room, if it has been idle since `since`.
    fn evict(&mut self, number: u64, since: Instant) {
        let is_evicted = |client: &Occupied<T>| client.activity.evict(since);
        if self.connections.get(&number).is_some_and(is_evicted) {
            self.free(number);
            self.evicted += 1;
        }
    }

    /// Frees the place of the connection `number`, which may have made room before.
    pub fn free(&mut self, number: u64) {
        if let Some(client) = self.connections.remove(&number) {
            self.by_network.remove(client.network);
        }
    }

    /// Returns true if no place is taken, nor counted for any network.
    #[cfg(test)]
    pub(super) fn are_all_free(&self) -> bool {
        self.connections.is_empty() && self.by_network.0.is_empty()
    }
}
