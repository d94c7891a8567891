//! Startup components: slow start and its variants. They govern at the beginning of a connection, after persistent
//! congestion and after idle; `core.phase` distinguishes these.
//!
//! To add one, write a file here that implements [`Startup`]; below, add its `mod` line and a variant of
//! [`AnyStartup`]; then give it an entry in `src/registry/builtin/startup.rs`. A component that lacks a fact of the
//! video grows like [`standard`] until the fact is known.

#[cfg(any(test, feature = "papers"))]
pub(crate) mod hystart;
pub(crate) mod hystartpp;
pub(crate) mod search;
pub(crate) mod standard;

use crate::Reason;
use crate::component::{Needs, dispatch};
use crate::state::{Batch, Core};
#[cfg(any(test, feature = "papers"))]
use hystart::HyStart;
use hystartpp::HyStartPp;
use search::Search;
use standard::Standard;

/// A variant of slow start.
pub(crate) trait Startup {
    fn add_needs(&self, _needs: &mut Needs) {}

    /// Slow start begins, for the first time or again. `core.phase`, window and ssthresh are set already.
    fn begin(&mut self, _core: &mut Core) {}

    /// Returns true if the flight doubles in a round trip. If so, a packet whose loss is detected now left when half as
    /// much was in flight.
    fn doubles(&self, _core: &Core) -> bool {
        true
    }

    /// An ACK frame arrived in slow start. Sets the window, by `batch.allowance` bytes (already zero if the sender was
    /// limited). A loss needs no answer: the algorithm reduces the window and recovery begins.
    ///
    /// Returns a reason that [ends slow start](Reason::ends_slow_start) if it is over. The algorithm then immediately
    /// receives the allowance that is left in `batch`.
    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> Option<Reason>;
}

dispatch! {
    enum AnyStartup { Standard, HyStartPp, Search, #[cfg(any(test, feature = "papers"))] HyStart }
    fn add_needs(&self, needs: &mut Needs);
    fn begin(&mut self, core: &mut Core);
    fn doubles(&self, core: &Core) -> bool;
    fn on_batch(&mut self, core: &mut Core, batch: &mut Batch) -> Option<Reason>;
}
