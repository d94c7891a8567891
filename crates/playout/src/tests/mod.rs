//! Tests of the player as tables: bytes with arrival times, and the events that the viewer sees.

mod buffers;
mod catch_up;
mod properties;
mod rebuffer;
mod report;

use super::*;

/// Size in bytes of every frame of [`title`].
pub(super) const FRAME: u64 = 1_000;
/// Milliseconds between frames of [`title`].
pub(super) const STEP: u64 = 40;

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// `count` frames of 1,000 bytes, 40 ms apart, in display order.
pub(super) fn title(count: u64) -> Vec<Frame> {
    (0..count)
        .map(|n| Frame {
            offset: FRAME * n,
            size: Bytes::new(FRAME),
            dts: ms(STEP * n),
            pts: ms(STEP * n),
            key: n == 0,
        })
        .collect()
}

/// A catch-up player that starts with `buffer` frames held, discards past 100 ms and rebases past 1 s.
pub(super) fn catch_up(buffer: u64) -> PlayoutConfig {
    PlayoutConfig::new(
        Bytes::new(FRAME * buffer),
        Clock::CatchUp(CatchUp {
            late: ms(100),
            max_jitter: ms(1_000),
            ..CatchUp::default()
        }),
    )
}

/// A rebuffer player that starts with `start` frames held and resumes with `resume`.
pub(super) fn rebuffer(start: u64, resume: u64) -> PlayoutConfig {
    PlayoutConfig::new(
        Bytes::new(FRAME * start),
        Clock::Rebuffer(Fill::Bytes(Bytes::new(FRAME * resume))),
    )
}

/// Something that happens to the player.
#[derive(Clone, Copy, Debug)]
pub(super) enum Do {
    /// This many bytes are delivered.
    Get(u64),
    /// A segment is complete.
    Segment,
    /// The whole title has arrived.
    Finish,
    /// Only time passes until then.
    Wait,
}

/// Plays `frames` (all known from the start) through `actions` at their times in ms, then runs out.
pub(super) fn play(config: PlayoutConfig, frames: &[Frame], actions: &[(u64, Do)]) -> Playout {
    let mut player = Playout::new(config).unwrap();
    player.add_frames(Duration::ZERO, frames);
    for &(at, what) in actions {
        match what {
            Do::Get(bytes) => player.deliver(ms(at), Bytes::new(bytes)),
            Do::Segment => player.end_segment(ms(at)),
            Do::Finish => player.finish(ms(at)),
            Do::Wait => player.advance(ms(at)),
        }
    }
    player.run_out();
    player
}

/// The events so far as short texts separated by commas: time in ms, kind, presentation time, lateness.
pub(super) fn story(player: &mut Playout) -> String {
    let events = std::iter::from_fn(|| player.poll_event());
    let texts = events.map(|event| {
        let late_by = |pts: Duration, late: Duration| match late.as_millis() {
            0 if late.is_zero() => pts.as_millis().to_string(),
            late => format!("{} +{late}", pts.as_millis()),
        };
        let what = match event.kind {
            PlayoutEventKind::Started => "started".to_owned(),
            PlayoutEventKind::Shown { pts, late } => format!("shown {}", late_by(pts, late)),
            PlayoutEventKind::Discarded { pts, late } => format!("discarded {}", late_by(pts, late)),
            PlayoutEventKind::UnderflowBegan => "underflow".to_owned(),
            PlayoutEventKind::UnderflowEnded => "recovered".to_owned(),
            PlayoutEventKind::Rebased => "rebased".to_owned(),
            PlayoutEventKind::Resumed => "resumed".to_owned(),
            PlayoutEventKind::Seek { pts } => format!("seek {}", pts.as_millis()),
            PlayoutEventKind::Ended => "ended".to_owned(),
        };
        format!("{} {what}", event.at.as_secs_f64() * 1e3)
    });
    texts.collect::<Vec<_>>().join(", ")
}

/// The events; frames shown, frames discarded, underflow events and rebases; the stalled time in ms.
pub(super) type Expected = (&'static str, [u64; 4], u64);

/// Plays as [`play`], and checks the events and the report.
pub(super) fn check(
    config: PlayoutConfig,
    frames: &[Frame],
    actions: &[(u64, Do)],
    (expected, counts, stalled): Expected,
) {
    let mut player = play(config, frames, actions);
    let report = player.report();
    assert_eq!(story(&mut player), expected);
    let [shown, discarded, underflows, rebases] = counts;
    let mean_bitrate = Bytes::new(FRAME * shown).per(ms(STEP * shown));
    let stalled_time = ms(stalled);
    let ratio = stalled_time.as_secs_f64() / ms(stalled + STEP * shown).as_secs_f64();
    let millis = |at: &str| ms(at.split(' ').next().unwrap().parse().unwrap());
    let wanted = PlaybackReport {
        startup_delay: Some(millis(expected)),
        ended: Some(millis(expected.rsplit(", ").next().unwrap())),
        frames: frames.len() as u64,
        frames_shown: shown,
        frames_discarded: discarded,
        frames_missing: frames.len() as u64 - shown - discarded,
        underflow_events: underflows,
        stalled_time,
        rebases,
        rebuffering_ratio: matches!(player.config().clock, Clock::Rebuffer(_)).then_some(ratio),
        mean_bitrate,
    };
    assert_eq!(report, wanted);
}
