//! Vectors of Compound TCP, in segments of 1200 B.

use super::*;
use crate::tests::{MS_IN_NS as MS, MTU, close, loss};
use rstest::rstest;

/// The algorithm with a delay window of `delay` segments in a window of `window`.
fn algorithm(delay: f64, window: f64) -> Compound {
    Compound {
        windows: TwoWindows::of_delay(delay),
        round_window: window,
    }
}

// draft-sridharan-tcpm-ctcp-02 §3.1: dwnd += max(0, α·win^k − 1), off below 38 segments (§3.4).
#[rstest]
#[case(37.0, 0.0)]
#[case(38.0, 0.9131)]
#[case(100.0, 2.9528)]
#[case(140.0, 4.0875)]
#[case(500.0, 12.2171)]
#[case(1000.0, 21.2285)]
#[case(10_000.0, 124.0)]
fn without_a_queue_the_delay_window_grows_by_a_power_of_the_whole_window(
    #[case] window: f64,
    #[case] grows: f64,
) {
    close(algorithm(0.0, window).delay_after(window, 0.0, true), grows, 1e-3);
}

// Same section: win 140 = cwnd 80 + dwnd 60, base 100 ms.
#[rstest]
#[case(150, 13.333)] // 46.667 queued ≥ 30: gives way
#[case(120, 64.0875)] // 23.333 queued < 30: grows
fn the_delay_window_gives_way_to_a_queue_of_gamma_segments(#[case] rtt_ms: u64, #[case] delay: f64) {
    let mut algorithm = algorithm(60.0, 140.0);
    let window = algorithm.end_round(140.0, (rtt_ms * MS, 100 * MS), true);
    close(algorithm.windows.delay, delay, 1e-3);
    close(window, 80.0 + delay, 1e-3);
}

#[test]
fn a_limited_sender_does_not_grow_the_delay_window() {
    close(algorithm(10.0, 140.0).delay_after(140.0, 0.0, false), 10.0, 1e-9);
}

// Draft §3.2 with β = 0.5: both windows halve. The papers' equation would leave −10 segments.
#[test]
fn a_loss_halves_both_windows() {
    let mut core = Core::sample(140 * MTU, 100, 150);
    let mut algorithm = algorithm(60.0, 140.0);
    let reduction = algorithm
        .on_congestion(&mut core, &loss())
        .expect("answers losses");
    close(algorithm.windows.delay, 30.0, 1e-9);
    assert_eq!((reduction.window, reduction.ssthresh), (70 * MTU, 70 * MTU));
}

#[test]
fn persistent_congestion_starts_the_delay_part_over() {
    let mut core = Core::sample(140 * MTU, 100, 150);
    let mut algorithm = algorithm(60.0, 140.0);
    algorithm.on_persistent(&mut core);
    close(algorithm.windows.delay, 0.0, 1e-12);
}

// cwnd += 1/(cwnd + dwnd) for each segment: one segment per window acknowledged, regardless of dwnd.
#[test]
fn the_loss_window_grows_by_a_segment_per_whole_window() {
    let mut core = Core::sample(100 * MTU, 100, 100);
    let mut algorithm = algorithm(40.0, 100.0);
    for _ in 0..100 {
        algorithm.on_batch(&mut core, &Batch::sample(1_100, 100, false));
    }
    close(core.window() as f64 / MTU as f64, 101.0, 0.01);
    close(algorithm.windows.delay, 40.0, 1e-9);
}

#[test]
fn a_pause_takes_the_delay_window_and_the_round_that_was_going_on() {
    let mut core = Core::sample(100 * MTU, 100, 100);
    let mut algorithm = algorithm(40.0, 100.0);
    algorithm.on_pause(&mut core);
    algorithm.on_batch(&mut core, &Batch::sample(5_000, 100, false));
    close(core.window() as f64 / MTU as f64, 60.0, 0.1);
}
