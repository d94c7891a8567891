//! The rebuffer clock, by action tables. Frames are 1,000 bytes and 40 ms.

use rstest::rstest;

use super::Do::{Finish, Get, Segment, Wait};
use super::*;

/// A player that starts with two segments held and resumes with one.
fn by_segments() -> PlayoutConfig {
    PlayoutConfig {
        start: Start::Filled(Fill::Segments(2)),
        clock: Clock::Rebuffer(Fill::Segments(1)),
        ..rebuffer(1, 1)
    }
}

#[rstest]
// Frame 2 is due at 90; three frames have arrived at 300.
#[case::stalls_at_a_missing_frame_and_resumes_when_enough_is_in(
    rebuffer(2, 3), 6,
    &[(0, Get(1_000)), (10, Get(1_000)), (200, Get(2_000)), (300, Get(1_000)), (310, Get(1_000)), (310, Finish)],
    ("10 started, 10 shown 0, 50 shown 40, 90 underflow, 300 recovered, 300 shown 80, 340 shown 120, 380 shown 160, \
     420 shown 200, 460 ended",
    1, 210)
)]
#[case::no_frame_is_ever_discarded_however_long_the_stall(
    rebuffer(1, 2), 2, &[(0, Get(1_000)), (60_000, Get(1_000)), (60_000, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 60000 recovered, 60000 shown 40, 60040 ended", 1, 60_000 - 40)
)]
#[case::the_rest_of_the_title_is_always_enough_to_resume(
    rebuffer(2, 100), 3, &[(0, Get(2_000)), (500, Get(1_000)), (500, Finish)],
    ("0 started, 0 shown 0, 40 shown 40, 80 underflow, 500 recovered, 500 shown 80, 540 ended", 1, 500 - 80)
)]
#[case::a_clean_run_has_a_rebuffer_ratio_of_zero(
    rebuffer(1, 1), 3, &[(0, Get(3_000)), (0, Finish)],
    ("0 started, 0 shown 0, 40 shown 40, 80 shown 80, 120 ended", 0, 0)
)]
// Segments of two frames. The second is complete at 60; four frames last until 220, and the third is complete at 400.
#[case::starts_and_resumes_by_whole_segments(
    by_segments(), 6,
    &[
        (0, Get(2_000)), (0, Segment), (50, Get(1_999)), (60, Get(1)), (60, Segment),
        (300, Get(1_000)), (400, Get(1_000)), (400, Segment), (400, Finish),
    ],
    ("60 started, 60 shown 0, 100 shown 40, 140 shown 80, 180 shown 120, 220 underflow, 400 recovered, 400 shown 160, \
     440 shown 200, 480 ended",
    1, 400 - 220)
)]
fn rebuffering(
    #[case] config: PlayoutConfig,
    #[case] frames: u64,
    #[case] actions: &[(u64, Do)],
    #[case] expected: (&'static str, u64, u64),
) {
    let (events, stalls, stalled) = expected;
    let counts = [frames, 0, stalls, 0];
    check(config, &title(frames), actions, (events, counts, stalled));
}

#[rstest]
#[case(Fill::PlayingTime(ms(79)), 2)]
#[case(Fill::PlayingTime(ms(80)), 2)]
#[case(Fill::PlayingTime(ms(81)), 3)]
#[case(Fill::Bytes(Bytes::new(2_001)), 3)]
fn starts_by_playing_time_or_bytes(#[case] fill: Fill, #[case] frames_needed: u64) {
    let config = PlayoutConfig {
        start: Start::Filled(fill),
        ..rebuffer(1, 1)
    };
    let actions: Vec<_> = (1..=5)
        .map(|n| (n * 10, Get(FRAME)))
        .chain([(51, Wait)])
        .collect();
    let player = play(config, &title(9), &actions);
    assert_eq!(player.report().startup_delay, Some(ms(frames_needed * 10)));
}

#[test]
fn the_playback_speed_divides_times_and_leaves_bytes() {
    let config = |speed_percent| PlayoutConfig {
        speed_percent,
        ..rebuffer(2, 2)
    };
    let mut player = play(config(200), &title(4), &[(100, Get(4 * FRAME)), (100, Finish)]);
    assert_eq!(player.known_time(), ms(80));
    assert_eq!(
        story(&mut player),
        "100 started, 100 shown 0, 120 shown 20, 140 shown 40, 160 shown 60, 180 ended"
    );
    let slow = play(config(50), &title(4), &[(100, Get(4 * FRAME)), (100, Finish)]);
    assert_eq!(slow.report().ended, Some(ms(420)));
    assert_eq!(config(177).media_time(ms(100)), ms(177));
    assert_eq!(Playout::new(config(0)).unwrap_err(), ConfigError::Speed);
}

#[test]
fn a_seek_discards_the_buffer_and_waits_for_the_frame_at_its_target() {
    let mut frames = title(10);
    frames[5].key = true;
    let mut player = Playout::new(rebuffer(2, 2)).unwrap();
    player.add_frames(Duration::ZERO, &frames);
    player.deliver(ms(100), Bytes::new(4 * FRAME));
    // Frames 0 and 1 have been shown by then; the target is in the display time of frame 6.
    assert_eq!(player.seek(ms(150), &frames, ms(250)), 5 * FRAME);
    assert_eq!(player.held(), Bytes::ZERO);
    player.deliver(ms(250), Bytes::new(5 * FRAME));
    player.finish(ms(250));
    player.run_out();
    let report = player.report();
    assert_eq!(report.frames_shown, 7);
    assert_eq!(report.frames, 10);
    assert_eq!(report.frames_missing, 0);
    assert_eq!((report.underflow_events, report.stalled_time), (0, ms(100)));
    assert_eq!(report.startup_delay, Some(ms(100)));
    assert_eq!(report.ended, Some(ms(450)));
    assert!(story(&mut player).contains("150 seek 200, 250 started, 250 shown 200, 290 shown 240"));
}
