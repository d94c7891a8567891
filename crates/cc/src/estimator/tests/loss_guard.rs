//! The loss guard: which losses are congestive, and what becomes of the ceiling.

use core::time::Duration;

use rstest::rstest;

use crate::estimator::{LossGuard, RttRange};
use crate::events::{AckBatch, Acked, Congestion, MtuChange, Signal};
use crate::{Bytes, Timestamp};

const MTU: u64 = 1_200;

fn at(ms: u64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn rtts(latest: u64, max: Option<u64>) -> RttRange {
    RttRange {
        latest: Duration::from_millis(latest),
        min: Duration::from_millis(100),
        max: max.map(Duration::from_millis),
    }
}

fn ack(guard: &mut LossGuard, sent: u64, now: u64, packets: u32, in_flight: u64) {
    guard.on_acked(&Acked {
        now: at(now),
        sent: at(sent),
        bytes: Bytes::new(u64::from(packets) * MTU),
        packets,
        app_limited: false,
    });
    guard.on_ack_batch(&AckBatch {
        now: at(now),
        in_flight: Bytes::new(in_flight),
        app_limited: false,
        smoothed_rtt: None,
    });
}

fn lose(guard: &mut LossGuard, sent: u64, now: u64, rtt: RttRange) {
    congest(
        guard,
        sent,
        now,
        rtt,
        Signal::Loss {
            bytes: Bytes::new(MTU),
            persistent: false,
        },
    );
}

fn congest(guard: &mut LossGuard, sent: u64, now: u64, rtt: RttRange, signal: Signal) {
    let event = Congestion {
        now: at(now),
        newest_sent: at(sent),
        signal,
    };
    guard.on_congestion(&event, &rtt);
}

/// 250 kB in flight before an ACK of two packets at 200 ms.
fn busy() -> LossGuard {
    let mut guard = LossGuard::new(Bytes::new(MTU));
    ack(&mut guard, 0, 200, 2, 247_600);
    guard
}

const FULL: RttRange = RttRange {
    latest: Duration::from_millis(190),
    min: Duration::from_millis(100),
    max: Some(Duration::from_millis(200)),
};

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
    lose(&mut guard, 50, 200, rtts(latest, max));
    assert_eq!(guard.ceiling().is_some(), congestive);
}

#[test]
fn a_congestive_loss_cuts_to_seven_tenths_of_what_was_in_flight() {
    let mut guard = busy();
    assert_eq!(guard.limit(Bytes::new(300_000)), Bytes::new(300_000));
    lose(&mut guard, 50, 200, FULL);
    assert_eq!(guard.ceiling(), Some(Bytes::new(175_000)));
    assert_eq!(guard.limit(Bytes::new(300_000)), Bytes::new(175_000));
    assert_eq!(guard.limit(Bytes::new(100_000)), Bytes::new(100_000));
}

#[test]
fn one_round_trip_is_cut_once() {
    let mut guard = busy();
    lose(&mut guard, 50, 200, FULL);
    ack(&mut guard, 60, 210, 2, 200_000);
    lose(&mut guard, 60, 210, FULL);
    assert_eq!(guard.ceiling(), Some(Bytes::new(175_000)));
    // A packet that left after the cut is lost, 120 kB in flight.
    ack(&mut guard, 205, 400, 2, 117_600);
    lose(&mut guard, 205, 400, FULL);
    assert_eq!(guard.ceiling(), Some(Bytes::new(84_000)));
}

#[test]
fn a_loss_never_raises_the_ceiling() {
    let mut guard = busy();
    lose(&mut guard, 50, 200, FULL);
    ack(&mut guard, 201, 400, 2, 400_000);
    lose(&mut guard, 201, 400, FULL);
    assert!(guard.ceiling() < Some(Bytes::new(190_000)));
}

#[test]
fn clean_round_trips_raise_it_by_a_sixteenth_or_a_packet() {
    let mut guard = busy();
    lose(&mut guard, 50, 200, FULL);
    ack(&mut guard, 200, 400, 2, 100_000); // ends the round of the cut
    assert_eq!(guard.ceiling(), Some(Bytes::new(175_000)));
    ack(&mut guard, 399, 500, 2, 100_000); // the same round
    assert_eq!(guard.ceiling(), Some(Bytes::new(175_000)));
    ack(&mut guard, 400, 600, 2, 100_000);
    assert_eq!(guard.ceiling(), Some(Bytes::new(185_937)));

    let mut small = LossGuard::new(Bytes::new(MTU));
    ack(&mut small, 0, 100, 2, 2_400);
    lose(&mut small, 50, 100, FULL);
    assert_eq!(small.ceiling(), Some(Bytes::new(4_800)), "four packets at least");
    ack(&mut small, 100, 200, 2, 2_400);
    ack(&mut small, 200, 300, 2, 2_400);
    assert_eq!(small.ceiling(), Some(Bytes::new(6_000)));
}

#[test]
fn it_goes_when_the_law_wants_less_than_half_of_it() {
    let mut guard = busy();
    lose(&mut guard, 50, 200, FULL);
    guard.limit(Bytes::new(87_500));
    assert!(guard.ceiling().is_some());
    guard.limit(Bytes::new(87_499));
    assert_eq!(guard.ceiling(), None);
    assert_eq!(guard.limit(Bytes::new(300_000)), Bytes::new(300_000));
}

/// `percent` of the packets of each of 40 round trips of 100 packets are lost, with an empty queue.
fn random_loss(percent: u64) -> LossGuard {
    let mut guard = LossGuard::new(Bytes::new(MTU));
    for round in 0..40 {
        let now = (round + 1) * 100;
        ack(
            &mut guard,
            round * 100,
            now,
            100 - u32::try_from(percent).unwrap(),
            50_000,
        );
        for _ in 0..percent {
            lose(&mut guard, round * 100, now, rtts(100, Some(200)));
        }
    }
    guard
}

#[rstest]
#[case(1, false)]
#[case(5, false)]
#[case(9, false)]
#[case(12, true)]
fn random_loss_is_left_alone_up_to_a_tenth(#[case] percent: u64, #[case] congestive: bool) {
    let guard = random_loss(percent);
    assert_eq!(guard.ceiling().is_some(), congestive, "{}", guard.loss_average());
    let share = f64::from(u32::try_from(percent).unwrap()) / 100.0;
    assert!(
        (guard.loss_average() - share).abs() < 0.002,
        "{}",
        guard.loss_average()
    );
}

#[test]
fn round_trips_of_few_packets_are_joined() {
    let mut guard = LossGuard::new(Bytes::new(MTU));
    ack(&mut guard, 0, 100, 1, 1_200);
    lose(&mut guard, 10, 110, rtts(100, Some(200)));
    for round in 1..6 {
        ack(&mut guard, round * 100, (round + 1) * 100, 1, 1_200);
        assert!(guard.loss_average().abs() < f64::EPSILON, "7 packets are too few");
    }
    ack(&mut guard, 600, 700, 1, 1_200);
    assert!(
        (guard.loss_average() - 0.25 / 8.0).abs() < 0.000_1,
        "a quarter of 1 in 8"
    );
}

#[test]
fn a_mark_is_congestive_and_persistent_congestion_starts_anew() {
    let mut guard = busy();
    congest(&mut guard, 50, 200, rtts(100, Some(200)), Signal::EcnCe);
    assert_eq!(guard.ceiling(), Some(Bytes::new(175_000)));
    let persistent = Signal::Loss {
        bytes: Bytes::new(50_000),
        persistent: true,
    };
    congest(&mut guard, 150, 300, FULL, persistent);
    assert_eq!(guard.ceiling(), None);
    assert!(guard.loss_average().abs() < f64::EPSILON);
}

#[test]
fn the_ceiling_stays_above_four_packets_of_a_larger_mtu() {
    let mut guard = LossGuard::new(Bytes::new(MTU));
    ack(&mut guard, 0, 100, 2, 2_400);
    lose(&mut guard, 50, 100, FULL);
    guard.on_mtu_change(&MtuChange {
        mtu: Bytes::new(9_000),
    });
    assert_eq!(guard.ceiling(), Some(Bytes::new(36_000)));
}
