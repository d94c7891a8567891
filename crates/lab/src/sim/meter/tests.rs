//! Statistics of synthetic connections.

use playrate_units::Bitrate;

use super::*;

/// A sample at `millis` with a window of this many bytes.
fn sample(millis: u64, window: u64) -> Sample {
    let mut sample = Sample::default();
    sample.at = Duration::from_millis(millis);
    sample.snapshot.window = Bytes::new(window);
    sample.snapshot.algorithm_window = Some(Bytes::new(window));
    sample.snapshot.phase = Phase::Avoidance;
    sample.latest_rtt = Some(Duration::from_millis(100));
    sample
}

/// The sample after this many congestion events.
fn cut(mut sample: Sample, events: u64) -> Sample {
    sample.congestion_events = events;
    sample
}

fn meter() -> Meter {
    Meter::new(Some(Bytes::new(100_000)), Duration::from_millis(100))
}

fn statistics(samples: impl IntoIterator<Item = Sample>) -> ControlStatistics {
    let meter = meter();
    samples.into_iter().for_each(|sample| meter.take(&sample));
    meter.statistics().unwrap().0
}

fn near(value: u64, expected: u64) -> bool {
    value.abs_diff(expected) <= expected / 64
}

#[test]
fn a_window_counts_for_as_long_as_it_held() {
    // 10 kB for 9 s, then 100 kB for 1 s.
    let seen = statistics([sample(0, 10_000), sample(9_000, 100_000), sample(10_000, 100_000)]);
    assert_eq!(seen.window_mean_bytes, 19_000);
    assert!(near(seen.window_p50_bytes, 10_000), "{seen:?}");
    assert!(near(seen.window_p95_bytes, 100_000), "{seen:?}");
    assert_eq!(seen.window_max_bytes, 100_000);
}

#[test]
fn the_first_30_seconds_have_statistics_of_their_own() {
    let seen = statistics([sample(0, 10_000), sample(30_000, 90_000), sample(60_000, 90_000)]);
    assert_eq!(seen.window_30s_mean_bytes, 10_000);
    assert_eq!(seen.window_mean_bytes, 50_000);
}

#[test]
fn doubling_shows_in_the_windows_of_the_first_round_trips() {
    let double = (0..=8).map(|n| sample(n * 100, 10_000 << n));
    let seen = statistics(double);
    let windows = seen.window_first_rtts_bytes;
    // If a mark coincides with a sample, the earlier window counts.
    assert_eq!(windows[..4], [10_000, 20_000, 40_000, 80_000]);
    assert_eq!(windows.len(), 8);
    assert_eq!(seen.window_reached_bdp_s, Some(0.4));
}

#[test]
fn a_recovery_lasts_until_the_window_is_nearly_back() {
    let seen = statistics([
        sample(0, 80_000),
        sample(500, 100_000),
        cut(sample(1_000, 50_000), 1),
        // A second signal in the meantime does not restart it.
        cut(sample(2_000, 40_000), 2),
        cut(sample(5_000, 91_000), 2),
        // If the controller keeps its window after a signal, recovery takes no time.
        cut(sample(6_000, 91_000), 3),
        cut(sample(9_000, 91_000), 3),
    ]);
    let recovered = (seen.window_recoveries, seen.window_recovery_mean_s);
    assert_eq!(recovered, (2, Some(2.0)));
    // Half of 100 kB was kept, then four fifths of 50 kB.
    assert_eq!(seen.window_kept_share, Some(0.65));
}

#[test]
fn a_window_that_slow_start_overshot_is_not_expected_back() {
    let mut first = sample(0, 400_000);
    first.snapshot.phase = Phase::Startup;
    let seen = statistics([
        first,
        cut(sample(100, 200_000), 1),
        // A second round of losses, among packets that slow start had sent before it ended.
        cut(sample(200, 100_000), 2),
        cut(sample(2_000, 130_000), 2),
        cut(sample(2_100, 65_000), 3),
        cut(sample(3_100, 120_000), 3),
    ]);
    let recovered = (seen.window_recoveries, seen.window_recovery_mean_s);
    assert_eq!(recovered, (1, Some(1.0)));
    let startup = seen.startup_s.zip(seen.startup_window_bytes);
    assert_eq!(startup, Some((0.1, 400_000)));
}

#[test]
fn returns_to_slow_start_are_counted_and_the_first_slow_start_is_not() {
    let phase = |millis, phase| {
        let mut sample = sample(millis, 20_000);
        sample.snapshot.phase = phase;
        sample
    };
    let seen = statistics([
        phase(0, Phase::Startup),
        phase(100, Phase::Avoidance),
        phase(200, Phase::AfterPersistentCongestion),
        phase(220, Phase::AfterPersistentCongestion),
        phase(300, Phase::Avoidance),
        phase(400, Phase::AfterIdle),
    ]);
    assert_eq!(seen.slow_start_entries, 2);
}

#[test]
fn swings_are_turns_of_more_than_a_tenth() {
    let windows = [100, 150, 140, 160, 100, 105, 101, 150, 100];
    let samples = (0..).zip(windows).map(|(n, window)| sample(n * 100, window));
    // Up to 160, down to 100, up to 150, down: three turns.
    assert_eq!(statistics(samples).window_swings, 3);
    let still = (0..100).map(|n| sample(n * 100, 100 + n % 2));
    assert_eq!(statistics(still).window_swings, 0);
}

#[test]
fn a_steady_window_has_smaller_steps_than_a_jumping_one() {
    let steady = statistics((0..100).map(|n| sample(n * 100, 50_000 + n * 10)));
    let jumping = statistics((0..100).map(|n| sample(n * 100, 50_000 + n % 2 * 25_000)));
    assert!(steady.window_step_sd < 0.001, "{steady:?}");
    assert!(jumping.window_step_sd > 0.3, "{jumping:?}");
}

#[test]
fn rtt_and_capacity_have_their_spread() {
    let samples = (0..1_000).map(|n| {
        let mut sample = sample(n * 20, 50_000);
        let odd = n % 2;
        sample.latest_rtt = Some(Duration::from_millis(100 + odd * 20));
        sample.snapshot.capacity = Some(Bitrate::from_mbps(10 + odd * 2));
        sample
    });
    let seen = statistics(samples);
    for (value, expected, tolerance) in [
        (seen.rtt_mean_s, 0.11, 1e-4),
        (seen.rtt_sd_s, 0.01, 1e-4),
        (seen.rtt_p05_s, 0.1, 2e-3),
        (seen.rtt_max_s, 0.12, 1e-9),
        (seen.capacity_mean_bps.unwrap() as f64, 11e6, 1e4),
        (seen.capacity_sd_bps.unwrap() as f64, 1e6, 1e4),
    ] {
        assert!((value - expected).abs() < tolerance, "{seen:?}");
    }
}

#[test]
fn nothing_is_measured_before_time_has_passed() {
    assert_eq!(meter().statistics(), None);
    let meter = meter();
    meter.take(&sample(0, 10_000));
    assert_eq!(meter.statistics(), None);
}
