//! Tests of the player as action tables: at these times these bytes come, so the viewer sees this.

mod buffers;
mod catch_up;
mod properties;
mod rebuffer;

use super::*;

/// Size of every frame of [`title`].
pub(super) const FRAME: u64 = 1_000;
/// Milliseconds between frames of [`title`].
pub(super) const STEP: u64 = 40;

pub(super) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// `count` frames of 1,000 bytes, 40 ms apart, in the order they are shown.
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

/// A catch-up player that starts with `buffer` frames in, discards past 100 ms and rebases past 1 s.
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

/// A rebuffer player that starts with `start` frames in and resumes with `resume`.
pub(super) fn rebuffer(start: u64, resume: u64) -> PlayoutConfig {
    PlayoutConfig::new(
        Bytes::new(FRAME * start),
        Clock::Rebuffer(Rebuffer {
            resume: Fill::Bytes(Bytes::new(FRAME * resume)),
        }),
    )
}

/// Something that happens to the player.
#[derive(Clone, Copy, Debug)]
pub(super) enum Do {
    /// Bytes come.
    Get(u64),
    /// A segment is whole.
    Segment,
    /// The title is in.
    Finish,
    /// Nothing but time.
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

/// What happened, one short text each: time in ms, what, presentation time, lateness.
pub(super) fn story(player: &mut Playout) -> Vec<String> {
    std::iter::from_fn(|| player.poll_event())
        .map(|event| {
            let at = event.at.as_secs_f64() * 1e3;
            match event.what {
                Happening::Started => format!("{at} started"),
                Happening::Shown { pts, late } if late.is_zero() => format!("{at} shown {}", pts.as_millis()),
                Happening::Shown { pts, late } => {
                    format!("{at} shown {} +{}", pts.as_millis(), late.as_millis())
                }
                Happening::Discarded { pts, late } => {
                    format!("{at} discarded {} +{}", pts.as_millis(), late.as_millis())
                }
                Happening::UnderflowBegan => format!("{at} underflow"),
                Happening::UnderflowEnded => format!("{at} recovered"),
                Happening::Rebased => format!("{at} rebased"),
                Happening::Resumed => format!("{at} resumed"),
                Happening::Ended => format!("{at} ended"),
            }
        })
        .collect()
}
