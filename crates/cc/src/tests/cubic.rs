//! `cubic` through whole connections. The vectors of its curve are in `cubic_tests.rs`.

use super::actions::{Action, play};
use super::{MS, assert_in, state};
use crate::testing::Connection;
use crate::{Phase, Reason};
use Action::{Ack, Fly, Is, Lose, Pass, Persistent, Ssthresh, Window};
use core::time::Duration;
use rstest::rstest;

/// `cubic` in avoidance, K > 0, with 70 packets of 100 left after a loss; RTT 100 ms.
fn after_a_loss_at_100_packets() -> Connection {
    let steps = [
        Fly(90),
        Ack(90),
        Window(120_000),
        Fly(100),
        Lose(1),
        Pass(1),
        Ack(99),
    ];
    play("cubic", &steps)
}

#[rstest]
// RFC 9438 §4.6: ssthresh and cwnd become 0.7 of the window.
#[case::a_loss_leaves_seven_tenths_of_the_window(&[
    Fly(90), Ack(90), Fly(100), Lose(1), Window(84_000), Ssthresh(84_000), Is(Phase::Recovery, Reason::Loss),
])]
// RFC 9438 §4.2-4.5 with W_max 100, cwnd 70, RTT 0.1 s: the first ACK of one segment adds 0.0297704 segments = 35.72 B.
// The second adds 35.20 B and the third 34.68 B: 105.6 B in all, so no fraction of a byte is lost.
#[case::the_first_acks_of_an_epoch_move_towards_the_curve_one_round_trip_ahead(&[
    Fly(90), Ack(90), Fly(100), Lose(1), Pass(1), Ack(99), Fly(3),
    Ack(1), Window(84_035), Is(Phase::Avoidance, Reason::RecoveryEnded),
    Ack(1), Window(84_070), Ack(1), Window(84_105),
])]
// RFC 9438 §4.8: the timeout reduces ssthresh once; the window is the minimum.
#[case::persistent_congestion_reduces_ssthresh_once(&[
    Fly(90), Ack(90), Fly(10), Persistent(10), Window(2_400), Ssthresh(84_000),
])]
fn cubic_does_what_rfc_9438_says(#[case] actions: &[Action]) {
    play("cubic", actions);
}

/// Full windows, each acknowledged by one frame.
fn full_flights(c: &mut Connection, rounds: usize) {
    for _ in 0..rounds {
        c.offer(4_000);
        c.pass(MS * 100);
        c.ack(4_000);
    }
}

// RFC 9438 §4.2: W_cubic(K) = W_max, K = 4.217 s.
#[test]
fn the_window_is_back_at_its_maximum_after_k() {
    let mut c = after_a_loss_at_100_packets();
    full_flights(&mut c, 43);
    assert_in(c.window() / 1_200, 98..=101);
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
    assert_in(paused.window(), ..before_pause + 5 * 1_200);
    full_flights(&mut paused, 9);
    assert_in(busy_all_along.window().abs_diff(paused.window()), ..3 * 1_200);
}

// RFC 9438 §4.8: the first avoidance after a timeout has W_max = cwnd and K = 0, so growth starts out flat.
#[test]
fn the_epoch_after_a_timeout_starts_on_its_plateau() {
    let mut c = play("cubic", &[Fly(90), Ack(90), Fly(10), Persistent(10), Pass(1)]);
    full_flights(&mut c, 8);
    assert_eq!(state(&c), (Phase::Avoidance, Reason::ReachedSsthresh));
    let before = c.window();
    full_flights(&mut c, 2);
    assert_in(c.window() - before, ..2 * 1_200);
}
