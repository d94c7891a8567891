//! [`Packet`] and [`Verdict`]: a link's input and its result.

use super::{Damage, DropReason};
use crate::Time;

/// A datagram from a link's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet {
    /// Length of the UDP payload in bytes.
    pub payload: usize,
    /// ECN-capable transport (RFC 3168): the packet may be marked instead of dropped.
    pub markable: bool,
}

impl Packet {
    /// Creates a datagram of `payload` bytes without ECN capability.
    pub const fn new(payload: usize) -> Self {
        Self {
            payload,
            markable: false,
        }
    }

    /// Returns the same datagram with or without ECN capability.
    #[must_use]
    pub(crate) const fn markable(self, markable: bool) -> Self {
        Self { markable, ..self }
    }
}

/// Fate of a packet, known when it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// Arrives at the far end.
    Deliver {
        /// Arrival time of its last bit.
        at: Time,
        /// Arrives with the congestion-experienced mark.
        marked: bool,
        /// Arrives with this bit inverted.
        damage: Option<Damage>,
        /// Arrival time of a copy of it.
        copy_at: Option<Time>,
    },
    /// Dropped, for this reason.
    Dropped(DropReason),
}

impl Verdict {
    /// Arrival time, unless the packet is dropped.
    pub const fn arrival(self) -> Option<Time> {
        match self {
            Self::Deliver { at, .. } => Some(at),
            Self::Dropped(_) => None,
        }
    }
}
