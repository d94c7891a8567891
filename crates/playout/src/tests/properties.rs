//! Properties of every title, every delivery and both clocks.

use proptest::prelude::*;

use super::*;

/// A title of frames of any size, with gaps and a little reordering.
fn any_title() -> impl Strategy<Value = Vec<Frame>> {
    let frame = (1_u64..5_000, 0_u64..300, 0_u64..3);
    prop::collection::vec(frame, 1..60).prop_map(|parts| {
        let mut offset = 700;
        let mut frames = Vec::new();
        for (n, (size, gap, reorder)) in (0_u64..).zip(parts) {
            offset += gap;
            frames.push(Frame {
                offset,
                size: Bytes::new(size),
                dts: ms(STEP * n),
                pts: ms(STEP * (n + reorder)),
                key: n == 0,
            });
            offset += size;
        }
        frames
    })
}

fn any_config() -> impl Strategy<Value = PlayoutConfig> {
    let clock = prop_oneof![
        (0_u64..300, 300_u64..2_000, 101_u32..400).prop_map(|(late, jitter, speed_percent)| {
            Clock::CatchUp(CatchUp {
                late: ms(late),
                max_jitter: ms(jitter),
                speed_percent,
            })
        }),
        (1_u64..20_000).prop_map(|bytes| Clock::Rebuffer(Fill::Bytes(Bytes::new(bytes)))),
        (1_u64..500).prop_map(|time| Clock::Rebuffer(Fill::PlayingTime(ms(time)))),
    ];
    (1_u64..20_000, 0_u64..20_000, clock, prop::option::of(0_u64..500)).prop_map(
        |(playout_buffer, ahead, clock, after)| {
            let mut config = PlayoutConfig::new(Bytes::new(playout_buffer), clock);
            config.receive_buffer = config.playout_buffer + Bytes::new(ahead);
            config.start = after.map_or(config.start, |after| Start::After(ms(after)));
            config.series_interval = ms(10);
            config
        },
    )
}

/// Deliveries: `(pause before it in µs, bytes)`.
fn any_deliveries() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0_u64..100_000, 1_u64..6_000), 0..120)
}

fn total(frames: &[Frame]) -> u64 {
    frames.last().map_or(0, Frame::end)
}

/// Plays `frames` by `deliveries`, each cut into pieces of at most `piece` bytes, then the rest in one piece. Between
/// deliveries the time is advanced after every `pause`.
fn run(
    config: &PlayoutConfig,
    frames: &[Frame],
    deliveries: &[(u64, u64)],
    (piece, pause): (u64, Duration),
) -> Playout {
    let mut player = Playout::new(config.clone()).unwrap();
    player.add_frames(Duration::ZERO, frames);
    let (mut now, mut left) = (Duration::ZERO, total(frames));
    for &(wait, bytes) in deliveries {
        let until = now + Duration::from_micros(wait);
        while until.saturating_sub(now) > pause {
            now += pause;
            player.advance(now);
        }
        now = until;
        let mut bytes = bytes.min(left);
        left -= bytes;
        while bytes > 0 {
            player.deliver(now, Bytes::new(bytes.min(piece)));
            bytes -= bytes.min(piece);
        }
    }
    player.deliver(now, Bytes::new(left));
    player.finish(now);
    player.run_out();
    player
}

/// Each delivery in one piece, without advancing the time in between.
const WHOLE: (u64, Duration) = (u64::MAX, Duration::MAX);

proptest! {
    #[test]
    fn every_frame_is_shown_or_discarded_once(
        config in any_config(), frames in any_title(), deliveries in any_deliveries()
    ) {
        let mut player = run(&config, &frames, &deliveries, WHOLE);
        let report = player.report();
        prop_assert_eq!(report.frames_shown + report.frames_discarded, frames.len() as u64);
        prop_assert_eq!((report.frames_missing, report.frames_remaining()), (0, 0));
        prop_assert!(player.is_over());
        prop_assert_eq!(player.held(), Bytes::ZERO);
        let mut seen = Vec::new();
        while let Some(event) = player.poll_event() {
            if let PlayoutEventKind::Shown { pts, .. } | PlayoutEventKind::Discarded { pts, .. } = event.kind {
                seen.push(pts);
            }
        }
        let mut expected: Vec<_> = frames.iter().map(|frame| frame.pts).collect();
        expected.sort();
        prop_assert_eq!(seen, expected, "in presentation order");
    }

    #[test]
    fn the_way_deliveries_are_cut_and_looking_at_the_player_change_nothing(
        config in any_config(), frames in any_title(), deliveries in any_deliveries(),
        piece in prop_oneof![1_u64..2_000, Just(u64::MAX)], pause in prop_oneof![1_u64..50, Just(u64::MAX)],
    ) {
        let mut whole = run(&config, &frames, &deliveries, WHOLE);
        let mut cut = run(&config, &frames, &deliveries, (piece, ms(pause)));
        prop_assert_eq!(whole.report(), cut.report());
        prop_assert_eq!(whole.series(), cut.series());
        prop_assert_eq!(story(&mut whole), story(&mut cut));
    }

    #[test]
    fn no_frame_is_shown_before_it_is_complete_nor_before_it_is_due(
        config in any_config(), frames in any_title(), deliveries in any_deliveries()
    ) {
        let mut player = run(&config, &frames, &deliveries, WHOLE);
        let mut arrivals = Vec::new(); // (bytes so far, when)
        let (mut now, mut sum) = (Duration::ZERO, 0);
        for &(pause, bytes) in &deliveries {
            now += Duration::from_micros(pause);
            sum += bytes;
            arrivals.push((sum, now));
        }
        arrivals.push((u64::MAX, now));
        let mut by_pts = frames.clone();
        by_pts.sort_by_key(|frame| (frame.pts, frame.offset));
        let mut shown = by_pts.iter();
        let (mut last, mut started) = (Duration::ZERO, None);
        while let Some(event) = player.poll_event() {
            prop_assert!(event.at >= last, "events in order of time");
            last = event.at;
            match event.kind {
                PlayoutEventKind::Started => started = Some(event.at),
                PlayoutEventKind::Shown { .. } | PlayoutEventKind::Discarded { .. } => {
                    let frame = shown.next().unwrap();
                    let complete = arrivals.iter().find(|&&(sum, _)| sum >= frame.end()).unwrap().1;
                    prop_assert!(event.at >= complete, "{frame:?} at {:?}, complete {complete:?}", event.at);
                    let due = started.unwrap() + frame.pts.saturating_sub(by_pts[0].pts);
                    prop_assert!(event.at >= due, "{frame:?} at {:?}, due {due:?}", event.at);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn a_driver_that_heeds_the_pause_never_overfills_and_never_locks_up(
        config in any_config(), frames in any_title(), chunk in 1_u64..3_000
    ) {
        let largest = frames.windows(2).map(|pair| pair[1].end() - pair[0].end()).max().unwrap_or(0)
            .max(frames[0].size.as_u64());
        let mut player = Playout::new(config.clone()).unwrap();
        player.add_frames(Duration::ZERO, &frames);
        let (mut now, mut left) = (Duration::ZERO, total(&frames));
        let mut turns = 0;
        while left > 0 {
            turns += 1;
            prop_assert!(turns < 1_000_000, "makes no headway");
            player.advance(now);
            if player.reading_paused() {
                let next = player.next_deadline();
                prop_assert!(next.is_some_and(|next| next >= now));
                now = next.unwrap().max(now);
                continue;
            }
            let got = chunk.min(left);
            left -= got;
            now += Duration::from_micros(got);
            player.deliver(now, Bytes::new(got));
            // More than the receive buffer is held only while the player waits: for a threshold, or for the frames
            // reordered around a missing one.
            let threshold = match &config.clock {
                Clock::Rebuffer(Fill::Bytes(bytes)) => bytes.as_u64(),
                Clock::Rebuffer(_) => total(&frames),
                Clock::CatchUp(_) => 0,
            };
            let cap = config.receive_buffer.as_u64().max(threshold) + chunk + 4 * largest;
            prop_assert!(player.held().as_u64() <= cap, "{} > {cap}", player.held());
            prop_assert!(player.playout_buffer_fill() <= config.playout_buffer);
        }
        player.finish(now);
        player.run_out();
        prop_assert!(player.is_over());
    }
}
