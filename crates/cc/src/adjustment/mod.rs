//! Adjustments: the steps from the algorithm's window to the one that the transport receives.
//!
//! The algorithm continues with its own window. A controller has three adjustments, in this order:
//!
//! - The *shaper* changes the window by what is known of the video. Without a fact that it needs, it changes nothing.
//! - The *loss policy* answers losses for an algorithm that holds on them (`Algorithm::on_congestion` returned `None`).
//!   An algorithm that answers losses itself accepts only `standard`.
//! - The *ceiling* bounds the window from above, for example by the highest rate that the application needs. quinn has
//!   no pacing hook, so a pacing rate is a window of rate · srtt.
//!
//! While the loss policy or the ceiling bounds the window, the sender counts as limited and the algorithm gets no
//! allowance; a loss then reduces the bounded window. To add one, write a file here that implements [`Adjustment`] and
//! has an `entry()`; below, add its `mod` line, a variant of [`AnyAdjustment`] and a row of its kind.

mod guard;
mod pace;
mod video;

use crate::component::{Needs, Traits, dispatch};
use crate::entry::{Entry, Key, Make};
use crate::events::Congestion;
use crate::state::{Batch, Core};
pub(crate) use guard::LossGuard;
use pace::Pace;
use video::{PlayoutBuffer, RateFloor};

/// A step from the algorithm's window to the published one.
pub(crate) trait Adjustment {
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Returns true if it shapes in recovery, too. Only shapers are asked.
    fn acts_in_recovery(&self) -> bool {
        false
    }

    /// An ACK frame arrived, in any phase; `core.window()` is the algorithm's window after it. May correct the extremes
    /// of the RTT. Only loss policies are called.
    fn on_batch(&mut self, _core: &mut Core, _batch: &Batch) {}

    /// A congestion event, of a new recovery or not; the algorithm has received it. `core.in_flight` still contains the
    /// lost bytes. Only loss policies are called.
    fn on_congestion(&mut self, _core: &Core, _event: &Congestion) {}

    /// The window after this step, bytes; the step before gave `window`. Called after every event. Shapers act in
    /// congestion avoidance and, if they [act there](Self::acts_in_recovery), in recovery: the papers shape in no other
    /// phase. The caller keeps the result within its bounds.
    fn adjust(&mut self, core: &Core, window: u64) -> u64;
}

/// On the heap, because few controllers have a guard.
type Guard = Box<LossGuard>;

dispatch! {
    enum AnyAdjustment { Unchanged, RateFloor, PlayoutBuffer, Guard, Pace }
    fn needs(&self) -> Needs;
    fn acts_in_recovery(&self) -> bool;
    fn on_batch(&mut self, core: &mut Core, batch: &Batch);
    fn on_congestion(&mut self, core: &Core, event: &Congestion);
    fn adjust(&mut self, core: &Core, window: u64) -> u64;
}

/// Publishes the window as it is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unchanged;

impl Adjustment for Unchanged {
    fn adjust(&mut self, _core: &Core, window: u64) -> u64 {
        window
    }
}

/// An entry that changes nothing.
fn unchanged(key: Key, name: &'static str) -> Entry {
    Entry::new(name, Make::Adjustment(key, |_| AnyAdjustment::default()))
}

/// All shapers, the default first.
pub(crate) fn shapers() -> Vec<Entry> {
    let none = unchanged(Key::Shape, "none").about("the algorithm's window is used as it is", "RFC 9002 §7");
    vec![none, video::rate_floor(), video::playout_buffer()]
}

/// All ceilings, the default first.
pub(crate) fn ceilings() -> Vec<Entry> {
    let none = unchanged(Key::Ceiling, "none").about("no bound from above", "RFC 9002 §7");
    vec![none, pace::entry()]
}

/// All loss policies, in the order of listings.
pub(crate) fn loss_policies() -> Vec<Entry> {
    let standard = unchanged(Key::Loss, "standard")
        .about(
            "the algorithm's own answer to a loss, once per round trip",
            "RFC 9002 §7.3.2",
        )
        .fits(only_if_it_answers);
    let guard = Entry::new(
        "guard",
        Make::Adjustment(Key::Loss, |_| AnyAdjustment::Guard(Box::default())),
    )
    .about(
        "a ceiling of 0.7 of what was in flight after losses that a full queue explains; random loss \
         costs nothing",
        "RFC 8085 §3.1, which RFC 9002 §7 asks for",
    )
    .fits(only_if_it_holds);
    let ignore = unchanged(Key::Loss, "ignore")
        .about(
            "a loss costs nothing; only persistent congestion does. For experiments: it takes the rate of \
             others and its own",
            "Cavendish et al. 2015",
        )
        .fits(only_if_it_holds);
    vec![standard, guard, ignore]
}

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
