//! The bound of slow start (RFC 3742) through whole connections. mtu 1200.

use super::{WINDOW_BASED, busy, connection, round};
use crate::Phase;
use crate::registry::{Key, Registry};

/// Growth of the window, packets, in each of `rounds` round trips limited by the window.
fn growth(text: &str, rounds: usize) -> Vec<u64> {
    let mut c = connection(text);
    busy(&mut c, 5);
    (0..rounds)
        .map(|_| {
            let before = c.window();
            round(&mut c, 4_000);
            c.window().saturating_sub(before) / 1_200
        })
        .collect()
}

// An overflowing queue loses as many packets as the window grew by in the previous round trip, and leaves a gap for
// every second arrival. quinn closes a connection at 1,024.
#[test]
fn no_slow_start_grows_by_more_packets_in_a_round_trip_than_a_receiver_tolerates_gaps() {
    for algorithm in WINDOW_BASED.into_iter().chain(["ccp+loss=ignore", "ccp", "ccpd"]) {
        for startup in Registry::installed().components(Key::Start) {
            let text = format!("{algorithm}+start={}", startup.name());
            let most = growth(&text, 8).into_iter().max();
            assert!(most <= Some(769), "{text}: {most:?} packets in a round trip");
        }
    }
}

#[test]
fn slow_start_doubles_up_to_max_ssthresh_and_then_grows_by_half_of_it() {
    assert_eq!(growth("reno", 4), [288, 576, 768, 767]);
    assert_eq!(growth("reno(max_ssthresh=0)", 3), [288, 576, 1_152]);
    assert_eq!(growth("reno(max_ssthresh=100)", 2), [49, 49]);
}

#[test]
fn the_bound_does_not_end_slow_start() {
    let mut c = connection("cubic");
    busy(&mut c, 10);
    assert_eq!(c.snapshot().phase, Phase::Startup);
    assert!(c.window() > 3_000 * 1_200, "{}", c.window());
}
