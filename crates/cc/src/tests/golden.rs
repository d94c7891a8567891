//! Golden traces: each controller's behaviour on one fixed path, to the byte.
//!
//! A change of an algorithm shows here first. Check the difference, redraw the figures
//! (`cargo run --example controller_windows`, then `python docs/draw.py`), check them too, and accept it with
//! `INSTA_UPDATE=always cargo test -p playrate-cc golden`.

use super::trace::{LINK, Trace, trace};
use super::{assert_about, assert_in, spec};
use crate::Phase;
use crate::testing::{Demand, examples};
use rstest::rstest;

fn run(text: &str) -> Trace {
    let spec = spec(text);
    trace(&spec, Demand::that_shows(&spec))
}

#[test]
fn every_controller_does_what_it_did_before() {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        for example in examples().expect("all parse") {
            let trace = trace(&example.spec, example.demand);
            insta::assert_snapshot!(example.name.as_str(), trace);
        }
    });
}

#[test]
fn the_same_run_gives_the_same_trace() {
    assert_eq!(run("cubic"), run("cubic"));
}

// Fixed points of the algorithms if the queue holds one bandwidth-delay product, B = 2·BDP = 500 kB: CCP Kp·B/3, CCPD
// (B + BDP)/3, with POB/4 = 164 kB added (Kp·(B + BDP) + 2·POB/4)/(3 + Kp).
#[rstest]
#[case("ccp", 166_667, 13_200)]
#[case("ccp-sss", 166_667, 13_200)]
#[case("ccp-lss", 166_667, 13_200)]
#[case("ccp-lca", 166_667, 13_200)]
#[case("ccp(kp=1.5)", 250_000, 19_700)]
#[case("ccpd", 250_000, 19_200)]
#[case("ccp-lb(pob_rate=4)", 269_500, 20_000)]
fn absolute_windows_settle_at_their_fixed_points(
    #[case] spec: &str,
    #[case] window: u64,
    #[case] rate_kbps: u64,
) {
    let trace = run(spec);
    assert_about(trace.mean_window(8, 18), window, 3);
    assert_about(trace.rate(8, 18).as_bits_per_second() / 1_000, rate_kbps, 2);
}

// "CCPD(1,4000) has the highest range of variation" (Watanabe et al. 2013).
#[test]
fn a_larger_weight_of_the_derivative_makes_the_window_vary_more() {
    let range = |spec| run(spec).mean(8, 18, |round| (round.range.1 - round.range.0).as_u64());
    assert!(range("ccp") < 2_400);
    assert!(range("ccpd") > 24_000);
    assert!(range("ccpd(kd=4ms)") > range("ccpd") * 5 / 4);
}

#[test]
fn a_single_lost_packet_costs_ccp_nothing() {
    let trace = run("ccp");
    assert_eq!(trace.lost(15, 30), 1);
    assert_about(trace.mean_window(20, 30), trace.mean_window(8, 18), 1);
}

#[test]
fn a_full_playout_buffer_on_top_overflows_a_short_queue_unless_guarded() {
    let (guarded, pure) = (run("ccp-lb"), run("ccp-lb+loss=ignore"));
    // The guard finds the edge again and again.
    assert_in(guarded.lost(8, 30), 11..pure.lost(8, 30) / 5);
    assert_about(guarded.rate(8, 18).as_bits_per_second() / 1_000, 20_000, 1);
}

#[test]
fn cubic_and_reno_fill_the_queue_and_back_off() {
    for (spec, after_loss) in [("reno", 50), ("cubic", 70)] {
        let trace = run(spec);
        let windows = || trace.within(18, 20).map(|round| round.window.as_u64());
        let (most, least) = (windows().max().expect("rounds"), windows().min().expect("rounds"));
        assert_about(least, most * after_loss / 100, 1);
        assert!(trace.mean_queue(8, 18) > 100_000, "{spec}");
    }
}

// Between α = 2 and β = 4 segments by Linux's arithmetic, which rounds down; the momentary queue of a pacer's burst is
// added to that.
#[test]
fn vegas_keeps_a_few_packets_queued() {
    let trace = run("vegas");
    assert_about(trace.mean_window(8, 18), LINK.bdp().as_u64(), 4);
    assert_in(trace.mean_queue(8, 18), 2 * 1_200..=6 * 1_200);
    assert_eq!(trace.lost(2, 18), 0);
}

// N = ⌈5.24 Mbit/s · 100 ms⌉ = 55 segments, one more for a transport that blocks early; then one segment per
// round trip.
#[test]
fn stream_starts_at_the_videos_rate_and_takes_what_is_free_slowly() {
    let trace = run("stream");
    let start = trace.rounds.iter().find(|round| round.phase == Phase::Avoidance);
    assert_about(start.expect("a round").window.as_u64(), 56 * 1_200, 4);
    let growth = trace.mean_window(9, 10) - trace.mean_window(4, 5);
    assert_about(growth, 50 * 1_200, 5);
    assert_eq!(trace.lost(0, 18), 0);
}

#[test]
fn a_start_at_the_videos_rate_stays_there_until_a_loss() {
    for spec in ["ccp-vs", "cubic+start=video-rate"] {
        let trace = run(spec);
        assert!(trace.within(0, 18).all(|round| round.phase == Phase::Startup));
        assert_about(trace.rate(2, 18).as_bits_per_second() / 1_000, 5_240, 3);
    }
}
