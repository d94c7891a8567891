//! [`Batch`]: one ACK frame as components receive it.

use crate::Timestamp;

/// One ACK frame, added up. Sizes are bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(test, derive(Default))]
pub(crate) struct Batch {
    /// Time when the frame arrived.
    pub(crate) now: Timestamp,
    /// Send time of the newest packet that the frame newly acknowledged.
    pub(crate) newest_sent: Timestamp,
    /// Bytes that the frame newly acknowledged.
    pub(crate) acked: u64,
    /// Packets newly acknowledged, at least 1.
    pub(crate) packets: u32,
    /// Allowance: acknowledged bytes that may grow a window. They were sent after the current recovery began and while
    /// the window limited the sender. In slow start [`MAX_SSTHRESH`](super::rules::MAX_SSTHRESH) bounds them.
    pub(crate) allowance: u64,
    /// Bytes in flight after the frame, lost packets still included.
    pub(crate) in_flight: u64,
    /// The application, a ceiling or the sender's own speed, not the window, limited the sender.
    pub(crate) limited: bool,
    /// RTT sample `now − newest_sent`, ns; `None` if it is outdated.
    pub(crate) rtt_ns: Option<u64>,
    /// The frame is the first of a new round trip.
    pub(crate) new_round: bool,
    /// The frame acknowledges a packet that was sent after the current recovery began.
    pub(crate) after_recovery: bool,
}

impl Batch {
    /// Bytes that were in flight before the frame arrived (Linux's `prior_in_flight`).
    pub(crate) const fn prior_in_flight(&self) -> u64 {
        self.in_flight.saturating_add(self.acked)
    }
}
