//! Entry and exit of each state.

use rstest::rstest;

use super::super::state::{AckPhase, State};
use super::run::{BDP, RATE, Run, after_a_probe_too_high, cruising};
use crate::tests::{assert_about, assert_in};
use crate::{Phase, Reason};

#[rstest]
#[case(State::Startup, 277, 200)]
#[case(State::Drain, 50, 200)]
#[case(State::Down, 90, 200)]
#[case(State::Cruise, 100, 200)]
#[case(State::Refill, 100, 200)]
#[case(State::Up, 125, 225)]
#[case(State::ProbeRtt, 100, 50)]
fn gains_are_those_of_the_drafts_table(#[case] state: State, #[case] pacing: u64, #[case] cwnd: u64) {
    assert_eq!((state.pacing_gain(), state.cwnd_gain()), (pacing, cwnd));
}

#[test]
fn a_lossless_path_shows_the_states_in_their_order() {
    let mut run = Run::new(4 * BDP);
    run.until(|run| run.entries(State::Cruise).len() == 2);
    // The frame that ends Drain also ends ProbeBW_DOWN: the queue is empty.
    let expected = [
        State::Startup,
        State::Drain,
        State::Cruise,
        State::Refill,
        State::Up,
        State::Down,
        State::Cruise,
    ];
    assert_eq!(run.order(), expected);
    assert_eq!(run.bbr.model.inflight_longterm, None);
}

#[test]
fn startup_doubles_until_the_rate_stands_still_for_three_round_trips() {
    let mut run = Run::new(4 * BDP);
    run.until(|run| run.bbr.model.max_bw() > RATE * 95 / 100);
    let full = run.bbr.round_count;
    // From 12 kB to 50 kB.
    assert_in(full, 2..=6);
    run.until_state(State::Drain);
    assert_in(run.bbr.round_count - full, 2..=4);
    assert_eq!(run.phase(), (Phase::Avoidance, Reason::CapacityKnown));
}

#[test]
fn drain_ends_when_one_bdp_is_in_flight() {
    let mut run = Run::new(4 * BDP);
    run.until_state(State::Drain);
    let round = run.bbr.round_count;
    assert!(run.in_flight() > BDP * 3 / 2);
    run.until(|run| run.state() != State::Drain);
    assert_about(run.in_flight(), BDP, 10);
    assert!(run.bbr.round_count - round <= 3);
}

#[test]
fn startup_ends_when_a_round_trip_loses_more_than_two_percent() {
    let mut run = Run::new(BDP / 4);
    run.until(|run| run.state() != State::Startup);
    assert_eq!(run.phase(), (Phase::Avoidance, Reason::Loss));
    assert_about(run.bbr.model.inflight_longterm.expect("a bound"), BDP, 25);
}

#[test]
fn one_lost_packet_does_not_end_startup() {
    let mut run = Run::new(4 * BDP);
    run.until(|run| run.bbr.round_count == 2);
    run.lose(1);
    run.until(|run| run.bbr.model.max_bw() > RATE * 95 / 100);
    assert_eq!(run.state(), State::Startup);
    assert_eq!(run.bbr.model.bw_shortterm, None);
}

#[test]
fn cruising_carries_the_links_rate_with_hardly_a_queue() {
    let run = cruising();
    assert_about(run.bbr.model.bw(), RATE, 1);
    // Two packets pass the link in 1.9 ms.
    assert_in(run.bbr.model.min_rtt().expect("samples"), 40_000_000..42_000_000);
    assert_about(run.window(), BDP, 18);
    assert!(run.window() < run.bbr.core.window());
}

// 63 round trips of 40 ms would be 2.5 s; the BDP has 41 packets, and Reno would need that many round trips.
#[test]
fn a_probe_comes_after_as_many_round_trips_as_the_bdp_has_packets() {
    let mut run = cruising();
    for probe in 1..=4 {
        run.until(|run| run.entries(State::Refill).len() == probe);
        let rounds = (run.now - run.bbr.machine.cycle_stamp.as_nanos()) / 41_000_000;
        assert_in(rounds, 36..=50);
    }
}

#[test]
fn a_probe_on_a_long_path_comes_after_two_to_three_seconds_that_vary() {
    let mut run = Run::new(4 * 250_000);
    (run.network.bytes_per_second, run.network.one_way_ns) = (2_500_000, 50_000_000);
    let mut waits = Vec::new();
    for probe in 1..=5 {
        run.until(|run| run.entries(State::Refill).len() == probe);
        let machine = &run.bbr.machine;
        let waited = run.now - machine.cycle_stamp.as_nanos();
        assert_in(waited.abs_diff(machine.bw_probe_wait_ns), ..10_000_000);
        let wait = machine.bw_probe_wait_ns / 1_000_000;
        assert_in(wait, 2_000..3_000);
        waits.push(wait);
    }
    let varies = |pair: &[u64]| pair[0].abs_diff(pair[1]) > 50;
    assert!(waits.windows(2).any(varies), "{waits:?}");
}

#[test]
fn refill_lasts_a_round_trip_and_forgets_the_short_term_model() {
    let mut run = cruising();
    run.lose(1);
    run.until(|run| run.bbr.model.bw_shortterm.is_some());
    run.until_state(State::Refill);
    assert_eq!(run.bbr.model.bw_shortterm, None);
    assert_eq!(run.bbr.model.inflight_shortterm, None);
    run.until_state(State::Up);
    let (refill, up) = (run.entries(State::Refill)[0], run.entries(State::Up)[0]);
    assert_in(up - refill, 38..=60);
}

#[test]
fn up_raises_the_flight_by_a_quarter_and_ends_when_the_rate_does_not_follow() {
    let mut run = cruising();
    run.until_state(State::Up);
    assert_eq!(run.bbr.machine.ack_phase, AckPhase::ProbeStarting);
    run.until(|run| run.in_flight() > BDP * 6 / 5);
    let round = run.bbr.round_count;
    run.until_state(State::Down);
    assert!(run.bbr.round_count - round <= 5);
    assert!(!run.bbr.machine.prev_probe_too_high);
    run.until_state(State::Cruise);
    assert!(run.in_flight() <= BDP * 21 / 20);
}

#[test]
fn up_finds_a_rate_that_has_doubled_within_a_few_probes() {
    let mut run = cruising();
    run.network.bytes_per_second *= 2;
    run.for_ms(12_000);
    assert_about(run.bbr.model.max_bw(), 2 * RATE, 5);
}

#[test]
fn a_rate_that_has_halved_is_known_after_two_cycles() {
    let mut run = cruising();
    run.network.bytes_per_second /= 2;
    run.until(|run| run.entries(State::Up).len() == 3);
    run.until_state(State::Cruise);
    assert_about(run.bbr.model.max_bw(), RATE / 2, 5);
}

#[test]
fn a_probe_with_more_than_two_percent_lost_bounds_what_may_be_in_flight() {
    let run = after_a_probe_too_high();
    assert_eq!(run.state(), State::Down);
    assert_eq!(run.bbr.core.reason, Reason::Loss);
    let bound = run.bbr.model.inflight_longterm;
    assert_in(bound, Some(BDP * 7 / 10)..=Some(BDP * 3 / 2));
}

#[test]
fn cruising_below_a_bound_leaves_headroom() {
    let mut run = after_a_probe_too_high();
    run.bbr.model.inflight_longterm = Some(BDP);
    run.until_state(State::Cruise);
    assert_in(run.in_flight(), ..=BDP * 85 / 100);
    run.step();
    assert_in(run.bbr.core.window(), ..=BDP * 85 / 100);
}

#[test]
fn the_probe_after_one_too_high_stops_at_the_bound_and_the_next_follows_at_once() {
    let mut run = after_a_probe_too_high();
    let seen = run.states.len();
    run.until(|run| run.entries(State::Refill).len() == 3);
    let order: Vec<State> = run.order().split_off(seen);
    let (cruise, refill) = (State::Cruise, State::Refill);
    assert_eq!(order, [cruise, refill, State::Up, State::Down, cruise, refill]);
    let lasted = |state, next| run.entries(next).last().unwrap() - run.entries(state).last().unwrap();
    assert_in(lasted(State::Up, State::Down), ..60);
    assert_in(lasted(State::Down, State::Refill), ..120);
}

#[test]
fn probe_rtt_comes_when_the_smallest_rtt_is_five_seconds_old() {
    let mut run = cruising();
    for _ in 0..3 {
        let began = run.now / 1_000_000;
        run.until_probe_rtt();
        assert_in(run.now / 1_000_000 - began, 4_000..=5_600);
        run.until(|run| run.state() != State::ProbeRtt);
    }
}

// The queue of each probe is gone at the end of the cycle, or nearly so.
#[test]
fn an_rtt_that_is_less_than_a_millisecond_longer_takes_the_place_of_probe_rtt() {
    let mut run = cruising();
    run.network.one_way_ns += 450_000;
    run.for_ms(20_000);
    assert_eq!(run.entries(State::ProbeRtt), []);
}

#[test]
fn probe_rtt_halves_the_flight_for_200_ms_and_goes_on_cruising() {
    let mut run = cruising();
    run.until_probe_rtt();
    let cwnd = run.bbr.core.window();
    run.for_ms(100);
    assert_about(run.window(), BDP / 2, 5);
    run.until(|run| run.state() != State::ProbeRtt);
    let began = run.entries(State::ProbeRtt)[0];
    assert_in(run.states[run.states.len() - 1].0 - began, 200..=300);
    assert_eq!(run.state(), State::Cruise);
    assert!(run.bbr.core.window() >= cwnd * 9 / 10, "cwnd is restored");
    assert_about(run.bbr.model.max_bw(), RATE, 1);
}

#[test]
fn an_rtt_that_has_risen_is_known_after_probe_rtt() {
    let mut run = cruising();
    run.network.one_way_ns += 10_000_000;
    run.for_ms(12_000);
    let min = run.bbr.model.min_rtt().expect("samples");
    assert_about(min / 1_000_000, 61, 5);
}

#[test]
fn probe_rtt_in_startup_returns_to_startup() {
    let mut run = Run::new(4 * BDP);
    run.demand = 6_000;
    run.for_ms(1_000);
    run.until_probe_rtt();
    assert_eq!(run.bbr.core.phase, Phase::Startup);
    run.until_state(State::Startup);
    assert!(!run.bbr.machine.full_bw_reached);
}

#[test]
fn a_silence_takes_the_place_of_probe_rtt() {
    let mut run = cruising();
    run.until(|run| run.now > 4_500_000_000);
    let before = run.entries(State::ProbeRtt).len();
    run.go_silent(3_000);
    run.for_ms(500);
    assert_eq!(run.entries(State::ProbeRtt).len(), before);
    assert!(!run.bbr.idle_restart);
}

#[test]
fn a_silence_within_probe_rtt_ends_it() {
    let mut run = cruising();
    run.until_probe_rtt();
    run.until(|run| run.in_flight() <= BDP / 2);
    run.for_ms(60);
    run.go_silent(1_000);
    run.step();
    assert_ne!(run.state(), State::ProbeRtt);
}
