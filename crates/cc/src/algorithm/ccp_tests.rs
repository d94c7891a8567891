//! Vectors of CCP and CCPD: C 2.5 MB/s, RTT 100 to 200 ms, so B = 500 kB; Kp 1.

use super::*;
use crate::tests::MS_IN_NS as MS;
use rstest::rstest;

const NEVER_STALE: u64 = u64::MAX;
const B: f64 = 500_000.0;

fn ccp() -> Ccp {
    Ccp::from_arguments(&Arguments::defaults(&without_derivative()))
}

fn ccpd(kd_us: u64) -> Ccp {
    let mut algorithm = Ccp::from_arguments(&Arguments::defaults(&PARAMETERS));
    algorithm.derivative.as_mut().expect("ccpd has one").kd_ns = (kd_us * 1_000) as f64;
    algorithm
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 0.5, "{a} is not {b}");
}

fn window(algorithm: &mut Ccp, backlog: f64, in_flight: f64) -> f64 {
    let state = PathState {
        storage: B,
        backlog,
        in_flight,
    };
    algorithm.equation(Timestamp::ZERO, state, NEVER_STALE)
}

// Cavendish et al. 2015 eq. (4): [Kp(B − x) − f]/2.
#[rstest]
#[case(0.0, 12_000.0, 244_000.0)]
#[case(0.0, 0.0, 250_000.0)]
#[case(0.0, 200_000.0, 150_000.0)]
#[case(50_000.0, 180_000.0, 135_000.0)] // rtt 120 ms
#[case(250_000.0, 450_000.0, -100_000.0)] // rtt 200 ms: below any minimum
fn ccp_takes_half_of_the_free_storage(#[case] backlog: f64, #[case] in_flight: f64, #[case] bytes: f64) {
    close(window(&mut ccp(), backlog, in_flight), bytes);
}

// Watanabe et al. 2013 eq. (6) without its derivative: Kp(B − x − f).
#[rstest]
#[case(50_000.0, 180_000.0, 270_000.0)]
#[case(250_000.0, 450_000.0, -200_000.0)]
fn ccpd_takes_all_of_it(#[case] backlog: f64, #[case] in_flight: f64, #[case] bytes: f64) {
    close(window(&mut ccpd(2_000), backlog, in_flight), bytes);
}

// CCP as a map from one round trip's window to the next has the eigenvalue −1/2: damped, alternating.
#[test]
fn ccp_settles_on_a_third_of_the_storage_by_damped_oscillation() {
    let (mut algorithm, mut w) = (ccp(), 12_000.0);
    for expected in [
        244_000.0, 128_000.0, 186_000.0, 157_000.0, 171_500.0, 164_250.0, 167_875.0, 166_062.5, 166_968.75,
    ] {
        w = window(&mut algorithm, 0.0, w);
        close(w, expected);
    }
    for _ in 0..20 {
        w = window(&mut algorithm, 0.0, w);
    }
    close(w, B / 3.0);
}

// The same map for CCPD has the eigenvalue −1: without a derivative nothing damps it.
#[test]
fn ccpd_without_derivative_swings_undamped_in_lock_step() {
    let (mut algorithm, mut w) = (ccpd(0), 12_000.0);
    for expected in [488_000.0, 12_000.0, 488_000.0, 12_000.0] {
        w = window(&mut algorithm, 0.0, w);
        close(w, expected);
    }
}

// Kd/Δt·Δs with s from 230,000 to 231,200: nothing before 1 ms has passed, then −2,400 and −4,800.
#[rstest]
#[case(2_000, -2_400.0)]
#[case(4_000, -4_800.0)]
fn the_derivative_is_taken_once_a_millisecond_at_most(#[case] kd_us: u64, #[case] bytes: f64) {
    let mut algorithm = ccpd(kd_us);
    let derivative = algorithm.derivative.as_mut().expect("ccpd has one");
    close(derivative.update(Timestamp::ZERO, 230_000.0, NEVER_STALE), 0.0);
    for (us, backlog, expected) in [
        (960, 231_200.0, 0.0),
        (1_000, 231_200.0, bytes),
        (1_500, 0.0, bytes),
    ] {
        let now = Timestamp::from_nanos(us * 1_000);
        close(derivative.update(now, backlog, NEVER_STALE), expected);
    }
}

#[test]
fn a_derivative_across_a_pause_is_forgotten() {
    let mut algorithm = ccpd(2_000);
    let derivative = algorithm.derivative.as_mut().expect("ccpd has one");
    derivative.update(Timestamp::ZERO, 230_000.0, 200 * MS);
    derivative.update(Timestamp::from_millis(2), 0.0, 200 * MS);
    let after = derivative.update(Timestamp::from_millis(203), 500_000.0, 200 * MS);
    close(after, 0.0);
}

// B = C·max(rtt_max, b·rtt_min), at least 20 segments.
#[rstest]
#[case(Some(2.0), 100, Some(200), 500_000.0)]
#[case(Some(2.0), 100, Some(110), 500_000.0)]
#[case(Some(2.0), 100, None, 500_000.0)]
#[case(Some(1.0), 100, Some(110), 275_000.0)]
#[case(Some(2.0), 100, Some(9_000), 2_750_000.0)] // a stall counts as 1 s of queue
#[case(Some(2.0), 1, Some(2), 24_000.0)]
#[case(None, 100, Some(200), 250_000.0)]
fn the_storage_is_pipe_and_queue(
    #[case] floor: Option<f64>,
    #[case] min_ms: u64,
    #[case] max_ms: Option<u64>,
    #[case] bytes: f64,
) {
    let algorithm = Ccp { floor, ..ccp() };
    let rtts = (min_ms * MS, max_ms.map(|ms| ms * MS));
    close(algorithm.storage(2_500_000.0, rtts, 1_200), bytes);
}

// Fixed points in units of the pipe, for a queue of Q pipes (no floor): Kp·B/3 below it, Kp(B + BDP)/(3 + Kp)
// above; CCPD Kp·B/(1 + Kp) and Kp(B + BDP)/(1 + 2Kp).
#[rstest]
#[case(0.5, 0.5, 0.75)]
#[case(1.0, 0.667, 1.0)]
#[case(2.0, 1.0, 1.333)]
#[case(3.0, 1.25, 1.667)]
#[case(4.0, 1.5, 2.0)]
fn fixed_points_follow_the_queue(#[case] queue: f64, #[case] ccp_pipes: f64, #[case] ccpd_pipes: f64) {
    let settle = |algorithm: &mut Ccp| {
        let mut w = 0.5_f64;
        for _ in 0..2_000 {
            let state = PathState {
                storage: 1.0 + queue,
                backlog: (w - 1.0).max(0.0),
                in_flight: w,
            };
            // A sender that is clocked by acknowledgements follows the algorithm little by little.
            w += 0.05 * (algorithm.equation(Timestamp::ZERO, state, NEVER_STALE) - w);
        }
        w
    };
    assert!((settle(&mut ccp()) - ccp_pipes).abs() < 1e-3);
    assert!((settle(&mut ccpd(0)) - ccpd_pipes).abs() < 1e-3);
}
