//! `growth=ratelimited` (draft-ietf-ccwg-ratelimited-increase) through whole connections. mtu 1200.

use super::actions::{Action, play};
use super::{MS, WINDOW_BASED, ack_in_twos, assert_in, busy, connection, fly, limited};
use crate::Phase;
use crate::testing::Connection;
use Action::{Ack, Fly, Lose, Pass, Window};

// cwnd ≤ 2·maxFS in slow start. Before the first reduction maxFS is at least IW = 12,000 B.
#[test]
fn a_slow_start_that_is_not_used_in_full_stops_at_twice_the_largest_flight() {
    for algorithm in WINDOW_BASED {
        let mut c = connection(&format!("{algorithm}(growth=ratelimited)"));
        limited(&mut c, 5, 50);
        assert_eq!(c.window(), 24_000, "{algorithm}: twice the initial window");
        limited(&mut c, 18, 50);
        assert_eq!(c.window(), 43_200, "{algorithm}: twice 18 packets");
        limited(&mut c, 5, 50);
        assert_eq!(c.window(), 43_200, "{algorithm}: not twice the last flight");
    }
}

// RFC 9002 §7.8, the default.
#[test]
fn credit_does_not_grow_an_unused_window() {
    for algorithm in WINDOW_BASED {
        let mut c = connection(&format!("{algorithm}(growth=credit)"));
        limited(&mut c, 9, 50);
        assert_eq!(c.window(), 12_000, "{algorithm}");
    }
}

/// In avoidance with 60,000 B after a loss at 120,000 B.
fn after_a_loss(text: &str) -> Connection {
    play(
        text,
        &[
            Fly(90),
            Ack(90),
            Window(120_000),
            Fly(10),
            Lose(1),
            Pass(1),
            Ack(9),
        ],
    )
}

// cwnd ≤ maxFS + 1 packet in avoidance; maxFS was reset by the loss.
#[test]
fn avoidance_that_is_not_used_in_full_stops_one_packet_above_the_largest_flight() {
    let mut c = after_a_loss("reno(growth=ratelimited)");
    assert_eq!(c.window(), 60_000);
    limited(&mut c, 30, 20);
    assert_eq!(c.snapshot().phase, Phase::Avoidance);
    assert_eq!(c.window(), 60_000, "36,000 B in flight do not raise 60,000 B");
    limited(&mut c, 55, 400);
    assert_eq!(c.window(), 67_200, "55 packets in flight allow 56");
}

#[test]
fn credit_and_ratelimited_are_the_same_while_the_window_is_used_in_full() {
    for algorithm in WINDOW_BASED {
        let [credit, ratelimited] = ["credit", "ratelimited"].map(|growth| {
            let mut c = connection(&format!("{algorithm}(growth={growth})"));
            busy(&mut c, 5);
            c.offer(4_000);
            c.pass(MS * 100);
            c.lose(1);
            ack_in_twos(&mut c);
            busy(&mut c, 24);
            c.window()
        });
        assert_eq!(credit, ratelimited, "{algorithm}");
    }
}

// RFC 9438 §4.2: the epoch excludes only time without an update of cwnd.
#[test]
fn cubic_does_not_leap_when_a_long_unused_window_is_used_again() {
    let mut c = after_a_loss("cubic(growth=ratelimited)");
    let start = c.window();
    limited(&mut c, 20, 3_000);
    assert_eq!(c.window(), start);
    for _ in 0..3 {
        c.offer(4_000);
        c.pass(MS * 100);
        c.ack(4_000);
    }
    assert_in(c.window(), ..start + 12 * 1_200);
}

// A ceiling limits the sender like the application: the algorithm's window grows up to the draft's bound.
#[test]
fn a_ceiling_counts_as_a_limit_in_either_mode() {
    for (growth, most) in [("credit", 60_000), ("ratelimited", 104_000)] {
        let mut c = connection(&format!("reno(growth={growth})+ceiling=pace"));
        c.known.set_average_rate(Some(crate::Bitrate::from_kbps(1_388)));
        busy(&mut c, 40);
        // 3 · 1,388 kbit/s · 100 ms.
        assert_eq!(c.window(), 52_050, "{growth}");
        let algorithm = c.snapshot().algorithm_window.map_or(0, crate::Bytes::as_u64);
        assert!((52_050..=most).contains(&algorithm), "{growth}: {algorithm}");
    }
}

// A sender limited by its own processor: the transport never reports that the application is the limit.
#[test]
fn no_window_grows_beyond_about_twice_the_largest_flight() {
    for text in WINDOW_BASED.into_iter().chain(["copa", "bbr"]) {
        let mut c = connection(text);
        for _ in 0..100 {
            c.send(15);
            c.pass(MS * 100);
            ack_in_twos(&mut c);
        }
        // BBR's window stands for a rate, 1.25 times what was delivered while it probes, and allows for aggregation.
        let most = if text == "bbr" { 3 * 15 } else { 2 * 17 };
        assert!(c.window() <= most * 1_200, "{text}: {}", c.window());
    }
}

#[test]
fn a_window_that_is_reduced_to_its_minimum_grows_again() {
    for text in WINDOW_BASED.into_iter().chain(["copa", "bbr"]) {
        let mut c = connection(text);
        busy(&mut c, 5);
        fly(&mut c, 10);
        c.lose_persistently(10);
        c.pass(MS);
        busy(&mut c, 5);
        assert!(c.window() >= 24_000, "{text}: {}", c.window());
    }
}
