use super::parameters::PARAMETERS;
use super::*;
use crate::Playback;
use crate::parameter::Value;
use crate::testing::Demand;
use crate::tests::trace::{
    LINK, Round as TraceRound, Trace, trace, trace_beside_filler, trace_losing, trace_to_browser,
};
use crate::tests::{MTU, at, spec};

/// Without a ceiling: the player can use all there is.
const GREEDY: &str = "video(fastest=1000,slowest=1000)";

/// Mean over the round trips that ended between `from` and `to` (seconds).
fn mean(trace: &Trace, from: u64, to: u64, of: impl Fn(&TraceRound) -> u64) -> u64 {
    let values: Vec<u64> = trace.within(from, to).map(of).collect();
    values.iter().sum::<u64>() / values.len() as u64
}

fn percent_of_link(trace: &Trace, from: u64, to: u64) -> u64 {
    trace.rate(from, to).as_bits_per_second() * 100 / LINK.rate.as_bits_per_second()
}

/// A controller of a player whose rate is unknown, after nothing.
fn video() -> Video {
    without("")
}

/// The same without this one of the things that it knows.
fn without(fact: &str) -> Video {
    let mut arguments = Arguments::defaults(PARAMETERS);
    if !fact.is_empty() {
        arguments.set(fact, Value::Word("off"));
    }
    Video::new(&Path::default(), &arguments, Arc::default())
}

/// A round trip that uses the whole window. Returns its end.
fn round(video: &mut Video, began: Timestamp, rtt: Duration) -> Timestamp {
    let packets = u32::try_from(video.window().as_u64() / MTU).expect("a small window");
    let bytes = Bytes::new(MTU) * u64::from(packets);
    video.on_sent(&Sent::new(began, bytes));
    let now = began + rtt;
    video.on_acked(&Acked::new(now, began, bytes, packets));
    video.on_ack_batch(&AckBatch::new(now, Bytes::new(MTU)));
    now
}

fn rounds(video: &mut Video, mut now: Timestamp, rtts_ms: &[u64]) -> Timestamp {
    for &rtt_ms in rtts_ms {
        now = round(video, now, Duration::from_millis(rtt_ms));
    }
    now
}

fn lose(video: &mut Video, now: Timestamp, bytes: u64, persistent: bool) {
    let bytes = Bytes::new(bytes);
    video.on_congestion(&Congestion::new(now, now, Signal::Loss { bytes, persistent }));
}

/// A controller that has left slow start for a queue of 20 ms, and waits for nothing.
fn alone() -> (Video, Timestamp) {
    let mut video = video();
    let now = rounds(&mut video, at(0), &[100, 100, 100, 120, 100, 100, 100]);
    assert_eq!((video.mode, video.settling), (Mode::Alone, 0));
    (video, now)
}

#[test]
fn alone_it_fills_the_link_with_a_short_queue_and_a_random_loss_costs_nothing() {
    let trace = trace(&spec(GREEDY), Demand::Endless);
    assert!(
        percent_of_link(&trace, 5, 30) >= 98,
        "{}",
        percent_of_link(&trace, 5, 30)
    );
    // 4 ms of 20 Mbit/s are 10 kB, and the pacer sends ten packets at once, as a rule before the first have left.
    let queue = mean(&trace, 5, 30, |round| round.queued.as_u64());
    assert!(queue <= 30_000, "{queue}");
    let lost_by = |second| trace.within(second - 1, second).last().unwrap().lost;
    assert_eq!(
        lost_by(30) - lost_by(5),
        1,
        "but for slow start's, the random one"
    );
}

#[test]
fn it_sends_no_faster_than_a_player_with_plenty_needs() {
    let trace = trace(&spec("video"), Demand::Endless);
    // 1.5 times the 5.24 Mbit/s of the title.
    let rate = trace.rate(15, 30).as_bits_per_second();
    assert!((7_700_000..8_400_000).contains(&rate), "{rate}");
    assert!(
        trace.rate(0, 2).as_bits_per_second() > 15_000_000,
        "a player without supply"
    );
    assert_eq!(mean(&trace, 15, 30, |round| round.queued.as_u64() / 30_000), 0);
}

#[test]
fn a_path_of_less_than_a_millisecond_has_no_ceiling() {
    let after = |rtt| {
        let mut video = video();
        video.core.known.set_average_rate(Some(Bitrate::from_kbps(500)));
        let mut now = at(0);
        for _ in 0..20 {
            now = round(&mut video, now, rtt);
        }
        (video, now)
    };
    let (far, _) = after(Duration::from_millis(1));
    assert_eq!(far.window().as_u64(), LEAST_PACKETS * MTU);
    let (mut near, mut now) = after(Duration::from_micros(999));
    assert!(near.window().as_u64() > 100 * MTU);
    // A machine that becomes slow, for longer than the smallest RTT is remembered.
    for _ in 0..10_000 {
        now = round(&mut near, now, Duration::from_millis(5));
    }
    assert!(near.window().as_u64() > 100 * MTU, "{:?}", near.window());
}

#[test]
fn a_player_that_has_run_empty_lifts_the_ceiling() {
    let mut video = video();
    let known = Arc::clone(&video.core.known);
    known.set_average_rate(Some(Bitrate::from_kbps(500)));
    let now = rounds(&mut video, at(0), &[100; 40]);
    let plenty = video.window();
    known.set_playback(Some(Playback::Starved));
    rounds(&mut video, now, &[100; 20]);
    assert!(
        4 * video.window().as_u64() >= 5 * plenty.as_u64(),
        "{plenty} and {}",
        video.window()
    );
}

#[test]
fn the_best_representation_counts_for_the_ceiling() {
    let mut video = video();
    video.core.known.set_average_rate(Some(Bitrate::from_mbps(1)));
    let useful = |video: &Video| video.ceiling.window(&video.core, 100_000_000).unwrap();
    assert_eq!(useful(&video), 4 * 12_500);
    video.core.known.set_highest_rate(Some(Bitrate::from_mbps(3)));
    assert_eq!(useful(&video), 4 * 37_500);
    video.core.known.set_average_rate(None);
    video.core.known.set_highest_rate(None);
    assert_eq!(video.ceiling.window(&video.core, 100_000_000), None);
    rounds(&mut video, at(0), &[100; 3]);
}

#[test]
fn a_peer_that_holds_its_acknowledgements_back_is_no_queue() {
    let trace = trace_to_browser(&spec(GREEDY), Demand::Endless);
    assert!(
        percent_of_link(&trace, 5, 30) >= 98,
        "{}",
        percent_of_link(&trace, 5, 30)
    );
    let queue = mean(&trace, 5, 30, |round| round.queued.as_u64());
    assert!(queue <= 40_000, "{queue}");
    // Of segments that need 5.24 Mbit/s.
    let trace = trace_to_browser(&spec("video"), Demand::Segments);
    let rate = trace.rate(5, 30);
    assert!(rate >= Bitrate::from_kbps(5_000), "{rate}");
}

#[test]
fn each_fact_can_be_left_out_of_the_ceiling() {
    let useful = |fact: &str| {
        let video = without(fact);
        let known = &video.core.known;
        known.set_average_rate(Some(Bitrate::from_mbps(1)));
        known.set_highest_rate(Some(Bitrate::from_mbps(3)));
        video.ceiling.window(&video.core, 100_000_000)
    };
    assert_eq!(useful(""), Some(4 * 37_500));
    assert_eq!(useful("ladder"), Some(4 * 12_500));
    assert_eq!(useful("rate"), None);

    let factor = |fact: &str| {
        let mut video = without(fact);
        let known = Arc::clone(&video.core.known);
        known.set_average_rate(Some(Bitrate::from_mbps(1)));
        // Twenty seconds, which are a full supply.
        video.ceiling.on_acked(&known, 2_500_000, at(0));
        known.set_playback(Some(Playback::Starved));
        video
            .ceiling
            .window(&video.core, 80_000_000)
            .map(|window| window / 10_000)
    };
    assert_eq!(factor(""), Some(4));
    assert_eq!(factor("player"), Some(1), "1.5 times");
}

#[test]
fn a_player_that_seeks_is_short_again_after_two_full_supplies() {
    let mut video = video();
    let known = Arc::clone(&video.core.known);
    known.set_average_rate(Some(Bitrate::from_mbps(1)));
    video.ceiling.on_acked(&known, u64::MAX, at(0));
    video.ceiling.on_acked(&known, 0, at(20_000));
    assert_eq!(video.ceiling.window(&video.core, 80_000_000), Some(15_000));
    video.ceiling.on_acked(&known, 0, at(40_000));
    assert_eq!(video.ceiling.window(&video.core, 80_000_000), Some(40_000));
}

// The filler keeps half of the queue, 125 kB or 50 ms, occupied from 12 to 17 s.
#[test]
fn it_keeps_a_share_beside_a_buffer_filler_and_a_short_queue_when_that_has_gone() {
    let trace = trace_beside_filler(LINK, &spec(GREEDY), (12, 17));
    let window = mean(&trace, 14, 17, |round| round.window.as_u64());
    assert!(window > 125_000, "{window}");
    assert!(percent_of_link(&trace, 26, 30) >= 95);
    let queue = mean(&trace, 27, 30, |round| round.queued.as_u64());
    assert!(queue <= 30_000, "{queue}");
}

#[test]
fn a_standing_queue_is_taken_back_to_the_target_in_one_step() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 6]);
    let now = rounds(&mut video, now, &[200]);
    let before = video.core.window();
    rounds(&mut video, now, &[200]);
    // A round delivers the window in 200 ms, of which 96 are more than the target.
    let expected = before - floor_bytes(float(before) * 0.096 / 0.2);
    let window = video.core.window();
    assert!(window.abs_diff(expected) * 20 <= before, "{before} -> {window}");
    assert_eq!(video.mode, Mode::Alone);
}

#[test]
fn a_queue_that_stays_although_the_window_gave_way_twice_is_met_with_cubics_window_of_before() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 6]);
    let before = video.core.window();
    rounds(&mut video, now, &[200; 7]);
    assert_eq!(video.mode, Mode::Crowded);
    assert!(video.core.window() >= before);
}

#[test]
fn in_a_crowd_a_loss_counts_if_the_queue_is_long_and_once_per_round_trip() {
    let (mut video, now) = alone();
    let mut now = rounds(
        &mut video,
        now,
        &[100, 100, 200, 200, 200, 200, 200, 200, 200, 200],
    );
    assert_eq!((video.mode, video.core.phase), (Mode::Crowded, Phase::Avoidance));
    let before = video.core.window();
    lose(&mut video, now, MTU, false);
    let reduced = video.core.window();
    assert_eq!(reduced, floor_bytes(0.7 * float(before)).max(LEAST_PACKETS * MTU));
    lose(&mut video, now, MTU, false);
    assert_eq!(video.core.window(), reduced);
    now = rounds(&mut video, now, &[200, 110]);
    let before = video.core.window();
    lose(&mut video, now, MTU, false);
    assert_eq!(video.core.window(), before, "10 of 100 ms");
}

#[test]
fn a_ce_mark_reduces_the_window_once_per_round_trip() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 3]);
    let before = video.core.window();
    for _ in 0..2 {
        video.on_congestion(&Congestion::new(now, now, Signal::EcnCe));
        assert_eq!(video.core.window(), floor_bytes(AFTER_LOSS * float(before)));
    }
}

#[test]
fn persistent_congestion_leaves_the_smallest_window_and_slow_start() {
    let (mut video, now) = alone();
    lose(&mut video, now, 100 * MTU, true);
    assert_eq!(video.window().as_u64(), LEAST_PACKETS * MTU);
    assert_eq!(
        (video.mode, video.core.phase),
        (Mode::Start, Phase::AfterPersistentCongestion)
    );
    rounds(&mut video, now + Duration::from_millis(1), &[100, 100, 100]);
    assert_eq!(
        video.core.window(),
        8 * LEAST_PACKETS * MTU,
        "its losses are explained"
    );
    assert_eq!(video.mode, Mode::Start);
}

#[test]
fn a_ce_mark_while_the_queue_is_drained_is_not_undone() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 3]);
    video.drained_from = Some(2 * video.core.window());
    video.on_congestion(&Congestion::new(now, now, Signal::EcnCe));
    let reduced = video.core.window();
    rounds(&mut video, now, &[100; 3]);
    assert!(video.core.window() < reduced + reduced / 4);
}

#[test]
fn after_a_pause_a_part_of_the_window_is_used_for_one_round_trip() {
    let (mut video, now) = alone();
    let window = video.core.window();
    let sent = now + Duration::from_secs(3);
    video.core.in_flight = 0;
    video.on_sent(&Sent::new(sent, Bytes::new(MTU)));
    assert_eq!(video.window().as_u64(), floor_bytes(AFTER_PAUSE * float(window)));
    let later = sent + Duration::from_millis(1);
    let acked = Acked::new(later + Duration::from_millis(100), later, Bytes::new(MTU), 1);
    video.on_acked(&acked);
    video.on_ack_batch(&AckBatch::new(acked.now, Bytes::new(MTU)));
    assert!(video.window().as_u64() >= window);
}

#[test]
fn what_is_unknown_is_said() {
    let waiting = video().snapshot().waiting_for;
    assert!(waiting.contains(Facts::AVERAGE_RATE));
    let trace = trace_losing(LINK, &spec("video(loss=0)"), Demand::Segments, None);
    assert_eq!(trace.rounds.last().unwrap().lost, 0);
}
