//! Loss policies: the effect of a loss on an algorithm that holds on it (`Algorithm::on_congestion` returned `None`).
//!
//! To add one, write a file here that implements [`LossPolicy`] and has an `entry()`; below, add its `mod` line, a
//! variant of [`AnyLossPolicy`] and a row of [`entries`]. An algorithm that answers losses itself accepts only
//! `standard`.

mod guard;

use crate::component::{Traits, dispatch};
use crate::entry::{Entry, Make};
use crate::events::Congestion;
use crate::state::{Batch, Core};
pub(crate) use guard::LossGuard;

/// Answer to losses that supplements the algorithm's.
pub(crate) trait LossPolicy {
    /// An ACK frame arrived, in any phase; `core.window()` is the algorithm's window after it. May correct the extremes
    /// of the RTT.
    fn on_batch(&mut self, _core: &mut Core, _batch: &Batch) {}

    /// A congestion event, of a new recovery or not; the algorithm has received it. `core.in_flight` still contains the
    /// lost bytes.
    fn on_congestion(&mut self, _core: &Core, _event: &Congestion) {}

    /// The shaped window, bounded from above, bytes.
    fn limit(&mut self, _core: &Core, window: u64) -> u64 {
        window
    }
}

/// On the heap, because few controllers have a guard.
type Guard = Box<LossGuard>;

dispatch! {
    enum AnyLossPolicy { Standard, Guard }
    fn on_batch(&mut self, core: &mut Core, batch: &Batch);
    fn on_congestion(&mut self, core: &Core, event: &Congestion);
    fn limit(&mut self, core: &Core, window: u64) -> u64;
}

/// Leaves the answer to the algorithm; in the papers it may have none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standard;

impl LossPolicy for Standard {}

fn only_if_it_holds(algorithm: Traits) -> Result<(), &'static str> {
    if algorithm.holds_on_loss {
        return Ok(());
    }
    Err("the algorithm answers losses itself, and has to (RFC 9002 §7)")
}

fn only_if_it_answers(algorithm: Traits) -> Result<(), &'static str> {
    if algorithm.holds_on_loss {
        return Err(
            "the algorithm has no answer to losses of its own; take guard, or ignore as in the papers",
        );
    }
    Ok(())
}

/// All loss policies, in the order of listings.
pub(crate) fn entries() -> Vec<Entry> {
    let standard = Entry::new("standard", Make::Loss(|_| AnyLossPolicy::Standard(Standard)))
        .about(
            "the algorithm's own answer to a loss, once per round trip",
            "RFC 9002 §7.3.2",
        )
        .fits(only_if_it_answers);
    let guard = Entry::new("guard", Make::Loss(|_| AnyLossPolicy::Guard(Box::default())))
        .about(
            "a ceiling of 0.7 of what was in flight after losses that a full queue explains; random loss \
         costs nothing",
            "RFC 8085 §3.1, which RFC 9002 §7 asks for",
        )
        .fits(only_if_it_holds);
    let ignore = Entry::new("ignore", Make::Loss(|_| AnyLossPolicy::Standard(Standard)))
        .about(
            "a loss costs nothing; only persistent congestion does. For experiments: it takes the rate of \
             others and its own",
            "Cavendish et al. 2015",
        )
        .fits(only_if_it_holds);
    vec![standard, guard, ignore]
}
