//! Tests of RTT samples without acknowledgement delay, and of round trips.

use super::*;
use crate::tests::{MS_IN_NS as MS, assert_in, at, close};

impl Round {
    /// A round of these RTTs that the window limited.
    pub(in crate::standalone::video) fn sample(rtt_min_ms: u64, rtt_mean_ms: u64, rate: f64) -> Self {
        Self {
            acked: 0,
            lost: 0,
            window_limited: true,
            rtt_min: rtt_min_ms * MS,
            rtt_mean: rtt_mean_ms * MS,
            samples: 20,
            rate,
        }
    }
}

fn frame(ms: u64, rtt_ns: Option<u64>) -> Batch {
    Batch {
        now: at(ms),
        rtt_ns,
        packets: 2,
        ..Batch::default()
    }
}

/// The samples that a controller gets from frames every 10 ms with these RTTs and delays (ns).
fn found(frames: &[(u64, u64)]) -> (Vec<u64>, AckDelay) {
    let (mut found, mut smoothed) = (AckDelay::default(), None);
    let mut samples = Vec::new();
    for (number, (rtt, delay)) in (0..).zip(frames) {
        let sample = found.without(&frame(10 * number, Some(rtt + delay)), smoothed);
        samples.extend(sample.map(|sample| sample.rtt_ns));
        // As in quinn, this follows the controller's event.
        let before = smoothed.map_or(rtt + delay, |smoothed| (7 * smoothed + rtt) / 8);
        smoothed = Some(before);
    }
    (samples, found)
}

#[test]
fn the_delay_of_every_frame_is_taken_out_one_frame_later() {
    // RTTs that are not multiples of eight nanoseconds, and delays up to quinn's maximum.
    let frames: Vec<_> = (0..40)
        .map(|n| (100_300_001 + 1_234_567 * (n % 3), 5 * MS * (n % 6)))
        .collect();
    let (samples, found) = found(&frames);
    // The first one appears twice, once before the transport has measured anything.
    for (sample, &(rtt, _)) in samples[2..].iter().zip(&frames[1..]) {
        assert_in(*sample, rtt - 7..=rtt);
    }
    assert_eq!(samples.len(), frames.len());
    assert_in(found.mean_ns(), 5 * MS..20 * MS);
}

#[test]
fn a_sample_that_the_transport_has_not_taken_stays_as_it_is() {
    let mut found = AckDelay::default();
    let mut sample = |ms, rtt: Option<u64>, smoothed: Option<u64>| {
        let batch = frame(ms, rtt.map(|rtt| rtt * MS));
        let sample = found.without(&batch, smoothed.map(|rtt| rtt * MS))?;
        Some((sample.rtt_ns / MS, sample.is_late))
    };
    assert_eq!(sample(0, Some(90), None), Some((90, false)), "it measures none");
    assert_eq!(sample(10, Some(95), Some(300)), Some((90, true)));
    // A smoothed RTT of 300 ms does not follow from it, nor does a sample of 140 ms.
    assert_eq!(sample(20, Some(80), Some(300)), Some((95, true)));
    assert_eq!(sample(30, None, Some(280)), Some((80, true)));
    assert_eq!(sample(40, Some(80), Some(270)), None);
}

#[test]
fn a_sample_of_before_a_pause_or_beside_frames_that_were_not_seen_is_dropped() {
    let (_, mut found) = found(&[(100 * MS, 0); 3]);
    let sample = |found: &mut AckDelay, ms, rtt_ms, smoothed_ns| {
        let sample = found.without(&frame(ms, Some(rtt_ms * MS)), Some(smoothed_ns));
        sample.map(|sample| sample.rtt_ns)
    };
    assert_eq!(sample(&mut found, 1_000, 100, 100 * MS), None);
    assert!(sample(&mut found, 1_010, 97, 100 * MS).is_some());
    found.lose_track();
    assert_eq!(sample(&mut found, 1_200, 97, 98 * MS), None);
    assert_eq!(sample(&mut found, 1_210, 97, 97_875_000), Some(97 * MS));
}

/// Processes a frame of 1,000 bytes at this time with this RTT, in ms. It may begin a round, and the application may
/// limit the sender.
fn take(open: &mut OpenRound, (ms, rtt_ms): (u64, u64), new_round: bool, limited: bool) -> Option<Round> {
    let batch = Batch {
        acked: 1_000,
        packets: 1,
        new_round,
        limited,
        ..frame(ms, Some(rtt_ms * MS))
    };
    open.on_batch(&batch, Sample::of(&batch))
}

#[test]
fn a_round_counts_what_arrived_after_the_frame_that_began_it() {
    let mut open = OpenRound::default();
    assert_eq!(
        take(&mut open, (100, 100), true, false),
        None,
        "nothing was before it"
    );
    assert_eq!(take(&mut open, (110, 120), false, false), None);
    open.on_lost(500);
    let expected = Round {
        acked: 2_000,
        lost: 500,
        samples: 2,
        ..Round::sample(100, 110, 20_000.0)
    };
    let round = take(&mut open, (200, 90), true, false).unwrap();
    close(round.rate, expected.rate, 1e-6);
    assert_eq!(
        Round {
            rate: expected.rate,
            ..round
        },
        expected
    );
    // The frame belongs to the last round.
    close(open.rate(at(210)), 0.0, 1e-9);
    assert_eq!(open.lost(), 0);
}

#[test]
fn a_round_in_which_the_application_was_the_limit_for_longer_is_not_window_limited() {
    let mut open = OpenRound::default();
    take(&mut open, (100, 100), true, false);
    for ms in [110, 120, 130] {
        take(&mut open, (ms, 100), false, ms > 110);
    }
    let round = take(&mut open, (200, 100), true, true);
    assert!(!round.unwrap().window_limited);
}
