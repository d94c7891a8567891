//! [`Places`]: the limited connections of a server, and the choice of the one that makes room for another.
//!
//! A connection without a request in progress makes room for a new client if all places are taken. The connection's
//! network must be the client's own or have more connections than that. First comes one without any request yet, then
//! one of the largest network, then the one that has been idle for the longest. It must have been idle for
//! [`PlaceLimits::evict_after`]; in a larger network, for [`UNUSED`] if it had no request yet. In a crowded one, no
//! idle time is required.
//!
//! Networks are compared at the widest level where two addresses differ: IPv4 /24 or IPv6 /48, then /56, then address
//! or /64. A network is crowded if it has more than a [few](PlaceLimits::few) connections, and at least two more than
//! the client's.
//!
//! So a network that holds many places with occasional small requests does not lock out a smaller one. Networks of the
//! same size do not displace each other in turn.

use std::cmp::Reverse;
use std::net::IpAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::activity::{Activity, Idleness};
use super::networks::{LEVELS, Network};
use crate::error::Refusal;

/// Minimum time after which a connection without any request yet makes room for a smaller network. A client sends a
/// request as soon as it is connected, within a round trip over QUIC and within three over TCP and TLS.
const UNUSED: Duration = Duration::from_secs(2);

/// Limits of a server's connections.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::exhaustive_structs, reason = "a server sets all of them")]
pub struct PlaceLimits {
    /// Maximum number of connections at once.
    pub connections: usize,
    /// Maximum number of connections at once of one IPv4 address or one IPv6 /64 network.
    pub connections_per_address: usize,
    /// Maximum number of connections of a network that is not crowded, so that its players stay; see
    /// [`few_of`](Self::few_of).
    pub few: usize,
    /// Minimum time without an exchange after which a connection makes room for another client. A connection without
    /// any request makes room for smaller networks sooner, and one of a network with more than [`few`](Self::few)
    /// immediately.
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
    /// Its number; connections are numbered in the order of their establishment.
    number: u64,
    activity: Activity,
    occupant: T,
}

/// A connection that may make room; the greatest of these does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// True if it has had no request, although a client would have sent one by now.
    is_unused: bool,
    /// Numbers of connections of its networks.
    sizes: [usize; LEVELS],
    idle_since: Reverse<Instant>,
    number: Reverse<u64>,
}

/// Connections of a server, each with an occupant `T`.
#[derive(Debug)]
pub struct Places<T> {
    limits: PlaceLimits,
    /// Sorted by networks and then by number, so the connections of a network of any level are adjacent.
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

    /// Number of occupied places.
    pub fn taken(&self) -> usize {
        self.connections.len()
    }

    /// Number of connections that had to make room so far.
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

    /// Checks for room for one more connection from `address`. Returns the connection that has to make room, if any,
    /// and the start of its idleness.
    pub(super) fn room(&self, address: IpAddr, now: Instant) -> Result<Option<(Instant, u64)>, Refusal> {
        let Some(limit) = self.reached(address) else {
            return Ok(None);
        };
        let newcomer = Network::all_of(address);
        let own_sizes = [1, 2, 3].map(|levels| self.within(&newcomer[..levels]).len());
        let among = match limit {
            Refusal::Address => &self.connections[self.within(&newcomer)],
            _ => &self.connections[..],
        };
        let mut best: Option<Candidate> = None;
        for (site, sizes) in sites(among) {
            // Minimum idle times, for a connection with an earlier request and for one without.
            let (used, unused) = match (0..LEVELS).find(|&level| site[0].networks[level] != newcomer[level]) {
                None => (self.limits.evict_after, self.limits.evict_after),
                Some(level) if sizes[level] <= own_sizes[level] => continue,
                Some(level) if sizes[level] > self.limits.few.max(own_sizes[level] + 1) => {
                    (Duration::ZERO, Duration::ZERO)
                }
                Some(_) => (self.limits.evict_after, UNUSED.min(self.limits.evict_after)),
            };
            // A connection of a smaller network does not precede one without a request.
            if best.is_some_and(|best| best.is_unused && best.sizes > sizes) {
                continue;
            }
            let candidates = site.iter().filter_map(|connection| {
                let Idleness { since, is_unused } = connection.activity.idleness()?;
                let idle = now.saturating_duration_since(since);
                (idle >= if is_unused { unused } else { used }).then_some(Candidate {
                    is_unused: is_unused && idle >= UNUSED,
                    sizes,
                    idle_since: Reverse(since),
                    number: Reverse(connection.number),
                })
            });
            best = best.max(candidates.max());
        }
        let best = best.ok_or(limit)?;
        Ok(Some((best.idle_since.0, best.number.0)))
    }

    /// Takes a place for a connection from `address` with `activity`. An idle connection may have to make room for it.
    /// Returns the connection's number, to [free](Self::free) its place.
    ///
    /// # Errors
    /// The limit that was reached.
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
        // This loop ends: a connection that became busy in the meantime is no longer idle.
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

    /// Makes the connection `number` make room, if it has been idle since `since`.
    fn evict(&mut self, number: u64, since: Instant) {
        if let Some(position) = self.position(number)
            && self.connections[position].activity.evict(since)
        {
            self.connections.remove(position);
            self.evicted += 1;
        }
    }

    /// Frees the place of the connection `number`, unless it has made room before.
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

/// The connections of each address or /64 among `connections`, and the numbers of connections of its networks.
fn sites<T>(connections: &[Occupied<T>]) -> impl Iterator<Item = (&[Occupied<T>], [usize; LEVELS])> {
    let split = |connections, level| {
        <[Occupied<T>]>::chunk_by(connections, move |one, next| {
            one.networks[level] == next.networks[level]
        })
    };
    split(connections, 0).flat_map(move |widest| {
        split(widest, 1).flat_map(move |middle| {
            split(middle, 2).map(move |site| (site, [widest.len(), middle.len(), site.len()]))
        })
    })
}

#[cfg(test)]
mod tests;
