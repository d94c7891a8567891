//! Composition: components become one controller.
//!
//! A [`Composed`] controller is a shared [`Core`](crate::state::Core) (window, ssthresh, RTT, recovery, …)
//! and one component of each kind:
//!
//! | component | module | governs |
//! |---|---|---|
//! | startup | [`startup`](crate::startup) | slow start: at the beginning, after persistent congestion, after idle |
//! | algorithm | [`algorithm`](crate::algorithm) | congestion avoidance, and how much a loss costs |
//! | shaper | [`adjustment`](crate::adjustment) | the published window, according to facts of the video |
//! | idle policy | [`idle`](crate::idle) | the cost of a pause or of an unused window |
//! | loss policy | [`adjustment`](crate::adjustment) | the cost of a loss to an algorithm that holds on it |
//! | ceiling | [`adjustment`](crate::adjustment) | a bound from above |
//!
//! [`Rules`] decide how much an underused window may grow, in the same way for all window-based algorithms. The core
//! grants an *allowance*, the acknowledged bytes that may grow the window, and bounds the growth that the algorithm or
//! the startup component derives from it.
//!
//! One ACK frame runs through the components in this order:
//!
//! ```text
//! on_ack_frame
//!   core        bytes acked, allowance, RTT sample, round, limited time; bounds the allowance by the flight
//!               and, in slow start, that of a large window (`max_ssthresh`)     -> Batch
//!   recovery    ends if a packet sent after its start was acked    -> idle.on_recovery_end, enter(Avoidance)
//!   core        nothing more happens while the sender waits for a timeout (`recovery=tcp`)
//!   idle        on_batch: may withhold the allowance, may lower the window
//!   core        leaves one packet of the allowance, if ACK frames are counted
//!   startup     on_batch, in slow start; may leave                 -> enter(Avoidance), then the algorithm at once
//!   algorithm   on_batch, in avoidance; watch_startup, in slow start
//!   core        bounds growth of a window that is not used in full
//!   loss        on_batch
//!   publish     algorithm's window -> shaper, after slow start -> loss policy -> ceiling -> [minimum, u32::MAX]
//! on_sent
//!   algorithm   on_pause, if nothing was in flight for longer than an RTO
//!   idle        on_sent, if nothing was in flight: may lower the window -> enter(AfterIdle) if below ssthresh
//! on_congestion
//!   idle        window_in_use: may lower the window that the algorithm reduces from
//!   algorithm   on_congestion: its new window and ssthresh, or it holds, which at most ends slow start
//!   idle        may replace that reduction                         -> enter(Recovery)
//!               on_further_congestion, within a recovery
//!   loss        on_congestion
//!   persistent, or data lost again that TCP would wait for (`recovery=tcp`):
//!               algorithm, idle on_persistent; window = minimum    -> enter(AfterPersistentCongestion)
//! on_spurious_congestion
//!   core, algorithm   return to their state before the last reduction
//! ```
//!
//! Only `Composed::enter` and the undoing of a spurious loss change the phase. Components change the window through
//! `Core::set_window` and `Core::grow`, which keep it within its bounds. Windows are whole bytes; an algorithm may keep
//! fractions to itself.

mod composed;

pub(crate) use composed::Composed;

use crate::Facts;
use crate::adjustment::{LossGuard, Pace, Shaper};
use crate::algorithm::AnyAlgorithm;
use crate::component::{Bursts, Needs};
use crate::idle::AnyIdlePolicy;
use crate::startup::AnyStartup;
use crate::state::Rules;

/// One component of each kind; by default `reno` and the components that do not change its window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Components {
    pub(crate) startup: AnyStartup,
    pub(crate) algorithm: AnyAlgorithm,
    pub(crate) shaper: Option<Shaper>,
    pub(crate) idle: AnyIdlePolicy,
    /// The loss policy. It is on the heap, because few controllers have one.
    pub(crate) loss: Option<Box<LossGuard>>,
    pub(crate) ceiling: Option<Pace>,
    /// Values of the parameters that algorithms share.
    pub(crate) rules: Rules,
}

impl Components {
    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        self.startup.add_needs(&mut needs);
        self.algorithm.add_needs(&mut needs);
        let shaper = self.shaper.map_or(Facts::NONE, Shaper::facts);
        let ceiling = self.ceiling.map_or(Facts::NONE, |_| Pace::FACTS);
        needs.knowledge = needs.knowledge.union(shaper).union(ceiling);
        if self.rules.resends.is_some() {
            needs.bursts = needs.bursts.max(Bursts::Every);
        }
        needs
    }

    /// Returns true if an ACK frame concerns only the startup component or the algorithm. The shortcut spares the
    /// default compositions, the most common ones, the branches of components that they do not have.
    fn only_grow(&self) -> bool {
        let adjusts = self.shaper.is_some() || self.loss.is_some() || self.ceiling.is_some();
        !adjusts && matches!(self.idle, AnyIdlePolicy::Keep(_)) && self.rules.grow_by_bytes()
    }
}
