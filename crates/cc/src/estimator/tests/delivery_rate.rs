//! The delivery rate: a lower bound of the capacity, and its limited samples.

use rstest::rstest;

use super::path::{Load, MS, PACKET, Path, PathEvent, run, trains, windows};
use crate::estimator::DeliveryRate;
use crate::estimator::delivery_rate::RateSample;
use crate::events::{AckFrame, Acked, Sent};
use crate::tests::{OwnedFrame, assert_in, at};
use crate::{Bitrate, Bytes, Timestamp};

impl RateSample {
    fn rate(self) -> Bitrate {
        Bitrate::from_bytes_per_second(u64::from(self.bytes_per_second))
    }
}

type Samples = Vec<(u64, RateSample)>;

/// All samples, with the time in ms.
fn samples(rate: &mut DeliveryRate, reported: &[PathEvent]) -> Samples {
    let mut samples = Vec::new();
    for reported in reported {
        match reported {
            PathEvent::Sent(event) => rate.on_sent(event),
            PathEvent::Acked(frame) => {
                let sample = rate.on_ack_frame(&frame.event());
                samples.extend(sample.map(|sample| (frame.now.as_nanos() / MS, sample)));
            }
            PathEvent::Lost(event) => rate.on_congestion(event),
        }
    }
    samples
}

/// The estimator after a load on a path, and its samples.
fn measured(path: &Path, load: Load) -> (DeliveryRate, Samples) {
    let mut rate = DeliveryRate::default();
    let samples = samples(&mut rate, &run(path, load));
    (rate, samples)
}

/// The samples of a new estimator.
fn samples_of(reported: &[PathEvent]) -> Samples {
    samples(&mut DeliveryRate::default(), reported)
}

fn mbps(rate: Option<Bitrate>) -> f64 {
    rate.map_or(0.0, Bitrate::as_mbps)
}

fn window(bytes: u64, apart: u64) -> Load {
    windows(&[(0, bytes)], apart, 5)
}

#[rstest]
#[case(1)]
#[case(2)]
#[case(10)]
fn a_full_pipe_delivers_at_its_capacity(#[case] every: usize) {
    let path = Path::with(|path| path.ack_every = every);
    let (rate, _) = measured(&path, window(400_000, 3 * MS));
    assert_in(mbps(rate.max()), 19.8..=20.0);
    assert_in(mbps(rate.busy_max()), 19.8..=20.0);
}

#[rstest]
#[case::every_packet(1, 0, 0)]
#[case::every_other(2, 0, 0)]
#[case::every_tenth(10, 0, 0)]
#[case::cross_traffic(2, 30, 0)]
#[case::losses(2, 0, 50)]
fn no_sample_exceeds_the_capacity(
    #[case] every: usize,
    #[case] cross_percent: u64,
    #[case] lose_one_in: u64,
) {
    let path = Path::with(|path| {
        path.ack_every = every;
        path.cross_percent = cross_percent;
        path.lose_one_in = lose_one_in;
    });
    let (small, long) = (window(100_000, 0), window(600_000, 0));
    for load in [small, window(240_000, 3 * MS), long, trains(50, 40, 90 * MS)] {
        for (_, sample) in measured(&path, load).1 {
            assert_in(sample.rate(), ..=Bitrate::from_mbps(20));
        }
    }
}

#[test]
fn rounding_of_times_does_not_exceed_it_either() {
    let rate = 173_456_789;
    let path = Path::with(|path| {
        path.rate = vec![(0, rate)];
        path.base_rtt = 1_234_567;
    });
    for (_, sample) in measured(&path, window(100_000, 0)).1 {
        assert_in(sample.rate(), ..=Bitrate::from_bits_per_second(rate));
    }
}

/// A packet every 10 ms; `acked` maps its send time to the time of its acknowledgement (ms).
fn every_10_ms(packets: u64, acked: impl Fn(u64) -> u64) -> Vec<PathEvent> {
    let sends = (0..packets).map(|packet| (packet * 10, false, packet * 10));
    let acks = (0..packets).map(|packet| (acked(packet * 10), true, packet * 10));
    let mut happens: Vec<(u64, bool, u64)> = sends.chain(acks).collect();
    happens.sort_unstable();
    let bytes = Bytes::new(PACKET);
    let event = |(now, is_ack, sent): (u64, bool, u64)| {
        if !is_ack {
            return PathEvent::Sent(Sent::new(at(now), bytes));
        }
        PathEvent::Acked(OwnedFrame {
            now: at(now),
            acked: vec![Acked::new(at(sent), bytes, 1)],
            in_flight: bytes * 10,
            app_limited: false,
            smoothed_rtt: None,
        })
    };
    happens.into_iter().map(event).collect()
}

/// Acknowledgements stall for 80 ms and then come all at once, a round trip before the end of an interval.
#[test]
fn what_was_sent_over_a_longer_time_did_not_arrive_in_a_shorter_one() {
    let stalled = |sent: u64| match sent {
        500 => 680,
        510..580 => 681,
        _ => sent + 100,
    };
    let samples = samples_of(&every_10_ms(200, stalled));
    assert_in(samples.len(), 91..);
    for (_, sample) in samples {
        assert_in(sample.rate(), ..=Bitrate::from_kbps(960));
    }
}

#[rstest]
#[case::no_queue(30, false)]
#[case::as_much_as_a_delayed_ack(58, false)]
#[case::more(60, true)]
fn a_queue_is_what_acknowledgement_delay_cannot_explain(#[case] later: u64, #[case] busy: bool) {
    let samples = samples_of(&every_10_ms(200, |sent| {
        sent + if sent < 500 { 30 } else { later }
    }));
    assert!(
        samples
            .iter()
            .all(|(at, sample)| *at < 500 || busy || !sample.busy)
    );
    assert_eq!(samples.last().map(|last| last.1.busy), Some(busy));
    let first = samples.iter().find(|(_, sample)| sample.busy);
    // A packet sent at 500 ms is the first to find the queue, and is acknowledged at 560 ms; a packet sent then takes a
    // round trip more.
    assert_eq!(first.map(|first| first.0), busy.then_some(620));
}

#[test]
fn every_busy_sample_is_the_capacity() {
    let steps = [(0, 100_000), (1_000, 450_000), (2_000, 200_000), (3_000, 400_000)];
    let (_, samples) = measured(&Path::new(), windows(&steps, MS, 5));
    // Once the sender has stopped, the last acknowledgement waits for the timer.
    let busy = samples.iter().filter(|(at, sample)| *at < 5_100 && sample.busy);
    assert_in(busy.clone().count(), 51..);
    for (_, sample) in busy {
        assert_in(sample.rate().as_mbps(), 19.5..=20.0);
    }
}

#[test]
fn one_limited_frame_marks_a_round_trip_of_packets() {
    let mut reported = every_10_ms(100, |sent| sent + 95);
    for event in &mut reported {
        if let PathEvent::Acked(frame) = event {
            frame.app_limited = frame.now == at(505);
        }
    }
    let samples = samples_of(&reported).into_iter();
    let limited = samples.filter(|(at, sample)| *at > 300 && sample.app_limited);
    let limited: Vec<u64> = limited.map(|(at, _)| at).collect();
    // The first limited packet left at 510 ms, or one mark earlier. It is acknowledged at 605 ms, and earlier packets
    // are marked.
    assert_eq!((limited.first(), limited.last()), (Some(&595), Some(&695)));
}

#[test]
fn a_lower_rate_that_is_not_limited_replaces_the_maximum_after_ten_seconds() {
    let load = windows(&[(0, 400_000), (2_000, 160_000), (8_000, 120_000)], 5 * MS, 14);
    let (rate, _) = measured(&Path::new(), load);
    assert_in(mbps(rate.max()), 12.0..=12.8);
}

/// The marks' clock wraps after 2⁴⁰ ns; without care, a packet sent then would seem to have left with the first ones.
#[test]
fn no_interval_spans_a_long_silence() {
    let mut rate = DeliveryRate::default();
    samples(&mut rate, &every_10_ms(20, |sent| sent + 100));
    let at = |ms: u64| Timestamp::from_nanos((1 << 40) + ms * MS);
    let bytes = Bytes::new(PACKET);
    for (sent, now) in [(290, 295), (291, 310)] {
        let acked = [Acked::new(at(sent), bytes, 1)];
        let sample = rate.on_ack_frame(&AckFrame::new(at(now), &acked, bytes));
        assert_eq!(sample, None);
    }
}

#[test]
fn compressed_acknowledgements_exceed_it_little() {
    let path = Path::with(|path| path.jitter = 10 * MS);
    let (rate, _) = measured(&path, window(400_000, 3 * MS));
    assert_in(mbps(rate.max()), 19.5..=22.0);
}

#[test]
fn a_window_below_the_pipe_delivers_a_window_per_round_trip() {
    let (rate, _) = measured(&Path::new(), window(120_000, 8 * MS));
    // 120 kB per round trip: 100 ms and the spacing of a burst.
    assert_in(mbps(rate.max()), 8.5..=9.7);
    assert_eq!(rate.busy_max(), None, "the queue was empty in between");
}

#[rstest]
#[case::few_packets(10, 20)]
#[case::enough_to_queue(100, 50)]
fn what_leaves_while_the_application_is_the_limit_is_marked(#[case] packets: usize, #[case] apart: u64) {
    let (_, limited) = measured(&Path::new(), trains(50, packets, apart * MS));
    assert_in(limited.len(), 41..);
    assert!(limited.iter().all(|(_, it)| it.app_limited && !it.busy));
}

#[test]
fn a_sender_that_the_window_limits_is_not_marked_once_its_first_flight_is_over() {
    let (_, samples) = measured(&Path::new(), window(120_000, 3 * MS));
    assert!(samples[0].1.app_limited, "nothing was in flight before");
    let (early, late): (Vec<_>, Vec<_>) = samples.iter().partition(|(at, _)| *at < 320);
    assert!(early.iter().any(|(_, sample)| sample.app_limited));
    assert!(!late.is_empty() && late.iter().all(|(_, sample)| !sample.app_limited));
}

#[test]
fn limited_samples_do_not_lower_the_maximum_and_ten_seconds_do() {
    let (mut rate, _) = measured(&Path::new(), window(400_000, 3 * MS));
    let full = rate.max();
    // Twelve more seconds with a packet per second.
    let trains = (6..18).map(|second| Load::Trains(vec![(second * 1_000 * MS, vec![PACKET; 2])]));
    let reported: Vec<PathEvent> = trains.flat_map(|train| run(&Path::new(), train)).collect();
    let last = samples(&mut rate, &reported);
    assert_eq!(last.len(), 12);
    assert!(last.iter().all(|(_, sample)| Some(sample.rate()) < full));
    assert!(rate.max() < full);
}

/// A sender with a window of four packets whose peer acknowledges after 25 ms, on a path of 3 ms.
#[test]
fn delayed_acknowledgements_do_not_pass_for_a_queue() {
    let path = Path::with(|path| {
        path.base_rtt = 3 * MS;
        path.ack_every = 10;
    });
    // One large window first, so that the smallest RTT is known.
    let (_, samples) = measured(&path, windows(&[(0, 12_000), (100, 4_800)], 0, 3));
    assert_in(samples.len(), 51..);
    assert!(samples.iter().all(|(_, sample)| !sample.busy));
}
