//! Vectors of Vegas, in segments of 1200 B.

use super::*;
use crate::tests::{MS_IN_NS as MS, MTU, close};
use rstest::rstest;

fn vegas(arithmetic: Arithmetic) -> Vegas {
    Vegas {
        arithmetic,
        ..Vegas::from_arguments(&Arguments::defaults(PARAMETERS))
    }
}

/// Runs one full round trip of four samples at `rtt_ms`, ended by a batch of the next, and returns the
/// window.
fn after_a_round(algorithm: &mut Vegas, core: &mut Core, rtt_ms: u64) -> u64 {
    for now in [2_000, 2_010, 2_020, 2_030] {
        algorithm.on_batch(core, &Batch::sample(now, rtt_ms, false));
    }
    algorithm.on_batch(core, &Batch::sample(2_000 + rtt_ms, rtt_ms, true));
    core.window()
}

// cwnd 20, base 100 ms. Linux divides by the base RTT and rounds down; the original divides by the RTT.
#[rstest]
#[case(Arithmetic::Original, 110, 21)] // 1.818
#[case(Arithmetic::Linux, 110, 20)] // 2
#[case(Arithmetic::Original, 115, 20)] // 2.609
#[case(Arithmetic::Linux, 115, 20)] // 3
#[case(Arithmetic::Linux, 120, 20)] // 4
#[case(Arithmetic::Original, 125, 20)] // 4.000
#[case(Arithmetic::Linux, 125, 19)] // 5
#[case(Arithmetic::Original, 130, 19)] // 4.615
#[case(Arithmetic::Linux, 130, 19)] // 6
fn the_window_moves_by_a_segment_to_keep_two_to_four_queued(
    #[case] arithmetic: Arithmetic,
    #[case] rtt_ms: u64,
    #[case] segments: u64,
) {
    let mut core = Core::sample(20 * MTU, 100, rtt_ms);
    let window = after_a_round(&mut vegas(arithmetic), &mut core, rtt_ms);
    assert_eq!(window, segments * MTU);
}

// Linux tcp_vegas.c: diff = 40·5/100 = 2 > γ = 1, cwnd = min(40, 40·100/105 + 1) = 39.
#[test]
fn slow_start_ends_at_what_the_path_holds_plus_one_segment() {
    let mut core = Core::sample(40 * MTU, 100, 105);
    let mut algorithm = vegas(Arithmetic::Linux);
    for now in [2_000, 2_010, 2_020] {
        let end = algorithm.watch_startup(&mut core, &Batch::sample(now, 105, false));
        assert_eq!(end, None);
    }
    let end = algorithm.watch_startup(&mut core, &Batch::sample(2_105, 105, true));
    assert_eq!(end, Some(Reason::RttRose));
    assert_eq!((core.window(), core.ssthresh), (39 * MTU, Some(39 * MTU)));
}

/// A round trip of slow start whose window grows by a packet for each of its RTTs.
fn startup_round(algorithm: &mut Vegas, core: &mut Core, now: u64, rtts: &[u64]) -> Option<Reason> {
    let mut last = None;
    for (index, &rtt_ms) in rtts.iter().enumerate() {
        core.set_window(core.window() + MTU);
        let batch = Batch::sample(now + index as u64, rtt_ms, index == 0);
        last = algorithm.watch_startup(core, &batch);
        if last.is_some() {
            break;
        }
    }
    last
}

// If the queue builds up within a round, the round's smallest RTT is that of its beginning. 40·120/100: 48 queue 8.
#[test]
fn a_queue_that_builds_up_within_a_round_stops_growth_at_once_and_ends_slow_start_a_round_later() {
    let mut core = Core::sample(40 * MTU, 100, 100);
    let mut algorithm = vegas(Arithmetic::Linux);
    let rising = [[100; 10], [120; 10]].concat();
    let mut round = |now, rtts: &[u64]| {
        let end = startup_round(&mut algorithm, &mut core, now, rtts);
        (end.is_none(), core.window() / MTU)
    };
    assert_eq!(
        round(2_000, &rising),
        (true, 58),
        "held from the eighth sample on"
    );
    let standing = [145; 20];
    assert_eq!(round(2_100, &standing), (true, 58));
    assert!(!round(2_250, &standing).0);
    assert_eq!(core.window(), 41 * MTU, "58·100/145 + 1");
}

// Two packets per ACK frame: a burst of ten gives five frames, and only the first finds no queue.
#[test]
fn a_burst_is_no_standing_queue() {
    let mut core = Core::sample(40 * MTU, 100, 100);
    let mut algorithm = vegas(Arithmetic::Linux);
    let bursts = [100, 104, 108, 112, 116].repeat(4);
    let end = startup_round(&mut algorithm, &mut core, 2_000, &bursts);
    assert_eq!(end, None);
    assert_eq!(core.window(), 60 * MTU);
}

#[test]
fn slow_start_goes_on_while_no_more_than_gamma_is_queued() {
    let mut core = Core::sample(40 * MTU, 100, 102);
    let mut algorithm = vegas(Arithmetic::Linux);
    for (now, new_round) in [(2_000, false), (2_010, false), (2_020, false), (2_102, true)] {
        let end = algorithm.watch_startup(&mut core, &Batch::sample(now, 102, new_round));
        assert_eq!(end, None);
    }
}

#[test]
fn a_round_with_two_samples_counts_for_reno_instead() {
    let mut core = Core::sample(2 * MTU, 100, 200);
    let mut algorithm = vegas(Arithmetic::Linux);
    algorithm.on_batch(&mut core, &Batch::sample(2_000, 200, false));
    for round in 1..=2_u64 {
        algorithm.on_batch(&mut core, &Batch::sample(2_000 + 200 * round, 200, true));
    }
    // Two packets acknowledged with a window of two: Reno adds one. Vegas would have removed one.
    assert_eq!(core.window(), 3 * MTU);
}

#[test]
fn a_limited_sender_does_not_grow() {
    let mut core = Core::sample(20 * MTU, 100, 100);
    let mut algorithm = vegas(Arithmetic::Linux);
    for now in [2_000, 2_010, 2_020] {
        algorithm.on_batch(&mut core, &Batch::limited(now, 100, false));
    }
    algorithm.on_batch(&mut core, &Batch::limited(2_100, 100, true));
    assert_eq!(core.window(), 20 * MTU);
}

// Found by the fuzzer: Reno's count survived a reduction of the window that it was counted under.
#[test]
fn bytes_counted_for_reno_do_not_grow_a_smaller_window_of_a_limited_sender() {
    let mut core = Core::sample(20 * MTU, 100, 130);
    let mut algorithm = vegas(Arithmetic::Linux);
    let allowance = |now, allowance| Batch::sample(now, 130, true).with_allowance(allowance);
    algorithm.on_batch(&mut core, &allowance(1_900, 60 * MTU));
    assert_eq!(core.window(), 21 * MTU);
    assert_eq!(after_a_round(&mut algorithm, &mut core, 130), 20 * MTU);
    algorithm.on_batch(&mut core, &allowance(2_260, 0));
    assert_eq!(core.window(), 20 * MTU);
}

#[test]
fn the_round_that_recovery_ended_in_does_not_count() {
    let mut core = Core::sample(20 * MTU, 100, 130);
    let mut algorithm = vegas(Arithmetic::Linux);
    algorithm.begin(&mut core, Reason::RecoveryEnded, Timestamp::from_millis(1_999));
    assert_eq!(after_a_round(&mut algorithm, &mut core, 130), 20 * MTU);
}

#[test]
fn queued_segments_are_whole_in_linux_only() {
    let core = Core::sample(20 * MTU, 100, 115);
    let queued = |arithmetic| vegas(arithmetic).queued(&core, 100 * MS, 115 * MS);
    close(queued(Arithmetic::Linux), 3.0, 1e-12);
    close(queued(Arithmetic::Original), 2.609, 1e-3);
}
