//! `compound`: Compound TCP, the sum of a loss window and a delay window.

use crate::component::Reduction;
use crate::events::Congestion;
use crate::state::{Batch, Core};
use crate::{Reason, Timestamp};

use super::Algorithm;
use super::round_rtt::{RoundEnd, queued_segments};
use super::segments::TwoWindows;

/// Growth of the delay window: `α·win^k − 1` segments per round trip (draft-sridharan-tcpm-ctcp-02 §3.1).
const ALPHA: f64 = 0.125;
/// The exponent `k` for [`ALPHA`].
const K: f64 = 0.75;
/// Share of the whole window that a loss removes (draft §3.2).
const BETA: f64 = 0.5;
/// Decrease of the delay window, segments per queued segment (ζ in the INFOCOM 2006 paper, η in the draft).
const ETA: f64 = 1.0;
/// A queue of this many segments is congestion (γ, draft §3.3, without its auto-tuning).
const GAMMA: f64 = 30.0;
/// Below this many segments the delay window is off (draft §3.4).
const LOW_WINDOW: f64 = 38.0;

/// Compound TCP. The window `core.window()` is the sum of the delay window (`dwnd`, [`TwoWindows::delay`]) and the loss
/// window (`cwnd`).
///
/// NOTE: three equations in the papers are misprints of the draft's, with another window in place of the whole window
/// `win`: `dwnd + α·dwnd^k − 1` can never leave zero; `dwnd·(1−β) − cwnd/2` on a loss is negative whenever dwnd < cwnd;
/// and cwnd increases on loss.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Compound {
    windows: TwoWindows,
    /// Whole window at the start of the round trip, segments.
    round_window: f64,
}

impl Compound {
    /// The delay window after a round trip whose smallest RTT was `rtt_ns`.
    fn delay_after(&self, window: f64, queued: f64, may_grow: bool) -> f64 {
        if window < LOW_WINDOW {
            0.0
        } else if queued >= GAMMA {
            ETA.mul_add(-queued, self.windows.delay).max(0.0)
        } else if may_grow {
            // The −1 compensates for the loss window's own segment.
            self.windows.delay + ALPHA.mul_add(libm::pow(window, K), -1.0).max(0.0)
        } else {
            self.windows.delay
        }
    }

    /// Returns the window in segments after a round trip. The RTTs in ns are the round trip's smallest and the
    /// connection's smallest.
    fn end_round(&mut self, window: f64, (rtt_ns, base_ns): (u64, u64), may_grow: bool) -> f64 {
        let queued = queued_segments(self.round_window, base_ns, rtt_ns);
        let delay = self.delay_after(window, queued, may_grow);
        let change = delay - self.windows.delay;
        self.windows.delay = delay;
        window + change
    }
}

impl Algorithm for Compound {
    fn begin(&mut self, core: &mut Core, reason: Reason, _now: Timestamp) {
        self.windows.begin(reason);
        self.round_window = self.windows.sum(core);
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        let mut window = self.windows.sum(core);
        if let Some(RoundEnd::Measured(rtt_ns)) = self.windows.round.on_batch(batch) {
            let rtts = (rtt_ns, core.rtt.min_ns().unwrap_or(rtt_ns));
            window = self.end_round(window, rtts, batch.allowance > 0);
        }
        if batch.new_round {
            self.round_window = window;
        }
        if batch.allowance > 0 {
            window += batch.allowance as f64 / core.mtu() as f64 / window;
        }
        self.windows.set(core, window, batch.allowance > 0);
    }

    fn on_congestion(&mut self, core: &mut Core, _event: &Congestion) -> Option<Reduction> {
        let loss = self.windows.loss(core) / 2.0;
        let left = self.windows.sum(core) * (1.0 - BETA);
        self.windows.delay = (left - loss).max(0.0);
        Some(self.windows.reduce(core, loss, left))
    }

    /// Like ns-3, following the draft: the delay window starts again.
    fn on_persistent(&mut self, _core: &mut Core) {
        *self = Self::default();
    }

    fn on_pause(&mut self, core: &mut Core) {
        self.windows.on_pause(core);
    }

    fn on_mtu_change(&mut self, core: &mut Core, before: u64) {
        self.windows.on_mtu_change(core, before);
    }
}

#[cfg(test)]
#[path = "compound_tests.rs"]
mod tests;
