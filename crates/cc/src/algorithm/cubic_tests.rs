//! Vectors of the curve, in segments: the MTU is one byte.

use std::sync::Arc;

use super::*;
use crate::Path;
use crate::tests::{close, loss};
use rstest::rstest;

/// The algorithm with `W_max` and cwnd, in segments, at the start of an epoch.
fn epoch(plateau: f64, window: f64) -> Cubic {
    Cubic {
        plateau,
        prior: plateau,
        k: libm::cbrt((plateau - window) / C),
        reno: window,
        ..Cubic::new(true)
    }
}

fn at(t: f64, rtt: f64) -> EpochPoint {
    EpochPoint { t, rtt, mtu: 1.0 }
}

// RFC 9438 §4.2, figures 1 and 2.
#[rstest]
#[case(0.0, 70.0)]
#[case(0.1, 72.0839)]
#[case(1.0, 86.6808)]
#[case(2.0, 95.6403)]
#[case(3.0, 99.2787)]
#[case(5.0, 100.1919)]
#[case(6.0, 102.2667)]
#[case(8.0, 121.6527)]
#[case(10.0, 177.3540)]
fn the_curve_starts_at_the_window_and_has_its_plateau_at_w_max(#[case] t: f64, #[case] segments: f64) {
    let algorithm = epoch(100.0, 70.0);
    close(algorithm.k, 4.217_163, 1e-6);
    close(algorithm.curve(algorithm.k, 1.0), 100.0, 1e-9);
    close(algorithm.curve(t, 1.0), segments, 1e-4);
}

// RFC 9438 §4.2, §4.4: cwnd += (target − cwnd)/cwnd for each segment; §4.3: W_est += α/cwnd.
#[test]
fn one_segment_moves_the_window_towards_the_curve_one_round_trip_ahead() {
    let mut algorithm = epoch(100.0, 70.0);
    let grown = algorithm.grown(70.0, 1.0, at(0.0, 0.1));
    close(grown - 70.0, 0.029_770_4, 1e-6);
    close(algorithm.reno, 70.007_563, 1e-6);
}

// RFC 9438 §4.2: the target is at most 1.5 cwnd.
#[test]
fn a_whole_window_grows_the_window_by_half_at_most() {
    let mut algorithm = epoch(100.0, 70.0);
    close(algorithm.curve(10.0, 1.0), 177.354, 1e-3);
    close(algorithm.grown(100.0, 100.0, at(9.9, 0.1)), 150.0, 1e-9);
}

// RFC 9438 §4.3: W_max 10, cwnd 7, RTT 10 ms: after ten round trips Reno would have 12.3 (α becomes 1 at
// cwnd_prior).
#[test]
fn the_reno_friendly_estimate_governs_small_windows() {
    let mut algorithm = epoch(10.0, 7.0);
    close(algorithm.k, 1.957_434, 1e-6);
    close(algorithm.curve(0.1, 1.0), 7.4367, 1e-4);
    let mut window = 7.0;
    for round in 0..10_u32 {
        for _ in 0..7 {
            window = algorithm.grown(window, window / 7.0, at(f64::from(round) * 0.01, 0.01));
        }
    }
    assert!(algorithm.reno > 12.0, "{}", algorithm.reno);
    close(window, algorithm.reno, 1e-9);
}

// RFC 9438 §4.3: α is 3(1−β)/(1+β) until W_est reaches cwnd_prior, then 1.
#[test]
fn the_reno_friendly_estimate_grows_like_reno_once_it_has_made_up_for_the_loss() {
    close(ALPHA, 0.529_412, 1e-6);
    let mut algorithm = epoch(10.0, 7.0);
    algorithm.grown(7.0, 7.0, at(0.0, 0.01));
    close(algorithm.reno, 7.0 + ALPHA, 1e-9);
    algorithm.reno = 10.0;
    algorithm.grown(10.0, 10.0, at(0.0, 0.01));
    close(algorithm.reno, 11.0, 1e-9);
}

fn core_at(window: u64) -> Core {
    let mut needs = Needs::default();
    Cubic::new(true).add_needs(&mut needs);
    let mut core = Core::new(&Path::default(), 2, needs, Arc::default());
    core.set_window(window);
    core
}

// RFC 9438 §4.7: loss at 80 with W_max 100 leaves W_max 68, cwnd 56, K = cbrt(12/0.4).
#[test]
fn fast_convergence_lowers_the_plateau_when_congestion_comes_earlier() {
    let mut algorithm = epoch(120_000.0, 84_000.0);
    let mut core = core_at(96_000);
    let reduction = algorithm.on_congestion(&mut core, &loss()).unwrap();
    assert_eq!((reduction.window, reduction.ssthresh), (67_200, 67_200));
    close(algorithm.plateau, 81_600.0, 1e-6);
    core.set_window(reduction.window);
    algorithm.begin(&mut core, Reason::RecoveryEnded, Timestamp::from_millis(1_100));
    close(algorithm.k, 3.107_233, 1e-6);
    // Without fast convergence the plateau is the window at the loss.
    let mut plain = Cubic {
        fast_convergence: false,
        ..epoch(120_000.0, 84_000.0)
    };
    plain.on_congestion(&mut core_at(96_000), &loss());
    close(plain.plateau, 96_000.0, 1e-6);
}

// RFC 9438 §4.10: without a loss W_max = cwnd and K = 0.
#[test]
fn the_first_epoch_after_slow_start_without_loss_starts_on_its_plateau() {
    let mut algorithm = Cubic::new(true);
    let mut core = core_at(120_000);
    algorithm.begin(&mut core, Reason::RttRose, Timestamp::from_millis(1_000));
    close(algorithm.k, 0.0, 1e-12);
    close(algorithm.curve(0.0, 1_200.0), 120_000.0, 1e-6);
}

// The minimum window can put cwnd_epoch above W_max.
#[test]
fn a_window_above_w_max_has_no_plateau_ahead() {
    let mut algorithm = epoch(2_000.0, 1_400.0);
    let now = Timestamp::from_millis(1_000);
    algorithm.begin(&mut core_at(2_400), Reason::RecoveryEnded, now);
    close(algorithm.k, 0.0, 1e-12);
    close(algorithm.curve(0.0, 1_200.0), 2_400.0, 1e-9);
}
