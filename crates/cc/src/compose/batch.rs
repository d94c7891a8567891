//! [`Batch`]: one ACK frame, added up.

use crate::Timestamp;

/// What one ACK frame acknowledged, as the parts see it. Sizes are bytes, times of day are on the connection's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Batch {
    /// When the frame arrived.
    pub(crate) now: Timestamp,
    /// When the newest packet that it newly acknowledged left.
    pub(crate) newest_sent: Timestamp,
    /// Bytes newly acknowledged.
    pub(crate) acked: u64,
    /// Packets newly acknowledged, at least 1.
    pub(crate) packets: u32,
    /// Bytes that may grow a window: sent after the current recovery began, while the window was what limited the sender.
    pub(crate) credit: u64,
    /// Bytes in flight once these are out, lost packets still included.
    pub(crate) in_flight: u64,
    /// Whether the application or a ceiling, not the window, limited the sender.
    pub(crate) limited: bool,
    /// RTT sample `now − newest_sent`, ns; `None` if it is out of date.
    pub(crate) rtt_ns: Option<u64>,
    /// Whether this batch is the first of a new round trip.
    pub(crate) new_round: bool,
    /// Whether a packet that left after the current recovery began is among them.
    pub(crate) after_recovery: bool,
}

impl Batch {
    /// Bytes that were in flight before the frame arrived (Linux's `prior_in_flight`).
    pub(crate) const fn prior_in_flight(&self) -> u64 {
        self.in_flight.saturating_add(self.acked)
    }

    /// The same batch with another credit.
    pub(crate) const fn with_credit(mut self, credit: u64) -> Self {
        self.credit = credit;
        self
    }
}
