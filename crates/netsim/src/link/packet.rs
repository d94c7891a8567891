//! [`Packet`], [`Verdict`]: what goes into a link and what becomes of it.

use playrate_units::Bytes;

use super::DropReason;
use crate::Time;

/// A datagram as a link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet {
    /// The length of its UDP payload in bytes.
    pub payload: usize,
    /// Whether it may be marked instead of dropped: an ECN-capable transport (RFC 3168).
    pub markable: bool,
}

impl Packet {
    /// A datagram with `payload` bytes in it, not to be marked.
    pub const fn new(payload: usize) -> Self {
        Self {
            payload,
            markable: false,
        }
    }

    /// The same datagram, to be marked instead of dropped or not.
    #[must_use]
    pub const fn markable(self, markable: bool) -> Self {
        Self { markable, ..self }
    }
}

/// What becomes of a packet, known the moment it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It reaches the far end.
    Deliver {
        /// When its last bit arrives.
        at: Time,
        /// Whether it arrives with the mark for congestion experienced.
        marked: bool,
    },
    /// It does not.
    Dropped(DropReason),
}

impl Verdict {
    /// When the packet arrives, if it does.
    pub const fn arrival(self) -> Option<Time> {
        match self {
            Self::Deliver { at, .. } => Some(at),
            Self::Dropped(_) => None,
        }
    }
}

/// One packet and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkEvent {
    /// When it was offered.
    pub at: Time,
    /// Its size, headers included.
    pub size: Bytes,
    /// What became of it.
    pub verdict: Verdict,
    /// The queue it left behind it, itself included if it was taken.
    pub queue: Bytes,
}

/// Someone who watches every packet of a link.
pub trait LinkObserver: Send {
    /// Called once for each packet offered, in order.
    fn observe(&mut self, event: &LinkEvent);
}

impl<F: FnMut(&LinkEvent) + Send> LinkObserver for F {
    fn observe(&mut self, event: &LinkEvent) {
        self(event);
    }
}
