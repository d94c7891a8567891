//! The catch-up clock, by action tables. Frames are 1,000 bytes and 40 ms; late is 100 ms, jitter 1 s, speed 2.

use rstest::rstest;

use super::Do::{Finish, Get, Wait};
use super::*;

/// Frames with these presentation times, in the order of their bytes.
fn frames_at<const N: usize>(times: [u64; N]) -> Vec<Frame> {
    let at = |(frame, pts): (Frame, u64)| Frame {
        pts: ms(pts),
        ..frame
    };
    title(N as u64).into_iter().zip(times).map(at).collect()
}

#[rstest]
#[case::starts_when_the_playout_buffer_is_full_and_shows_every_frame_when_due(
    2, title(3), &[(10, Get(1_000)), (50, Get(999)), (60, Get(1)), (70, Get(1_000)), (70, Finish)],
    ("60 started, 60 shown 0, 100 shown 40, 140 shown 80, 180 ended", [3, 0, 0, 0], 0)
)]
#[case::a_title_smaller_than_the_playout_buffer_starts_when_it_is_in(
    100, title(2), &[(10, Get(2_000)), (30, Finish)],
    ("30 started, 30 shown 0, 70 shown 40, 110 ended", [2, 0, 0, 0], 0)
)]
#[case::a_frame_that_comes_just_when_it_is_due_is_on_time(
    1, title(2), &[(0, Get(1_000)), (40, Get(1_000)), (40, Finish)],
    ("0 started, 0 shown 0, 40 shown 40, 80 ended", [2, 0, 0, 0], 0)
)]
// Frame 1 is due at 40 and arrives at 100; frames follow 20 ms apart until one is on time.
#[case::a_stall_is_one_underflow_event_and_late_frames_catch_up_at_twice_the_rate(
    1, title(6), &[(0, Get(1_000)), (100, Get(5_000)), (100, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 100 shown 40 +60, 120 shown 80 +40, 140 shown 120 +20, 160 shown 160, \
     160 recovered, 200 shown 200, 240 ended",
    [6, 0, 1, 0], 60)
)]
// Frames 1 to 5 are due at 40 to 200 and arrive at 241: 1, 2 and 3 are more than 100 ms late.
#[case::frames_later_than_late_are_discarded_and_take_no_time(
    1, title(8), &[(0, Get(1_000)), (241, Get(7_000)), (241, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 241 discarded 40 +201, 241 discarded 80 +161, 241 discarded 120 +121, \
     241 shown 160 +81, 261 shown 200 +61, 281 shown 240 +41, 301 shown 280 +21, 321 recovered, 321 ended",
    [5, 3, 1, 0], 201)
)]
// Frames 1 and 2 are 60 and 40 ms late; frame 3 has its turn at 140 and arrives at 180.
#[case::a_stall_while_catching_up_belongs_to_the_same_event(
    1, title(6), &[(0, Get(1_000)), (100, Get(2_000)), (180, Get(3_000)), (180, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 100 shown 40 +60, 120 shown 80 +40, 180 shown 120 +60, 200 shown 160 +40, \
     220 shown 200 +20, 240 recovered, 240 ended",
    [6, 0, 1, 0], 60 + 40)
)]
#[case::a_second_stall_after_recovery_is_a_second_event(
    1, title(6), &[(0, Get(1_000)), (50, Get(2_000)), (200, Get(3_000)), (200, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 50 shown 40 +10, 80 shown 80, 80 recovered, 120 underflow, \
     200 shown 120 +80, 220 shown 160 +60, 240 shown 200 +40, 260 recovered, 260 ended",
    [6, 0, 2, 0], 10 + 80)
)]
// Frame 2 is due at 80, so the clock is rebased at 1080. One frame does not fill the buffer, two do.
#[case::a_frame_missing_past_the_jitter_rebases_and_waits_for_a_full_buffer(
    2, title(6), &[(0, Get(2_000)), (1_500, Get(1_000)), (2_000, Get(1_000)), (2_010, Get(2_000)), (2_010, Finish)],
    ("0 started, 0 shown 0, 40 shown 40, 80 underflow, 1080 recovered, 1080 rebased, 2000 resumed, 2000 shown 80, \
     2040 shown 120, 2080 shown 160, 2120 shown 200, 2160 ended",
    [6, 0, 1, 1], 2_000 - 80)
)]
#[case::exactly_the_jitter_late_is_no_rebase_when_the_data_comes_just_then(
    1, title(2), &[(0, Get(1_000)), (1_040, Get(1_000)), (1_040, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 1040 discarded 40 +1000, 1040 recovered, 1040 ended", [1, 1, 1, 0], 1_000)
)]
#[case::the_end_of_the_title_ends_a_rebase(
    4, title(5), &[(0, Get(4_000)), (3_000, Get(1_000)), (3_000, Finish)],
    ("0 started, 0 shown 0, 40 shown 40, 80 shown 80, 120 shown 120, 160 underflow, 1160 recovered, 1160 rebased, \
     3000 resumed, 3000 shown 160, 3040 ended",
    [5, 0, 1, 1], 3_000 - 160)
)]
// Decode order I P B: shown I B P.
#[case::frames_decoded_out_of_order_wait_for_their_presentation_order(
    2, frames_at([0, 80, 40]), &[(0, Get(2_000)), (60, Get(1_000)), (60, Finish)],
    ("0 started, 0 shown 0, 40 underflow, 60 shown 40 +20, 80 shown 80, 80 recovered, 120 ended", [3, 0, 1, 0], 20)
)]
#[case::the_first_presentation_time_need_not_be_zero(
    1, frames_at([10_000, 10_040]), &[(5, Get(2_000)), (5, Finish)],
    ("5 started, 5 shown 10000, 45 shown 10040, 85 ended", [2, 0, 0, 0], 0)
)]
#[case::frames_that_never_come_are_missing_and_not_waited_for(
    1, title(3), &[(0, Get(1_500)), (10, Finish)], ("0 started, 0 shown 0, 120 ended", [1, 0, 0, 0], 0)
)]
fn catching_up(
    #[case] buffer: u64,
    #[case] frames: Vec<Frame>,
    #[case] actions: &[(u64, Do)],
    #[case] expected: Expected,
) {
    check(catch_up(buffer), &frames, actions, expected);
}

#[test]
fn starts_after_a_set_time_if_a_frame_is_in() {
    let config = |after| PlayoutConfig {
        start: Start::After(ms(after)),
        ..catch_up(100)
    };
    let frame_first = [(10, Get(1_000)), (600, Get(1_000)), (600, Finish)];
    let mut player = play(config(500), &title(2), &frame_first);
    assert!(story(&mut player).starts_with("500 started, "));
    let time_first = [(700, Get(1_000)), (710, Get(1_000)), (710, Finish)];
    let mut player = play(config(500), &title(2), &time_first);
    assert!(story(&mut player).starts_with("700 started, "));
}

#[test]
fn exactly_late_is_not_too_late() {
    let mut player = play(
        catch_up(1),
        &title(2),
        &[(0, Get(1_000)), (140, Get(1_000)), (140, Finish)],
    );
    assert!(story(&mut player).contains(", 140 shown 40 +100, "));
    let nanosecond = Duration::from_nanos(1);
    let mut player = Playout::new(catch_up(1)).unwrap();
    player.add_frames(ms(0), &title(2));
    player.deliver(ms(0), Bytes::new(1_000));
    player.deliver(ms(140) + nanosecond, Bytes::new(1_000));
    player.finish(ms(140) + nanosecond);
    player.run_out();
    assert_eq!(player.report().frames_discarded, 1);
}

#[test]
fn a_frame_not_known_when_expected_is_an_underflow_too() {
    // Fragments: frames 2 and 3 become known only at 130; the next frame was expected at 80.
    let all = title(4);
    let mut player = Playout::new(catch_up(1)).unwrap();
    player.add_frames(ms(0), &all[..2]);
    player.deliver(ms(0), Bytes::new(2_000));
    player.add_frames(ms(130), &all[2..]);
    player.deliver(ms(130), Bytes::new(2_000));
    player.finish(ms(130));
    player.run_out();
    assert_eq!(
        story(&mut player),
        "0 started, 0 shown 0, 40 shown 40, 80 underflow, 130 shown 80 +50, 150 shown 120 +30, 170 \
         recovered, 170 ended"
    );
    assert_eq!(player.report().stalled_time, ms(50));
}

#[test]
fn a_report_of_an_unfinished_session_counts_the_stall_that_lasts() {
    let player = play(catch_up(1), &title(3), &[(0, Get(1_000)), (100, Wait)]);
    let report = player.report();
    assert_eq!((report.frames_shown, report.frames_remaining()), (1, 2));
    assert_eq!(report.stalled_time, ms(60));
    assert_eq!(report.ended, None);
}

#[test]
fn a_player_that_can_never_catch_up_is_refused() {
    let clock = Clock::CatchUp(CatchUp {
        speed_percent: 100,
        ..CatchUp::default()
    });
    let config = PlayoutConfig::new(PLAYOUT_BUFFER_448, clock);
    assert_eq!(Playout::new(config).unwrap_err(), ConfigError::CatchUpSpeed(100));
    let config = PlayoutConfig {
        receive_buffer: Bytes::new(1),
        ..PlayoutConfig::default()
    };
    let error = Playout::new(config).unwrap_err();
    assert!(error.to_string().contains("655.872kB"), "{error}");
}
