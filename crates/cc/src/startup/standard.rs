//! `standard`: slow start as defined in RFC 9002 §7.3.1.

use crate::Reason;
use crate::component::Step;
use crate::entry::{Entry, Key};
use crate::state::{Batch, Core};

use super::Startup;

/// Grows the window by the acknowledged bytes until it reaches ssthresh.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standard;

impl Startup for Standard {
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
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

pub(crate) fn entry() -> Entry {
    Entry::component(Key::Start, "standard", |_, _| {}).about(
        "the window grows by what is acknowledged until a loss or ssthresh",
        "RFC 9002 §7.3.1",
    )
}
