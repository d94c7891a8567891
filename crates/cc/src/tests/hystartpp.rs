//! `start=hystartpp` against RFC 9406.

use super::trace::{LINK, Link, Trace, lossless};
use super::{MS, ack_one_by_one, assert_in, connection, limited_flight, state};
use crate::testing::Connection;
use crate::{Bitrate, Bytes, Phase, Reason};
use core::time::Duration;

/// One round of `packets` packets, each acknowledged on its own, with an RTT of `rtt`.
fn round(c: &mut Connection, packets: usize, rtt: Duration) {
    c.send(packets);
    c.pass(rtt);
    ack_one_by_one(c);
}

/// One round at 100 ms, then rounds at 113 ms until conservative slow start has begun.
fn in_conservative_slow_start() -> Connection {
    let mut c = connection("reno+start=hystartpp");
    limited_flight(&mut c, 60);
    round(&mut c, 10, MS * 100);
    round(&mut c, 10, MS * 100);
    assert_eq!(c.window(), 36_000);
    round(&mut c, 8, MS * 113);
    assert_eq!(c.window(), 36_000 + 8 * 1_200);
    c
}

// RFC 9406 §4.2: in CSS the window grows by a quarter of the acknowledged bytes: ack 12,000 adds 3,000.
#[test]
fn conservative_slow_start_grows_a_quarter_as_fast() {
    let mut c = in_conservative_slow_start();
    let before = c.window();
    round(&mut c, 10, MS * 113);
    assert_eq!(c.window(), before + 3_000);
    assert_eq!(c.snapshot().phase, Phase::Startup);
}

// RFC 9406 §4.2: after CSS_ROUNDS = 5 rounds, including that of the start of CSS, ssthresh = cwnd.
#[test]
fn avoidance_begins_after_five_rounds_of_conservative_slow_start() {
    let mut c = in_conservative_slow_start();
    for _ in 0..4 {
        round(&mut c, 10, MS * 113);
        assert_eq!(c.snapshot().phase, Phase::Startup);
    }
    let window = c.window();
    round(&mut c, 10, MS * 113);
    assert_eq!(state(&c), (Phase::Avoidance, Reason::RttRose));
    assert_eq!(c.snapshot().ssthresh, Some(Bytes::new(window)));
}

// RFC 9406 §4.2: an RTT below the baseline resumes slow start.
#[test]
fn slow_start_resumes_when_the_rtt_falls_again() {
    let mut c = in_conservative_slow_start();
    round(&mut c, 8, MS * 100);
    let before = c.window();
    round(&mut c, 8, MS * 100);
    assert_eq!(c.window(), before + 8 * 1_200);
}

// RFC 9406 §4.2 with lastRoundMinRTT 100 ms: 112 ms is below the threshold of 112.5 ms.
#[test]
fn a_rise_below_the_threshold_changes_nothing() {
    let mut c = connection("reno+start=hystartpp");
    limited_flight(&mut c, 60);
    round(&mut c, 10, MS * 100);
    round(&mut c, 10, MS * 100);
    for _ in 0..4 {
        round(&mut c, 10, MS * 112);
    }
    assert_eq!(c.window(), 12_000 + 60 * 1_200);
}

// RFC 9406 §4.3: a loss in either phase is an ordinary loss.
#[test]
fn a_loss_in_conservative_slow_start_halves_the_window() {
    let mut c = in_conservative_slow_start();
    let before = c.window();
    c.send(2);
    c.pass(MS * 113);
    c.lose(1);
    assert_eq!(c.window(), before / 2);
    assert_eq!(c.snapshot().phase, Phase::Recovery);
}

// RFC 9406 §4.3: only for the initial slow start.
#[test]
fn slow_start_after_persistent_congestion_is_the_standard_one() {
    let mut c = connection("reno+start=hystartpp");
    round(&mut c, 50, MS * 100);
    c.send(10);
    c.pass(MS * 100);
    c.lose_persistently(10);
    let ssthresh = c.snapshot().ssthresh.expect("set by the loss");
    c.pass(MS);
    limited_flight(&mut c, 30);
    for rtt in [100, 150, 200, 250] {
        let window = c.window();
        round(&mut c, 9, MS * rtt);
        assert_eq!(c.window(), (window + 9 * 1_200).min(ssthresh.as_u64()));
    }
}

/// A transfer over 5 Mbit/s and 100 ms with a queue of this many bytes.
fn start_over(queue: u64, text: &str) -> Trace {
    let link = Link {
        rate: Bitrate::from_mbps(5),
        queue: Bytes::new(queue),
        ..LINK
    };
    lossless(link, text)
}

// The first packets of a round find the queue empty and the last ones find it full. The smallest RTT of the round that
// acknowledges them is the first packet's, so it has not risen, and the loss comes before the next round.
#[test]
fn a_queue_that_one_round_overflows_gives_no_warning() {
    let standard = start_over(24_000, "cubic");
    assert!(standard.lost(0, 2) > 0);
    let windows = |trace: &Trace| trace.within(0, 2).map(|round| round.window).collect::<Vec<_>>();
    let hystartpp = start_over(24_000, "cubic+start=hystartpp");
    assert_eq!(windows(&hystartpp), windows(&standard));
}

#[test]
fn a_queue_of_two_pipes_is_left_in_time_for_half_of_the_losses() {
    let lost = |text| start_over(125_000, text).lost(0, 2);
    assert_in(lost("cubic+start=hystartpp") * 2, ..lost("cubic"));
}
