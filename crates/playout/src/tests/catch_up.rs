//! The catch-up clock, by action tables. Frames are 1,000 bytes and 40 ms; late is 100 ms, jitter 1 s, speed 2.

use super::Do::{Finish, Get, Wait};
use super::*;

#[test]
fn starts_when_the_playout_buffer_is_full_and_shows_every_frame_when_due() {
    let mut player = play(
        catch_up(2),
        &title(3),
        &[
            (10, Get(1_000)),
            (50, Get(999)),
            (60, Get(1)),
            (70, Get(1_000)),
            (70, Finish),
        ],
    );
    let seen = "60 started, 60 shown 0, 100 shown 40, 140 shown 80, 180 ended";
    assert_eq!(story(&mut player), seen);
    let report = player.report();
    assert_eq!(report.startup_delay, Some(ms(60)));
    assert_eq!(report.ended, Some(ms(180)));
    assert_eq!(counts(&player), [3, 0, 0]);
    assert_eq!(report.stalled_time, Duration::ZERO);
    assert_eq!(report.rebuffering_ratio, None);
}

#[test]
fn a_title_smaller_than_the_playout_buffer_starts_when_it_is_in() {
    let mut player = play(catch_up(100), &title(2), &[(10, Get(2_000)), (30, Finish)]);
    assert_eq!(
        story(&mut player),
        "30 started, 30 shown 0, 70 shown 40, 110 ended"
    );
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
fn a_frame_that_comes_just_when_it_is_due_is_on_time() {
    let mut player = play(
        catch_up(1),
        &title(2),
        &[(0, Get(1_000)), (40, Get(1_000)), (40, Finish)],
    );
    assert_eq!(story(&mut player), "0 started, 0 shown 0, 40 shown 40, 80 ended");
}

#[test]
fn a_stall_is_one_underflow_event_and_late_frames_catch_up_at_twice_the_rate() {
    // Frame 1 is due at 40 and arrives at 100; frames follow 20 ms apart until one is on time.
    let mut player = play(
        catch_up(1),
        &title(6),
        &[(0, Get(1_000)), (100, Get(5_000)), (100, Finish)],
    );
    assert_eq!(
        story(&mut player),
        "0 started, 0 shown 0, 40 underflow, 100 shown 40 +60, 120 shown 80 +40, 140 shown 120 +20, 160 \
         shown 160, 160 recovered, 200 shown 200, 240 ended"
    );
    assert_eq!(counts(&player), [6, 0, 1]);
    assert_eq!(player.report().stalled_time, ms(60));
}

#[test]
fn frames_later_than_late_are_discarded_and_take_no_time() {
    // Frames 1..=5 are due at 40..=200 and arrive at 241: 1, 2 and 3 are more than 100 ms late.
    let mut player = play(
        catch_up(1),
        &title(8),
        &[(0, Get(1_000)), (241, Get(7_000)), (241, Finish)],
    );
    let seen = "0 started, 0 shown 0, 40 underflow, 241 discarded 40 +201, 241 discarded 80 +161, 241 discarded \
         120 +121, 241 shown 160 +81, 261 shown 200 +61, 281 shown 240 +41";
    assert!(story(&mut player).starts_with(seen));
    assert_eq!(counts(&player), [5, 3, 1]);
    assert_eq!(player.report().stalled_time, ms(201));
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
fn a_stall_while_catching_up_belongs_to_the_same_event() {
    let actions = [
        (0, Get(1_000)),
        (100, Get(2_000)), // frames 1 and 2: shown at 100 and 120, 60 and 40 ms late
        (180, Get(3_000)), // frame 3 had its turn at 140 and comes at 180
        (180, Finish),
    ];
    let mut player = play(catch_up(1), &title(6), &actions);
    assert_eq!(
        story(&mut player),
        "0 started, 0 shown 0, 40 underflow, 100 shown 40 +60, 120 shown 80 +40, 180 shown 120 +60, \
         200 shown 160 +40, 220 shown 200 +20, 240 recovered, 240 ended"
    );
    assert_eq!(player.report().stalled_time, ms(60 + 40));
}

#[test]
fn a_second_stall_after_recovery_is_a_second_event() {
    let actions = [
        (0, Get(1_000)),
        (50, Get(2_000)),
        (200, Get(3_000)),
        (200, Finish),
    ];
    let mut player = play(catch_up(1), &title(6), &actions);
    let seen = "0 started, 0 shown 0, 40 underflow, 50 shown 40 +10, 80 shown 80, 80 recovered, 120 underflow, \
         200 shown 120 +80, 220 shown 160 +60";
    assert!(story(&mut player).starts_with(seen));
    assert_eq!(player.report().underflow_events, 2);
}

#[test]
fn a_frame_missing_past_the_jitter_rebases_and_waits_for_a_full_buffer() {
    let actions = [
        (0, Get(2_000)),     // shown at 0 and 40; frame 2 is due at 80
        (1_500, Get(1_000)), // rebased at 1080: one frame is not enough
        (2_000, Get(1_000)), // two are
        (2_010, Get(2_000)),
        (2_010, Finish),
    ];
    let mut player = play(catch_up(2), &title(6), &actions);
    assert_eq!(
        story(&mut player),
        "0 started, 0 shown 0, 40 shown 40, 80 underflow, 1080 recovered, 1080 rebased, 2000 resumed, \
         2000 shown 80, 2040 shown 120, 2080 shown 160, 2120 shown 200, 2160 ended"
    );
    let report = player.report();
    assert_eq!((report.frames_shown, report.frames_discarded), (6, 0));
    assert_eq!((report.underflow_events, report.rebases), (1, 1));
    assert_eq!(report.stalled_time, ms(2_000 - 80));
}

#[test]
fn exactly_the_jitter_late_is_no_rebase_when_the_data_comes_just_then() {
    let mut player = play(
        catch_up(1),
        &title(2),
        &[(0, Get(1_000)), (1_040, Get(1_000)), (1_040, Finish)],
    );
    assert_eq!(player.report().rebases, 0);
    assert!(story(&mut player).contains(", 1040 discarded 40 +1000, "));
}

#[test]
fn the_end_of_the_title_ends_a_rebase() {
    let actions = [(0, Get(4_000)), (3_000, Get(1_000)), (3_000, Finish)];
    let mut player = play(catch_up(4), &title(5), &actions);
    assert_eq!(
        story(&mut player),
        "0 started, 0 shown 0, 40 shown 40, 80 shown 80, 120 shown 120, 160 underflow, 1160 recovered, \
         1160 rebased, 3000 resumed, 3000 shown 160, 3040 ended"
    );
}

#[test]
fn frames_decoded_out_of_order_wait_for_their_presentation_order() {
    // Decode order I P B: shown I B P.
    let mut frames = title(3);
    (frames[1].pts, frames[2].pts) = (ms(80), ms(40));
    let mut player = play(
        catch_up(2),
        &frames,
        &[(0, Get(2_000)), (60, Get(1_000)), (60, Finish)],
    );
    assert_eq!(
        story(&mut player),
        "0 started, 0 shown 0, 40 underflow, 60 shown 40 +20, 80 shown 80, 80 recovered, 120 ended"
    );
}

#[test]
fn the_first_presentation_time_need_not_be_zero() {
    let mut frames = title(2);
    for frame in &mut frames {
        frame.pts += ms(10_000);
    }
    let mut player = play(catch_up(1), &frames, &[(5, Get(2_000)), (5, Finish)]);
    assert_eq!(
        story(&mut player),
        "5 started, 5 shown 10000, 45 shown 10040, 85 ended"
    );
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
fn frames_that_never_come_are_missing_and_not_waited_for() {
    let mut player = play(catch_up(1), &title(3), &[(0, Get(1_500)), (10, Finish)]);
    assert_eq!(story(&mut player), "0 started, 0 shown 0, 120 ended");
    let report = player.report();
    let frames = [
        report.frames_shown,
        report.frames_missing,
        report.frames_remaining(),
    ];
    assert_eq!(frames, [1, 2, 0]);
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
