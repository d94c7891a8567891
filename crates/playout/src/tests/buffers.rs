//! Held bytes, paused reading and the time series.

use super::Do::{Finish, Get, Wait};
use super::*;

#[test]
fn boxes_before_the_first_frame_fill_no_buffer_and_what_lies_between_frames_does() {
    let mut frames = title(3);
    frames[0].offset = 5_000; // ftyp, moov
    frames[1].offset = 6_300; // 300 bytes of sound before it
    frames[2].offset = 7_300;
    let mut player = Playout::new(catch_up(100)).unwrap();
    player.add_frames(ms(0), &frames);
    let mut held = |bytes| {
        player.deliver(ms(0), Bytes::new(bytes));
        player.held().as_u64()
    };
    assert_eq!(held(5_000), 0);
    assert_eq!(held(10), 10);
    assert_eq!(held(990), 1_000);
    assert_eq!(held(100), 1_100);
    assert_eq!(held(1_200), 2_300);
    assert_eq!(held(1_000), 3_300);
    assert_eq!(held(77), 3_300, "boxes after the last frame");
}

#[test]
fn reading_pauses_when_the_receive_buffer_is_full_and_goes_on_when_a_frame_has_left() {
    let config = PlayoutConfig {
        receive_buffer: Bytes::new(4_000),
        ..catch_up(2)
    };
    let mut player = Playout::new(config).unwrap();
    player.add_frames(ms(0), &title(10));
    player.deliver(ms(0), Bytes::new(3_999));
    player.advance(ms(0));
    assert!(!player.reading_paused(), "frame 0 has been shown");
    player.deliver(ms(10), Bytes::new(1_001));
    assert!(player.reading_paused(), "frames 1 to 4 are held");
    assert_eq!(player.playout_buffer_fill(), Bytes::new(2_000));
    assert_eq!(player.next_deadline(), Some(ms(40)));
    player.advance(ms(40));
    assert!(!player.reading_paused());
    assert_eq!(player.held(), Bytes::new(3_000));
}

#[test]
fn a_frame_larger_than_every_buffer_does_not_lock_the_player_up() {
    let config = PlayoutConfig {
        playout_buffer: Bytes::new(100),
        receive_buffer: Bytes::new(200),
        start: Start::Filled(Fill::Bytes(Bytes::new(100))),
        ..catch_up(1)
    };
    let mut player = Playout::new(config).unwrap();
    player.add_frames(ms(0), &title(2));
    for at in 0..20 {
        player.advance(ms(at));
        assert!(!player.reading_paused(), "at {at} ms");
        player.deliver(ms(at), Bytes::new(50));
    }
    player.advance(ms(20));
    assert_eq!(player.report().startup_delay, Some(ms(19)));
}

#[test]
fn a_title_whose_tables_come_last_is_read_to_its_end() {
    let config = PlayoutConfig {
        receive_buffer: Bytes::new(2_000),
        ..catch_up(2)
    };
    let mut player = Playout::new(config).unwrap();
    player.deliver(ms(0), Bytes::new(3_000));
    assert!(!player.reading_paused(), "no frame is known yet");
    player.deliver(ms(500), Bytes::new(400)); // moov
    player.add_frames(ms(500), &title(3));
    player.finish(ms(500));
    player.run_out();
    let report = player.report();
    assert_eq!((report.frames_shown, report.startup_delay), (3, Some(ms(500))));
}

#[test]
fn bytes_shown_and_still_held_add_up() {
    let player = play(catch_up(1), &title(10), &[(0, Get(7_500)), (100, Wait)]);
    assert_eq!(player.held(), Bytes::new(4_500)); // three shown
    assert_eq!(player.held_time(), ms(4 * STEP));
    assert_eq!(player.received(), Bytes::new(7_500));
    let report = player.report();
    assert_eq!(player.shown_time(), ms(3 * STEP));
    assert_eq!(report.mean_bitrate.unwrap().as_bits_per_second(), 200_000);
    assert_eq!(player.average_rate().unwrap().as_bits_per_second(), 200_000);
    assert_eq!(player.known_time(), ms(10 * STEP));
}

#[test]
fn the_series_has_a_point_at_every_interval_until_the_end() {
    let config = PlayoutConfig {
        series_interval: ms(50),
        ..catch_up(1)
    };
    let actions = [(25, Get(2_000)), (75, Get(2_000)), (75, Finish)];
    let player = play(config, &title(4), &actions);
    let points = player.series().iter().map(|point| {
        let (at, held_time) = (point.at.as_millis(), point.held_time.as_millis());
        (at, point.held.as_u64(), held_time, point.shown)
    });
    // Shown at 25, 65, 105, 145; over at 185.
    let expected = [
        (0, 0, 0, 0),
        (50, 1_000, 40, 1),
        (100, 2_000, 80, 2),
        (150, 0, 0, 4),
    ];
    assert_eq!(points.collect::<Vec<_>>(), expected);
}

#[test]
fn the_series_is_bounded_however_long_the_title() {
    let mut frames = title(2);
    frames[1].pts = Duration::from_secs(10_000_000);
    let config = PlayoutConfig {
        series_interval: ms(1),
        ..catch_up(1)
    };
    let player = play(config, &frames, &[(0, Get(2_000)), (0, Finish)]);
    let points = player.series();
    assert!(points.len() <= 1 << 16);
    assert!(points.len() >= 1 << 14);
    assert!(points.is_sorted_by_key(|point| point.at));
    let step = points[1].at;
    assert!(points.windows(2).all(|pair| pair[1].at == pair[0].at + step));
}

#[test]
fn absurd_times_do_not_overflow() {
    let mut frames = title(3);
    frames[1].pts = Duration::MAX;
    frames[2].pts = Duration::MAX.saturating_sub(ms(1));
    let player = play(catch_up(1), &frames, &[(5, Get(3_000)), (5, Finish)]);
    assert_eq!(player.report().frames_shown, 3);
}
