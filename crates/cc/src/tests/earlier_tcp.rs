//! Senders of 2010 to 2015: what an ACK frame counts for, the first window, a threshold that is remembered. mtu
//! 1200.

use super::{MS, WINDOW_BASED, busy, connection, flight, fly, ssthresh, state, with_mtu};
use crate::registry::Registry;
use crate::testing::Connection;
use crate::{Bytes, Phase, Reason};
use rstest::rstest;

/// Acknowledges all that is in flight, two packets by each frame.
fn delayed_acks(c: &mut Connection) {
    while c.packets_in_flight() > 0 {
        c.ack(2);
    }
}

// RFC 5681 §3.1 eq. (2): cwnd += min(N, SMSS) per ACK; five frames for ten packets add five packets.
#[test]
fn slow_start_by_frames_grows_by_half_when_each_acknowledges_two_packets() {
    for algorithm in Registry::builtin().controllers() {
        let name = algorithm.name();
        let mut c = connection(&format!("{name}(counting=acks)"));
        fly(&mut c, 10);
        delayed_acks(&mut c);
        assert_eq!(c.window(), 12_000 + 5 * 1_200, "{name}");
        let mut c = connection(&format!("{name}(counting=acks)"));
        fly(&mut c, 10);
        for _ in 0..10 {
            c.ack(1);
        }
        assert_eq!(c.window(), 24_000, "{name}: every packet has a frame of its own");
    }
}

#[test]
fn a_frame_that_acknowledges_a_whole_flight_counts_for_one_packet() {
    let mut c = connection("reno(counting=acks)");
    flight(&mut c, 10);
    assert_eq!(c.window(), 13_200);
}

/// In avoidance with 12,000 B, a flight of 100 packets on its way.
fn in_avoidance(text: &str) -> Connection {
    let mut c = connection(text);
    for _ in 0..10 {
        flight(&mut c, 1);
    }
    assert_eq!(c.window(), 24_000, "{text}");
    fly(&mut c, 1);
    c.lose(1);
    c.pass(MS);
    fly(&mut c, 100);
    c
}

// RFC 5681 §3.1 eq. (3): cwnd += SMSS·SMSS/cwnd per ACK: ten frames for ten packets, be they of one or two.
#[rstest]
#[case("reno(counting=acks)", 10)]
#[case("reno", 5)]
fn avoidance_by_frames_takes_a_window_of_frames_for_one_packet(#[case] text: &str, #[case] frames: usize) {
    let mut c = in_avoidance(text);
    assert_eq!(c.window(), 12_000);
    for _ in 1..frames {
        c.ack(2);
    }
    assert_eq!(c.window(), 12_000, "{text}");
    c.ack(2);
    assert_eq!(
        (c.window(), c.snapshot().phase),
        (13_200, Phase::Avoidance),
        "{text}"
    );
}

// 1200²/12,000 = 120 B by a frame; by bytes twice that for two packets.
#[rstest]
#[case("compound(counting=acks)", 12_120)]
#[case("compound", 12_240)]
fn compounds_loss_window_grows_by_frames_too(#[case] text: &str, #[case] bytes: u64) {
    let mut c = in_avoidance(text);
    c.ack(2);
    assert_eq!(c.window(), bytes);
}

// Linux 3.6 `cnt = (cnt << ACK_RATIO_SHIFT) / delayed_ack`: the curve makes up for delayed ACKs.
#[test]
fn cubics_curve_is_the_same_however_frames_are_counted() {
    let windows = ["bytes", "acks"].map(|counting| {
        let mut c = in_avoidance(&format!("cubic(counting={counting})"));
        delayed_acks(&mut c);
        busy(&mut c, 40);
        assert_eq!(c.snapshot().phase, Phase::Avoidance);
        c.window()
    });
    assert_eq!(windows[0], windows[1]);
}

#[test]
fn frames_of_a_sender_that_is_not_limited_by_its_window_count_for_nothing() {
    for algorithm in WINDOW_BASED {
        let mut c = connection(&format!("{algorithm}(counting=acks)"));
        c.send(8);
        c.set_app_limited(true);
        c.pass(MS * 100);
        delayed_acks(&mut c);
        assert_eq!(c.window(), 12_000, "{algorithm}");
    }
}

// RFC 3390 and Linux before 2.6.39: 3 segments of 1460 B; RFC 6928: 10; RFC 9002 §7.2 caps at 14,720 B.
#[rstest]
#[case("reno(initial_window=3)", 1_200, 3_600)]
#[case("reno(initial_window=3)", 1_460, 4_380)]
#[case("cubic(initial_window=10)", 1_500, 15_000)]
#[case("cubic", 1_500, 14_720)]
#[case("cubic(initial_window=2)", 1_200, 2_400)]
#[case("cubic(initial_window=1)", 1_200, 2_400)] // the smallest window is two packets,
#[case("ccp(initial_window=3)", 1_200, 4_800)] // for ccp four
fn a_connection_begins_with_as_many_packets_as_it_is_given(
    #[case] text: &str,
    #[case] mtu: u64,
    #[case] window: u64,
) {
    let c = with_mtu(text, mtu);
    assert_eq!(c.window(), window);
    assert_eq!(c.controller().initial_window(), Bytes::new(window));
}

// RFC 5681 §4.1: RW = min(IW, cwnd).
#[test]
fn a_pause_restarts_from_the_initial_window_that_was_given() {
    let mut c = connection("reno(initial_window=3)+idle=rfc5681");
    busy(&mut c, 4);
    assert!(c.window() > 12_000);
    c.pass(MS * 2_000);
    c.send(1);
    assert_eq!((c.window(), state(&c)), (3_600, (Phase::AfterIdle, Reason::Idle)));
}

// Linux `tcp_init_metrics`: snd_ssthresh is what the route remembers.
#[test]
fn a_remembered_threshold_ends_slow_start_without_a_loss() {
    for algorithm in ["reno", "cubic", "compound"] {
        let mut c = connection(&format!("{algorithm}(ssthresh=24kB)"));
        assert_eq!(ssthresh(&c), 24_000);
        fly(&mut c, 10);
        for _ in 0..9 {
            c.ack(1);
        }
        assert_eq!(
            (c.window(), c.snapshot().phase),
            (22_800, Phase::Startup),
            "{algorithm}"
        );
        c.ack(1);
        let left = (Phase::Avoidance, Reason::ReachedSsthresh);
        assert_eq!((c.window(), state(&c)), (24_000, left), "{algorithm}");
    }
}

#[test]
fn nothing_remembered_leaves_the_threshold_infinite() {
    let c = connection("reno(ssthresh=0)");
    assert_eq!(c.snapshot().ssthresh, None);
    assert_eq!(
        super::spec("reno(ssthresh=0,initial_window=0,counting=bytes)").to_string(),
        "reno"
    );
}
