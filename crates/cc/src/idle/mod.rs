//! Idle parts: what a pause, or a window that goes unused, costs.
//!
//! A new one is a file here that implements [`Part`] and gives an `entry()`, an arm of [`Idle`], and a row in
//! `registry/builtin.rs`. A pause shows when a burst leaves: `core.pause_ns(now)`, or
//! `core.quiet_ns(now)` against `core.rtt.rto_ns()` for another bound. That burst has already left with the old window.

pub(crate) mod keep;

use crate::compose::{Batch, Core, Reduction};
use crate::events::{Congestion, Sent};
use keep::Keep;

/// What an idle part is asked. Methods that return `bool` say whether they lowered the window or raised ssthresh because of
/// idleness; slow start then begins again if the window is below ssthresh.
pub(crate) trait Part {
    /// A burst left although nothing was in flight as of the last ACK frame: `core.quiet_ns(now)` says for how long nothing
    /// happened. `core` does not know of the burst yet. Several bursts in a row may be such.
    fn on_sent(&mut self, _core: &mut Core, _event: &Sent) -> bool {
        false
    }

    /// An ACK batch arrived, in any phase, before startup or law see it. May set `batch.credit` to zero so that the window
    /// does not grow.
    fn on_batch(&mut self, _core: &mut Core, _batch: &mut Batch) -> bool {
        false
    }

    /// A new recovery begins; the law wants `reduction`. `core` still has the window and in-flight of before.
    fn on_congestion(&mut self, _core: &mut Core, _event: &Congestion, reduction: Reduction) -> Reduction {
        reduction
    }

    /// The first packet that left after the congestion event was acknowledged. Avoidance begins when this returns.
    fn on_recovery_end(&mut self, _core: &mut Core) {}

    /// Persistent congestion; the window goes to the minimum when this returns.
    fn on_persistent(&mut self, _core: &mut Core) {}
}

/// All idle parts.
#[derive(Clone, Debug)]
pub(crate) enum Idle {
    Keep(Keep),
}

macro_rules! each {
    ($self:ident, $part:ident => $call:expr) => {
        match $self {
            Idle::Keep($part) => $call,
        }
    };
}

impl Idle {
    #[inline]
    pub(crate) fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool {
        each!(self, part => part.on_sent(core, event))
    }

    #[inline]
    pub(crate) fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> bool {
        each!(self, part => part.on_batch(core, batch))
    }

    pub(crate) fn on_congestion(
        &mut self,
        core: &mut Core,
        event: &Congestion,
        reduction: Reduction,
    ) -> Reduction {
        each!(self, part => part.on_congestion(core, event, reduction))
    }

    pub(crate) fn on_recovery_end(&mut self, core: &mut Core) {
        each!(self, part => part.on_recovery_end(core));
    }

    pub(crate) fn on_persistent(&mut self, core: &mut Core) {
        each!(self, part => part.on_persistent(core));
    }
}
