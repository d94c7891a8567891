//! Answers to losses, marks, pauses and a sender that does not use its window; whole runs.

use core::time::Duration;
use std::sync::Arc;

use rstest::rstest;

use super::super::sample::Sample;
use super::super::state::State;
use super::super::{Bbr, volume};
use super::run::{BDP, RATE, Run, cruising};
use crate::events::{AckFrame, Acked, Sent, Signal};
use crate::testing::Demand;
use crate::tests::trace::{LINK, Link, lossless, trace, trace_beside_filler};
use crate::tests::{MS, MTU, assert_about, assert_in, at, spec};
use crate::{Bytes, CongestionController as _, Path, Phase, Reason, Timestamp};

fn bbr() -> Bbr {
    Bbr::new(&Path::default(), Arc::default())
}

const PERSISTENT: Signal = Signal::Loss {
    bytes: Bytes::new(MTU),
    persistent: true,
};

// The floor of 70 %: only the bytes that still arrive keep the bounds higher.
#[test]
fn a_loss_while_cruising_costs_no_more_than_what_was_not_delivered() {
    let mut run = cruising();
    run.lose(1);
    run.until(|run| run.bbr.model.bw_shortterm.is_some());
    assert_about(run.bbr.model.bw(), RATE, 5);
    assert!(run.bbr.model.inflight_shortterm >= Some(BDP * 9 / 10));
    assert_eq!(run.bbr.core.reason, Reason::Loss);
}

#[test]
fn a_lasting_reduction_of_the_rate_lowers_the_bounds_by_30_percent_a_round_trip() {
    let mut run = cruising();
    (run.network.bytes_per_second, run.network.queue) = (RATE / 4, 2_400);
    run.for_ms(400);
    assert!(run.bbr.model.bw() < RATE / 2, "{}", run.bbr.model.bw());
    assert_about(run.bbr.model.max_bw(), RATE, 1);
}

#[test]
fn a_mark_while_cruising_counts_as_a_loss() {
    let mut run = cruising();
    run.congestion(Signal::EcnCe);
    run.until(|run| run.bbr.model.bw_shortterm.is_some());
    assert_eq!(run.bbr.core.reason, Reason::EcnCe);
}

#[test]
fn a_mark_ends_startup_within_a_round_trip() {
    let mut run = Run::new(4 * BDP);
    run.until(|run| run.bbr.round_count == 2);
    run.step();
    run.congestion(Signal::EcnCe);
    run.until_state(State::Drain);
    assert!(run.bbr.round_count <= 4);
    assert_eq!(run.phase(), (Phase::Avoidance, Reason::EcnCe));
    assert!(run.bbr.model.inflight_longterm.is_some());
}

#[test]
fn a_mark_while_probing_ends_the_probe() {
    let mut run = cruising();
    run.until_state(State::Up);
    run.step();
    run.congestion(Signal::EcnCe);
    assert_eq!(run.state(), State::Down);
    let bound = run.bbr.model.inflight_longterm;
    assert!(bound.is_some_and(|bound| bound < 2 * BDP));
}

#[test]
fn samples_of_a_sender_that_does_not_use_its_window_lower_nothing() {
    let mut run = cruising();
    run.demand = 6_000;
    run.for_ms(15_000);
    assert_about(run.bbr.model.max_bw(), RATE, 1);
    run.demand = u64::MAX;
    assert_in(run.delivered_in(1_000), RATE * 9 / 10..);
}

#[test]
fn a_pause_keeps_the_model_and_restarts_at_its_rate() {
    let mut run = cruising();
    run.go_silent(2_000);
    run.step();
    assert_in(run.window(), ..=BDP * 23 / 20);
    assert_in(run.delivered_in(400), RATE * 2 / 5 * 8 / 10..);
}

#[test]
fn persistent_congestion_forgets_the_path_and_starts_again() {
    let mut run = cruising();
    run.congestion(PERSISTENT);
    assert_eq!(run.window(), 4 * MTU);
    assert_eq!((run.bbr.model.max_bw(), run.bbr.model.min_rtt()), (0, None));
    assert_eq!(run.bbr.core.phase, Phase::AfterPersistentCongestion);
    run.until_state(State::Cruise);
    assert_about(run.bbr.model.bw(), RATE, 1);
}

/// A sample of a flight that lost this many bytes.
fn sample(tx_in_flight: u64, lost: u64) -> Sample {
    Sample {
        tx_in_flight,
        lost,
        ..Sample::default()
    }
}

// Solved for the prefix: 2 % of 98 kB are 1960 B, and 1200 B were lost before.
#[rstest]
#[case(sample(100_000, 3_200), 2_000, 98_000 + 775)]
#[case(sample(100_000, 6_000), 1_200, 98_800)]
#[case(sample(1_000, 6_000), 2_000, 0)]
fn the_flight_at_a_loss_is_where_two_percent_were_exceeded(
    #[case] sample: Sample,
    #[case] size: u64,
    #[case] expected: u64,
) {
    assert_eq!(sample.inflight_at_loss(size), expected);
}

#[test]
fn more_than_two_percent_are_too_much() {
    assert!(!sample(100_000, 2_000).is_inflight_too_high());
    assert!(sample(100_000, 2_001).is_inflight_too_high());
}

/// A controller that received frames of `every` packets, each 100 ms after they left.
fn receiving_frames_of(every: u32, path: &Path) -> Bbr {
    let mut bbr = Bbr::new(path, Arc::default());
    let bytes = Bytes::new(MTU) * u64::from(every);
    for frame in 0..600_u64 {
        let time = at(frame * u64::from(every));
        bbr.on_sent(&Sent::new(time, bytes));
        if frame * u64::from(every) >= 100 {
            let sent = at((frame - 100 / u64::from(every)) * u64::from(every));
            let acked = [Acked::new(sent, bytes, every)];
            bbr.on_ack_frame(&AckFrame::new(time, &acked, Bytes::new(100 * MTU)));
        }
    }
    bbr
}

// Half a packet of a window stays unused, and (n − 1)/2 packets wait at the receiver.
#[rstest]
#[case(1, 0)]
#[case(2, 600)]
#[case(10, 5_400)]
fn the_window_makes_up_for_what_is_not_on_its_way(#[case] every: u32, #[case] held_back: u64) {
    for (path, expected) in [
        (Path::default(), held_back),
        (Path::default().strict(), held_back + 600),
    ] {
        assert_in(
            receiving_frames_of(every, &path).unused().abs_diff(expected),
            ..=10,
        );
    }
}

#[test]
fn the_window_is_at_most_that_of_the_pacing_rate_and_at_most_cwnd() {
    let mut run = Run::new(4 * BDP);
    let mut whole = 0;
    for _ in 0..20_000 {
        run.step();
        let bbr = &run.bbr;
        let rtt = bbr.core.rtt.smoothed_ns().zip(bbr.pacing_rate);
        let paced = rtt.map(|(srtt, rate)| volume(rate, srtt) + bbr.unused());
        let most = paced.expect("an RTT").min(bbr.core.window()).max(4 * MTU);
        assert_in(run.window(), ..=most);
        whole += u64::from(run.window() >= most - 2 * MTU);
    }
    // In most steps the window reaches this limit.
    assert_in(whole, 16_000..);
}

#[test]
fn a_flight_that_probe_rtt_halved_fills_the_path_again_within_two_round_trips() {
    let mut run = cruising();
    run.until_probe_rtt();
    run.until(|run| run.state() != State::ProbeRtt);
    assert!(run.in_flight() <= BDP * 6 / 10);
    run.for_ms(80);
    assert_in(run.in_flight(), BDP * 95 / 100..);
}

// The burst leaves when nothing is in flight, so one mark covers all of it.
#[test]
fn a_flight_in_one_burst_that_four_frames_acknowledge_shows_its_whole_rate() {
    let mut bbr = bbr();
    for round in 0..12 {
        let packets = bbr.window().as_u64() / MTU;
        let sent = at(round * 110);
        bbr.on_sent(&Sent::new(sent, Bytes::new(packets * MTU)));
        let mut left = packets;
        for frame in 0..4_u32 {
            let acked = if frame == 3 { left } else { packets / 4 };
            left -= acked;
            let count = u32::try_from(acked).expect("a few packets");
            let acked = [Acked::new(sent, Bytes::new(acked * MTU), count)];
            let now = sent + MS * (100 + frame);
            bbr.on_ack_frame(&AckFrame::new(now, &acked, Bytes::new(left * MTU)));
        }
    }
    assert_in(bbr.window().as_u64(), 1_000 * MTU..);
}

#[test]
fn a_larger_mtu_raises_the_smallest_window() {
    let mut run = cruising();
    run.congestion(PERSISTENT);
    run.bbr.on_mtu_change(Bytes::new(9_000));
    assert_eq!(run.window(), 36_000);
}

#[test]
fn connections_that_differ_by_a_nanosecond_wait_for_different_times() {
    let times = (5_000_000..5_000_100).map(Timestamp::from_nanos);
    let draws: Vec<u64> = times.map(|time| (bbr().draw(time) >> 1) % 1_000).collect();
    assert_in(draws.iter().sum::<u64>() / draws.len() as u64, 400..=600);
    assert!(draws.iter().any(|draw| *draw < 100) && draws.iter().any(|draw| *draw > 900));
}

// Pacing at 99 % of the rate, and ProbeRTT: 96 to 97 %. The probes cause the queue.
#[rstest]
#[case(20, 100, 1_000, 20)]
#[case(50, 20, 1_000, 20)]
#[case(5, 40, 1_000, 50)]
#[case(20, 100, 250, 15)]
fn settles_at_the_links_rate_with_a_small_queue(
    #[case] mbps: u64,
    #[case] rtt_ms: u64,
    #[case] queue_per_mille: u64,
    #[case] most_queued_percent: u64,
) {
    let mut link = Link {
        rate: crate::Bitrate::from_mbps(mbps),
        rtt: Duration::from_millis(rtt_ms),
        ..LINK
    };
    link.queue = Bytes::new(link.bdp().as_u64() * queue_per_mille / 1_000);
    let trace = lossless(link, "bbr");
    assert_in(trace.percent_of(link, 5, 30), 95..);
    assert_in(
        trace.mean_queue(5, 30) * 100 / link.bdp().as_u64(),
        ..=most_queued_percent,
    );
    assert_in(trace.lost_percent(5, 30), ..=1.0);
}

#[test]
fn a_random_loss_costs_nothing() {
    let trace = trace(&spec("bbr"), Demand::Endless);
    assert_in(trace.percent_of_link(18, 30), 95..);
}

#[test]
fn a_queue_that_others_filled_is_forgotten_when_they_leave() {
    let trace = trace_beside_filler(LINK, &spec("bbr"), (8, 14));
    assert_in(trace.percent_of_link(20, 30), 94..);
    assert_in(trace.mean_queue(20, 30), ..LINK.bdp().as_u64() / 4);
}

#[test]
fn a_transport_that_paces_gets_cwnd_and_the_rate() {
    let mut run = Run::new(4 * BDP);
    assert_eq!(run.bbr.pacing_rate(), None, "the RTT is unknown");
    run.bbr = Bbr::new(&Path::default().paced(), Arc::default());
    let mut differs = 0;
    for _ in 0..20_000 {
        run.step();
        assert_eq!(run.window(), run.bbr.core.window());
        let rate = run.bbr.pacing_rate().expect("an RTT").as_bytes_per_second();
        assert_eq!(Some(rate), run.bbr.pacing_rate);
        differs += u64::from(volume(rate, 40_000_000) < run.window());
    }
    assert_in(differs, 10_000..);
}
