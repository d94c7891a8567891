//! The player on a network with a constant rate.

use std::sync::Arc;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};
use rstest::rstest;

use super::super::order::FetchOrder;
use super::{changed, fetch, ms, presentation, representation, size, transfer};
use crate::dash::{Abr, DashOptions, DashPlayer, Decision, Estimates, Presentation};
use crate::playout::PlayoutEventKind;
use crate::transfer::Transfer;

/// Plays `segments` segments over a link with the given `rate` over time, and 40 ms to the first byte. A segment's
/// bytes arrive at the rate that applies when it is requested.
fn play(segments: usize, options: &DashOptions, rate: impl Fn(Duration) -> Bitrate) -> DashPlayer {
    let mut player = DashPlayer::new(presentation(segments), options).unwrap();
    let mut now = ms(0);
    for _ in 0..100_000 {
        match player.decide(now) {
            Decision::Done => {
                player.playout_mut().run_out();
                return player;
            }
            Decision::WaitUntil(until) => {
                assert!(until > now, "a wait goes forward");
                now = until;
            }
            Decision::Fetch { representation, .. } => {
                let bytes = size(representation);
                let first_byte = now + ms(40);
                let finished = first_byte + rate(now).time_for(bytes).unwrap();
                let requested = std::mem::replace(&mut now, finished);
                let transfer = Transfer {
                    requested,
                    first_byte,
                    finished,
                    bytes,
                };
                player.fetched(transfer, None);
            }
        }
    }
    panic!("no end");
}

fn at(mbps: u64) -> impl Fn(Duration) -> Bitrate {
    move |_| Bitrate::from_mbps(mbps)
}

#[test]
fn playback_starts_with_the_second_segment_and_a_fast_link_never_stalls() {
    let player = play(20, &DashOptions::default(), at(50));
    let (report, seen) = (player.report(), player.playout().report());
    assert_eq!(seen.startup_delay, Some(report.segments[1].transfer.finished));
    assert_eq!((seen.underflow_events, seen.stalled_time), (0, ms(0)));
    assert_eq!((seen.frames, seen.frames_shown), (1_500, 1_500));
    // 20 segments of 3 s after the start.
    let ended = seen.ended.unwrap().saturating_sub(seen.startup_delay.unwrap());
    assert!(ended.abs_diff(ms(60_000)) < ms(1), "{ended:?}");
    let chosen: Vec<_> = report.segments.iter().map(|it| it.representation).collect();
    assert_eq!(chosen[0], 0, "nothing is known of the network yet");
    assert!(chosen[1..].iter().all(|&it| it == 2), "{chosen:?}");
    assert_eq!(report.switch_sizes, [(0, 18), (2, 1)].into());
    assert_eq!(report.switch_share, Some(0.05));
}

#[rstest]
#[case::below_the_top(100, 4, 12)]
#[case::at_the_top(100, 50, 30)]
#[case::at_the_top_of_a_long_title(200, 50, 60)]
fn segments_are_asked_for_while_less_than_the_target_is_in(
    #[case] segments: usize,
    #[case] mbps: u64,
    #[case] target: u64,
) {
    let player = play(segments, &DashOptions::default(), at(mbps));
    let report = player.report();
    let most = report.segments.iter().map(|it| it.held).max().unwrap();
    let target = Duration::from_secs(target);
    assert!(most < target && most + ms(600) > target, "{most:?}");
    // Once the buffer is full, a segment is requested about every 3 s, whenever the buffer is checked.
    let full = report.segments.iter().position(|it| it.held + ms(3_000) > target);
    let steady = &report.segments[full.unwrap() + 1..segments - 1];
    let steady: Vec<_> = steady.iter().map(|it| it.transfer).collect();
    let gap = |pair: &[Transfer]| pair[1].requested.saturating_sub(pair[0].finished);
    let gaps: Vec<_> = steady.windows(2).map(gap).collect();
    assert!(gaps.len() > 5 && gaps.iter().filter(|gap| **gap > ms(0)).count() + 1 >= gaps.len());
    let at_a_check = |gap: &Duration| gap.subsec_nanos().is_multiple_of(500_000_000) && *gap < ms(3_500);
    assert!(gaps.iter().all(at_a_check), "{gaps:?}");
}

#[test]
fn a_stall_ends_when_one_whole_segment_is_in() {
    // 20 Mbit/s, but nearly nothing from the 6th second on, for some seconds.
    let mut player = play(40, &DashOptions::default(), |now| {
        let low = now > Duration::from_secs(6) && now < Duration::from_secs(20);
        Bitrate::from_kbps(if low { 100 } else { 20_000 })
    });
    let events: Vec<_> = std::iter::from_fn(|| player.playout_mut().poll_event()).collect();
    let (report, seen) = (player.report(), player.playout().report());
    assert!(seen.underflow_events > 0 && seen.stalled_time > ms(0));
    let ratio = seen.rebuffering_ratio.unwrap();
    let total = seen.stalled_time.as_secs_f64() + 120.0;
    assert!((ratio - seen.stalled_time.as_secs_f64() / total).abs() < 1e-9);
    let resumed = events
        .iter()
        .filter(|event| event.kind == PlayoutEventKind::UnderflowEnded);
    let resumed: Vec<_> = resumed.map(|event| event.at).collect();
    assert_eq!(resumed.len() as u64, seen.underflow_events);
    let mut arrivals = report.segments.iter().map(|it| it.transfer.finished);
    assert!(
        resumed.iter().all(|at| arrivals.any(|arrival| arrival == *at)),
        "{resumed:?}"
    );
    assert_eq!(seen.frames_shown, 40 * 75, "nothing is left out");
}

#[test]
fn a_fixed_representation_is_fetched_throughout() {
    let options = changed(|it| it.abr = Abr::Fixed("720p".to_owned()));
    let report = play(30, &options, at(2)).report();
    let fetched: Vec<_> = report.representations.iter().map(|it| it.segments).collect();
    assert_eq!(fetched, [0, 30, 0]);
    assert_eq!(report.switches, 0);
    assert_eq!(report.mean_rate, Some(Bitrate::from_kbps(2_640)));
    let measured = report.instantaneous.unwrap();
    assert_eq!(measured.p50_bps, 2_000_000);
    assert!(measured.variation < 1e-3);
}

#[test]
fn the_history_of_switches_keeps_a_player_from_going_up_and_down() {
    // The rate suits the middle representation only during every other six seconds.
    let rate = |now: Duration| {
        Bitrate::from_kbps(if (now.as_secs() / 6).is_multiple_of(2) {
            6_000
        } else {
            800
        })
    };
    let switches = |abr| {
        let options = changed(|it| it.abr = abr);
        play(200, &options, rate).report().switches
    };
    let (plain, held) = (switches(Abr::Throughput), switches(Abr::ThroughputSwitchHistory));
    assert!(plain > 0 && held < plain, "{plain} and {held}");
}

/// The segments that a player of 12 fetches, and their representations. The first five arrive slowly.
fn fetches(options: &DashOptions) -> Vec<(usize, usize)> {
    let fetched = std::cell::Cell::new(0);
    let player = play(12, options, |_| {
        fetched.set(fetched.get() + 1);
        Bitrate::from_kbps(if fetched.get() < 6 { 1_500 } else { 20_000 })
    });
    assert_eq!(player.segments(), (12, 12));
    let shown = player.playout().report().frames_shown;
    assert_eq!(shown, 12 * 75, "each is played once");
    let records = player.report().segments;
    records.iter().map(|it| (it.segment, it.representation)).collect()
}

#[test]
fn a_fast_switch_up_replaces_what_is_buffered_and_appending_does_not() {
    let appending = DashOptions::default();
    let segments = |fetched: &[(usize, usize)]| fetched.iter().map(|it| it.0).collect::<Vec<_>>();
    assert_eq!(segments(&fetches(&appending)), (0..12).collect::<Vec<_>>());
    let fast = changed(|it| it.fast_switch = true);
    let fetched = fetches(&fast);
    let back = fetched.windows(2).find(|pair| pair[1].0 <= pair[0].0).unwrap();
    assert!(back[1].0 < back[0].0 && back[1].1 > back[0].1, "{fetched:?}");
    // It continues from there in order to the end.
    assert_eq!(fetched.last().unwrap().0, 11);
    assert!(fetched.len() > 12, "{fetched:?}");
}

#[test]
fn segments_passed_over_are_not_counted_as_fetched() {
    let mut player = DashPlayer::new(presentation(40), &DashOptions::default()).unwrap();
    // Slow enough to stay at the lowest representation.
    for segment in 0..8 {
        let at = 2_000 * segment;
        assert!(matches!(
            player.decide(ms(at)),
            Decision::Fetch {
                representation: 0,
                ..
            }
        ));
        match segment {
            2..6 => player.pass_over(ms(at), "404".to_owned()),
            _ => player.fetched(transfer([at, at + 40, at + 1_900], size(0)), None),
        }
    }
    assert_eq!((player.segments(), player.missing), ((4, 40), 4));
}

/// Segments from number 3 on, each of 3 s or passed over.
fn order(is_fetched: &[bool]) -> FetchOrder {
    let mut order = FetchOrder::from(3);
    for &is_fetched in is_fetched {
        assert!(order.advance(0, if is_fetched { ms(3_000) } else { ms(0) }));
    }
    order
}

#[rstest]
#[case::before_a_gap(2_999, &[3, 6, 7, 8])]
#[case::behind_a_gap(3_000, &[6, 7, 8])]
#[case::the_last(8_999, &[7, 8])]
#[case::past_the_buffer(9_000, &[8])]
fn a_buffer_is_replaced_from_the_segment_that_plays_then(#[case] time: u64, #[case] expected: &[usize]) {
    let mut order = order(&[true, false, false, true, true]);
    order.replace(ms(time), 1);
    for &segment in expected {
        assert_eq!(order.next, segment, "a segment passed over is not tried again");
        assert_eq!(order.advance(1, ms(3_000)), segment == 8);
    }
}

#[rstest]
#[case::buffered(&[false, true], 4)]
#[case::passed_over(&[true, false], 5)]
fn only_a_buffered_segment_is_fetched_again_at_a_switch(#[case] is_fetched: &[bool], #[case] next: usize) {
    let mut order = order(is_fetched);
    order.append(true);
    assert_eq!(order.next, next);
}

#[test]
fn the_last_buffered_segment_is_fetched_again_at_a_switch_if_the_player_does_that() {
    let options = changed(|it| it.refetches_last = true);
    let fetched = fetches(&options);
    let switches = fetched.windows(2).filter(|pair| pair[1].1 != pair[0].1).count();
    let again = fetched.windows(2).filter(|pair| pair[1].0 == pair[0].0).count();
    assert!(switches > 0 && switches == again, "{fetched:?}");
}

#[test]
fn estimates_are_those_of_a_sample() {
    let rates = [2, 4, 4, 4, 5, 5, 7, 9].map(Bitrate::from_mbps);
    let estimates = Estimates::of(rates).unwrap();
    assert!((estimates.mean_bps - 5e6).abs() < 1e-6);
    assert!((estimates.sd_bps - 1e6 * (32.0_f64 / 7.0).sqrt()).abs() < 1e-6);
    let percentiles = [estimates.p5_bps, estimates.p50_bps, estimates.p95_bps];
    assert_eq!(percentiles, [2_000_000, 4_000_000, 9_000_000]);
    assert_eq!(Estimates::of([]), None);
    assert!(Estimates::of([Bitrate::ZERO]).unwrap().variation.abs() < 1e-12);
}

#[test]
fn an_empty_segment_does_no_harm() {
    let mut player = DashPlayer::new(presentation(2), &DashOptions::default()).unwrap();
    for time in [10, 20] {
        assert!(matches!(player.decide(ms(time)), Decision::Fetch { .. }));
        player.fetched(transfer([time; 3], Bytes::ZERO), None);
    }
    assert_eq!(player.decide(ms(30)), Decision::Done);
    player.playout_mut().run_out();
    assert_eq!(player.playout().report().frames_shown, 150);
}

#[test]
fn playback_begins_in_the_middle_of_a_segment() {
    let film = presentation(4);
    let options = changed(|it| {
        it.abr = Abr::Fixed("480p".to_owned());
        it.start_at = ms(4_500);
    });
    let mut player = DashPlayer::new(film.clone(), &options).unwrap();
    let expected = |segment| Decision::Fetch {
        representation: 0,
        segment,
    };
    for (turn, segment) in (1..4).enumerate() {
        let now = 100 * turn as u64;
        assert_eq!(player.decide(ms(now)), expected(segment));
        player.fetched(transfer([now; 3], Bytes::new(1_000)), Some(30));
    }
    assert_eq!(player.decide(Duration::from_secs(1)), Decision::Done);
    assert_eq!(player.segments(), (3, 3));
    player.playout_mut().run_out();
    let seen = player.playout().report();
    // Half of the first segment is shown.
    assert_eq!(seen.frames_shown, 15 + 30 + 30);
    assert_eq!(player.playout().shown_time(), ms(7_500));
    assert_eq!(player.report().first_segment, 1);

    let options = changed(|it| it.start_at = Duration::from_secs(12));
    let error = DashPlayer::new(film, &options).unwrap_err().to_string();
    assert!(error.contains("less than the title's duration (12s)"), "{error}");
}

#[test]
fn a_jump_discards_the_buffer_and_goes_on_with_the_segment_there() {
    let mut player = DashPlayer::new(presentation(20), &DashOptions::default()).unwrap();
    for at in [0, 1_000, 2_000] {
        fetch(&mut player, at).expect("there is room for a segment");
    }
    player.seek(ms(5_000), ms(31_000));
    assert_eq!(player.playout().held_time(), ms(0));
    let mut now = 5_000;
    while let Some((_, segment)) = fetch(&mut player, now) {
        assert_eq!(segment, 10 + usize::try_from((now - 5_000) / 600).unwrap());
        now += 600;
    }
    // Playback needs two segments to resume, as at the start.
    let report = player.playout().report();
    assert_eq!((report.stalled_time, report.underflow_events), (ms(1_100), 0));
}

#[test]
fn the_part_of_a_segment_outside_its_period_is_not_shown() {
    let mut one = representation(("720p", 2_640), &[ms(3_000)]);
    one.segments[0].hidden = ms(3_000);
    let film = Arc::new(Presentation::new(vec![one]).unwrap());
    let mut player = DashPlayer::new(film, &DashOptions::default()).unwrap();
    assert!(matches!(player.decide(ms(0)), Decision::Fetch { .. }));
    player.fetched(transfer([0, 40, 500], size(1)), Some(150));
    player.playout_mut().run_out();
    assert_eq!(player.playout().report().frames_shown, 75);
}
