//! [`PendingDatagram`]: a datagram inside the relay, ordered by its departure time.

use std::net::SocketAddr;

use crate::Time;

/// Memory of a pending datagram in addition to its bytes.
const BOOKKEEPING: u64 = 96;

/// Direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Forward,
    Backward,
}

/// A client of one of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientKey {
    /// Index of the listener where it arrived.
    pub(super) listener: usize,
    pub(super) address: SocketAddr,
}

/// A datagram inside the relay. The first two fields determine the order.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PendingDatagram {
    pub(super) at: Time,
    /// Unique in a run.
    pub(super) order: u64,
    pub(super) way: Direction,
    pub(super) client: ClientKey,
    pub(super) data: Vec<u8>,
}

/// Bytes that a pending datagram counts against the relay's memory limit.
pub(super) fn cost(data: &[u8]) -> u64 {
    data.len() as u64 + BOOKKEEPING
}
