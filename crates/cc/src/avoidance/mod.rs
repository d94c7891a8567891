//! Avoidance laws: what governs once slow start is over, and how much a loss costs.
//!
//! A new one is a file here that implements [`Law`] and gives an `entry()`, an arm of [`Avoidance`], and a row in
//! `registry/builtin.rs`. A law that needs an estimate or knowledge that it does not have yet holds a
//! [`reno::Reno`] and asks it instead.
//!
//! Two kinds fit the contract. A *window-based* law starts from `core.window()`, grows it by `batch.credit` and reduces it
//! in `on_congestion`. An *absolute* law (`Entry::absolute`) sets the window outright at every batch, may ignore
//! `batch.credit`, and may answer `None` in `on_congestion` ("held"), which leaves losses to the loss part.

pub(crate) mod ccp;
pub(crate) mod compound;
pub(crate) mod cubic;
pub(crate) mod reno;
pub(crate) mod round_rtt;
mod segments;
pub(crate) mod stream;
pub(crate) mod vegas;

use crate::compose::{Batch, Core, Needs, Reduction, Step};
use crate::events::Congestion;
use crate::{Reason, Snapshot, Timestamp};
use ccp::Ccp;
use compound::Compound;
use cubic::Cubic;
use reno::Reno;
use stream::Stream;
use vegas::Vegas;

/// What an avoidance law is asked.
pub(crate) trait Law {
    /// What it asks of its surroundings.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The window's lower bound in packets: 2 for laws that live by loss (RFC 9002 §7.2), 4 for those that live by delay,
    /// because quinn lets a window of 2 have one packet in flight.
    fn minimum_packets(&self) -> u64 {
        2
    }

    /// Congestion avoidance begins at `now`: from slow start, from recovery ([`Reason::RecoveryEnded`]), or anew because
    /// an idle part changed the window during avoidance ([`Reason::Idle`]). `on_batch` follows with what slow start did not use, or with the batch that ended recovery.
    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp);

    /// An ACK batch arrived in congestion avoidance. Called whether or not there is credit.
    fn on_batch(&mut self, core: &mut Core, batch: &Batch);

    /// An ACK batch arrived in slow start, after the startup part has acted and stayed. For laws that measure in slow
    /// start or end it themselves.
    fn watch_startup(&mut self, _core: &mut Core, _batch: &Batch) -> Step {
        Step::Stay
    }

    /// The first congestion event of a new recovery, in any phase. `core.in_flight` still contains the lost bytes (RFC
    /// 7661's `LossFlightSize`). `None`: the law does not answer, and no recovery begins.
    fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction>;

    /// Persistent congestion, after `on_congestion` if that was due. The window goes to the minimum and slow start
    /// begins again when this returns; ssthresh stays as it is unless the law sets it.
    fn on_persistent(&mut self, core: &mut Core);

    /// A burst left after a pause (`Core::pause_ns`) of `pause_ns`, whatever the idle part, which is asked next, makes of it. What was measured before
    /// may be stale.
    fn on_pause(&mut self, _core: &mut Core, _pause_ns: u64) {}

    /// The MTU was `before` bytes; `core` has the new one and a window within its bounds.
    fn on_mtu_change(&mut self, _core: &mut Core, _before: u64) {}

    /// Adds what only the law knows (capacity, backlog) to a snapshot.
    fn describe(&self, _core: &Core, _snapshot: &mut Snapshot) {}
}

/// All avoidance laws.
#[derive(Clone, Debug)]
pub(crate) enum Avoidance {
    Reno(Reno),
    Cubic(Cubic),
    Compound(Compound),
    Vegas(Vegas),
    Stream(Stream),
    Ccp(Ccp),
}

macro_rules! each {
    ($self:ident, $law:ident => $call:expr) => {
        match $self {
            Avoidance::Reno($law) => $call,
            Avoidance::Cubic($law) => $call,
            Avoidance::Compound($law) => $call,
            Avoidance::Vegas($law) => $call,
            Avoidance::Stream($law) => $call,
            Avoidance::Ccp($law) => $call,
        }
    };
}

impl Avoidance {
    pub(crate) fn needs(&self) -> Needs {
        each!(self, law => law.needs())
    }

    pub(crate) fn minimum_packets(&self) -> u64 {
        each!(self, law => law.minimum_packets())
    }

    pub(crate) fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp) {
        each!(self, law => law.begin(core, reason, now));
    }

    #[inline]
    pub(crate) fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        each!(self, law => law.on_batch(core, batch));
    }

    pub(crate) fn watch_startup(&mut self, core: &mut Core, batch: &Batch) -> Step {
        each!(self, law => law.watch_startup(core, batch))
    }

    pub(crate) fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction> {
        each!(self, law => law.on_congestion(core, event))
    }

    pub(crate) fn on_persistent(&mut self, core: &mut Core) {
        each!(self, law => law.on_persistent(core));
    }

    pub(crate) fn on_pause(&mut self, core: &mut Core, pause_ns: u64) {
        each!(self, law => law.on_pause(core, pause_ns));
    }

    pub(crate) fn on_mtu_change(&mut self, core: &mut Core, before: u64) {
        each!(self, law => law.on_mtu_change(core, before));
    }

    pub(crate) fn describe(&self, core: &Core, snapshot: &mut Snapshot) {
        each!(self, law => law.describe(core, snapshot));
    }
}
