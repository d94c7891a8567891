//! Capacity on a path: by packet trains alone, and together with the delivery rate.

use rstest::rstest;

use super::path::{Load, MS, PACKET, Path, PathEvent, run, tell, trains, windows};
use crate::estimator::{Capacity, TrainCapacity};
use crate::events::{AckFrame, Acked, Sent};
use crate::tests::{assert_in, at};
use crate::{Bitrate, Bytes, Timestamp};

/// The train estimate in Mbit/s; zero if there is none.
fn train_estimate(path: &Path, load: Load) -> f64 {
    let mut capacity = TrainCapacity::default();
    for reported in run(path, load) {
        match reported {
            PathEvent::Sent(_) => {}
            PathEvent::Acked(frame) => capacity.on_ack_frame(&frame.event()),
            PathEvent::Lost(event) => capacity.on_congestion(&event),
        }
    }
    capacity.estimate(4).map_or(0.0, Bitrate::as_mbps)
}

fn estimate(path: &Path, load: Load) -> f64 {
    let mut capacity = Capacity::default();
    for reported in run(path, load) {
        tell(&mut capacity, &reported);
    }
    capacity.estimate(4).map_or(0.0, Bitrate::as_mbps)
}

#[rstest]
#[case::every_packet(1, 10)]
#[case::every_packet_short_trains(1, 3)]
#[case::every_other(2, 10)]
#[case::every_other_odd_trains(2, 11)]
#[case::every_other_short_trains(2, 4)]
#[case::every_tenth(10, 40)]
#[case::every_tenth_odd_trains(10, 47)]
fn a_quiet_link_is_measured_exactly_whatever_the_peer_acknowledges(
    #[case] every: usize,
    #[case] packets: usize,
) {
    let path = Path::with(|path| path.ack_every = every);
    let estimate = train_estimate(&path, trains(60, packets, 100 * MS));
    assert_in(estimate, 19.99..=20.01);
}

#[rstest]
#[case::slow(1_000_000, 2)]
#[case::slow_and_decimated(1_000_000, 10)]
#[case::fast(200_000_000, 2)]
fn slow_and_fast_links_are_measured(#[case] rate: u64, #[case] every: usize) {
    let path = Path::with(|path| {
        path.rate = vec![(0, rate)];
        path.ack_every = every;
    });
    let mbps = Bitrate::from_bits_per_second(rate).as_mbps();
    let estimate = train_estimate(&path, trains(60, 20, 300 * MS));
    assert_in(estimate, 0.99 * mbps..=1.01 * mbps);
}

/// Trains of ten: either each is acknowledged once, or its second half waits for the ACK timer.
#[rstest]
#[case::one_ack_each(10)]
#[case::the_rest_waits_25_ms(15)]
fn what_the_ack_timer_made_is_no_sample(#[case] packets: usize) {
    let path = Path::with(|path| path.ack_every = 10);
    assert_in(train_estimate(&path, trains(60, packets, 200 * MS)), 0.0..=0.0);
}

#[test]
fn a_delayed_ack_of_the_last_packet_distorts_nothing() {
    let path = Path::new();
    // 16 kB writes: 12 or 13 full packets and a short one, so every other write has an odd number of packets.
    let sizes = |i: u64| [vec![PACKET; 13 - usize::from(i.is_multiple_of(2))], vec![400]].concat();
    let load = Load::Trains((0..60).map(|i| (i * 100 * MS, sizes(i))).collect());
    assert_in(train_estimate(&path, load), 19.9..=20.1);
}

/// Trains of 6.4 ms on 15 Mbit/s: 2 ms of jitter, a third of a train, average out to less than a fifth; 10 ms do not
/// mislead by a factor of two.
#[rstest]
#[case(2, 1, 12.0, 18.0)]
#[case(2, 2, 12.0, 18.0)]
#[case(10, 2, 7.5, 20.0)]
fn jitter_is_averaged_out(#[case] jitter: u64, #[case] every: usize, #[case] low: f64, #[case] high: f64) {
    for seed in 0..20 {
        let path = Path::with(|path| {
            path.rate = vec![(0, 15_000_000)];
            path.jitter = jitter * MS;
            path.ack_every = every;
            path.seed = seed;
        });
        assert_in(train_estimate(&path, trains(150, 10, 60 * MS)), low..=high);
    }
}

#[test]
fn a_link_that_speeds_up_is_noticed_at_once() {
    let path = Path::with(|path| path.rate = vec![(0, 10_000_000), (5_000 * MS, 20_000_000)]);
    assert_in(train_estimate(&path, trains(55, 10, 100 * MS)), 19.99..=20.01);
}

#[rstest]
#[case(20, 2)]
#[case(50, 2)]
#[case(50, 1)]
#[case(50, 10)]
fn cross_traffic_is_seen_through(#[case] percent: u64, #[case] every: usize) {
    let packets = if every == 10 { 20 } else { 10 };
    for seed in 0..10 {
        let path = Path::with(|path| {
            path.cross_percent = percent;
            path.ack_every = every;
            path.seed = seed;
        });
        assert_in(train_estimate(&path, trains(150, packets, 60 * MS)), 18.0..=20.5);
    }
}

#[rstest]
#[case::reordered(0, 50)]
#[case::lost(50, 0)]
#[case::both(100, 100)]
fn losses_and_reordering_distort_little(#[case] lose_one_in: u64, #[case] late_one_in: u64) {
    let path = Path::with(|path| {
        path.lose_one_in = lose_one_in;
        path.late_one_in = late_one_in;
    });
    assert_in(train_estimate(&path, trains(150, 10, 60 * MS)), 18.0..=21.0);
}

#[test]
fn a_link_that_slows_down_is_noticed_once_ten_seconds_have_passed() {
    let path = Path::with(|path| path.rate = vec![(0, 20_000_000), (10_000 * MS, 10_000_000)]);
    let mut capacity = Capacity::default();
    for reported in run(&path, trains(250, 10, 100 * MS)) {
        tell(&mut capacity, &reported);
        if let PathEvent::Acked(event) = reported {
            let estimate = capacity.estimate(4).map_or(0.0, Bitrate::as_mbps);
            match event.now.as_nanos() / MS {
                2_000..10_000 => assert_in(estimate, 19.99..=20.01),
                20_500.. => assert_in(estimate, 9.99..=10.01),
                _ => {}
            }
        }
    }
}

#[test]
fn the_estimate_leaves_out_headers_below_quic_as_windows_do() {
    let path = Path::with(|path| path.header = 28);
    let payload = 20.0 * 1_200.0 / 1_228.0;
    let estimate = estimate(&path, trains(60, 10, 100 * MS));
    assert_in(estimate, payload - 0.01..=payload + 0.01);
}

/// A window that doubles each round trip, in bursts of ten like quinn's pacer, until the queue is full; then one of two
/// thirds of the pipe.
fn slow_start_then(steady: u64) -> Load {
    let doubling = (0..6).map(|round| (round * 110, 12_000 << round));
    let bytes: Vec<_> = doubling.chain([(1_200, steady)]).collect();
    windows(&bytes, 3 * MS, 30)
}

#[rstest]
#[case(1)]
#[case(2)]
#[case(10)]
fn slow_start_finds_the_capacity_and_a_small_window_keeps_it(#[case] every: usize) {
    let path = Path::with(|path| path.ack_every = every);
    assert_in(estimate(&path, slow_start_then(170_000)), 19.6..=20.1);
}

#[test]
fn a_peer_that_decimates_and_never_queues_gives_no_estimate_rather_than_a_wrong_one() {
    let path = Path::with(|path| path.ack_every = 10);
    let load = windows(&[(0, 120_000)], 8 * MS, 10);
    assert_in(estimate(&path, load), 0.0..=0.0);
}

/// Bursts of 12 kB every 4 ms for 0.4 s, each acknowledged in four parts that jitter spreads to 1.3 ms: 18.5 Mbit/s by
/// trains, 24 Mbit/s in all.
fn spread_trains() -> Capacity {
    let mut capacity = Capacity::default();
    let mut happens: Vec<(u64, Option<u64>)> = Vec::new();
    for sent in (0..400 * MS).step_by(4_000_000) {
        happens.push((sent, None));
        happens.extend((0..4).map(|part| (sent + 100 * MS + part * 1_300_000, Some(sent))));
    }
    happens.sort_unstable();
    for (now, acked) in happens {
        let now = Timestamp::from_nanos(now);
        match acked {
            None => capacity.on_sent(&Sent::new(now, Bytes::new(10 * PACKET))),
            Some(sent) => late_ack(&mut capacity, Timestamp::from_nanos(sent), now),
        }
    }
    capacity
}

fn late_ack(capacity: &mut Capacity, sent: Timestamp, now: Timestamp) {
    let acked = [Acked::new(sent, Bytes::new(5 * PACKET / 2), 2)];
    capacity.on_ack_frame(&AckFrame::new(now, &acked, Bytes::new(100_000)));
}

#[test]
fn the_delivery_rate_raises_a_train_estimate_that_is_too_low() {
    let mut capacity = spread_trains();
    let raised = capacity.estimate(4);
    assert_eq!(raised, capacity.delivery.max());
    assert_in(raised.map_or(0.0, Bitrate::as_mbps), 23.5..=24.1);
    // A quiet minute later.
    late_ack(&mut capacity, at(59_900), at(60_000));
    assert!(capacity.delivery.max() < raised);
    // The estimate does not fall when the samples that raised it expire.
    assert_eq!(capacity.estimate(4), raised);
}
