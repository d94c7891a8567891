//! [`Rules`]: the meaning of the parameters that algorithms share.

use crate::parameter::{Arguments, Parameter};

use super::growth::{COUNTING, Growth};
use super::opening::{INITIAL_WINDOW, MAX_SSTHRESH, Opening, SSTHRESH};
use super::resends::{RECOVERY, Resends};

/// Parameters of every algorithm, behind all others.
pub(crate) const OF_ALL_ALGORITHMS: [Parameter; 5] =
    [COUNTING, INITIAL_WINDOW, SSTHRESH, RECOVERY, MAX_SSTHRESH];

/// Rules of one controller for every component that governs its window. The defaults are QUIC's.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    /// Growth by an ACK frame, and while the window is not used in full.
    pub(super) growth: Growth,
    /// Window and threshold at the start of the connection.
    pub(super) opening: Opening,
    /// Resent data, if losing it again costs a timeout.
    pub(super) resends: Option<Box<Resends>>,
}

impl Rules {
    /// As an algorithm's arguments say.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            growth: Growth::from_arguments(arguments),
            opening: Opening::from_arguments(arguments),
            resends: Resends::from_arguments(arguments),
        }
    }

    /// Returns true if data that is lost again costs a timeout.
    pub(crate) const fn follow_resends(&self) -> bool {
        self.resends.is_some()
    }

    /// Returns true if the window grows by acknowledged bytes, and only while it is used in full.
    pub(crate) const fn grow_by_bytes(&self) -> bool {
        !self.growth.is_rate_limited() && !self.growth.counts_acks() && self.resends.is_none()
    }
}
