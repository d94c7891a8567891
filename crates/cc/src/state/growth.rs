//! [`Growth`]: the growth of a window by an ACK frame, also while the sender does not use all of it.

use crate::parameter::{Arguments, Parameter, Value};

const NAME: &str = "growth";
const RATE_LIMITED: &str = "ratelimited";
const ACKS: &str = "acks";

/// The parameter of every window-based algorithm that selects it.
pub(crate) const GROWTH: Parameter = Parameter::word(
    NAME,
    "credit",
    &["credit", RATE_LIMITED],
    "a window that is not used in full: credit keeps it (RFC 9002 §7.8); ratelimited lets it grow to twice the \
     largest flight \
     since the last reduction in slow start, one packet above it in avoidance (draft-ietf-ccwg-ratelimited-increase)",
);

/// The parameter of every algorithm that selects how an ACK frame counts.
pub(crate) const COUNTING: Parameter = Parameter::word(
    "counting",
    "bytes",
    &["bytes", ACKS],
    "growth by an ACK frame: bytes counts all that it acknowledges (RFC 9002 §7.3.1); acks one packet at most \
     (RFC 5681 §3.1, Linux before 3.13)",
);

/// Growth of a window while the application, flow control or a ceiling limits the sender. Sizes are bytes.
///
/// No window grows beyond [about twice the largest flight](Self::most) since its last reduction, even if the transport
/// reports no limit: a sender limited by its own processor never reports that the application is the limit.
///
/// `credit` is RFC 9002 §7.8: no growth. `ratelimited` is draft-ietf-ccwg-ratelimited-increase: growth is bounded by
/// `maxFS`, the largest flight since the last reduction of the window. While the window limits the sender, both grow
/// alike.
///
/// `counting` also applies to a window that is used in full: with `acks`, a frame counts for one packet, however many
/// it acknowledges.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Growth {
    rate_limited: bool,
    counts_acks: bool,
    /// `maxFS` of the draft.
    max_flight: u64,
}

impl Growth {
    /// From an algorithm's arguments; `credit` and `bytes` for algorithms without the parameters.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            rate_limited: arguments.value(NAME) == Some(Value::Word(RATE_LIMITED)),
            counts_acks: arguments.value(COUNTING.name) == Some(Value::Word(ACKS)),
            max_flight: 0,
        }
    }

    /// Before the first reduction, `maxFS` is at least the initial window.
    pub(crate) const fn starting_at(mut self, initial_window: u64) -> Self {
        self.max_flight = initial_window;
        self
    }

    /// Returns true if the window may grow while it is not used in full.
    #[inline]
    pub(crate) const fn is_rate_limited(self) -> bool {
        self.rate_limited
    }

    /// Returns true if an ACK frame counts for one packet at most.
    pub(crate) const fn counts_acks(self) -> bool {
        self.counts_acks
    }

    /// Takes the flight before an ACK frame.
    #[inline]
    pub(crate) fn on_flight(&mut self, flight: u64) {
        self.max_flight = self.max_flight.max(flight);
    }

    pub(crate) const fn on_reduction(&mut self) {
        self.max_flight = 0;
    }

    /// Upper bound of growth by acknowledged bytes: twice the largest flight (RFC 9002 §7.8,
    /// draft-ietf-ccwg-ratelimited-increase), and the packet that a strict transport keeps of either half.
    #[inline]
    pub(crate) const fn most(self, mtu: u64) -> u64 {
        self.max_flight.saturating_add(mtu).saturating_mul(2)
    }

    /// Upper bound of a window that is not used in full, if it [may](Self::is_rate_limited).
    pub(crate) const fn bound(self, slow_start: bool, mtu: u64) -> u64 {
        if slow_start {
            self.max_flight.saturating_mul(2)
        } else {
            self.max_flight.saturating_add(mtu)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    // draft-ietf-ccwg-ratelimited-increase: cwnd ≤ 2·maxFS in slow start, ≤ maxFS + 1 packet in avoidance.
    #[rstest]
    #[case(true, 60_000)]
    #[case(false, 31_200)]
    fn the_bound_is_twice_the_largest_flight_or_one_packet_above_it(
        #[case] slow_start: bool,
        #[case] bound: u64,
    ) {
        let mut growth = Growth {
            rate_limited: true,
            counts_acks: false,
            max_flight: 0,
        }
        .starting_at(12_000);
        assert_eq!(growth.bound(true, 1_200), 24_000);
        growth.on_flight(30_000);
        growth.on_flight(20_000);
        assert_eq!(growth.bound(slow_start, 1_200), bound);
        growth.on_reduction();
        assert_eq!(growth.bound(true, 1_200), 0);
    }
}
