//! Capacity by packet trains, acknowledgement by acknowledgement.

use super::path::PACKET;
use crate::estimator::TrainCapacity;
use crate::events::{AckFrame, Acked, Congestion, Signal};
use crate::{Bitrate, Bytes, Timestamp};

/// `packets` of the train that left at `sent` µs are acknowledged at `now` µs.
fn ack(capacity: &mut TrainCapacity, sent: u64, now: u64, packets: u32) {
    ack_runs(capacity, now, &[(sent, packets)]);
}

/// The given number of packets of each of several trains is acknowledged together.
fn ack_runs(capacity: &mut TrainCapacity, now: u64, runs: &[(u64, u32)]) {
    let run = |&(sent, packets): &(u64, u32)| {
        let bytes = Bytes::new(u64::from(packets) * PACKET);
        Acked::new(Timestamp::from_nanos(sent * 1_000), bytes, packets)
    };
    let runs: Vec<Acked> = runs.iter().map(run).collect();
    capacity.on_ack_frame(&AckFrame::new(
        Timestamp::from_nanos(now * 1_000),
        &runs,
        Bytes::ZERO,
    ));
}

fn lose(capacity: &mut TrainCapacity, sent: u64, now: u64) {
    capacity.on_congestion(&Congestion::new(
        Timestamp::from_nanos(now * 1_000),
        Timestamp::from_nanos(sent * 1_000),
        Signal::loss(Bytes::new(PACKET)),
    ));
}

/// 10 packets of 1200 B at 0, acknowledged in twos: 2400 B in 0.96 ms, 4800 B in 1.92 ms, …
#[test]
fn the_worked_pair_gives_20_mbit_per_second() {
    let twenty = Some(Bitrate::from_mbps(20));
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 100_960, 2);
    assert_eq!(capacity.early_estimate(), None, "one batch measures nothing");
    ack(&mut capacity, 0, 101_920, 2);
    assert_eq!(capacity.early_estimate(), twenty);
    ack(&mut capacity, 0, 102_880, 2);
    ack(&mut capacity, 0, 103_840, 2);
    assert_eq!(capacity.estimate(), None, "three samples are too few");
    ack(&mut capacity, 0, 104_800, 2);
    assert_eq!(capacity.estimate(), twenty);
    assert!(
        !capacity.is_fresh(),
        "four samples are an estimate, eight a fresh one"
    );
}

// The second of two packets is acknowledged by the peer's timer: 388 kbit/s on any link.
#[test]
fn a_lone_packet_that_waited_for_the_peers_timer_is_no_sample() {
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 100_000, 1);
    ack(&mut capacity, 0, 124_600, 1);
    assert_eq!(capacity.early_estimate(), None);
    ack(&mut capacity, 200_000, 300_000, 2);
    assert_eq!(capacity.early_estimate(), None);
}

#[test]
fn a_peer_that_acknowledges_every_packet_gives_a_sample_with_the_next() {
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 100_480, 1);
    ack(&mut capacity, 0, 100_960, 1);
    assert_eq!(capacity.early_estimate(), None);
    ack(&mut capacity, 0, 101_440, 1);
    assert_eq!(capacity.early_estimate(), Some(Bitrate::from_mbps(20)));
}

#[test]
fn a_loss_inside_a_train_takes_its_samples_back() {
    let mut capacity = TrainCapacity::default();
    for (now, packets) in [(100_960, 2), (101_920, 2), (102_880, 1)] {
        ack(&mut capacity, 0, now, packets);
    }
    ack(&mut capacity, 50_000, 150_960, 2);
    ack(&mut capacity, 50_000, 151_920, 2);
    let early = capacity.early_estimate();
    lose(&mut capacity, 0, 152_000);
    assert_eq!(
        capacity.early_estimate(),
        early,
        "no worse estimate replaces the one that is known"
    );
    // Three good samples of the second train; those of the first are gone, so there are fewer than four.
    ack(&mut capacity, 50_000, 152_880, 2);
    ack(&mut capacity, 50_000, 153_840, 2);
    assert_eq!(capacity.estimate(), None);
    ack(&mut capacity, 50_000, 154_800, 2);
    assert_eq!(capacity.estimate(), Some(Bitrate::from_mbps(20)));
}

#[test]
fn a_train_that_lost_packets_is_not_taken_up_again() {
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 100_960, 2);
    lose(&mut capacity, 0, 101_000);
    for now in [101_920, 102_880, 103_840] {
        ack(&mut capacity, 0, now, 2);
    }
    assert_eq!(capacity.early_estimate(), None);
}

#[test]
fn a_lone_mtu_probe_measures_nothing() {
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 100_960, 2);
    // Left 1 µs later, in a packet of its own.
    ack(&mut capacity, 1, 101_540, 1);
    ack(&mut capacity, 50_000, 150_960, 2);
    assert_eq!(capacity.early_estimate(), None);
}

#[test]
fn a_batch_of_two_trains_is_no_sample_but_may_begin_one() {
    let mut capacity = TrainCapacity::default();
    let (old, new) = (0, 1_000);
    ack(&mut capacity, old, 100_000, 2);
    ack_runs(&mut capacity, 101_500, &[(old, 1), (new, 1)]);
    assert_eq!(capacity.early_estimate(), None);
    ack(&mut capacity, new, 102_460, 2);
    assert_eq!(capacity.early_estimate(), Some(Bitrate::from_mbps(20)));
}

#[test]
fn stragglers_of_an_older_train_neither_measure_nor_interrupt() {
    let twenty = Some(Bitrate::from_mbps(20));
    let mut capacity = TrainCapacity::default();
    let (old, new) = (0, 1_000);
    ack(&mut capacity, new, 101_000, 2);
    ack(&mut capacity, old, 101_300, 1);
    ack_runs(&mut capacity, 101_990, &[(old, 1), (new, 2)]);
    assert_eq!(
        capacity.early_estimate(),
        None,
        "30 µs late by an overtaken packet"
    );
    ack(&mut capacity, new, 102_920, 2);
    ack(&mut capacity, new, 103_880, 2);
    assert_eq!(
        capacity.early_estimate(),
        twenty,
        "what came with a straggler was carried too"
    );
}

#[test]
fn a_small_batch_counts_once_more_of_its_train_follows() {
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 101_920, 4);
    ack(&mut capacity, 0, 102_880, 2);
    assert_eq!(
        capacity.early_estimate(),
        None,
        "the last two may have waited for the ACK timer"
    );
    let mut other = capacity.clone();
    ack(&mut capacity, 0, 103_840, 2);
    assert_eq!(capacity.early_estimate(), Some(Bitrate::from_mbps(20)));
    ack(&mut other, 50_000, 151_920, 4);
    assert_eq!(other.early_estimate(), None);
    ack_runs(&mut capacity, 104_400, &[(0, 1), (2_000, 1)]);
    ack(&mut other, 50_000, 152_880, 2);
    ack_runs(&mut other, 153_840, &[(50_000, 1), (60_000, 1)]);
    assert_eq!(
        other.early_estimate(),
        Some(Bitrate::from_mbps(20)),
        "more followed, if with the next train"
    );
}

#[test]
fn spacings_that_timers_drown_are_not_used() {
    let mut capacity = TrainCapacity::default();
    ack(&mut capacity, 0, 100_000, 2);
    ack(&mut capacity, 0, 100_199, 2);
    assert_eq!(capacity.early_estimate(), None);
    ack(&mut capacity, 0, 100_200, 2);
    assert!(capacity.early_estimate().is_some());
}

/// A flow of low rate sees only delayed ACKs: pairs of packets 25 ms apart read 0.4 Mbit/s. If these replaced the
/// estimate, it would never recover.
#[test]
fn an_estimate_never_expires_into_a_worse_one() {
    let mut capacity = TrainCapacity::default();
    for train in 0..4 {
        let sent = train * 100_000;
        for batch in 1..=5 {
            ack(&mut capacity, sent, sent + 100_000 + batch * 960, 2);
        }
    }
    assert!(capacity.is_fresh());
    let mut reported = 0;
    for train in 0..7 {
        let sent = 20_000_000 + train * 1_000_000;
        ack(&mut capacity, sent, sent + 125_000, 1);
        ack(&mut capacity, sent, sent + 150_000, 1);
        reported += 1;
        assert!(!capacity.is_fresh());
        assert_eq!(
            capacity.estimate(),
            Some(Bitrate::from_mbps(20)),
            "after {reported} poor samples"
        );
    }
}
