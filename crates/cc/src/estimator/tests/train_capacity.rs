//! Capacity by packet trains, acknowledgement by acknowledgement.

use super::path::PACKET;
use crate::estimator::TrainCapacity;
use crate::events::{AckFrame, Acked, Congestion, Signal};
use crate::{Bitrate, Bytes, Timestamp};

const TWENTY: Option<Bitrate> = Some(Bitrate::from_mbps(20));

fn us(us: u64) -> Timestamp {
    Timestamp::from_nanos(us * 1_000)
}

/// An estimator that is fed by hand. Times are in µs.
#[derive(Clone, Default)]
struct Fed(TrainCapacity);

impl Fed {
    /// One frame acknowledges this many packets of each of several trains. Returns the early estimate.
    fn ack_runs(&mut self, now: u64, runs: &[(u64, u32)]) -> Option<Bitrate> {
        let run = |&(sent, packets): &(u64, u32)| {
            Acked::new(us(sent), Bytes::new(u64::from(packets) * PACKET), packets)
        };
        let runs: Vec<Acked> = runs.iter().map(run).collect();
        self.0.on_ack_frame(&AckFrame::new(us(now), &runs, Bytes::ZERO));
        self.0.estimate(1)
    }

    /// Frames at these times acknowledge `packets` packets each of the train that left at `sent`. Returns the early
    /// estimate.
    fn ack<const N: usize>(&mut self, sent: u64, times: [u64; N], packets: u32) -> Option<Bitrate> {
        for now in times {
            self.ack_runs(now, &[(sent, packets)]);
        }
        self.0.estimate(1)
    }

    fn lose(&mut self, sent: u64, now: u64) -> Option<Bitrate> {
        let signal = Signal::loss(Bytes::new(PACKET));
        self.0.on_congestion(&Congestion::new(us(now), us(sent), signal));
        self.0.estimate(1)
    }
}

/// 10 packets of 1200 B at 0, acknowledged in twos: 2400 B in 0.96 ms, 4800 B in 1.92 ms, …
#[test]
fn the_worked_pair_gives_20_mbit_per_second() {
    let mut fed = Fed::default();
    assert_eq!(fed.ack(0, [100_960], 2), None, "one batch measures nothing");
    assert_eq!(fed.ack(0, [101_920], 2), TWENTY);
    fed.ack(0, [102_880, 103_840], 2);
    assert_eq!(fed.0.estimate(4), None, "three samples are too few");
    fed.ack(0, [104_800], 2);
    assert_eq!(fed.0.estimate(4), TWENTY);
    assert!(!fed.0.is_fresh(), "that takes eight samples");
}

// The second of two packets is acknowledged by the peer's timer: 388 kbit/s on any link.
#[test]
fn a_lone_packet_that_waited_for_the_peers_timer_is_no_sample() {
    let mut fed = Fed::default();
    assert_eq!(fed.ack(0, [100_000, 124_600], 1), None);
    assert_eq!(fed.ack(200_000, [300_000], 2), None);
}

#[test]
fn a_peer_that_acknowledges_every_packet_gives_a_sample_with_the_next() {
    let mut fed = Fed::default();
    assert_eq!(fed.ack(0, [100_480, 100_960], 1), None);
    assert_eq!(fed.ack(0, [101_440], 1), TWENTY);
}

#[test]
fn a_loss_inside_a_train_takes_its_samples_back() {
    let mut fed = Fed::default();
    fed.ack(0, [100_960, 101_920], 2);
    fed.ack(0, [102_880], 1);
    let early = fed.ack(50_000, [150_960, 151_920], 2);
    assert_eq!(
        fed.lose(0, 152_000),
        early,
        "no worse estimate replaces a known one"
    );
    // Three good samples of the second train; those of the first are gone, so there are fewer than four.
    fed.ack(50_000, [152_880, 153_840], 2);
    assert_eq!(fed.0.estimate(4), None);
    fed.ack(50_000, [154_800], 2);
    assert_eq!(fed.0.estimate(4), TWENTY);
}

#[test]
fn a_train_that_lost_packets_is_not_taken_up_again() {
    let mut fed = Fed::default();
    fed.ack(0, [100_960], 2);
    fed.lose(0, 101_000);
    assert_eq!(fed.ack(0, [101_920, 102_880, 103_840], 2), None);
}

#[test]
fn a_lone_mtu_probe_measures_nothing() {
    let mut fed = Fed::default();
    fed.ack(0, [100_960], 2);
    // Left 1 µs later, in a packet of its own.
    fed.ack(1, [101_540], 1);
    assert_eq!(fed.ack(50_000, [150_960], 2), None);
}

#[test]
fn a_batch_of_two_trains_is_no_sample_but_may_begin_one() {
    let mut fed = Fed::default();
    let (old, new) = (0, 1_000);
    fed.ack(old, [100_000], 2);
    assert_eq!(fed.ack_runs(101_500, &[(old, 1), (new, 1)]), None);
    assert_eq!(fed.ack(new, [102_460], 2), TWENTY);
}

#[test]
fn stragglers_of_an_older_train_neither_measure_nor_interrupt() {
    let mut fed = Fed::default();
    let (old, new) = (0, 1_000);
    fed.ack(new, [101_000], 2);
    fed.ack(old, [101_300], 1);
    // 30 µs late because of an overtaken packet.
    assert_eq!(fed.ack_runs(101_990, &[(old, 1), (new, 2)]), None);
    // The packets that arrived with a straggler count, too.
    assert_eq!(fed.ack(new, [102_920, 103_880], 2), TWENTY);
}

#[test]
fn a_small_batch_counts_once_more_of_its_train_follows() {
    let mut fed = Fed::default();
    fed.ack(0, [101_920], 4);
    assert_eq!(
        fed.ack(0, [102_880], 2),
        None,
        "they may have waited for the ACK timer"
    );
    let mut other = fed.clone();
    assert_eq!(fed.ack(0, [103_840], 2), TWENTY);
    assert_eq!(other.ack(50_000, [151_920], 4), None);
    other.ack(50_000, [152_880], 2);
    // More packets follow, even if only together with the next train.
    assert_eq!(other.ack_runs(153_840, &[(50_000, 1), (60_000, 1)]), TWENTY);
}

#[test]
fn spacings_that_timers_drown_are_not_used() {
    let mut fed = Fed::default();
    assert_eq!(fed.ack(0, [100_000, 100_199], 2), None);
    assert!(fed.ack(0, [100_200], 2).is_some());
}

/// A flow of low rate sees only delayed ACKs: pairs of packets 25 ms apart read 0.4 Mbit/s. If these replaced the
/// estimate, it would never recover.
#[test]
fn an_estimate_never_expires_into_a_worse_one() {
    let mut fed = Fed::default();
    for sent in [0, 100_000, 200_000, 300_000] {
        fed.ack(sent, [1, 2, 3, 4, 5].map(|batch| sent + 100_000 + batch * 960), 2);
    }
    assert!(fed.0.is_fresh());
    for sent in (20_000_000..27_000_000).step_by(1_000_000) {
        fed.ack(sent, [sent + 125_000, sent + 150_000], 1);
        assert!(!fed.0.is_fresh());
        assert_eq!(fed.0.estimate(4), TWENTY, "{sent}");
    }
}
