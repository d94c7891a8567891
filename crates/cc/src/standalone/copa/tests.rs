use rstest::rstest;

use super::*;
use crate::events::{Acked, Signal};
use crate::parameter::Arguments;
use crate::testing::Demand;
use crate::tests::trace::{LINK, Link, Trace, lossless, trace, trace_beside_filler};
use crate::tests::{MS, MTU, assert_about, assert_in, at, close, spec};
use core::time::Duration;

fn state(copa: &Copa) -> (Phase, Reason) {
    (copa.core.phase, copa.core.reason)
}

/// A controller that has not received any event.
fn copa() -> Copa {
    Copa::new(&Path::default(), &Arguments::defaults(PARAMETERS), Arc::default())
}

/// A round trip of `rtt_ms` with this many packets; if limited, the application has no more. Returns its end.
fn round(copa: &mut Copa, began: Timestamp, rtt_ms: u32, (packets, limited): (u32, bool)) -> Timestamp {
    let bytes = Bytes::new(MTU) * u64::from(packets);
    copa.on_sent(&Sent::new(began, bytes));
    let now = began + MS * rtt_ms;
    let acked = [Acked::new(began, bytes, packets).with_app_limited(limited)];
    copa.on_ack_frame(&AckFrame::new(now, &acked, Bytes::ZERO).with_app_limited(limited));
    now
}

/// Round trips with these RTTs that use the whole window.
fn rounds(copa: &mut Copa, mut now: Timestamp, rtts_ms: &[u32]) -> Timestamp {
    for &rtt_ms in rtts_ms {
        let packets = u32::try_from(copa.window().as_u64() / MTU).expect("a small window");
        now = round(copa, now, rtt_ms, (packets, false));
    }
    now
}

fn lose(copa: &mut Copa, now: Timestamp, sent: Timestamp, persistent: bool) {
    let bytes = Bytes::new(MTU);
    copa.on_congestion(&Congestion::new(now, sent, Signal::Loss { bytes, persistent }));
}

/// Competing with a buffer-filling flow: slow start has ended, and six round trips showed a queue of 100 ms.
fn beside_a_filler() -> (Copa, Timestamp) {
    let mut copa = copa();
    let now = rounds(&mut copa, at(0), &[100, 100, 200, 200, 200, 200, 200, 200, 200]);
    assert_eq!(copa.core.phase, Phase::Avoidance);
    assert!(copa.current_delta() < 0.5);
    (copa, now)
}

// dq = 1/(δ·λ) is 1/δ packets at the link's rate. In equilibrium the queue swings between none and 2.5/δ packets (§3),
// 1.25/δ on average; the pacer's bursts of ten packets are added to that.
#[rstest]
#[case(0.5)]
#[case(0.25)]
#[case(0.1)]
fn settles_at_the_links_rate_with_the_queue_that_delta_asks_for(#[case] delta: f64) {
    let trace = trace(&spec(&format!("copa({delta})")), Demand::Endless);
    assert_in(trace.percent_of_link(20, 30), 99..);
    assert_in(trace.mean_queue(20, 30) as f64 / MTU as f64 * delta, 1.0..=2.5);
}

// With five round trips of patience, an overshoot that takes longer to drain is mistaken for a competitor.
#[rstest]
#[case(20, 50, 125)]
#[case(40, 20, 100)]
#[case(100, 20, 1_000)]
fn mode_switching_does_not_keep_a_lone_flow_from_settling(
    #[case] rtt_ms: u64,
    #[case] mbps: u32,
    #[case] queue_kb: u64,
) {
    let link = Link {
        rate: Bitrate::from_mbps(mbps.into()),
        rtt: Duration::from_millis(rtt_ms),
        queue: Bytes::from_kb(queue_kb),
    };
    let trace = lossless(link, "copa");
    assert_in(trace.mean_queue(20, 30), ..=8 * MTU);
    assert_in(trace.percent_of(link, 20, 30), 99..);
}

#[test]
fn slow_start_fills_the_link_and_ends_when_the_queue_shows() {
    let mut copa = copa();
    let now = rounds(&mut copa, at(0), &[100, 100, 100]);
    assert_eq!(copa.window().as_u64(), 8 * 12_000);
    rounds(&mut copa, now, &[120]);
    assert_eq!(state(&copa), (Phase::Avoidance, Reason::RttRose));
    assert!(copa.window().as_u64() < 8 * 12_000);
}

#[test]
fn a_loss_costs_nothing_in_default_mode() {
    let window = |trace: Trace| trace.mean_window(20, 30);
    let (none_lost, one_lost) = (lossless(LINK, "copa"), trace(&spec("copa"), Demand::Endless));
    assert_about(window(one_lost), window(none_lost), 2);
}

// The filler keeps half of the queue, 125 kB or 50 ms, occupied from 12 to 22 s.
#[test]
fn competitive_mode_keeps_a_share_beside_a_buffer_filler_and_ends_when_it_leaves() {
    let beside = |text| trace_beside_filler(LINK, &spec(text), (12, 22));
    let (switching, yielding) = (beside("copa"), beside("copa(mode=default)"));
    let window = |trace: &Trace| trace.mean_window(19, 22);
    assert_in(window(&switching), 3 * window(&yielding) + 1..);
    assert_in(switching.percent_of_link(26, 30), 95..);
    assert_in(switching.mean_queue(26, 30), ..20 * MTU);
}

#[test]
fn a_loss_in_competitive_mode_halves_the_inverse_of_delta_once_per_round_trip() {
    let (mut copa, now) = beside_a_filler();
    let now = rounds(&mut copa, now, &[200; 8]);
    let before = 1.0 / copa.current_delta();
    assert_in(before, 8.0..);
    for later in [210, 211] {
        lose(&mut copa, now + MS * later, now + MS * 10, false);
        close(1.0 / copa.current_delta(), before / 2.0, 1e-9);
    }
    let window = copa.window();
    lose(&mut copa, now + MS * 500, now + MS * 300, false);
    assert!(1.0 / copa.current_delta() < before / 2.0);
    assert_eq!(copa.window(), window, "the window follows by way of the target");
}

#[test]
fn a_ce_mark_counts_as_a_loss() {
    let (mut copa, now) = beside_a_filler();
    let now = rounds(&mut copa, now, &[200; 8]);
    let before = copa.current_delta();
    copa.on_congestion(&Congestion::new(now, now, Signal::EcnCe));
    assert!(copa.current_delta() > before);
}

// Ten packets of queue are 4 ms of the link: less than Copa keeps queued with windows of 200 packets.
#[test]
fn a_queue_that_is_too_short_to_see_costs_few_packets() {
    let link = Link {
        queue: Bytes::new(10 * MTU),
        ..LINK
    };
    let trace = lossless(link, "copa");
    assert_in(trace.lost_percent(3, 30), ..=2.9);
    assert_in(trace.percent_of_link(3, 30), 85..);
}

#[test]
fn random_loss_of_two_percent_costs_nothing() {
    let mut copa = copa();
    let mut now = rounds(&mut copa, at(0), &[100, 100, 100]);
    for _ in 0..20 {
        let before = copa.window();
        now = rounds(&mut copa, now, &[100]);
        for _ in 0..before.as_u64() / MTU / 50 {
            lose(&mut copa, now, now, false);
        }
        assert!(copa.window() >= before);
    }
}

#[test]
fn marks_of_one_round_trip_cut_the_window_once_to_seven_tenths() {
    let mut copa = copa();
    let sent = rounds(&mut copa, at(0), &[100, 100, 100]);
    let flight = copa.window();
    copa.on_sent(&Sent::new(sent, flight));
    let now = sent + MS * 100;
    let acked = [Acked::new(sent, Bytes::new(2 * MTU), 2)];
    copa.on_ack_frame(&AckFrame::new(now, &acked, flight - Bytes::new(2 * MTU)));
    for _ in 0..10 {
        copa.on_congestion(&Congestion::new(now, sent, Signal::EcnCe));
    }
    assert_eq!(copa.window().as_u64(), flight.as_u64() * 7 / 10);
    assert_eq!(state(&copa), (Phase::Avoidance, Reason::EcnCe));
}

#[test]
fn persistent_congestion_leaves_the_smallest_window_slow_start_and_default_mode() {
    let (mut copa, now) = beside_a_filler();
    lose(&mut copa, now, now, true);
    assert_eq!(copa.window().as_u64(), MINIMUM_PACKETS * MTU);
    assert_eq!(copa.core.phase, Phase::AfterPersistentCongestion);
    assert_eq!(copa.current_delta().to_string(), "0.5");
    // The path is longer now; this is not a queue.
    rounds(&mut copa, now, &[200, 200]);
    assert_eq!(copa.core.phase, Phase::AfterPersistentCongestion);
    assert_eq!(copa.window().as_u64(), 4 * MINIMUM_PACKETS * MTU);
}

#[test]
fn a_sender_that_does_not_use_its_window_neither_grows_nor_pays_for_a_rate_that_it_does_not_have() {
    let mut copa = copa();
    let mut now = rounds(&mut copa, at(0), &[100, 100, 100, 120]);
    let before = copa.window();
    for rtt_ms in [100, 104, 104, 100] {
        now = round(&mut copa, now, rtt_ms, (2, true));
    }
    assert_eq!(copa.window(), before);
    // Two packets per round trip exceed the target only if more than 1/δ packets are queued for each of the two.
    rounds(&mut copa, now, &[140]);
    assert!(copa.window() < before);
}

#[test]
fn a_pause_costs_the_velocity_and_not_the_window() {
    let mut copa = copa();
    let now = rounds(&mut copa, at(0), &[100, 100, 100, 110]);
    let now = rounds(&mut copa, now, &[100; 6]);
    assert!(copa.velocity.factor() > 1);
    let window = copa.window();
    copa.on_sent(&Sent::new(now + MS * 2_000, Bytes::new(MTU)));
    assert_eq!((copa.velocity.factor(), copa.window()), (1, window));
}

#[test]
fn no_frame_grows_the_window_by_more_than_it_acknowledges() {
    let mut copa = copa();
    let now = rounds(&mut copa, at(0), &[100, 100, 100, 120]);
    copa.competition = None;
    copa.delta = 0.001;
    let before = copa.window().as_u64();
    round(&mut copa, now, 100, (2, false));
    assert_eq!(copa.window().as_u64(), before + 2 * MTU);
}

#[test]
fn the_backlog_is_what_the_queueing_delay_makes_of_the_window() {
    let mut copa = copa();
    rounds(&mut copa, at(0), &[100, 100, 200]);
    let snapshot = copa.snapshot();
    assert_eq!(snapshot.backlog, Some(Bytes::new(snapshot.window.as_u64() / 2)));
}

// Two windows per RTTstanding (§2.1).
#[test]
fn it_paces_at_two_windows_per_standing_rtt() {
    let mut copa = copa();
    assert_eq!(copa.pacing_rate(), None, "the RTT is unknown");
    rounds(&mut copa, at(0), &[100]);
    let expected = (copa.window() * 2).per(MS * 100);
    assert_eq!(copa.pacing_rate(), expected);
}
