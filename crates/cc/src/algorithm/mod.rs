//! Congestion avoidance algorithms: growth after slow start, and the cost of a loss.
//!
//! To add one, write a file here that implements [`Algorithm`]; below, add its `mod` line and a variant of
//! [`AnyAlgorithm`]; then give it an entry in `src/registry/builtin/algorithm.rs`. An algorithm that lacks an estimate
//! or a fact holds a [`reno::Reno`] and delegates to it.
//!
//! The trait supports two kinds. A *window-based* algorithm starts from `core.window()`, grows it by `batch.allowance`
//! and reduces it in `on_congestion`. An *absolute* one (`Entry::absolute`) sets the window directly at every batch
//! and may ignore `batch.allowance`. It may also hold on a loss: it then returns `None` from `on_congestion` and
//! declares `holds_on_loss`, which leaves losses to the loss policy.

pub(crate) mod ccp;
pub(crate) mod compound;
pub(crate) mod coupled;
pub(crate) mod cubic;
pub(crate) mod reno;
mod round_rtt;
mod segments;
pub(crate) mod stream;
pub(crate) mod vegas;

use crate::component::{Needs, Reduction, dispatch};
use crate::events::Congestion;
use crate::state::{Batch, Core};
use crate::{Reason, Snapshot, Timestamp};
use ccp::Ccp;
use compound::Compound;
use coupled::Coupled;
pub(crate) use cubic::Cubic;
use reno::Reno;
use stream::Stream;
use vegas::Vegas;

/// A congestion avoidance algorithm.
pub(crate) trait Algorithm {
    fn add_needs(&self, _needs: &mut Needs) {}

    /// The window's lower bound in packets: 2 for loss-based algorithms (RFC 9002 §7.2: "The RECOMMENDED value is 2 *
    /// `max_datagram_size`."), 4 for delay-based ones, because quinn lets a window of 2 have one packet in flight.
    fn minimum_packets(&self) -> u64 {
        2
    }

    /// Congestion avoidance begins at `now`: after slow start, after recovery ([`Reason::RecoveryEnded`]), or because
    /// an idle policy changed the window during avoidance ([`Reason::Idle`]). Next, `on_batch` receives the allowance
    /// that slow start did not use, or the batch that ended recovery.
    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp);

    /// An ACK frame arrived in congestion avoidance. Also called with an allowance of zero.
    fn on_batch(&mut self, core: &mut Core, batch: &Batch);

    /// An ACK frame arrived in slow start, and the startup component did not end it. For algorithms that measure in
    /// slow start or end it themselves. Returns a reason like [`Startup::on_batch`](crate::startup::Startup::on_batch).
    fn watch_startup(&mut self, _core: &mut Core, _batch: &Batch) -> Option<Reason> {
        None
    }

    /// The first congestion event of a new recovery, in any phase. `core.in_flight` still contains the lost bytes (RFC
    /// 7661's `LossFlightSize`). If it returns `None`, the algorithm holds and no recovery begins.
    fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction>;

    /// The algorithm held on a congestion event during slow start. Returns true if slow start ends. It always ends if
    /// the flight does not [double](crate::startup::Startup::doubles).
    fn leaves_startup(&self, _core: &Core, _event: &Congestion) -> bool {
        true
    }

    /// Persistent congestion, after `on_congestion` if that was due. When this returns, the window goes to the minimum
    /// and slow start begins again; ssthresh stays unless the algorithm sets it.
    fn on_persistent(&mut self, core: &mut Core);

    /// A burst left after a pause (`Core::pause`). Measurements from before it may be stale.
    /// The idle policy acts next.
    fn on_pause(&mut self, _core: &mut Core) {}

    /// The MTU was `before` bytes; `core` has the new one and a window within its bounds.
    fn on_mtu_change(&mut self, _core: &mut Core, _before: u64) {}

    /// Adds to a snapshot what only the algorithm knows.
    fn describe(&self, _core: &Core, _snapshot: &mut Snapshot) {}
}

dispatch! {
    enum AnyAlgorithm { Reno, Cubic, Compound, Coupled, Vegas, Stream, Ccp }
    fn add_needs(&self, needs: &mut Needs);
    fn minimum_packets(&self) -> u64;
    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp);
    fn on_batch(&mut self, core: &mut Core, batch: &Batch);
    fn watch_startup(&mut self, core: &mut Core, batch: &Batch) -> Option<Reason>;
    fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction>;
    fn leaves_startup(&self, core: &Core, event: &Congestion) -> bool;
    fn on_persistent(&mut self, core: &mut Core);
    fn on_pause(&mut self, core: &mut Core);
    fn on_mtu_change(&mut self, core: &mut Core, before: u64);
    fn describe(&self, core: &Core, snapshot: &mut Snapshot);
}
