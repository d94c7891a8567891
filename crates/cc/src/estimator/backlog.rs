//! How much is queued on the path, and how much it can hold.

use core::time::Duration;

use playrate_units::{Bitrate, Bytes};

use super::nanos;

/// Bytes queued on the path: `x = C · max(0, RTT − RTT_min)`, the `x` of CCP and CCPD.
///
/// Not `C · RTT`, which would count the pipe as well; the pipe is in the bytes in flight already.
pub fn backlog(capacity: Bitrate, rtt: Duration, min_rtt: Duration) -> Bytes {
    capacity * rtt.saturating_sub(min_rtt)
}

/// Bounds from below on [`virtual_buffer`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferBounds {
    /// The largest RTT counts as at least this many smallest RTTs.
    ///
    /// A law that leaves the queue empty never sees the RTT rise. If the largest RTT was not seen before, because slow start
    /// ended early, the buffer would come out as the bare pipe and CCP would starve itself at a third of it.
    pub min_rtts: f64,
    /// The buffer is at least this large: on paths with a very small bandwidth-delay product CCPD would else live on a
    /// few packets.
    pub least: Bytes,
}

impl BufferBounds {
    /// Two smallest RTTs and 20 packets of `mtu`.
    pub fn for_mtu(mtu: Bytes) -> Self {
        Self {
            min_rtts: 2.0,
            least: mtu * 20,
        }
    }
}

/// Storage capacity of the path, pipe and buffer: `B = C · max(RTT_max, b · RTT_min)`, the `B` of CCP and CCPD.
///
/// `max_rtt` must not contain delayed acknowledgements; `None` if no RTT that counts was seen.
pub fn virtual_buffer(
    capacity: Bitrate,
    min_rtt: Duration,
    max_rtt: Option<Duration>,
    bounds: BufferBounds,
) -> Bytes {
    let factor = Some(bounds.min_rtts).filter(|factor| factor.is_finite());
    let floor = Duration::try_from_secs_f64(min_rtt.as_secs_f64() * factor.unwrap_or(0.0).max(0.0));
    let longest = max_rtt.unwrap_or(min_rtt).max(floor.unwrap_or(min_rtt));
    (capacity * longest).max(bounds.least)
}

/// The largest RTT, believed up to a queue of one second: a longer one was a stall of the path or the peer.
pub fn plausible_max_rtt(min_rtt: Duration, max_rtt: Duration) -> Duration {
    max_rtt.min(min_rtt.saturating_add(Duration::from_secs(1)))
}

/// Vegas' backlog: `diff = (w / baseRTT − w / RTT) · baseRTT = w · (1 − baseRTT / RTT)` (Brakmo and Peterson 1995). Compound
/// TCP and TCP Stream use the same. Has the unit of `window`; zero if `rtt` is zero or less than `base_rtt`.
pub fn vegas_diff(window: f64, rtt: Duration, base_rtt: Duration) -> f64 {
    let (rtt, base) = (nanos(rtt), nanos(base_rtt));
    if rtt <= base {
        return 0.0;
    }
    window * ((rtt - base) as f64 / rtt as f64)
}

/// Backlog as Linux' `tcp_vegas.c` computes it: `diff = w · (RTT − baseRTT) / baseRTT` in whole units of `window`, rounded
/// down. Larger than [`vegas_diff`], as it divides by the smaller RTT. Zero if `base_rtt` is zero.
pub fn vegas_diff_linux(window: u64, rtt: Duration, base_rtt: Duration) -> u64 {
    let (rtt, base) = (nanos(rtt), nanos(base_rtt));
    let product = u128::from(window) * u128::from(rtt.saturating_sub(base));
    product
        .checked_div(u128::from(base))
        .map_or(0, |diff| u64::try_from(diff).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const C: Bitrate = Bitrate::from_mbps(20);

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn bounds() -> BufferBounds {
        BufferBounds::for_mtu(Bytes::new(1_200))
    }

    #[test]
    fn the_backlog_is_what_delays_beyond_the_smallest_rtt() {
        // CCP vectors: C 2.5 MB/s, smallest RTT 100 ms.
        assert_eq!(backlog(C, ms(120), ms(100)), Bytes::new(50_000));
        assert_eq!(backlog(C, ms(100), ms(100)), Bytes::ZERO);
        assert_eq!(backlog(C, ms(90), ms(100)), Bytes::ZERO);
    }

    #[rstest]
    #[case::seen(Some(200), 500_000)]
    #[case::deep(Some(300), 750_000)]
    #[case::hardly_seen_so_two_smallest_rtts(Some(110), 500_000)]
    #[case::never_seen_so_two_smallest_rtts(None, 500_000)]
    fn the_buffer_is_the_pipe_and_the_queue(#[case] max_rtt: Option<u64>, #[case] bytes: u64) {
        let buffer = virtual_buffer(C, ms(100), max_rtt.map(ms), bounds());
        assert_eq!(buffer, Bytes::new(bytes));
    }

    #[test]
    fn a_tiny_path_still_holds_twenty_packets() {
        assert_eq!(virtual_buffer(C, ms(1), None, bounds()), Bytes::new(24_000));
    }

    #[test]
    fn a_factor_that_is_no_number_counts_as_none() {
        for min_rtts in [f64::NAN, f64::INFINITY, -1.0, 1e300] {
            let bounds = BufferBounds { min_rtts, ..bounds() };
            assert_eq!(
                virtual_buffer(C, ms(100), Some(ms(200)), bounds),
                Bytes::new(500_000)
            );
        }
    }

    #[test]
    fn a_stall_is_not_a_queue() {
        assert_eq!(plausible_max_rtt(ms(100), ms(700)), ms(700));
        assert_eq!(plausible_max_rtt(ms(100), ms(5_000)), ms(1_100));
    }

    #[rstest]
    // Vegas vectors: window 20, base RTT 100 ms.
    #[case(110, 1.818, 2)]
    #[case(115, 2.609, 3)]
    #[case(120, 3.333, 4)]
    #[case(125, 4.000, 5)]
    #[case(130, 4.615, 6)]
    fn vegas_and_linux_count_the_backlog_in_segments(
        #[case] rtt: u64,
        #[case] original: f64,
        #[case] linux: u64,
    ) {
        assert!((vegas_diff(20.0, ms(rtt), ms(100)) - original).abs() < 0.000_5);
        assert_eq!(vegas_diff_linux(20, ms(rtt), ms(100)), linux);
    }

    #[test]
    fn compound_and_stream_count_it_as_vegas_does() {
        assert!((vegas_diff(140.0, ms(150), ms(100)) - 46.667).abs() < 0.001); // Compound
        assert!((vegas_diff(40.0, ms(36), ms(30)) - 6.667).abs() < 0.001); // TCP Stream
        assert!((vegas_diff(60.0, ms(60), ms(30)) - 30.0).abs() < 0.001);
    }

    #[test]
    fn no_rtt_means_no_backlog() {
        assert!(vegas_diff(20.0, Duration::ZERO, Duration::ZERO).abs() < f64::EPSILON);
        assert!(vegas_diff(20.0, ms(90), ms(100)).abs() < f64::EPSILON);
        assert_eq!(vegas_diff_linux(20, ms(100), Duration::ZERO), 0);
    }
}
