//! [`Rules`]: the meaning of the parameters that algorithms share.

use crate::Bytes;
use crate::parameter::{Arguments, Parameter, Value};

use super::resends::{RECOVERY, Resends, TCP};
use super::{float, floor_bytes};

/// Parameters of every algorithm, after all others. Those of the feature `papers` come last, so that it moves none of
/// the others.
pub(crate) fn of_all_algorithms() -> Vec<Parameter> {
    let mut parameters = vec![INITIAL_WINDOW, MAX_SSTHRESH];
    if cfg!(any(test, feature = "papers")) {
        parameters.extend([COUNTING, SSTHRESH, RECOVERY]);
    }
    parameters
}

const RATE_LIMITED: &str = "ratelimited";
const ACKS: &str = "acks";

/// The parameter of every window-based algorithm that selects it.
pub(crate) const GROWTH: Parameter = Parameter::word("growth", "credit", &["credit", RATE_LIMITED]).about(
    "a window that is not used in full: credit keeps it (RFC 9002 §7.8); ratelimited lets it grow to twice \
     the largest flight since the last reduction in slow start, one packet above it in avoidance \
     (draft-ietf-ccwg-ratelimited-increase)",
);

/// The parameter of every algorithm that selects how an ACK frame counts (feature `papers`).
const COUNTING: Parameter = Parameter::word("counting", "bytes", &["bytes", ACKS]).about(
    "growth by an ACK frame: bytes counts all that it acknowledges (RFC 9002 §7.3.1); acks one packet at \
     most (RFC 5681 §3.1, Linux before 3.13)",
);

/// The parameter of every algorithm that sets the first window.
const INITIAL_WINDOW: Parameter = Parameter::number("initial_window", 0.0, 0.0..=1000.0).about(
    "packets of the first window: 0 is RFC 9002 §7.2 (ten, at most 14,720 B), 3 RFC 3390 and Linux before \
     2.6.39, 10 RFC 6928",
);

/// The parameter of every algorithm that sets the first slow start threshold (feature `papers`).
const SSTHRESH: Parameter = Parameter::size("ssthresh", Bytes::ZERO, Bytes::ZERO..=Bytes::new(4_000_000_000))
    .about(
        "slow start threshold that the connection begins with, as Linux remembers one for each destination; \
     0 is infinite",
    );

/// The parameter of every algorithm that bounds slow start: `max_ssthresh` of RFC 3742. The RFC recommends 100 against
/// bursts of losses; here the concern is the receiver. quinn's receiver closes a connection whose stream has more than
/// 1,024 gaps, and if a queue overflows, every second packet leaves one. Half of 1,536 packets in a round trip is the
/// largest bound with at most 1,000 losses on every path of our grid.
pub(super) const MAX_SSTHRESH: Parameter = Parameter::number("max_ssthresh", 1536.0, 0.0..=100_000.0).about(
    "window in packets above which slow start adds at most half as many per round trip, so that its \
     overshoot leaves a receiver fewer than 1,000 gaps (RFC 3742); 0 is no bound",
);

/// Rules of one controller for every component that governs its window. The defaults are QUIC's: the window and slow
/// start of RFC 9002, bounded by RFC 3742.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// The window may grow while the application, flow control or a ceiling limits the sender
    /// (draft-ietf-ccwg-ratelimited-increase). If false, it does not (RFC 9002 §7.8).
    pub(super) rate_limited: bool,
    /// An ACK frame counts for one packet at most, even while the window is used in full.
    pub(super) counts_acks: bool,
    /// Size of the first window, packets; 0 for RFC 9002's.
    initial_packets: f64,
    /// First slow start threshold in bytes; `None` if it is infinite.
    pub(super) ssthresh: Option<u64>,
    /// Window above which slow start is bounded, packets; 0 for no bound.
    max_ssthresh: u64,
    /// Resent data, if losing it again costs a timeout.
    pub(crate) resends: Option<Box<Resends>>,
}

impl Default for Rules {
    fn default() -> Self {
        Self::from_arguments(&Arguments::defaults(&of_all_algorithms()))
    }
}

impl Rules {
    /// Reads the rules from an algorithm's arguments; a parameter that it does not declare has its default.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        let is = |parameter: Parameter, word| arguments.value(parameter.name) == Some(Value::Word(word));
        let ssthresh = match arguments.value(SSTHRESH.name) {
            Some(Value::Size(size)) if size > Bytes::ZERO => Some(size.as_u64()),
            _ => None,
        };
        Self {
            rate_limited: is(GROWTH, RATE_LIMITED),
            counts_acks: is(COUNTING, ACKS),
            initial_packets: arguments.number(INITIAL_WINDOW.name),
            ssthresh,
            max_ssthresh: floor_bytes(arguments.number(MAX_SSTHRESH.name)),
            resends: is(RECOVERY, TCP).then(Box::default),
        }
    }

    /// Returns true if the window grows by acknowledged bytes, and only while it is used in full.
    pub(crate) const fn grow_by_bytes(&self) -> bool {
        !self.rate_limited && !self.counts_acks && self.resends.is_none()
    }

    /// The first window in bytes, before the bounds of every window.
    pub(super) fn initial_window(&self, mtu: u64) -> u64 {
        if self.initial_packets > 0.0 {
            return floor_bytes(self.initial_packets * float(mtu));
        }
        // RFC 9002 §7.2: "ten times the maximum datagram size (max_datagram_size), while limiting the window to the
        // larger of 14,720 bytes or twice the maximum datagram size."
        mtu.saturating_mul(10).min(mtu.saturating_mul(2).max(14_720))
    }

    /// K of RFC 3742 §2: slow start grows a window by 1/K of the acknowledged bytes. K is the window divided by half of
    /// the bound, and 1 up to the bound.
    pub(super) fn slow_start_divisor(&self, window: u64, mtu: u64) -> u64 {
        let most = self.max_ssthresh.saturating_mul(mtu);
        if window <= most {
            return 1;
        }
        window.checked_div(most / 2).unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Phase;
    use crate::state::Core;
    use rstest::rstest;

    // draft-ietf-ccwg-ratelimited-increase: cwnd ≤ 2·maxFS in slow start, ≤ maxFS + 1 packet in avoidance.
    #[rstest]
    #[case(Phase::Startup, 60_000)]
    #[case(Phase::Avoidance, 31_200)]
    fn the_bound_is_twice_the_largest_flight_or_one_packet_above_it(
        #[case] phase: Phase,
        #[case] bound: u64,
    ) {
        let mut core = Core::sample(12_000, 100, 100);
        core.set_rules(Rules::default());
        let _ = core.rate_limited_allowance(0, true);
        assert_eq!(core.growth_bound, 24_000);
        core.max_flight = 30_000;
        core.phase = phase;
        let _ = core.rate_limited_allowance(0, true);
        assert_eq!(core.growth_bound, bound);
        core.note_reduction();
        core.phase = Phase::Startup;
        let _ = core.rate_limited_allowance(0, true);
        assert_eq!(core.growth_bound, 0);
    }

    // RFC 3742 §2 with max_ssthresh = 1,536 packets of 1,200 B: K = int(cwnd/(0.5·max_ssthresh)).
    #[rstest]
    #[case(1_536, 12_000)]
    #[case(1_537, 6_000)]
    #[case(2_303, 6_000)]
    #[case(2_304, 4_000)]
    #[case(7_680, 1_200)]
    fn above_max_ssthresh_a_window_grows_by_a_fraction_of_what_is_acknowledged(
        #[case] packets: u64,
        #[case] growth: u64,
    ) {
        let divisor = Rules::default().slow_start_divisor(packets * 1_200, 1_200);
        assert_eq!(12_000 / divisor, growth);
    }

    #[test]
    fn a_max_ssthresh_of_zero_is_no_bound() {
        let rules = Rules {
            max_ssthresh: 0,
            ..Rules::default()
        };
        assert_eq!(rules.slow_start_divisor(u64::MAX, 1_200), 1);
    }
}
