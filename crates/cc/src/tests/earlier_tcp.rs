//! Senders of 2010 to 2015: counting of ACK frames, the first window, a remembered threshold, Linux's HyStart, and CCP
//! without our additions. mtu 1200.

use super::actions::{Action, play};
use super::trace::{Conditions, LINK, lossless, trace_losing, trace_under};
use super::{
    MS, WINDOW_BASED, ack_at_20_mbps, ack_in_twos, ack_one_by_one, assert_in, at, busy, connection, flight,
    fly, limited_flight, spec, ssthresh, state, with_mtu,
};
use crate::registry::Registry;
use crate::testing::{Connection, Demand};
use crate::{Bytes, Phase, Reason};
use Action::{Ack, Fly, Lose, Pass, Send, Window};
use core::time::Duration;
use rstest::rstest;

// RFC 5681 §3.1 eq. (2): cwnd += min(N, SMSS) per ACK; five frames for ten packets add five packets.
#[test]
fn slow_start_by_frames_grows_by_half_when_each_acknowledges_two_packets() {
    let registry = Registry::builtin();
    for algorithm in registry.controllers().filter(|entry| entry.takes_components()) {
        let name = algorithm.name();
        let mut c = connection(&format!("{name}(counting=acks)"));
        fly(&mut c, 10);
        ack_in_twos(&mut c);
        assert_eq!(c.window(), 12_000 + 5 * 1_200, "{name}");
        let mut c = connection(&format!("{name}(counting=acks)"));
        fly(&mut c, 10);
        ack_one_by_one(&mut c);
        assert_eq!(c.window(), 24_000, "{name}: every packet has a frame of its own");
    }
}

#[test]
fn a_frame_that_acknowledges_a_whole_flight_counts_for_one_packet() {
    let mut c = connection("reno(counting=acks)");
    flight(&mut c, 10);
    assert_eq!(c.window(), 13_200);
}

/// In avoidance with 12,000 B, a flight of 100 packets on its way.
fn in_avoidance(text: &str) -> Connection {
    let steps = [Window(24_000), Fly(1), Lose(1), Pass(1), Fly(100)];
    play(text, &[[Fly(1), Ack(1)].repeat(10), steps.to_vec()].concat())
}

// RFC 5681 §3.1 eq. (3): cwnd += SMSS·SMSS/cwnd per ACK: ten frames for a window of ten packets, whether each
// acknowledges one or two.
#[rstest]
#[case("reno(counting=acks)", 10)]
#[case("reno", 5)]
fn avoidance_by_frames_takes_a_window_of_frames_for_one_packet(#[case] text: &str, #[case] frames: usize) {
    let mut c = in_avoidance(text);
    assert_eq!(c.window(), 12_000);
    for _ in 1..frames {
        c.ack(2);
    }
    assert_eq!(c.window(), 12_000, "{text}");
    c.ack(2);
    assert_eq!((c.window(), c.snapshot().phase), (13_200, Phase::Avoidance));
}

// 1200²/12,000 = 120 B per frame; by bytes, twice that for two packets.
#[rstest]
#[case("compound(counting=acks)", 12_120)]
#[case("compound", 12_240)]
fn compounds_loss_window_grows_by_frames_too(#[case] text: &str, #[case] bytes: u64) {
    let mut c = in_avoidance(text);
    c.ack(2);
    assert_eq!(c.window(), bytes);
}

// Linux 3.6 `cnt = (cnt << ACK_RATIO_SHIFT) / delayed_ack`: the curve compensates for delayed ACKs.
#[test]
fn cubics_curve_is_the_same_however_frames_are_counted() {
    let windows = ["bytes", "acks"].map(|counting| {
        let mut c = in_avoidance(&format!("cubic(counting={counting})"));
        ack_in_twos(&mut c);
        busy(&mut c, 40);
        assert_eq!(c.snapshot().phase, Phase::Avoidance);
        c.window()
    });
    assert_eq!(windows[0], windows[1]);
}

#[test]
fn frames_of_a_sender_that_is_not_limited_by_its_window_count_for_nothing() {
    for algorithm in WINDOW_BASED {
        let mut c = connection(&format!("{algorithm}(counting=acks)"));
        c.send(8);
        c.set_app_limited(true);
        c.pass(MS * 100);
        ack_in_twos(&mut c);
        assert_eq!(c.window(), 12_000, "{algorithm}");
    }
}

// RFC 3390 and Linux before 2.6.39: 3 segments of 1460 B; RFC 6928: 10; RFC 9002 §7.2 caps at 14,720 B.
#[rstest]
#[case("reno(initial_window=3)", 1_200, 3_600)]
#[case("reno(initial_window=3)", 1_460, 4_380)]
#[case("cubic(initial_window=10)", 1_500, 15_000)]
#[case("cubic", 1_500, 14_720)]
#[case("cubic(initial_window=2)", 1_200, 2_400)]
#[case("cubic(initial_window=1)", 1_200, 2_400)] // the smallest window is two packets,
#[case("ccp(initial_window=3)", 1_200, 4_800)] // for ccp four
fn a_connection_begins_with_as_many_packets_as_it_is_given(
    #[case] text: &str,
    #[case] mtu: u64,
    #[case] window: u64,
) {
    let c = with_mtu(text, mtu);
    assert_eq!(c.window(), window);
    assert_eq!(c.controller().initial_window(), Bytes::new(window));
}

// RFC 5681 §4.1: RW = min(IW, cwnd).
#[test]
fn a_pause_restarts_from_the_initial_window_that_was_given() {
    let mut c = connection("reno(initial_window=3)+idle=rfc5681");
    busy(&mut c, 4);
    assert!(c.window() > 12_000);
    c.pass(MS * 2_000);
    c.send(1);
    assert_eq!((c.window(), state(&c)), (3_600, (Phase::AfterIdle, Reason::Idle)));
}

// Linux `tcp_init_metrics`: snd_ssthresh is what the route remembers.
#[test]
fn a_remembered_threshold_ends_slow_start_without_a_loss() {
    for algorithm in ["reno", "cubic", "compound"] {
        let mut c = connection(&format!("{algorithm}(ssthresh=24kB)"));
        assert_eq!(ssthresh(&c), 24_000);
        fly(&mut c, 10);
        for _ in 0..9 {
            c.ack(1);
        }
        assert_eq!(c.window(), 22_800, "{algorithm}");
        assert_eq!(c.snapshot().phase, Phase::Startup, "{algorithm}");
        c.ack(1);
        let left = (Phase::Avoidance, Reason::ReachedSsthresh);
        assert_eq!((c.window(), state(&c)), (24_000, left), "{algorithm}");
    }
}

#[test]
fn nothing_remembered_leaves_the_threshold_infinite() {
    let c = connection("reno(ssthresh=0)");
    assert_eq!(c.snapshot().ssthresh, None);
    let defaults = spec("reno(ssthresh=0,initial_window=0,counting=bytes)");
    assert_eq!(defaults.to_string(), "reno");
}

/// Two round trips of 100 ms with HyStart and a window large enough for it; `packets` more are in flight, and a round
/// trip has passed since.
fn hystart(text: &str, packets: usize, rtt: Duration) -> Connection {
    let mut c = connection(text);
    limited_flight(&mut c, 30);
    for _ in 0..2 {
        fly(&mut c, 10);
        ack_one_by_one(&mut c);
    }
    assert_eq!((c.window(), c.snapshot().phase), (36_000, Phase::Startup));
    c.send(packets);
    c.pass(rtt);
    c
}

/// Acknowledges one packet at a time, `every` apart; returns their number until slow start ended.
fn left_after(c: &mut Connection, every: Duration) -> Option<usize> {
    for acked in 1..=c.packets_in_flight() {
        c.ack(1);
        if c.snapshot().phase != Phase::Startup {
            return Some(acked);
        }
        c.pass(every);
    }
    None
}

// Linux 3.6 `hystart_update`: ACKs no more than 2 ms apart, and now − round_start > delay_min/2 = 50 ms. The
// first ACK begins the round, the 26th comes 50 ms after it and the 27th 52 ms.
#[rstest]
#[case("both", MS * 2, Some(27))]
#[case("train", MS * 2, Some(27))]
#[case("train", MS * 1, Some(52))]
#[case("train", MS * 3, None)]
#[case("train,spacing=3ms", MS * 3, Some(18))]
fn a_train_of_half_the_smallest_rtt_ends_slow_start_at_that_very_ack(
    #[case] detect: &str,
    #[case] every: Duration,
    #[case] acked: Option<usize>,
) {
    let mut c = hystart(&format!("cubic+start=hystart(detect={detect})"), 60, MS * 100);
    assert_eq!(left_after(&mut c, every), acked);
    if let Some(acked) = acked {
        assert_eq!(state(&c), (Phase::Avoidance, Reason::AckTrain));
        // The window before that ACK frame.
        assert_eq!(ssthresh(&c), 36_000 + (acked as u64 - 1) * 1_200);
    }
}

#[test]
fn a_gap_in_the_train_ends_it_for_the_rest_of_the_round() {
    let mut c = hystart("cubic+start=hystart(detect=train)", 80, MS * 100);
    for _ in 0..10 {
        c.ack(1);
        c.pass(MS * 2);
    }
    c.pass(MS);
    assert_eq!(left_after(&mut c, MS), None);
}

// delay_min + clamp(delay_min/16, 4 ms, 16 ms) = 106.25 ms: the first ACK of the round belongs to the previous round,
// the eight that follow are its samples, and the next one ends slow start.
#[rstest]
#[case("both", 107, Some(10))]
#[case("delay", 107, Some(10))]
#[case("both", 106, None)]
#[case("train", 107, None)]
fn eight_higher_rtts_end_slow_start_at_the_next_ack(
    #[case] detect: &str,
    #[case] rtt: u32,
    #[case] acked: Option<usize>,
) {
    let mut c = hystart(&format!("cubic+start=hystart(detect={detect})"), 30, MS * rtt);
    assert_eq!(left_after(&mut c, Duration::ZERO), acked);
    if acked.is_some() {
        assert_eq!(state(&c), (Phase::Avoidance, Reason::RttRose));
        assert_eq!(ssthresh(&c), 36_000 + 9 * 1_200);
    }
}

// hystart_low_window.
#[test]
fn hystart_leaves_windows_below_16_packets_alone() {
    let mut c = connection("reno+start=hystart");
    flight(&mut c, 5);
    c.set_app_limited(true);
    assert_eq!(c.window(), 15 * 1_200);
    for rtt in [100, 200, 300] {
        c.send(30);
        c.set_app_limited(true);
        c.pass(MS * rtt);
        assert_eq!(left_after(&mut c, MS), None);
    }
}

#[test]
fn hystart_leaves_before_the_queue_overflows_or_loses_less() {
    let lost = |text: &str| lossless(LINK, text).lost(0, 3);
    assert_eq!(lost("cubic+start=hystart"), 0);
    assert_eq!(lost("cubic+start=hystart(spacing=6ms)"), 0);
    assert_in(lost("cubic+start=hystart(detect=delay)") * 2, ..lost("cubic"));
}

// C·max(rtt_max, 1·rtt_min) with C about 2.5 MB/s and 1 ms: 2500 B, or the least storage.
#[test]
fn ccp_without_a_least_storage_has_that_of_the_path() {
    let settled = |text: &str| {
        let mut c = connection(text);
        c.set_smoothed_rtt(Some(MS));
        for _ in 0..400 {
            c.offer(4_000);
            c.pass(MS);
            ack_at_20_mbps(&mut c);
        }
        assert_eq!(c.snapshot().phase, Phase::Avoidance, "{text}");
        c.window()
    };
    let none = settled("ccp(floor=1,least_storage=0,ssthresh=12kB)");
    let ours = settled("ccp(floor=1,ssthresh=12kB)");
    let more = settled("ccp(floor=1,least_storage=100,ssthresh=12kB)");
    assert!(none < ours && ours < more, "{none}, {ours}, {more}");
}

#[test]
fn the_largest_rtt_of_a_window_of_time_is_forgotten_after_it() {
    let after = |text: &str| {
        let mut c = connection(text);
        for rtt in core::iter::once(300).chain([100; 120]) {
            c.send(2);
            c.pass(MS * rtt);
            c.ack(2);
        }
        c.snapshot().max_rtt
    };
    assert_eq!(after("ccp"), Some(MS * 300));
    assert_eq!(after("ccp(rtt_window=10s)"), Some(MS * 100));
    assert_eq!(after("ccpd(rtt_window=60s)"), Some(MS * 300));
}

// The packet is lost while the pipe is less than half full. B is then C·rtt_min, and a third of it is used: the window
// never queues, so it never learns that B is twice that.
#[test]
fn a_random_loss_in_slow_start_leaves_the_storage_too_small_unless_slow_start_goes_on() {
    let mean_window = |text: &str| {
        let trace = trace_losing(LINK, &spec(text), Demand::Endless, Some(330_000_000));
        trace.mean_window(8, 18)
    };
    assert_in(mean_window("ccp(floor=1)+loss=ignore"), ..100_000);
    // A third of 500 kB.
    let spared = mean_window("ccp(floor=1,slow_start_loss=queued)+loss=ignore");
    assert_in(spared, 160_000..=172_000);
}

#[test]
fn a_loss_that_may_have_found_a_queue_ends_slow_start_all_the_same() {
    let any = lossless(LINK, "ccp+loss=ignore");
    let queued = lossless(LINK, "ccp(slow_start_loss=queued)+loss=ignore");
    assert_eq!(any, queued, "the queue overflows first");
}

// The window carries the video from the first RTT on, so a loss does not imply a flight of half its size. While the
// video's rate is unknown, slow start doubles.
#[rstest]
#[case(Some(1_000), (Phase::Avoidance, Reason::Loss))]
#[case(None, (Phase::Startup, Reason::Began))]
fn a_loss_ends_a_slow_start_that_does_not_double(#[case] kbps: Option<u64>, #[case] after: (Phase, Reason)) {
    let mut c = connection("ccp(slow_start_loss=queued)+start=video-rate+loss=ignore");
    c.known.set_average_rate(kbps.map(crate::Bitrate::from_kbps));
    for _ in 0..4 {
        super::train(&mut c, 20);
    }
    assert!(c.snapshot().capacity.is_some());
    c.offer(500);
    c.pass(MS * 100);
    c.lose(1);
    assert_eq!(state(&c), after);
}

// Random losses, with the window kept below twice the pipe by the guard or the ceiling.
#[rstest]
#[case("ccp(slow_start_loss=queued)")]
#[case("ccp(slow_start_loss=queued)+ceiling=pace+loss=ignore")]
fn a_loss_ends_a_slow_start_whose_window_is_bounded(#[case] text: &str) {
    let conditions = Conditions {
        lose_one_in: Some(200),
        ..Conditions::default()
    };
    let trace = trace_under(LINK, conditions, &spec(text), 5);
    let last = trace.rounds.last().map(|round| round.phase);
    assert_eq!(last, Some(Phase::Avoidance), "{text}");
}

// Watanabe et al. 2014: SSS "rapidly ramps up". The pipe is 250 kB, and the fixed point a third of 500 kB.
#[test]
fn ccp_governs_from_the_estimate_that_ended_a_short_slow_start() {
    let trace = lossless(LINK, "ccp-sss");
    let mut avoidance = trace
        .rounds
        .iter()
        .filter(|round| round.phase == Phase::Avoidance);
    let first = avoidance.next().expect("an estimate");
    assert_in(first.at, ..at(300));
    assert_in(first.window, Bytes::from_kb(150)..);
}

/// Ten packets are sent; the oldest is lost and the others arrive. The next packet resends its data, and the one after
/// that carries new data. Both are in flight.
fn resent(text: &str) -> Connection {
    play(text, &[Fly(10), Lose(1), Ack(9), Send(1), Pass(1), Fly(1)])
}

// RFC 6675 §5.1: there is no second fast retransmission; RFC 5681 §3.1: after a timeout the smallest window.
#[rstest]
#[case("reno", None)]
#[case("reno(recovery=tcp)", Some(2))]
#[case("cubic(recovery=tcp)", Some(2))]
#[case("ccp(recovery=tcp)+loss=ignore", Some(4))]
fn data_that_is_lost_again_costs_a_timeout(#[case] text: &str, #[case] packets: Option<u64>) {
    let mut c = resent(text);
    c.lose(1);
    let state = c.snapshot();
    let times_out = (state.phase, state.reason) == (Phase::AfterPersistentCongestion, Reason::LostAgain);
    assert_eq!(times_out, packets.is_some(), "{text}: {state:?}");
    if let Some(packets) = packets {
        assert_eq!(c.window(), packets * 1_200, "{text}");
    }
}

#[test]
fn new_data_that_is_lost_in_a_recovery_costs_no_timeout() {
    let mut c = resent("reno(recovery=tcp)");
    c.ack(1);
    c.lose(1);
    assert_eq!(c.snapshot().reason, Reason::Loss);
}

// RFC 6298 §2.4; Linux: a timer fires after 200 ms at the earliest. The data was resent 101 ms before.
#[test]
fn nothing_grows_before_the_timer_would_have_fired_and_slow_start_begins_then() {
    let mut c = resent("reno(recovery=tcp)");
    c.lose(1);
    let after_loss = c.window();
    c.ack(1);
    c.send(1);
    c.pass(50 * MS);
    c.ack(1);
    assert_eq!(c.window(), after_loss, "151 ms after it was sent");
    for _ in 0..4 {
        flight(&mut c, 2);
    }
    assert!(c.window() > after_loss, "long after its timer");
}
