//! The classification of congestive losses, and the course of the ceiling.

use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::Bytes;
use crate::tests::{MTU, assert_in, at, close};

/// The latest RTT and, if one counts, the largest, in ms; the smallest is 100 ms.
#[derive(Clone, Copy)]
struct Rtts {
    latest: u64,
    max: Option<u64>,
}

const EMPTY: Rtts = Rtts {
    latest: 100,
    max: Some(200),
};
const FULL: Rtts = Rtts {
    latest: 190,
    max: Some(200),
};

fn core(rtts: Rtts) -> Core {
    let mut core = Core::sample(300_000, 100, 100);
    core.rtt = Rtt::default();
    // A packet acknowledged alone does not count towards the largest RTT.
    core.rtt.on_batch(at(1_100), at(1_000), 1);
    if let Some(max) = rtts.max {
        core.rtt.on_batch(at(2_000 + max), at(2_000), 2);
    }
    core.rtt.on_batch(at(10_000 + rtts.latest), at(10_000), 1);
    core
}

fn batch((sent, now): (u64, u64), packets: u32, in_flight: u64) -> Batch {
    Batch {
        acked: u64::from(packets) * MTU,
        newest_sent: at(sent),
        now: at(now),
        in_flight,
        packets,
        ..Batch::default()
    }
}

fn ack(guard: &mut LossGuard, times: (u64, u64), packets: u32, in_flight: u64) {
    guard.on_batch(&mut core(FULL), &batch(times, packets, in_flight));
}

fn lose(guard: &mut LossGuard, times: (u64, u64), rtts: Rtts) {
    congest(guard, times, rtts, Signal::loss(Bytes::new(MTU)));
}

fn congest(guard: &mut LossGuard, (sent, now): (u64, u64), rtts: Rtts, signal: Signal) {
    let event = Congestion::new(at(now), at(sent), signal);
    guard.on_congestion(&core(rtts), &event);
}

fn limit(guard: &mut LossGuard, window: u64) -> u64 {
    guard.adjust(&core(FULL), window)
}

/// The ceiling of a guard, bytes.
fn ceiling(guard: &LossGuard) -> Option<u64> {
    guard.ceiling.map(|ceiling| ceiling.bytes)
}

/// The loss average, 0 to 1.
fn average(guard: &LossGuard) -> f64 {
    f64::from(guard.average) / f64::from(WHOLE)
}

/// 250 kB in flight before an ACK of two packets at 200 ms.
fn busy() -> LossGuard {
    let mut guard = LossGuard::default();
    ack(&mut guard, (0, 200), 2, 247_600);
    guard
}

/// The same after a loss with a full queue.
fn cut() -> LossGuard {
    let mut guard = busy();
    lose(&mut guard, (50, 200), FULL);
    guard
}

#[rstest]
#[case::three_quarters(175, Some(200), true)]
#[case::less(174, Some(200), false)]
#[case::no_queue_was_ever_seen(105, Some(105), false)]
#[case::hardly_one(106, Some(106), true)]
#[case::nothing_known(300, None, false)]
#[case::below_the_smallest(90, Some(200), false)]
fn a_loss_is_congestive_when_the_queue_is_three_quarters_full(
    #[case] latest: u64,
    #[case] max: Option<u64>,
    #[case] congestive: bool,
) {
    let mut guard = busy();
    lose(&mut guard, (50, 200), Rtts { latest, max });
    assert_eq!(guard.ceiling.is_some(), congestive);
}

#[test]
fn a_congestive_loss_cuts_to_seven_tenths_of_what_was_in_flight() {
    let mut guard = busy();
    assert_eq!(limit(&mut guard, 300_000), 300_000);
    lose(&mut guard, (50, 200), FULL);
    assert_eq!(ceiling(&guard), Some(175_000));
    assert_eq!(limit(&mut guard, 300_000), 175_000);
    assert_eq!(limit(&mut guard, 100_000), 100_000);
}

#[test]
fn one_round_trip_is_cut_once() {
    let mut guard = cut();
    ack(&mut guard, (60, 210), 2, 200_000);
    lose(&mut guard, (60, 210), FULL);
    assert_eq!(ceiling(&guard), Some(175_000));
    // A packet that left after the cut is lost, 120 kB in flight.
    ack(&mut guard, (205, 400), 2, 117_600);
    lose(&mut guard, (205, 400), FULL);
    assert_eq!(ceiling(&guard), Some(84_000));
}

#[test]
fn a_loss_never_raises_the_ceiling() {
    let mut guard = cut();
    ack(&mut guard, (201, 400), 2, 400_000);
    lose(&mut guard, (201, 400), FULL);
    assert!(ceiling(&guard) < Some(190_000));
}

/// Clean round trips of 100 ms from 200 ms on until `until` (ms).
fn clean(guard: &mut LossGuard, until: u64) {
    for now in (300..=until).step_by(100) {
        ack(guard, (now - 100, now), 2, 100_000);
    }
}

// RFC 9438 figure 1 from 200 ms on, with W_max = 250,000 B of 1,200 B: K = cbrt(62.5/0.4) = 5.386 s.
#[rstest]
#[case::at_half_of_k(2_900, 240_701)]
#[case::at_k(5_600, 250_000)]
#[case::beyond_it(8_300, 259_596)]
fn clean_round_trips_raise_it_as_cubic_raises_its_window(#[case] until: u64, #[case] expected: u64) {
    let mut guard = cut();
    clean(&mut guard, until);
    let ceiling = ceiling(&guard).expect("a ceiling");
    assert_in(ceiling.abs_diff(expected), ..1_000);
}

#[test]
fn the_round_trip_of_a_cut_does_not_raise_it() {
    let mut guard = cut();
    ack(&mut guard, (200, 400), 2, 100_000);
    assert_eq!(ceiling(&guard), Some(175_000));
}

// RFC 9438 §4.3: α = 3·0.3/1.7 = 0.529 packets per round trip.
#[test]
fn a_small_ceiling_rises_as_fast_as_renos_window() {
    let mut guard = LossGuard::default();
    ack(&mut guard, (0, 10), 2, 21_600);
    lose(&mut guard, (5, 10), FULL);
    assert_eq!(ceiling(&guard), Some(16_800));
    for now in (20..=110).step_by(10) {
        ack(&mut guard, (now - 10, now), 2, 12_000);
    }
    let ceiling = ceiling(&guard).expect("a ceiling");
    assert_in(ceiling.abs_diff(16_800 + 9 * 635), ..10);
}

#[test]
fn it_goes_when_the_window_is_less_than_half_of_it() {
    let mut guard = cut();
    limit(&mut guard, 87_500);
    assert!(guard.ceiling.is_some());
    limit(&mut guard, 87_499);
    assert_eq!(ceiling(&guard), None);
    assert_eq!(limit(&mut guard, 300_000), 300_000);
}

/// `percent` of the packets of each of 40 round trips of 100 packets are lost, with an empty queue.
fn random_loss(percent: u32) -> LossGuard {
    let mut guard = LossGuard::default();
    for sent in (0..4_000).step_by(100) {
        ack(&mut guard, (sent, sent + 100), 100 - percent, 50_000);
        for _ in 0..percent {
            lose(&mut guard, (sent, sent + 100), EMPTY);
        }
    }
    guard
}

#[rstest]
#[case(1, false)]
#[case(5, false)]
#[case(9, false)]
#[case(12, true)]
fn random_loss_is_left_alone_up_to_a_tenth(#[case] percent: u32, #[case] congestive: bool) {
    let guard = random_loss(percent);
    assert_eq!(guard.ceiling.is_some(), congestive, "{}", average(&guard));
    close(average(&guard), f64::from(percent) / 100.0, 0.002);
}

#[test]
fn round_trips_of_few_packets_are_joined() {
    let mut guard = LossGuard::default();
    ack(&mut guard, (0, 100), 1, 1_200);
    lose(&mut guard, (10, 110), EMPTY);
    for round in 1..6 {
        ack(&mut guard, (round * 100, (round + 1) * 100), 1, 1_200);
        assert_eq!(guard.average, 0, "7 packets are too few");
    }
    ack(&mut guard, (600, 700), 1, 1_200);
    // A quarter of 1 in 8.
    close(average(&guard), 0.25 / 8.0, 0.000_1);
}

#[test]
fn a_mark_is_congestive_and_persistent_congestion_starts_anew() {
    let mut guard = busy();
    congest(&mut guard, (50, 200), EMPTY, Signal::EcnCe);
    assert_eq!(ceiling(&guard), Some(175_000));
    let persistent = Signal::Loss {
        bytes: Bytes::new(50_000),
        persistent: true,
    };
    congest(&mut guard, (150, 300), FULL, persistent);
    assert_eq!(ceiling(&guard), None);
    assert_eq!(guard.average, 0);
}

#[test]
fn the_ceiling_stays_above_four_packets_of_a_larger_mtu() {
    let mut guard = LossGuard::default();
    ack(&mut guard, (0, 100), 2, 2_400);
    lose(&mut guard, (50, 100), FULL);
    assert_eq!(limit(&mut guard, 20_000), 4_800);
    let mut core = core(FULL);
    core.set_mtu(Bytes::new(9_000));
    assert_eq!(guard.adjust(&core, 50_000), 36_000);
}

/// Ten round trips of 200 ms and 100 packets, after an RTT of 1 s that the path no longer has.
fn after_a_longer_queue(lost: u64) -> (LossGuard, Core) {
    let mut core = core(Rtts {
        latest: 100,
        max: Some(1_000),
    });
    let mut guard = LossGuard::default();
    for now in (20_000..22_000).step_by(200) {
        core.rtt.on_batch(at(now), at(now - 200), 2);
        for _ in 0..lost {
            let event = Congestion::new(at(now), at(now - 200), Signal::loss(Bytes::new(MTU)));
            guard.on_congestion(&core, &event);
        }
        let mut frame = batch((now - 200, now), 100, 50_000);
        frame.acked = (100 - lost) * MTU;
        guard.on_batch(&mut core, &frame);
    }
    (guard, core)
}

// A queue of 100 ms that loses 9 % overflows, even if an earlier queue was longer.
#[test]
fn losses_refute_a_largest_rtt_that_the_path_no_longer_has() {
    let (guard, core) = after_a_longer_queue(9);
    assert_eq!(core.rtt.max_ns(), Some(200_000_000));
    assert!(ceiling(&guard).is_some(), "and are congestive then");
}

#[test]
fn few_losses_leave_the_largest_rtt_as_it_is() {
    let (guard, core) = after_a_longer_queue(1);
    assert_eq!(core.rtt.max_ns(), Some(1_000_000_000));
    assert_eq!(ceiling(&guard), None);
}

// 3 s without an ACK frame while 50,000 B are in flight; packets sent before it ends have RTTs of 3 s.
#[test]
fn an_rtt_of_a_path_that_stood_still_is_no_queue() {
    let mut core = core(EMPTY);
    let mut guard = LossGuard::default();
    let mut max_after = |sent: u64, now: u64| {
        core.rtt.on_batch(at(now), at(sent), 2);
        guard.on_batch(&mut core, &batch((sent, now), 2, 50_000));
        core.rtt.max_ns()
    };
    max_after(19_900, 20_000);
    assert_eq!(max_after(20_001, 23_100), Some(3_099_000_000), "for the moment");
    max_after(20_050, 23_110);
    assert_eq!(max_after(23_101, 23_210), Some(200_000_000), "as before");
}

fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), 1..100_000_u64, Just(u64::MAX)]
}

proptest! {
    #[test]
    fn no_numbers_take_the_limit_out_of_its_bounds(
        steps in prop::collection::vec((any::<u64>(), any::<u64>(), any_bytes(), any_bytes(), 1..20_u32), 1..200),
    ) {
        let mut core = core(FULL);
        let mut guard = LossGuard::default();
        for (now, sent, bytes, in_flight, kind) in steps {
            let (now, sent) = (Timestamp::from_nanos(now), Timestamp::from_nanos(sent));
            let signal = Signal::Loss { bytes: Bytes::new(bytes), persistent: kind == 15 };
            match kind {
                1..=10 => {
                    let batch = Batch {
                        acked: bytes,
                        newest_sent: sent,
                        now,
                        in_flight,
                        packets: kind,
                        ..Batch::default()
                    };
                    guard.on_batch(&mut core, &batch);
                }
                11..=15 => guard.on_congestion(&core, &Congestion::new(now, sent, signal)),
                _ => guard.on_congestion(&core, &Congestion::new(now, sent, Signal::EcnCe)),
            }
            let limited = guard.adjust(&core, 100_000);
            prop_assert!(limited <= 100_000 && limited > 0);
            prop_assert!(guard.average <= WHOLE);
        }
    }
}
