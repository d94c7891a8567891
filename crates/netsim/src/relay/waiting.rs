//! [`Waiting`]: a datagram inside the relay, ordered by when it leaves.

use core::cmp::Ordering;
use std::net::SocketAddr;

use crate::Time;

/// What a waiting datagram costs beside its bytes.
const BOOKKEEPING: u64 = 96;

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    Forward,
    Backward,
}

/// A client of one of the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Client {
    /// Which server's door it came to.
    pub(super) door: usize,
    pub(super) address: SocketAddr,
}

/// A datagram inside the relay.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) at: Time,
    pub(super) order: u64,
    pub(super) way: Way,
    pub(super) client: Client,
    pub(super) data: Vec<u8>,
}

/// What a waiting datagram counts for against the relay's memory.
pub(super) fn cost(data: &[u8]) -> u64 {
    data.len() as u64 + BOOKKEEPING
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Waiting {}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
