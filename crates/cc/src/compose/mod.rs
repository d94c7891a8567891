//! How parts become one controller.
//!
//! A [`Composed`] controller is a shared [`Core`] (window, ssthresh, RTT, recovery, …) and one part of each kind:
//!
//! | part | module | governs |
//! |---|---|---|
//! | startup | [`startup`](crate::startup) | slow start: at the beginning, after persistent congestion, after idle |
//! | avoidance law | [`avoidance`](crate::avoidance) | congestion avoidance, and how much a loss costs |
//! | shaping | [`shape`](crate::shape) | what of the law's window is published |
//! | idle | [`idle`](crate::idle) | what a pause or an unused window costs |
//! | loss response | [`loss`](crate::loss) | what a loss does to a law that does not answer it itself |
//! | ceiling | [`ceiling`](crate::ceiling) | a bound from above |
//!
//! Whether a window grows while it is not used in full is [`Growth`]'s, for every window-based law alike: [`Core`] gives
//! credit and bounds what the law or the startup part makes of it. A law offers the choice by having
//! [`GROWTH`] among its parameters.
//!
//! One ACK frame runs through the parts in this order:
//!
//! ```text
//! on_acked …  core: bytes acked, newest sent, credit (bytes that may grow the window)
//! on_ack_batch
//!   core        RTT sample, round, limited time                    -> Batch
//!   recovery    ends if a packet sent after its start was acked    -> idle.on_recovery_end, enter(Avoidance)
//!   idle        on_batch: may withhold credit, may lower the window
//!   startup     on_batch, in slow start; may leave                 -> enter(Avoidance), then the law at once
//!   law         on_batch, in avoidance; watch_startup, in slow start
//!   core        bounds growth of a window that is not used in full
//!   loss        on_batch
//!   publish     law window -> shape -> loss ceiling -> ceiling -> [minimum, u32::MAX]
//! on_sent, nothing in flight
//!   law         on_pause, if longer than an RTO
//!   idle        on_sent: may lower the window                      -> enter(AfterIdle) if below ssthresh
//! on_congestion
//!   idle        window_in_use: may lower the window that the law reduces from
//!   law         on_congestion: its new window and ssthresh, or "held", which only ends slow start
//!   idle        may replace that reduction                         -> enter(Recovery)
//!               on_further_congestion, within a recovery
//!   loss        on_congestion
//!   persistent: law, idle, loss on_persistent; window = minimum    -> enter(AfterPersistentCongestion)
//! ```
//!
//! Phases change in `Composed::enter` and nowhere else. Parts change the window through [`Core::set_window`] and
//! [`Core::grow`], which keep it within its bounds. Windows are whole bytes; a law may keep fractions to itself.

mod batch;
mod composed;
mod core;
mod growth;
mod phases;

pub(crate) use self::batch::Batch;
pub(crate) use self::composed::{Composed, Parts};
pub(crate) use self::core::{Core, float, floor_bytes};
pub(crate) use self::growth::{GROWTH, Growth};

use crate::Facts;

/// What the parts of a controller ask of its surroundings. The needs of all parts are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// An acknowledgement for every packet, instead of one for two or more.
    pub(crate) every_ack: bool,
    /// The capacity of the path's narrowest link.
    pub(crate) capacity: bool,
    /// Time in which the window was not what held the sender back.
    pub(crate) limited_time: bool,
    /// What they use of what is known of the video.
    pub(crate) knowledge: Facts,
}

impl Needs {
    /// These facts and nothing else.
    pub(crate) fn knowledge(facts: Facts) -> Self {
        Self {
            knowledge: facts,
            ..Self::default()
        }
    }

    /// What either needs.
    pub(crate) const fn merge(self, other: Self) -> Self {
        Self {
            every_ack: self.every_ack || other.every_ack,
            capacity: self.capacity || other.capacity,
            limited_time: self.limited_time || other.limited_time,
            knowledge: self.knowledge.union(other.knowledge),
        }
    }
}

/// What a part of the slow start kind says after an ACK batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Step {
    /// Slow start goes on.
    Stay,
    /// Slow start is over.
    Leave {
        /// Why.
        reason: crate::Reason,
        /// Bytes of the batch's credit that slow start did not use; the law gets them at once.
        unused: u64,
    },
}

/// A window and threshold after a congestion event, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reduction {
    /// New window; raised to the minimum when it is set.
    pub(crate) window: u64,
    /// New slow start threshold.
    pub(crate) ssthresh: u64,
}
