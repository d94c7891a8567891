//! Startup components: slow start and its variants. They govern at the beginning of a connection, after persistent
//! congestion and after idle; `core.phase` distinguishes these.
//!
//! To add one, write a file here that implements [`Startup`] and has an `entry()`; below, add its `mod` line, a variant
//! of [`AnyStartup`] and a row of [`entries`]. A component that lacks a fact of the video grows like [`standard`] until
//! the fact is known.

mod hystart;
mod hystartpp;
mod search;
pub(crate) mod standard;
mod video_rate;

use crate::component::{Needs, Step, dispatch};
use crate::entry::Entry;
use crate::events::Sent;
use crate::state::{Batch, Core};
use hystart::HyStart;
use hystartpp::HyStartPp;
use search::Search;
use standard::Standard;
use video_rate::VideoRate;

/// A variant of slow start.
pub(crate) trait Startup {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Slow start begins, for the first time or again. `core.phase`, window and ssthresh are set already.
    fn begin(&mut self, _core: &mut Core) {}

    /// A burst left, in any phase. Called if a component requires [every
    /// burst](crate::component::Bursts::Every); `core` does not contain the burst yet.
    fn on_sent(&mut self, _core: &mut Core, _event: &Sent) {}

    /// Returns true if the flight doubles in a round trip. If so, a packet whose loss is detected now left when half as
    /// much was in flight.
    fn doubles(&self, _core: &Core) -> bool {
        true
    }

    /// An ACK frame arrived in slow start. Sets the window, by `batch.allowance` bytes (already zero if the sender was
    /// limited). A loss needs no answer: the algorithm reduces the window and recovery begins.
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step;
}

dispatch! {
    enum AnyStartup { Standard, HyStartPp, HyStart, Search, VideoRate }
    fn needs(&self) -> Needs;
    fn begin(&mut self, core: &mut Core);
    fn on_sent(&mut self, core: &mut Core, event: &Sent);
    fn doubles(&self, core: &Core) -> bool;
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) -> Step;
}

/// All startup components, the default first.
pub(crate) fn entries() -> Vec<Entry> {
    vec![
        standard::standard(),
        hystartpp::entry(),
        hystart::entry(),
        search::entry(),
        standard::short(),
        video_rate::entry(),
        standard::video_ssthresh(),
    ]
}

/// max(VR·srtt, initial window), bytes; `None` until rate and RTT are known.
fn video_window(core: &Core) -> Option<u64> {
    let rtt = core.rtt.smoothed_ns()?;
    Some(core.video_window(rtt)?.max(core.initial_window()))
}
