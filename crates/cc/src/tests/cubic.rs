//! `cubic` through whole connections. The vectors of its curve are in `cubic_tests.rs`.

use super::{MS, connection, flight, fly, state};
use crate::testing::Connection;
use crate::{Bytes, Phase, Reason};
use core::time::Duration;

/// `cubic` in avoidance, K > 0, with 70 packets of 100 left after a loss; RTT 100 ms.
fn after_a_loss_at_100_packets() -> Connection {
    let mut c = connection("cubic");
    c.set_smoothed_rtt(Some(MS * 100));
    flight(&mut c, 90);
    assert_eq!(c.window(), 120_000);
    fly(&mut c, 100);
    c.lose(1);
    c.pass(MS);
    c.ack(99);
    c
}

// RFC 9438 §4.6: ssthresh and cwnd become 0.7 of the window.
#[test]
fn a_loss_leaves_seven_tenths_of_the_window() {
    let c = after_a_loss_at_100_packets();
    assert_eq!(c.window(), 84_000);
    assert_eq!(c.snapshot().ssthresh, Some(Bytes::new(84_000)));
    assert_eq!(c.snapshot().phase, Phase::Recovery);
}

// RFC 9438 §4.2-4.5 with W_max 100, cwnd 70, RTT 0.1 s: the first ACK of one segment adds 0.0297704 segments = 35.72 B.
// The second adds 35.20 B and the third 34.68 B: 105.6 B in all, so no fraction of a byte is lost.
#[test]
fn the_first_acks_of_an_epoch_move_towards_the_curve_one_round_trip_ahead() {
    let mut c = after_a_loss_at_100_packets();
    fly(&mut c, 3);
    c.ack(1);
    assert_eq!((c.window(), c.snapshot().phase), (84_035, Phase::Avoidance));
    c.ack(1);
    assert_eq!(c.window(), 84_070);
    c.ack(1);
    assert_eq!(c.window(), 84_105);
}

/// Full windows, each acknowledged by one frame.
fn full_flights(c: &mut Connection, rounds: usize) {
    for _ in 0..rounds {
        c.offer(4_000);
        c.pass(MS * 100);
        c.ack(4_000);
    }
}

/// `cubic` after a flight of 90 packets, and after persistent congestion among the next ten.
fn after_persistent_congestion() -> Connection {
    let mut c = connection("cubic");
    c.set_smoothed_rtt(Some(MS * 100));
    flight(&mut c, 90);
    fly(&mut c, 10);
    c.lose_persistently(10);
    c
}

// RFC 9438 §4.2: W_cubic(K) = W_max, K = 4.217 s.
#[test]
fn the_window_is_back_at_its_maximum_after_k() {
    let mut c = after_a_loss_at_100_packets();
    full_flights(&mut c, 43);
    let segments = c.window() / 1_200;
    assert!((98..=101).contains(&segments), "{segments}");
}

// RFC 9438 §4.2: time without use of the window MUST NOT count. (quinn counts it.)
#[test]
fn app_limited_and_idle_time_does_not_move_the_curve() {
    let mut busy_all_along = after_a_loss_at_100_packets();
    full_flights(&mut busy_all_along, 20);

    let mut paused = after_a_loss_at_100_packets();
    full_flights(&mut paused, 10);
    for _ in 0..100 {
        paused.send(1);
        paused.set_app_limited(true);
        paused.pass(MS * 100);
        paused.ack(1);
    }
    let before_pause = paused.window();
    paused.pass(Duration::from_secs(60));
    full_flights(&mut paused, 1);
    assert!(
        paused.window() < before_pause + 5 * 1_200,
        "{} after {before_pause}",
        paused.window()
    );
    full_flights(&mut paused, 9);
    let (a, b) = (busy_all_along.window(), paused.window());
    assert!(a.abs_diff(b) < 3 * 1_200, "{a} and {b}");
}

// RFC 9438 §4.8: the timeout reduces ssthresh once; the window is the minimum.
#[test]
fn persistent_congestion_reduces_ssthresh_once() {
    let c = after_persistent_congestion();
    assert_eq!(c.window(), 2_400);
    assert_eq!(c.snapshot().ssthresh, Some(Bytes::new(84_000)));
}

// RFC 9438 §4.8: the first avoidance after a timeout has W_max = cwnd and K = 0, so growth starts out flat.
#[test]
fn the_epoch_after_a_timeout_starts_on_its_plateau() {
    let mut c = after_persistent_congestion();
    c.pass(MS);
    full_flights(&mut c, 8);
    assert_eq!(state(&c), (Phase::Avoidance, Reason::ReachedSsthresh));
    let before = c.window();
    full_flights(&mut c, 2);
    assert!(c.window() - before < 2 * 1_200, "{before} -> {}", c.window());
}
