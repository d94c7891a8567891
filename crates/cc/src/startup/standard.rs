//! `standard`: slow start as RFC 9002 §7.3.1 has it.

use crate::Reason;
use crate::compose::{Batch, Core, Step};
use crate::registry::{Entry, Key};

use super::{Part, Startup};

/// Grows the window by what is acknowledged until it reaches ssthresh.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standard;

impl Part for Standard {
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step {
        grow(core, batch.credit)
    }
}

/// Grows the window by `credit` bytes, up to ssthresh.
pub(crate) fn grow(core: &mut Core, credit: u64) -> Step {
    let room = core
        .ssthresh
        .map(|ssthresh| ssthresh.saturating_sub(core.window()));
    match room {
        Some(room) if room <= credit => {
            core.grow(room);
            Step::Leave {
                reason: Reason::ReachedSsthresh,
                unused: credit.saturating_sub(room),
            }
        }
        _ => {
            core.grow(credit);
            Step::Stay
        }
    }
}

pub(crate) fn entry() -> Entry {
    Entry::part(Key::Start, "standard")
        .about(
            "the window grows by what is acknowledged until a loss or ssthresh",
            "RFC 9002 §7.3.1",
        )
        .startup(|_| Startup::Standard(Standard))
}
