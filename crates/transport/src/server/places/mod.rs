//! [`Places`]: the connections that a server may have at once, and the choice of the one that makes room for another.
//!
//! Where all places are taken, a connection without a request in progress makes room:
//!
//! 1. Of a network that has more connections than the newcomer's, where the two differ first (IPv4 /24 or IPv6 /48,
//!    then /56, then address or /64): one that has had no request for [`UNUSED`].
//! 2. Of such a network with more than a [few](PlaceLimits::few) connections, and two more than the newcomer's:
//!    any one.
//! 3. Of such a network, or of the newcomer's own: one that has been idle for [`PlaceLimits::evict_after`].
//!
//! Among these a connection without any request goes first, then one of the largest network, then the one that has been
//! idle for the longest.
//!
//! So a network that holds many places with a small request now and then locks no smaller one out, and networks of the
//! same size do not displace each other's in turns.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::activity::{Activity, Idleness};
use super::networks::{LEVELS, Network};
use crate::error::Refusal;

/// Least time after which a connection without any request yet makes room for a network with fewer. A client requests
/// as soon as it is connected, within a round trip over QUIC and within three over TCP and TLS.
const UNUSED: Duration = Duration::from_secs(2);

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a server sets all of them")]
pub struct PlaceLimits {
    /// Most connections at once.
    pub connections: usize,
    /// Most connections at once of one IPv4 address or one IPv6 /64 network.
    pub connections_per_address: usize,
    /// Most connections of a network whose players stay though a smaller one wants a place; see
    /// [`few_of`](Self::few_of).
    pub few: usize,
    /// Least time without an exchange after which a connection makes room for another client. It makes room at
    /// once for smaller networks if its own has more than [`few`](Self::few).
    pub evict_after: Duration,
}

impl PlaceLimits {
    /// A 32nd of `connections`, and at least the eight of a household.
    pub fn few_of(connections: usize) -> usize {
        (connections / 32).max(8)
    }
}

/// A connection that takes a place.
#[derive(Debug)]
struct Occupied<T> {
    networks: [Network; LEVELS],
    /// Its number, in the order in which connections were established.
    number: u64,
    activity: Activity,
    occupant: T,
}

/// Least times for which a connection has to be idle to make room, once it has had a request and before.
#[derive(Clone, Copy, Debug)]
struct LeastIdle {
    used: Duration,
    unused: Duration,
}

/// A connection that may make room; the greatest of all does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// True if it has had no request for longer than a client takes to send one.
    is_unused: bool,
    /// Numbers of connections of its networks.
    sizes: [usize; LEVELS],
    idle_since: Reverse<Instant>,
    number: Reverse<u64>,
}

/// A search for the connection that makes room for one of a newcomer.
#[derive(Debug)]
struct Search {
    /// Networks of the newcomer, and their numbers of connections.
    networks: [Network; LEVELS],
    sizes: [usize; LEVELS],
    now: Instant,
    evict_after: Duration,
    few: usize,
    best: Option<Candidate>,
}

/// Networks that the connections of one step of a search share.
#[derive(Clone, Copy, Debug, Default)]
struct Shared {
    /// Number of these networks, which is the next level to search.
    levels: usize,
    /// Numbers of connections of these networks.
    sizes: [usize; LEVELS],
    /// `None` if all of them are the newcomer's as well.
    least_idle: Option<LeastIdle>,
}

impl Search {
    /// Searches among `connections`, which have the networks `shared` in common.
    fn visit<T>(&mut self, connections: &[Occupied<T>], shared: Shared) {
        let level = shared.levels;
        let Some(&own) = self.networks.get(level) else {
            return self.visit_site(connections, shared);
        };
        for site in connections.chunk_by(|one, next| one.networks[level] == next.networks[level]) {
            let mut shared = shared;
            shared.levels += 1;
            shared.sizes[level] = site.len();
            if shared.least_idle.is_none() && site[0].networks[level] != own {
                shared.least_idle = self.least_idle(site.len(), self.sizes[level]);
                if shared.least_idle.is_none() {
                    continue;
                }
            }
            // A smaller network has none that goes first, unless that is one without a request.
            let smaller = |best: Candidate| best.is_unused && best.sizes[..=level] > shared.sizes[..=level];
            if !self.best.is_some_and(smaller) {
                self.visit(site, shared);
            }
        }
    }

    /// Searches among `connections` of one address or /64.
    fn visit_site<T>(&mut self, connections: &[Occupied<T>], shared: Shared) {
        let least_idle = shared.least_idle.unwrap_or(LeastIdle {
            used: self.evict_after,
            unused: self.evict_after,
        });
        for connection in connections {
            let Some(Idleness { since, is_unused }) = connection.activity.idleness() else {
                continue;
            };
            let idle = self.now.saturating_duration_since(since);
            let least = if is_unused {
                least_idle.unused
            } else {
                least_idle.used
            };
            if idle >= least {
                let candidate = Candidate {
                    is_unused: is_unused && idle >= UNUSED,
                    sizes: shared.sizes,
                    idle_since: Reverse(since),
                    number: Reverse(connection.number),
                };
                self.best = self.best.max(Some(candidate));
            }
        }
    }

    /// Least times for connections of a network with `theirs` connections, if the newcomer's has `own`. `None` if they
    /// make no room.
    fn least_idle(&self, theirs: usize, own: usize) -> Option<LeastIdle> {
        match theirs.saturating_sub(own) {
            0 => None,
            2.. if theirs > self.few => Some(LeastIdle {
                used: Duration::ZERO,
                unused: Duration::ZERO,
            }),
            _ => Some(LeastIdle {
                used: self.evict_after,
                unused: UNUSED.min(self.evict_after),
            }),
        }
    }
}

/// Connections of a server, each with an occupant `T`.
#[derive(Debug)]
pub struct Places<T> {
    limits: PlaceLimits,
    /// By networks and then by number, so that the connections of a network of any level are next to each other.
    connections: Vec<Occupied<T>>,
    /// Number of the next connection.
    next: u64,
    evicted: u64,
}

impl<T> Places<T> {
    /// Places that are all free.
    pub fn new(limits: PlaceLimits) -> Self {
        Self {
            limits,
            connections: Vec::new(),
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

    /// Occupants of all places, in the order of their networks.
    pub fn occupants(&self) -> impl Iterator<Item = &T> {
        self.connections.iter().map(|connection| &connection.occupant)
    }

    /// Limit that one more connection from `address` would exceed.
    pub(super) fn reached(&self, address: IpAddr) -> Option<Refusal> {
        if self.within(&Network::all_of(address)).len() >= self.limits.connections_per_address {
            Some(Refusal::Address)
        } else if self.connections.len() >= self.limits.connections {
            Some(Refusal::Connections)
        } else {
            None
        }
    }

    /// Positions of the connections whose widest networks are `networks`.
    fn within(&self, networks: &[Network]) -> Range<usize> {
        let start = |connection: &Occupied<T>| connection.networks[..networks.len()] < *networks;
        let end = |connection: &Occupied<T>| connection.networks[..networks.len()] <= *networks;
        self.connections.partition_point(start)..self.connections.partition_point(end)
    }

    /// Checks for room for one more connection from `address`. Returns the connection that has to make room, if one has
    /// to, and the time since which it has been idle.
    pub(super) fn room(&self, address: IpAddr, now: Instant) -> Result<Option<(Instant, u64)>, Refusal> {
        let Some(limit) = self.reached(address) else {
            return Ok(None);
        };
        let networks = Network::all_of(address);
        let mut search = Search {
            networks,
            sizes: [1, 2, 3].map(|levels| self.within(&networks[..levels]).len()),
            now,
            evict_after: self.limits.evict_after,
            few: self.limits.few,
            best: None,
        };
        if limit == Refusal::Connections {
            search.visit(&self.connections, Shared::default());
        } else {
            search.visit_site(&self.connections[self.within(&networks)], Shared::default());
        }
        let best = search.best.ok_or(limit)?;
        Ok(Some((best.idle_since.0, best.number.0)))
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
        let (networks, number) = (Network::all_of(address), self.next);
        self.next += 1;
        let position = self.within(&networks).end;
        let connection = Occupied {
            networks,
            number,
            activity,
            occupant,
        };
        self.connections.insert(position, connection);
        Ok(number)
    }

    /// Has the connection `number` make room, if it has been idle since `since`.
    fn evict(&mut self, number: u64, since: Instant) {
        if let Some(position) = self.position(number)
            && self.connections[position].activity.evict(since)
        {
            self.connections.remove(position);
            self.evicted += 1;
        }
    }

    /// Frees the place of the connection `number`, which may have made room before.
    pub fn free(&mut self, number: u64) {
        if let Some(position) = self.position(number) {
            self.connections.remove(position);
        }
    }

    fn position(&self, number: u64) -> Option<usize> {
        self.connections
            .iter()
            .position(|connection| connection.number == number)
    }
}

#[cfg(test)]
mod tests;
