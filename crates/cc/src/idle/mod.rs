//! Idle policies: the cost of a pause, or of a window that goes unused.
//!
//! To add one, write a file here that implements [`IdlePolicy`]; below, add its `mod` line and a variant of
//! [`AnyIdlePolicy`]; then give it an entry in `src/registry/builtin/idle.rs`. A pause becomes visible when a burst
//! leaves: `core.pause(now, …)`. That burst has already left with the old window.

pub(crate) mod cwv;
pub(crate) mod keep;
pub(crate) mod new_cwv;
mod pipe_ack;
pub(crate) mod restart;

use crate::component::{Reduction, dispatch};
use crate::events::{Congestion, Sent};
use crate::parameter::Parameter;
use crate::state::{Batch, Core};
use crate::{Phase, Timestamp};
use cwv::Cwv;
use keep::Keep;
use new_cwv::NewCwv;
use restart::Restart;

/// Cost of a pause, or of a window that goes unused.
///
/// Methods that return `bool` return true if they lowered the window or raised ssthresh because of idleness. Slow start
/// then begins again if the window is below ssthresh; an infinite ssthresh counts only during slow start.
pub(crate) trait IdlePolicy {
    /// A burst left although nothing was in flight as of the last ACK frame: `core.quiet_ns(now)` is the length of the
    /// silence. `core` does not contain the burst yet. It may be called for several consecutive bursts.
    fn on_sent(&mut self, _core: &mut Core, _event: &Sent) -> bool {
        false
    }

    /// An ACK frame arrived, in any phase; the startup component or algorithm has not received it yet. May set
    /// `batch.allowance` to zero so that the window does not grow.
    fn on_batch(&mut self, _core: &mut Core, _batch: &mut Batch) -> bool {
        false
    }

    /// The part of the window known to be in use, in bytes, if it is less than `core.window()`. Called before the
    /// algorithm answers a congestion event, which then reduces the smaller of the two.
    fn window_in_use(&self, _core: &Core, _now: Timestamp) -> Option<u64> {
        None
    }

    /// A new recovery begins. `reduction` is the algorithm's; `in_use` is the result of
    /// [`window_in_use`](Self::window_in_use). Returns the reduction to apply.
    fn on_congestion(
        &mut self,
        _event: &Congestion,
        _in_use: Option<u64>,
        reduction: Reduction,
    ) -> Reduction {
        reduction
    }

    /// A congestion event that belongs to the current or last recovery.
    fn on_further_congestion(&mut self, _core: &mut Core, _event: &Congestion) {}

    /// The first packet that left after the congestion event was acknowledged. Avoidance begins when this
    /// returns.
    fn on_recovery_end(&mut self, _core: &mut Core) {}

    /// Persistent congestion; the window goes to the minimum when this returns.
    fn on_persistent(&mut self, _core: &mut Core) {}
}

dispatch! {
    enum AnyIdlePolicy { Keep, Restart, Cwv, NewCwv }
    fn on_sent(&mut self, core: &mut Core, event: &Sent) -> bool;
    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> bool;
    fn window_in_use(&self, core: &Core, now: Timestamp) -> Option<u64>;
    fn on_congestion(&mut self, event: &Congestion, in_use: Option<u64>, reduction: Reduction) -> Reduction;
    fn on_further_congestion(&mut self, core: &mut Core, event: &Congestion);
    fn on_recovery_end(&mut self, core: &mut Core);
    fn on_persistent(&mut self, core: &mut Core);
}

/// Parameter of policies that answer pauses longer than an RTO.
pub(crate) const MINIMUM_RTO: Parameter = Parameter::millis("min_rto", 200, 1..=60_000)
    .about("least RTO that a pause is compared with; Linux has 200 ms, RFC 6298 §2.4 one second");

/// min(IW, cwnd), the window after a long pause (RFC 5681 §4.1 calls it RW), bytes.
fn restart_window(core: &Core) -> u64 {
    core.initial_window().min(core.window())
}

/// max(ssthresh, ¾ · cwnd); in slow start an infinite ssthresh stays infinite (RFC 2861 §3.2, Linux
/// `tcp_current_ssthresh`). In avoidance an infinite ssthresh only means that slow start ended without one, and is
/// ignored.
fn remember_three_quarters(core: &mut Core) {
    let reached = core.window().saturating_mul(3) / 4;
    core.ssthresh = match core.ssthresh {
        None if core.phase != Phase::Avoidance => None,
        ssthresh => ssthresh.max(Some(reached)),
    };
}
