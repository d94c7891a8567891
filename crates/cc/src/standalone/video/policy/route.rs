//! [`RouteCheck`]: decides when to doubt the smallest RTT and check it with half a window for a round trip.

use crate::Timestamp;

/// Time after which a longer route is checked; each check doubles it. A queue that another sender keeps constant looks
/// the same, and becomes this sender's own when the other leaves.
const CHECK_ROUTE_NS: u64 = 5_000_000_000;
const LONGEST_CHECK_NS: u64 = 16 * CHECK_ROUTE_NS;

/// Checks of the smallest RTT. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RouteCheck {
    /// The next check, and the wait before it. The wait is zero unless a rise of the RTT ended slow start or the route
    /// has become longer.
    at: Timestamp,
    after: u64,
    /// The smallest RTT was set because the route has become longer.
    is_longer: bool,
}

impl RouteCheck {
    /// Notes that the route has become longer.
    pub(crate) fn note_longer(&mut self, now: Timestamp) {
        self.is_longer = true;
        self.schedule(now, self.after.max(CHECK_ROUTE_NS));
    }

    /// Notes that a rise of the RTT ended slow start. A longer route is always checked.
    pub(crate) const fn note_rise(&mut self, now: Timestamp, after_ns: u64) {
        if !self.is_longer {
            self.schedule(now, after_ns);
        }
    }

    /// Notes that slow start goes on.
    pub(crate) const fn forget_rise(&mut self) {
        if !self.is_longer {
            self.after = 0;
        }
    }

    /// Returns true if a check is due. After slow start there is none if the queue has been seen empty.
    pub(crate) fn is_due(&self, now: Timestamp, since_empty: u64) -> bool {
        let is_doubtful = self.is_longer || since_empty > self.after;
        self.after > 0 && now >= self.at && is_doubtful
    }

    /// Notes that the smallest RTT is being checked.
    pub(crate) fn check(&mut self, now: Timestamp) {
        self.schedule(now, self.after.saturating_mul(2).min(LONGEST_CHECK_NS));
    }

    const fn schedule(&mut self, now: Timestamp, after_ns: u64) {
        self.after = after_ns;
        self.at = now.plus_nanos(after_ns);
    }
}
