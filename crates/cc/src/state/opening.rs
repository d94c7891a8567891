//! [`Opening`]: the first window and threshold of a connection, and the bound of slow start.

use crate::Bytes;
use crate::parameter::{Arguments, Parameter};

use super::{float, floor_bytes};

/// The parameter of every algorithm that sets the first window.
pub(crate) const INITIAL_WINDOW: Parameter = Parameter::number(
    "initial_window",
    0.0,
    0.0..=1000.0,
    "packets of the first window: 0 is RFC 9002 §7.2 (ten, at most 14,720 B), 3 RFC 3390 and Linux before 2.6.39, \
     10 RFC 6928",
);

/// The parameter of every algorithm that sets the first slow start threshold.
pub(crate) const SSTHRESH: Parameter = Parameter::size(
    "ssthresh",
    Bytes::ZERO,
    Bytes::ZERO..=Bytes::new(4_000_000_000),
    "slow start threshold that the connection begins with, as Linux remembers one for each destination; 0 is infinite",
);

/// The parameter of every algorithm that bounds slow start: `max_ssthresh` of RFC 3742. The RFC recommends 100 against
/// bursts of losses; here the concern is the receiver. quinn's closes a connection whose stream has more than 1,024
/// gaps, and where a queue overflows every second packet leaves one. Half of 1,536 packets in a round trip is the
/// largest bound with at most 1,000 losses on every path of our grid.
pub(crate) const MAX_SSTHRESH: Parameter = Parameter::number(
    "max_ssthresh",
    1536.0,
    0.0..=100_000.0,
    "packets of a window above which slow start grows by half as many in a round trip, not more, so that what it \
     overshoots by leaves a receiver fewer than 1,000 gaps (RFC 3742); 0 is no bound",
);

/// Beginning of a connection. By default the window is that of RFC 9002, the threshold infinite and slow start bounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// Size of the first window, packets; 0 for RFC 9002's.
    packets: f64,
    /// Slow start threshold in bytes; 0 if it is infinite.
    ssthresh: u64,
    /// Window above which slow start is bounded, packets; 0 for no bound.
    max_ssthresh: u64,
}

impl Default for Opening {
    fn default() -> Self {
        Self::from_arguments(&Arguments::defaults(&[INITIAL_WINDOW, SSTHRESH, MAX_SSTHRESH]))
    }
}

impl Opening {
    /// As an algorithm's arguments say.
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            packets: arguments.number(INITIAL_WINDOW.name),
            ssthresh: arguments.size(SSTHRESH.name).as_u64(),
            max_ssthresh: floor_bytes(arguments.number(MAX_SSTHRESH.name)),
        }
    }

    /// The first window in bytes, before the bounds of every window.
    pub(super) fn window(self, mtu: u64) -> u64 {
        if self.packets > 0.0 {
            return floor_bytes(self.packets * float(mtu));
        }
        // RFC 9002 §7.2: "ten times the maximum datagram size (max_datagram_size), while limiting the window to the
        // larger of 14,720 bytes or twice the maximum datagram size."
        mtu.saturating_mul(10).min(mtu.saturating_mul(2).max(14_720))
    }

    /// K of RFC 3742 §2: slow start grows a window by 1/K of the acknowledged bytes. K is the window divided by half of
    /// the bound, and 1 up to the bound.
    pub(super) fn divisor(self, window: u64, mtu: u64) -> u64 {
        let most = self.max_ssthresh.saturating_mul(mtu);
        if window <= most {
            return 1;
        }
        window.checked_div(most / 2).unwrap_or(1)
    }

    /// The first slow start threshold in bytes; `None` if it is infinite.
    pub(super) fn ssthresh(self) -> Option<u64> {
        (self.ssthresh > 0).then_some(self.ssthresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

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
        assert_eq!(
            12_000 / Opening::default().divisor(packets * 1_200, 1_200),
            growth
        );
    }

    #[test]
    fn a_max_ssthresh_of_zero_is_no_bound() {
        let opening = Opening {
            max_ssthresh: 0,
            ..Opening::default()
        };
        assert_eq!(opening.divisor(u64::MAX, 1_200), 1);
    }
}
