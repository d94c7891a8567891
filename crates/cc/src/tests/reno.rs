//! `reno` against RFC 9002 §7 and appendix B.

use super::actions::{Action, play};
use super::{MS, connection, with_mtu};
use crate::testing::Connection;
use crate::{Bytes, Phase, Reason};
use Action::{Ack, Fly, Is, Limited, Lose, Mark, Pass, Persistent, Send, Ssthresh, Window};
use rstest::rstest;

const INFINITE: u64 = u64::MAX;

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

#[rstest]
// RFC 9002 §7.3.1, B.5.
#[case::slow_start_doubles_the_window_each_round_trip(&[
    Fly(10), Ack(10), Window(24_000), Ssthresh(INFINITE), Is(Phase::Startup, Reason::Began),
])]
// RFC 9002 §7.8.
#[case::an_app_limited_flight_does_not_grow_the_window(&[Send(10), Limited, Pass(100), Ack(10), Window(12_000)])]
// RFC 9002 §7.3.2, B.6: one reduction for each recovery.
#[case::a_loss_halves_the_window_once_for_each_recovery(&[
    Fly(10), Ack(10), Fly(10), Lose(1), Window(12_000), Ssthresh(12_000), Is(Phase::Recovery, Reason::Loss),
    Pass(1), Lose(3), Window(12_000),
    Ack(6), Window(12_000), Is(Phase::Recovery, Reason::Loss),
])]
// RFC 9002 §7.3.3 with byte counting as in RFC 3465: exactly one packet for a window of acknowledged bytes.
#[case::avoidance_adds_one_packet_for_each_window_acknowledged(&[
    Fly(10), Ack(10), Fly(1), Lose(1), Pass(1), Fly(10),
    Ack(9), Window(12_000), Is(Phase::Avoidance, Reason::RecoveryEnded),
    Ack(1), Window(13_200), Is(Phase::Avoidance, Reason::RecoveryEnded),
])]
// As above: acknowledged bytes beyond a window count towards the next packet.
#[case::bytes_beyond_a_window_count_towards_the_next_packet(&[
    Fly(10), Ack(10), Fly(1), Lose(1), Pass(1), Fly(10), Send(11),
    Ack(15), Window(13_200), Ack(5), Window(13_200), Ack(1), Window(14_400),
])]
// RFC 9002 B.5: InCongestionRecovery is `sent_time <= congestion_recovery_start_time`.
#[case::packets_sent_at_the_moment_recovery_began_belong_to_it(&[
    Fly(10), Ack(9), Send(4), Lose(1), Window(11_400),
    Pass(100), Ack(2), Window(11_400), Is(Phase::Recovery, Reason::Loss), Lose(1), Window(11_400),
])]
// RFC 9002 §7.4: CE counts as a loss.
#[case::an_ecn_mark_halves_the_window_as_a_loss_does(&[
    Fly(10), Ack(10), Mark, Window(12_000), Is(Phase::Recovery, Reason::EcnCe), Mark, Window(12_000),
])]
// RFC 9002 §7.6.2, B.8.
#[case::persistent_congestion_with_a_fresh_loss_leaves_two_packets_and_half_the_window_as_ssthresh(&[
    Fly(10), Persistent(10), Window(2_400), Ssthresh(6_000),
    Is(Phase::AfterPersistentCongestion, Reason::PersistentCongestion),
])]
// RFC 9002 B.8 is unconditional; quinn ignores it within a recovery. Packets sent before it grow the window again.
#[case::persistent_congestion_within_a_recovery_counts_and_ends_it(&[
    Fly(10), Lose(1), Window(6_000), Pass(1), Persistent(4), Window(2_400), Ssthresh(6_000), Ack(1), Window(3_600),
])]
// RFC 9002 §7.3.1: slow start while the window is below ssthresh.
#[case::slow_start_after_persistent_congestion_ends_at_ssthresh_and_hands_the_rest_to_avoidance(&[
    Fly(10), Persistent(10), Pass(1), Fly(4), Ack(4), Window(6_000), Is(Phase::Avoidance, Reason::ReachedSsthresh),
    Fly(4), Ack(3), Window(6_000), Ack(1), Window(7_200),
])]
fn reno_does_what_rfc_9002_says(#[case] actions: &[Action]) {
    play("reno", actions);
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

// RFC 9002 §7.2: the window is never below two packets.
#[test]
fn losses_never_shrink_the_window_below_two_packets() {
    let once = [Send(1), Pass(10), Lose(1), Pass(1)];
    assert_eq!(play("reno", &once.repeat(8)).window(), 2_400);
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
