use super::policy::{AFTER_LOSS, Policy};
use super::*;
use crate::events::{Acked, Signal};
use crate::testing::Demand as Application;
use crate::tests::trace::{
    Conditions, LINK, Link, trace, trace_beside_filler, trace_to_browser, trace_under,
};
use crate::tests::{MS, MS_IN_NS, MTU, assert_in, at, spec};
use crate::{CoupledPaths, Phase};
use rstest::rstest;

/// A sender without a ceiling in any state of its player.
const GREEDY: &str = "video(rate=off)";

/// A controller whose player's rate is unknown.
fn video() -> Video {
    Video::new(&Path::default(), &Arguments::defaults(PARAMETERS), Arc::default())
}

fn state(video: &Video) -> (Mode, Phase) {
    (video.policy.mode, video.core.phase)
}

/// Round trips with these RTTs that use the whole window. Returns their end.
fn rounds(video: &mut Video, mut now: Timestamp, rtts_ms: &[u32]) -> Timestamp {
    for &rtt_ms in rtts_ms {
        let packets = u32::try_from(video.window().as_u64() / MTU).expect("a small window");
        let bytes = Bytes::new(MTU) * u64::from(packets);
        video.on_sent(&Sent::new(now, bytes));
        let acked = [Acked::new(now, bytes, packets)];
        now = now + MS * rtt_ms;
        video.on_ack_frame(&AckFrame::new(now, &acked, Bytes::new(MTU)));
    }
    now
}

fn lose(video: &mut Video, now: Timestamp, bytes: u64, persistent: bool) {
    let bytes = Bytes::new(bytes);
    video.on_congestion(&Congestion::new(now, now, Signal::Loss { bytes, persistent }));
}

/// A controller that has left slow start because of a queue of 20 ms, and waits for nothing.
fn alone() -> (Video, Timestamp) {
    let mut video = video();
    let now = rounds(&mut video, at(0), &[100, 100, 100, 150, 100, 100, 100]);
    assert_eq!((video.policy.mode, video.policy.settling), (Mode::Alone, 0));
    (video, now)
}

#[test]
fn alone_it_fills_the_link_with_a_short_queue_and_a_random_loss_costs_nothing() {
    let trace = trace(&spec(GREEDY), Application::Endless);
    assert_in(trace.percent_of_link(5, 30), 98..);
    // 4 ms of 20 Mbit/s are 10 kB, and the pacer sends ten packets at once, usually before the previous ones have left.
    assert_in(trace.mean_queue(5, 30), ..=30_000);
    assert_eq!(trace.lost(5, 30), 1, "the random one, after those of slow start");
}

#[test]
fn one_of_two_equal_paths_grows_by_about_a_sixteenth_and_a_path_alone_as_without_a_set() {
    let paths = CoupledPaths::default();
    let path = Path::default().coupled(paths.clone());
    let build = |path: &Path| Video::new(path, &Arguments::defaults(PARAMETERS), Arc::default());
    let grow = |videos: &mut [Video]| -> Vec<u64> {
        let mut now = at(0);
        // Slow start, which is not coupled, ends with a queue.
        for rtt in [100, 100, 100, 150, 100, 100, 100] {
            let ends = videos.iter_mut().map(|video| rounds(video, now, &[rtt]));
            now = ends.max().unwrap();
        }
        let before: Vec<_> = videos.iter().map(|video| video.core.window()).collect();
        for video in &mut *videos {
            assert_eq!(video.policy.mode, Mode::Alone);
            rounds(video, now, &[100]);
        }
        let grown = |(video, before): (&Video, u64)| video.core.window() - before;
        videos.iter().zip(before).map(grown).collect()
    };
    let without_set = grow(&mut [video()]);
    assert!(without_set[0] > 1_000, "{without_set:?}");
    assert_eq!(grow(&mut [build(&path)]), without_set);
    let of_two = grow(&mut [build(&path), build(&path)]);
    // Both have grown less in the rounds before, so their steps are shorter, too.
    let sixteenth = without_set[0] / 20..=without_set[0] / 16;
    assert!(
        of_two.iter().all(|growth| sixteenth.contains(growth)),
        "{of_two:?}"
    );
}

#[rstest]
#[case::alone(1.0, 1_200_000)]
#[case::one_of_two_equal(0.25, 75_000)]
#[case::large_beside_a_small_one(0.8, 768_000)]
#[case::small_beside_a_large_one(0.01, 3_000)]
fn no_growth_is_lost_by_rounding(#[case] factor: f64, #[case] expected: u64) {
    let mut policy = Policy::scaled_by(factor);
    let grown: u64 = (0..1_000).map(|_| policy.coupled(MTU)).sum();
    assert!((expected - 1..=expected).contains(&grown), "{grown} B");
}

#[test]
fn losses_of_packets_that_left_in_slow_start_cost_nothing_however_late_they_are_found() {
    for (left_in_start, expected) in [(true, false), (false, true)] {
        let (mut video, now) = alone();
        let before = video.core.window();
        let sent = if left_in_start { at(300) } else { now };
        let signal = Signal::loss(Bytes::new(before / 2));
        video.on_congestion(&Congestion::new(now, sent, signal));
        let (mut now, mut is_cut) = (now, false);
        for _ in 0..6 {
            now = rounds(&mut video, now, &[100]);
            is_cut |= video.core.window() < before;
        }
        assert_eq!(is_cut, expected);
    }
}

#[test]
fn jitter_does_not_end_slow_start_far_below_what_the_path_carries() {
    let link = Link {
        rate: Bitrate::from_mbps(100),
        rtt: Duration::from_millis(60),
        queue: Bytes::new(750_000),
    };
    let conditions = Conditions {
        jitter: 30 * MS_IN_NS,
        ..Conditions::default()
    };
    let trace = trace_under(link, conditions, &spec(GREEDY), 4);
    assert_in(trace.rate(1, 4), Bitrate::from_mbps(35)..);
}

#[test]
fn a_peer_that_holds_its_acknowledgements_back_is_no_queue() {
    let trace = trace_to_browser(&spec(GREEDY), Application::Endless);
    assert_in(trace.percent_of_link(5, 30), 98..);
    assert_in(trace.mean_queue(5, 30), ..=40_000);
    // The segments need 5.24 Mbit/s.
    let trace = trace_to_browser(&spec("video"), Application::Segments);
    assert_in(trace.rate(5, 30), Bitrate::from_kbps(5_000)..);
}

// The filler keeps half of the queue, 125 kB or 50 ms, occupied from 12 to 17 s.
#[test]
fn it_keeps_a_share_beside_a_buffer_filler_and_a_short_queue_when_that_has_gone() {
    let trace = trace_beside_filler(LINK, &spec(GREEDY), (12, 17));
    assert_in(trace.mean_window(14, 17), 125_001..);
    assert_in(trace.percent_of_link(26, 30), 95..);
    assert_in(trace.mean_queue(27, 30), ..=30_000);
}

#[test]
fn a_standing_queue_is_taken_back_to_the_target_in_one_step() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 6]);
    let now = rounds(&mut video, now, &[200, 200]);
    let before = video.core.window();
    rounds(&mut video, now, &[200]);
    // A round delivers the window in 200 ms, 100 ms more than without a queue.
    let excess_ms = 100 - video.path.queue.target(MTU) / 1_000_000;
    let expected = before - before * excess_ms / 200;
    let window = video.core.window();
    assert!(window.abs_diff(expected) * 20 <= before, "{before} -> {window}");
    assert_eq!(video.policy.mode, Mode::Alone);
}

#[test]
fn a_queue_that_stays_although_the_window_gave_way_twice_is_met_with_cubics_window_of_before() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 6]);
    let before = video.core.window();
    // It becomes shorter, but by far less than if the queue were this sender's alone.
    rounds(&mut video, now, &[200, 200, 200, 185, 185, 185, 170, 170, 170]);
    assert_eq!(video.policy.mode, Mode::Crowded);
    assert!(video.core.window() >= before);
}

#[test]
fn in_a_crowd_a_loss_counts_if_the_queue_is_long_and_once_per_round_trip() {
    let (mut video, now) = alone();
    let rising = [100, 100, 200, 200, 200, 185, 185, 185, 170, 170, 170];
    let mut now = rounds(&mut video, now, &rising);
    assert_eq!(state(&video), (Mode::Crowded, Phase::Avoidance));
    let before = video.core.window();
    lose(&mut video, now, MTU, false);
    let reduced = video.core.window();
    assert_eq!(reduced, floor_bytes(0.7 * float(before)));
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
    assert_eq!(video.window().as_u64(), 4 * MTU);
    assert_eq!(state(&video), (Mode::Start, Phase::AfterPersistentCongestion));
    rounds(&mut video, now + MS, &[100, 100, 100]);
    assert_eq!(video.core.window(), 24 * MTU, "its losses are explained");
    assert_eq!(video.policy.mode, Mode::Start);
}

#[test]
fn a_ce_mark_while_the_queue_is_drained_is_not_undone() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 3]);
    video.policy.drained_from = Some(2 * video.core.window());
    video.on_congestion(&Congestion::new(now, now, Signal::EcnCe));
    let reduced = video.core.window();
    rounds(&mut video, now, &[100; 3]);
    assert!(video.core.window() < reduced + reduced / 4);
}

#[test]
fn after_a_pause_a_part_of_the_window_is_used_for_one_round_trip() {
    let (mut video, now) = alone();
    let window = video.core.window();
    let sent = now + MS * 3_000;
    video.core.in_flight = 0;
    video.on_sent(&Sent::new(sent, Bytes::new(MTU)));
    assert_eq!(video.window().as_u64(), floor_bytes(AFTER_PAUSE * float(window)));
    let acked = [Acked::new(sent + MS, Bytes::new(MTU), 1)];
    video.on_ack_frame(&AckFrame::new(sent + MS * 101, &acked, Bytes::new(MTU)));
    assert!(video.window().as_u64() >= window);
}

#[test]
fn what_is_unknown_is_said() {
    let waiting = video().snapshot().waiting_for;
    assert!(waiting.contains(Facts::AVERAGE_RATE));
}

#[test]
fn an_rtt_that_rises_while_rate_and_window_fall_is_a_longer_route_and_the_window_returns() {
    let (mut video, now) = alone();
    let now = rounds(&mut video, now, &[100; 6]);
    let before = video.core.window();
    rounds(&mut video, now, &[200; 8]);
    assert_ne!(video.policy.mode, Mode::Crowded);
    assert_eq!(video.path.queue.min_rtt(), Some(200_000_000));
    assert!(video.core.window() > before);
}

#[test]
fn a_ceiling_bounds_what_is_sent_and_not_what_is_known_of_the_path() {
    let (mut video, now) = alone();
    video.core.known.set_average_rate(Some(Bitrate::from_kbps(500)));
    let window = video.core.window();
    video.core.in_flight = 0;
    let asked = now + MS * 3_000;
    video.on_sent(&Sent::new(asked, Bytes::new(MTU)));
    assert!(video.window().as_u64() > window / 2, "the path is not shared");
    video.on_congestion(&Congestion::new(asked, asked, Signal::EcnCe));
    let window = video.core.window();
    let bounded = video.window().as_u64();
    assert!(bounded < window / 4, "{bounded} of {window}");
    rounds(&mut video, asked, &[100; 40]);
    assert!(video.window().as_u64() >= window, "the player kept asking");
}

#[test]
fn the_rate_of_an_encoder_that_follows_the_path_bounds_nothing() {
    for (kbps, highest) in [(1, None), (500, None), (500, Some(800)), (50_000, Some(50_000))] {
        let (mut video, now) = alone();
        video.core.known.set_average_rate(Some(Bitrate::from_kbps(kbps)));
        video.core.known.set_highest_rate(highest.map(Bitrate::from_kbps));
        video.core.known.set_follows_path(true);
        video.core.in_flight = 0;
        let asked = now + MS * 3_000;
        video.on_sent(&Sent::new(asked, Bytes::new(MTU)));
        video.on_congestion(&Congestion::new(asked, asked, Signal::EcnCe));
        let expected = floor_bytes(AFTER_PAUSE * float(video.core.window()));
        assert_eq!(video.window().as_u64(), expected, "{kbps} kbit/s");
    }
}

#[test]
fn on_a_longer_route_the_smallest_window_grows_until_it_is_known() {
    let (mut video, now) = alone();
    video.core.set_window(4 * MTU);
    rounds(&mut video, now, &[200; 12]);
    assert_eq!(video.path.queue.min_rtt(), Some(200_000_000));
    assert_in(video.core.window(), 5 * MTU + 1..);
}

#[test]
fn after_persistent_congestion_the_path_may_be_a_longer_one() {
    let (mut video, now) = alone();
    lose(&mut video, now, 10 * MTU, true);
    rounds(&mut video, now, &[300; 6]);
    assert_eq!(video.path.queue.min_rtt(), Some(300_000_000));
    assert_eq!(video.policy.mode, Mode::Start);
}

#[test]
fn a_transport_that_paces_gets_the_whole_window_after_a_pause_at_one_window_per_round_trip() {
    for (path, share) in [(Path::default(), 0.8), (Path::default().paced(), 1.0)] {
        let mut video = Video::new(&path, &Arguments::defaults(PARAMETERS), Arc::default());
        assert_eq!(video.pacing_rate(), None, "the RTT is unknown");
        let now = rounds(&mut video, at(0), &[100, 100, 100, 150, 100, 100, 100]);
        let window = video.core.window() as f64;
        let per_rtt = |video: &Video| {
            let rtt = Duration::from_nanos(video.core.rtt.smoothed_ns().unwrap());
            (video.pacing_rate().unwrap() * rtt).as_u64() as f64 / video.window().as_u64() as f64
        };
        assert_in(per_rtt(&video), 1.249..=1.251);
        video.core.in_flight = 0;
        video.on_sent(&Sent::new(now + MS * 1_000, Bytes::new(MTU)));
        assert_in(
            video.window().as_u64() as f64 / window,
            share - 0.001..=share + 0.001,
        );
        assert_in(per_rtt(&video), 0.999..=1.001);
    }
}
