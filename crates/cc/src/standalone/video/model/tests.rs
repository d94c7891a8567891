//! Tests of RTT samples without acknowledgement delay, and of round trips.

use super::*;
use crate::tests::{MS_IN_NS as MS, at};

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
    for (sample, (rtt, _)) in samples[2..].iter().zip(&frames[1..]) {
        assert!((rtt - 7..=*rtt).contains(sample), "{sample} of {rtt}");
    }
    assert_eq!(samples.len(), frames.len());
    assert!(
        (5 * MS..20 * MS).contains(&found.mean_ns()),
        "{}",
        found.mean_ns()
    );
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
    assert_eq!(
        sample(20, Some(80), Some(300)),
        Some((95, true)),
        "a smoothed RTT of 300 ms does not follow from it"
    );
    assert_eq!(
        sample(30, None, Some(280)),
        Some((80, true)),
        "nor does a sample of 140 ms"
    );
    assert_eq!(sample(40, Some(80), Some(270)), None);
}

#[test]
fn a_sample_of_before_a_pause_or_beside_frames_that_were_not_seen_is_dropped() {
    let (_, mut found) = found(&[(100 * MS, 0); 3]);
    assert_eq!(found.without(&frame(1_000, Some(100 * MS)), Some(100 * MS)), None);
    assert!(
        found
            .without(&frame(1_010, Some(97 * MS)), Some(100 * MS))
            .is_some()
    );
    found.lose_track();
    assert_eq!(found.without(&frame(1_200, Some(97 * MS)), Some(98 * MS)), None);
    let next = found.without(&frame(1_210, Some(97 * MS)), Some(97_875_000));
    assert_eq!(next.map(|sample| sample.rtt_ns), Some(97 * MS));
}

fn take(open: &mut OpenRound, batch: &Batch) -> Option<Round> {
    open.on_batch(batch, Sample::of(batch))
}

fn round_frame(ms: u64, rtt_ms: u64, new_round: bool) -> Batch {
    Batch {
        now: at(ms),
        acked: 1_000,
        packets: 1,
        rtt_ns: Some(rtt_ms * MS),
        new_round,
        ..Batch::default()
    }
}

#[test]
fn a_round_counts_what_arrived_after_the_frame_that_began_it() {
    let mut open = OpenRound::default();
    assert_eq!(
        take(&mut open, &round_frame(100, 100, true)),
        None,
        "nothing was before it"
    );
    assert_eq!(take(&mut open, &round_frame(110, 120, false)), None);
    open.on_lost(500);
    let round = take(&mut open, &round_frame(200, 90, true)).unwrap();
    assert_eq!(
        (round.acked, round.lost, round.window_limited),
        (2_000, 500, true)
    );
    assert_eq!((round.rtt_min, round.rtt_mean), (100 * MS, 110 * MS));
    assert!((round.rate - 20_000.0).abs() < 1e-6, "2,000 bytes in 100 ms");
    assert!(
        (open.rate(at(210)) - 0.0).abs() < 1e-9,
        "the frame belongs to the last round"
    );
    assert_eq!(open.lost(), 0);
}

#[test]
fn a_round_in_which_the_application_was_the_limit_for_longer_is_not_window_limited() {
    let mut open = OpenRound::default();
    take(&mut open, &round_frame(100, 100, true));
    for ms in [110, 120, 130] {
        let limited = ms > 110;
        take(
            &mut open,
            &Batch {
                limited,
                ..round_frame(ms, 100, false)
            },
        );
    }
    let round = take(
        &mut open,
        &Batch {
            limited: true,
            ..round_frame(200, 100, true)
        },
    );
    assert!(!round.unwrap().window_limited);
}
