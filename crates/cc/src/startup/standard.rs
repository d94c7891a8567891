//! `standard`, `short` and `video-ssthresh`: slow start that doubles the window in every round trip, to three ends.

use crate::component::{Bursts, Needs, Step};
use crate::entry::{Entry, Key};
use crate::state::{Batch, Core};
use crate::{Facts, Reason};

use super::{AnyStartup, Startup, video_window};

/// Grows the window by the acknowledged bytes until it reaches ssthresh (RFC 9002 §7.3.1).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Standard {
    /// Slow start has no other end.
    #[default]
    Plain,
    /// CCPSSS: the first sample that gives a capacity estimate ends slow start, too. Watanabe et al. 2014: "the scheme
    /// waits until a first capacity estimate is available to transition out of slow start."
    ///
    /// After persistent congestion or a pause, slow start ends immediately if the capacity is known by then.
    Short,
    /// CCPLSS: ssthresh is the window that carries the video's rate. Watanabe et al. 2014: ssthresh "is adjusted to
    /// correspond to the average video playout rate."
    VideoSsthresh,
}

impl Startup for Standard {
    fn needs(&self) -> Needs {
        match self {
            Self::Plain => Needs::default(),
            Self::Short => Needs {
                bursts: Bursts::Capacity,
                ..Needs::default()
            },
            Self::VideoSsthresh => Needs::knowledge(Facts::AVERAGE_RATE),
        }
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
        match self {
            Self::Short if core.early_capacity().is_some() => {
                return Step::Leave {
                    reason: Reason::CapacityKnown,
                    unused: batch.allowance,
                };
            }
            Self::VideoSsthresh => core.ssthresh = video_window(core).or(core.ssthresh),
            Self::Plain | Self::Short => {}
        }
        grow(core, batch.allowance)
    }
}

/// Grows the window by `allowance` bytes, up to ssthresh.
pub(crate) fn grow(core: &mut Core, allowance: u64) -> Step {
    let room = core
        .ssthresh
        .map(|ssthresh| ssthresh.saturating_sub(core.window()));
    match room {
        Some(room) if room <= allowance => {
            core.grow(room);
            Step::Leave {
                reason: Reason::ReachedSsthresh,
                unused: allowance.saturating_sub(room),
            }
        }
        _ => {
            core.grow(allowance);
            Step::Stay
        }
    }
}

pub(crate) fn standard() -> Entry {
    Entry::component(Key::Start, "standard", |_, _| {})
        .about("the window grows by what is acknowledged until a loss or ssthresh")
        .defined_in("RFC 9002 §7.3.1")
}

pub(crate) fn short() -> Entry {
    Entry::component(Key::Start, "short", |components, _| {
        components.startup = AnyStartup::Standard(Standard::Short);
    })
    .about("slow start until the first estimate of the path's capacity")
    .defined_in("Watanabe et al. 2014, CCPSSS")
}

pub(crate) fn video_ssthresh() -> Entry {
    Entry::component(Key::Start, "video-ssthresh", |components, _| {
        components.startup = AnyStartup::Standard(Standard::VideoSsthresh);
    })
    .about("slow start up to the window that carries the video's average rate")
    .defined_in("Watanabe et al. 2014, CCPLSS")
}
