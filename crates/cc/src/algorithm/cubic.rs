//! `cubic`: CUBIC as defined in RFC 9438.

use crate::component::{Needs, Reduction};
use crate::events::Congestion;
use crate::parameter::Parameter;
use crate::state::{Batch, Core, float, floor_bytes};
use crate::{Reason, Timestamp};

use super::Algorithm;

/// Steepness of the curve, segments/s³ (RFC 9438 §5.1: "C SHOULD be set to 0.4").
pub(crate) const C: f64 = 0.4;
/// Share of the window that remains after congestion (RFC 9438 §4.6: "`β_cubic` SHOULD be set to 0.7").
pub(crate) const BETA: f64 = 0.7;
/// Next plateau as a share of the window if congestion came below the last plateau (RFC 9438 §4.7:
/// `(1 + β_cubic) / 2`).
pub(crate) const FAST_CONVERGENCE: f64 = 0.85;
/// Growth of the Reno-friendly estimate in segments per window, until it has made up for β (RFC 9438 §4.3).
pub(crate) const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// The window grows by at most half per round trip (RFC 9438 §4.4).
pub(crate) const MAX_TARGET: f64 = 1.5;
const SECONDS_PER_NANO: f64 = 1e-9;

/// CUBIC. Sizes are bytes and times seconds unless a name says otherwise. Curve and window keep their value in bytes
/// when the MTU changes.
///
/// NOTE: where the curve and the Reno-friendly estimate differ, the window takes the faster growth, as in Linux. RFC
/// 9438 §4.3 read literally would keep the window at `W_est` for the first ACKs of each epoch.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cubic {
    fast_convergence: bool,
    /// Plateau of the curve (`W_max`).
    plateau: f64,
    /// Window at the last congestion event (`cwnd_prior`).
    prior: f64,
    /// Time from the epoch's start to the plateau (`K`).
    k: f64,
    /// Start of the epoch (`t_epoch`) and the limited time at it, ns.
    epoch_start: Timestamp,
    epoch_limited_ns: u64,
    /// Reno-friendly estimate of the window (`W_est`).
    reno: f64,
    /// Fraction of the window below one byte.
    fraction: f64,
}

/// A point of the epoch: time since its start and RTT in seconds, MTU in bytes.
#[derive(Clone, Copy, Debug)]
struct EpochPoint {
    t: f64,
    rtt: f64,
    mtu: f64,
}

impl Cubic {
    pub(crate) fn new(fast_convergence: bool) -> Self {
        Self {
            fast_convergence,
            ..Self::default()
        }
    }

    /// `W_cubic(t) = C · (t − K)³ + W_max` (RFC 9438 §4.2, figure 1).
    fn curve(&self, t: f64, mtu: f64) -> f64 {
        let x = t - self.k;
        C * mtu * x * x * x + self.plateau
    }

    /// Seconds of the epoch, except while the application was the limit (RFC 9438 §4.2).
    fn elapsed(&self, core: &Core, now: Timestamp) -> f64 {
        let limited = core.limited.total_ns().saturating_sub(self.epoch_limited_ns);
        let ns = now.nanos_since(self.epoch_start).saturating_sub(limited);
        float(ns) * SECONDS_PER_NANO
    }

    /// The window after `allowance` more bytes were acknowledged `t` into the epoch.
    fn grown(&mut self, window: f64, allowance: f64, at: EpochPoint) -> f64 {
        let EpochPoint { t, rtt, mtu } = at;
        // Share of the window that was acknowledged, at most 1: no more can have been in flight.
        let share = (allowance / window).min(1.0);
        let alpha = if self.reno >= self.prior { 1.0 } else { ALPHA };
        self.reno += alpha * mtu * share;
        let target = self.curve(t + rtt, mtu).clamp(window, MAX_TARGET * window);
        let concave_or_convex = window + (target - window) * share;
        if self.curve(t, mtu) < self.reno {
            concave_or_convex.max(self.reno)
        } else {
            concave_or_convex
        }
    }
}

impl Algorithm for Cubic {
    fn add_needs(&self, needs: &mut Needs) {
        needs.limited_time = true;
    }

    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp) {
        let window = core.window() as f64;
        if reason != Reason::RecoveryEnded {
            // RFC 9438 §4.8, §4.10: after slow start without a loss, or after a timeout, the plateau is here.
            self.plateau = window;
            self.prior = window;
        }
        // RFC 9438 §4.2, figure 2. The minimum window may put cwnd_epoch above W_max.
        let segments = (self.plateau - window).max(0.0) / core.mtu() as f64;
        self.k = libm::cbrt(segments / C);
        self.plateau = self.plateau.max(window);
        self.reno = window;
        self.fraction = 0.0;
        self.epoch_start = now;
        self.epoch_limited_ns = core.limited.total_ns();
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        if batch.allowance == 0 {
            return;
        }
        let window = float(core.window()) + self.fraction;
        let at = EpochPoint {
            t: self.elapsed(core, batch.now),
            rtt: float(core.rtt.smoothed_ns().unwrap_or(0)) * SECONDS_PER_NANO,
            mtu: float(core.mtu()),
        };
        let grown = self.grown(window, float(batch.allowance), at);
        let whole = floor_bytes(grown);
        self.fraction = grown - float(whole);
        core.set_window(whole);
    }

    /// RFC 9438 §4.6, §4.7. The window replaces the flight size, as §4.6 allows if only a full window may grow.
    fn on_congestion(&mut self, core: &mut Core, _event: &Congestion) -> Option<Reduction> {
        let window = core.window() as f64;
        self.plateau = if self.fast_convergence && window < self.plateau {
            window * FAST_CONVERGENCE
        } else {
            window
        };
        self.prior = window;
        let reduced = floor_bytes(window * BETA).max(core.mtu().saturating_mul(2));
        Some(Reduction {
            window: reduced,
            ssthresh: reduced,
        })
    }

    /// RFC 9438 §4.8: ssthresh was reduced by the loss itself, once.
    fn on_persistent(&mut self, _core: &mut Core) {}
}

pub(crate) const PARAMETERS: &[Parameter] = &[Parameter::switch("fast_convergence", true)
    .about("give up more of the window when congestion comes earlier than last time (§4.7)")];

#[cfg(test)]
#[path = "cubic_tests.rs"]
mod tests;
