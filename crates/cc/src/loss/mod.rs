//! Loss responses: what a loss does to a law that does not answer it itself (`Law::on_congestion` returned `None`).
//!
//! A new one is a file here, an arm of [`Loss`] and a row in `registry/builtin.rs`. Laws name their default response
//! with `Entry::default_loss`.

use crate::compose::{Batch, Core};
use crate::events::Congestion;
use crate::registry::{Entry, Key};

/// All loss responses.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// The law's own answer.
    Standard,
}

impl Loss {
    /// An ACK batch arrived, in any phase; `core.window()` is what the law made of it.
    #[inline]
    pub(crate) fn on_batch(&mut self, _core: &mut Core, _batch: &Batch) {
        match self {
            Self::Standard => {}
        }
    }

    /// A congestion event, of a new recovery or not, after the law. `core.in_flight` still contains the lost bytes.
    pub(crate) fn on_congestion(&mut self, _core: &mut Core, _event: &Congestion) {
        match self {
            Self::Standard => {}
        }
    }

    /// Bounds the shaped window from above, bytes.
    #[inline]
    pub(crate) fn limit(&self, _core: &Core, window: u64) -> u64 {
        match self {
            Self::Standard => window,
        }
    }
}

pub(crate) fn standard() -> Entry {
    Entry::part(Key::Loss, "standard")
        .about(
            "the law's own answer to a loss, once per round trip",
            "RFC 9002 §7.3.2",
        )
        .loss(|_| Loss::Standard)
}
