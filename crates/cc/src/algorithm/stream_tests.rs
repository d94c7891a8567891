//! Vectors of TCP Stream.

use super::*;
use crate::tests::{MS_IN_NS as MS, MTU, assert_in, at, loss};
use rstest::rstest;

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-6, "{a} is not {b}");
}

// Oda et al. 2012 eq. (1): N = ⌈Rate·RTT/(8·mtu)⌉; exact quotients must not be rounded up.
#[rstest]
#[case(3_600, 30, 1_500, 9)]
#[case(3_600, 40, 1_500, 12)]
#[case(3_600, 100, 1_500, 30)]
#[case(3_600, 30, 1_200, 12)] // 11.25
#[case(5_240, 100, 1_200, 55)] // 54.58
#[case(100, 1, 1_200, 2)] // the smallest window
fn enough_segments_carry_the_videos_rate(
    #[case] kbps: u64,
    #[case] rtt_ms: u64,
    #[case] mtu: u64,
    #[case] segments: u64,
) {
    assert_eq!(segments_for(Bitrate::from_kbps(kbps), rtt_ms * MS, mtu), segments);
}

fn algorithm(enough: f64, delay: f64) -> Stream {
    Stream {
        enough: Some(enough),
        media: enough,
        windows: TwoWindows::of_delay(delay),
    }
}

// Section 4 with 3.6 Mbit/s, 1500 B: dwnd +1 below 2+N queued, −1 above 4+N, τ = 30 ms.
#[rstest]
#[case(40.0, 36, 9.0, 21.0)] // 6.667 < 11
#[case(40.0, 48, 15.0, 21.0)] // 15 < 17
#[case(40.0, 60, 18.0, 20.0)] // 20 = 2 + N: holds
#[case(60.0, 60, 18.0, 19.0)] // 30 > 22
fn the_delay_window_moves_by_a_segment_around_what_the_video_may_queue(
    #[case] window: f64,
    #[case] rtt_ms: u64,
    #[case] enough: f64,
    #[case] delay: f64,
) {
    let queued = queued_segments(window, 30 * MS, rtt_ms * MS);
    close(algorithm(enough, 20.0).delay_after(queued, enough, true), delay);
}

#[test]
fn the_delay_window_grows_only_once_the_loss_window_carries_the_video() {
    close(algorithm(9.0, 20.0).delay_after(0.0, 8.9, true), 20.0);
    close(algorithm(9.0, 20.0).delay_after(40.0, 8.9, true), 19.0);
}

// N = ⌈3.6 Mbit/s · 30 ms / 1200 B⌉ = ⌈11.25⌉, so α = 14 and β = 16. The loss window stops three segments later: 20 %
// more on the wire are ⌈13.5⌉, and a strict transport holds one back.
#[test]
fn alpha_and_beta_are_made_of_the_n_of_the_paper() {
    let path = crate::Path::default().strict();
    let mut core = Core::new(&path, 2, Needs::default(), std::sync::Arc::default());
    core.rtt.on_batch(at(30), at(0), 2);
    core.known.set_average_rate(Some(Bitrate::from_kbps(3_600)));
    core.known.set_wire_overhead("20%".parse().ok());
    let mut stream = algorithm(0.0, 20.0);
    stream.refresh(&core);
    assert_eq!(stream.enough, Some(15.0));
    close(stream.delay_after(13.9, 15.0, true), 21.0);
    close(stream.delay_after(14.0, 15.0, true), 20.0);
    close(stream.delay_after(16.1, 15.0, true), 19.0);
}

#[test]
fn a_limited_sender_grows_neither_window() {
    let mut core = Core::sample(9 * MTU, 30, 30);
    let mut algorithm = algorithm(9.0, 0.0);
    for (now, new_round) in [(2_000, false), (2_010, false), (2_020, false), (2_030, true)] {
        let batch = Batch::limited(now, 30, new_round);
        algorithm.on_batch(&mut core, &batch);
    }
    assert_eq!(core.window(), 9 * MTU);
}

// lwnd 9 = N, dwnd 20; a loss halves both ([CHOICE]: the paper is silent on dwnd).
#[test]
fn a_loss_halves_both_windows() {
    let mut core = Core::sample(29 * MTU, 30, 36);
    let mut algorithm = algorithm(9.0, 20.0);
    let reduction = algorithm.on_congestion(&mut core, &loss()).unwrap();
    close(algorithm.windows.delay, 10.0);
    // 14.5 and 4.5 segments
    assert_eq!((reduction.window, reduction.ssthresh), (17_400, 5_400));
}

#[test]
fn slow_start_stops_at_the_videos_rate() {
    let mut core = Core::sample(80 * MTU, 100, 100);
    core.known.set_average_rate(Some(Bitrate::from_kbps(5_240)));
    let mut algorithm = Stream::default();
    let end = algorithm.watch_startup(&mut core, &Batch::sample(2_000, 100, true));
    assert_eq!(end, Some(Reason::VideoRateReached));
    assert_eq!(core.window(), 55 * MTU);
}

#[test]
fn a_lower_rate_takes_the_loss_window_down_with_it() {
    let mut core = Core::sample(55 * MTU, 100, 100);
    core.known.set_average_rate(Some(Bitrate::from_kbps(2_620)));
    let mut algorithm = algorithm(55.0, 0.0);
    algorithm.on_batch(&mut core, &Batch::sample(2_000, 100, true));
    assert_eq!(core.window(), 28 * MTU); // ⌈27.29⌉
}

#[test]
fn an_unknown_rate_leaves_reno() {
    let mut core = Core::sample(20 * MTU, 100, 100);
    core.ssthresh = Some(20 * MTU);
    let mut algorithm = Stream::default();
    for _ in 0..20 {
        algorithm.on_batch(&mut core, &Batch::sample(2_000, 100, false));
    }
    close(algorithm.windows.delay, 0.0);
    assert_in(core.window().abs_diff(21 * MTU), ..30);
}
