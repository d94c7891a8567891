//! `reno` against RFC 9002 §7 and appendix B.

use super::{MS, connection, flight, fly, ssthresh, state, with_mtu};
use crate::testing::Connection;
use crate::{Bytes, Phase, Reason};
use rstest::rstest;

/// `reno` in recovery with a window of 12,000 B = ssthresh: a flight of ten packets arrived and one of the next was
/// lost. Ten more packets have left since, and their acknowledgement ends recovery.
fn after_a_loss() -> Connection {
    let mut c = connection("reno");
    flight(&mut c, 10);
    assert_eq!(c.window(), 24_000);
    fly(&mut c, 1);
    c.lose(1);
    c.pass(MS);
    fly(&mut c, 10);
    c
}

// RFC 9002 §7.2: ten packets, at most max(14,720 B, two packets).
#[rstest]
#[case(1_200, 12_000)]
#[case(1_252, 12_520)]
#[case(1_350, 13_500)]
#[case(1_452, 14_520)]
#[case(1_472, 14_720)]
#[case(1_500, 14_720)]
#[case(9_000, 18_000)]
fn the_initial_window_is_ten_packets_but_at_most_14720_bytes_or_two_packets(
    #[case] mtu: u64,
    #[case] window: u64,
) {
    let c = with_mtu("reno", mtu);
    assert_eq!(c.window(), window);
    assert_eq!(c.controller().initial_window(), Bytes::new(window));
}

// RFC 9002 §7.3.1, B.5.
#[test]
fn slow_start_doubles_the_window_each_round_trip() {
    let mut c = connection("reno");
    flight(&mut c, 10);
    assert_eq!(c.window(), 24_000);
    assert_eq!(c.snapshot().phase, Phase::Startup);
    assert_eq!(c.snapshot().ssthresh, None);
}

// RFC 9002 §7.8.
#[test]
fn an_app_limited_flight_does_not_grow_the_window() {
    let mut c = connection("reno");
    c.send(10);
    c.set_app_limited(true);
    c.pass(MS * 100);
    c.ack(10);
    assert_eq!(c.window(), 12_000);
}

// RFC 9002 §7.3.2, B.6: one reduction for each recovery.
#[test]
fn a_loss_halves_the_window_once_for_each_recovery() {
    let mut c = connection("reno");
    flight(&mut c, 10);
    fly(&mut c, 10);
    c.lose(1);
    assert_eq!(c.window(), 12_000);
    assert_eq!(ssthresh(&c), 12_000);
    assert_eq!(state(&c), (Phase::Recovery, Reason::Loss));
    c.pass(MS);
    c.lose(3);
    assert_eq!(c.window(), 12_000);
    c.ack(6);
    assert_eq!((c.window(), c.snapshot().phase), (12_000, Phase::Recovery));
}

// RFC 9002 §7.3.2: recovery ends with the acknowledgement of a packet sent during it. Unlike in quinn, packets sent at
// the time of construction count.
#[test]
fn packets_sent_at_the_moment_the_connection_began_can_be_lost_and_acknowledged() {
    let mut c = Connection::new(&super::spec("reno"));
    c.send(10);
    c.ack(2);
    assert_eq!(c.window(), 14_400);
    c.pass(MS * 100);
    c.lose(1);
    assert_eq!(c.window(), 7_200);
}

// RFC 9002 §7.3.3 with byte counting as in RFC 3465: exactly one packet for a window of acknowledged bytes.
#[test]
fn avoidance_adds_one_packet_for_each_window_acknowledged() {
    let mut c = after_a_loss();
    c.ack(9);
    assert_eq!((c.window(), c.snapshot().phase), (12_000, Phase::Avoidance));
    c.ack(1);
    assert_eq!(c.window(), 13_200);
    assert_eq!(c.snapshot().reason, Reason::RecoveryEnded);
}

// As above: acknowledged bytes beyond a window count towards the next packet.
#[test]
fn bytes_beyond_a_window_count_towards_the_next_packet() {
    let mut c = after_a_loss();
    c.send(11);
    c.ack(15);
    assert_eq!(c.window(), 13_200);
    c.ack(5);
    assert_eq!(c.window(), 13_200, "12,000 of 13,200 B");
    c.ack(1);
    assert_eq!(c.window(), 14_400);
}

// RFC 9002 B.5: InCongestionRecovery is `sent_time <= congestion_recovery_start_time`.
#[test]
fn packets_sent_at_the_moment_recovery_began_belong_to_it() {
    let mut c = connection("reno");
    fly(&mut c, 10);
    c.ack(9);
    c.send(4);
    c.lose(1);
    let window = c.window();
    c.pass(MS * 100);
    c.ack(2);
    assert_eq!((c.window(), c.snapshot().phase), (window, Phase::Recovery));
    c.lose(1);
    assert_eq!(c.window(), window);
}

// RFC 9002 §7.4: CE counts as a loss.
#[test]
fn an_ecn_mark_halves_the_window_as_a_loss_does() {
    let mut c = connection("reno");
    flight(&mut c, 10);
    c.ecn_ce();
    assert_eq!((c.window(), c.snapshot().reason), (12_000, Reason::EcnCe));
    c.ecn_ce();
    assert_eq!(c.window(), 12_000);
}

// RFC 9002 §7.6.2, B.8.
#[test]
fn persistent_congestion_with_a_fresh_loss_leaves_two_packets_and_half_the_window_as_ssthresh() {
    let mut c = connection("reno");
    fly(&mut c, 10);
    c.lose_persistently(10);
    assert_eq!(c.window(), 2_400);
    assert_eq!(ssthresh(&c), 6_000);
    assert_eq!(c.snapshot().phase, Phase::AfterPersistentCongestion);
}

// RFC 9002 B.8 is unconditional; quinn ignores it within a recovery.
#[test]
fn persistent_congestion_within_a_recovery_counts_and_ends_it() {
    let mut c = connection("reno");
    fly(&mut c, 10);
    c.lose(1);
    assert_eq!(c.window(), 6_000);
    c.pass(MS);
    c.lose_persistently(4);
    assert_eq!(c.window(), 2_400);
    assert_eq!(ssthresh(&c), 6_000);
    // There is no recovery: packets sent before the loss grow the window again.
    c.ack(1);
    assert_eq!(c.window(), 3_600);
}

// RFC 9002 §7.3.1: slow start while the window is below ssthresh.
#[test]
fn slow_start_after_persistent_congestion_ends_at_ssthresh_and_hands_the_rest_to_avoidance() {
    let mut c = connection("reno");
    fly(&mut c, 10);
    c.lose_persistently(10);
    c.pass(MS);
    flight(&mut c, 4);
    assert_eq!((c.window(), c.snapshot().phase), (6_000, Phase::Avoidance));
    assert_eq!(c.snapshot().reason, Reason::ReachedSsthresh);
    fly(&mut c, 4);
    c.ack(3);
    assert_eq!(c.window(), 6_000);
    c.ack(1);
    assert_eq!(c.window(), 7_200);
}

// RFC 9002 §7.2: the window is never below two packets.
#[test]
fn losses_never_shrink_the_window_below_two_packets() {
    let mut c = connection("reno");
    for _ in 0..8 {
        c.send(1);
        c.pass(MS * 10);
        c.lose(1);
        c.pass(MS);
    }
    assert_eq!(c.window(), 2_400);
}

// RFC 9002 §7.2: "the congestion window SHOULD be set to the new initial congestion window" on a smaller MTU
// during the handshake.
#[test]
fn a_smaller_mtu_before_anything_is_acknowledged_sets_the_new_initial_window() {
    let mut c = with_mtu("reno", 1_452);
    assert_eq!(c.window(), 14_520);
    c.change_mtu(Bytes::new(1_200));
    assert_eq!(c.window(), 12_000);
    c.send(1);
    c.pass(MS);
    c.ack(1);
    c.change_mtu(Bytes::new(1_000));
    assert_eq!(c.window(), 13_200);
}

#[test]
fn a_larger_mtu_keeps_the_window_but_raises_the_initial_and_the_smallest_one() {
    let mut c = connection("reno");
    c.change_mtu(Bytes::new(9_000));
    assert_eq!(c.window(), 18_000);
    assert_eq!(c.controller().initial_window(), Bytes::new(18_000));
    assert_eq!(c.snapshot().reason, Reason::MtuChanged);
}
