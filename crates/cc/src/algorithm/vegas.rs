//! `vegas`: TCP Vegas, which keeps only a few segments queued.

use crate::component::Reduction;
use crate::estimator::RisenFloor;
use crate::events::Congestion;
use crate::parameter::{Arguments, Parameter};
use crate::state::{Batch, Core, floor_bytes};
use crate::{Reason, Timestamp};

use super::Algorithm;
use super::reno::Reno;
use super::round_rtt::{RoundEnd, RoundRtt, queued_segments};

/// Arithmetic for counting queued segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Linux `tcp_vegas.c`: whole segments, `cwnd·(rtt − base)/base`.
    Linux,
    /// Brakmo and Peterson 1995: `cwnd·(1 − base/rtt)`.
    Original,
}

/// TCP Vegas. Acts once per round trip; a loss costs what it costs Reno.
///
/// NOTE: Vegas never raises its base RTT. Here it rises when the [floor has risen](RisenFloor).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Vegas {
    arithmetic: Arithmetic,
    /// With fewer queued segments than this, the window grows by one; with more than `beta`, it shrinks by one.
    alpha: f64,
    beta: f64,
    /// More queued segments than this end slow start.
    gamma: f64,
    round: RoundRtt,
    startup: StartupQueue,
    floor: RisenFloor,
    reno: Reno,
}

/// Consecutive samples that show a standing queue, as in HyStart (`HYSTART_MIN_SAMPLES` of Linux). A burst of ten
/// packets gives fewer: its later packets wait for the earlier ones.
const STANDING_SAMPLES: u32 = 8;

/// Search for a queue in slow start. A pacing sender queues at the end of a round trip, but the round's smallest RTT is
/// that of its beginning. It shows the queue a round trip late, when the window has doubled once more.
#[derive(Clone, Copy, Debug, Default)]
struct StartupQueue {
    /// Consecutive samples with more than γ segments queued.
    queued: u32,
    /// The window in bytes when a queue was found, and the round trips that have ended since. The window grows no
    /// further, so the smallest RTT of the second round trip belongs to this window.
    held: Option<(u64, u8)>,
}

impl Vegas {
    pub(crate) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            arithmetic: match arguments.word("arithmetic") {
                "original" => Arithmetic::Original,
                _ => Arithmetic::Linux,
            },
            alpha: arguments.number("alpha"),
            beta: arguments.number("beta"),
            gamma: arguments.number("gamma"),
            round: RoundRtt::default(),
            startup: StartupQueue::default(),
            floor: RisenFloor::default(),
            reno: Reno::default(),
        }
    }

    fn segments(&self, core: &Core) -> f64 {
        match self.arithmetic {
            Arithmetic::Linux => core.window().checked_div(core.mtu()).unwrap_or(0) as f64,
            Arithmetic::Original => core.window() as f64 / core.mtu() as f64,
        }
    }

    /// Queued segments by this arithmetic.
    fn queued(&self, core: &Core, base_ns: u64, rtt_ns: u64) -> f64 {
        let window = self.segments(core);
        match self.arithmetic {
            // NOTE: divides by the base RTT, so the result is larger than the original's.
            Arithmetic::Linux => {
                (window * rtt_ns.saturating_sub(base_ns) as f64 / base_ns.max(1) as f64).floor()
            }
            Arithmetic::Original => queued_segments(window, base_ns, rtt_ns),
        }
    }

    /// Holds the window once eight samples in a row show more than γ queued segments.
    fn look_for_queue(&mut self, core: &Core, batch: &Batch) {
        let (Some(rtt_ns), Some(base_ns)) = (batch.rtt_ns, core.rtt.min_ns()) else {
            return;
        };
        if self.queued(core, base_ns, rtt_ns) <= self.gamma {
            self.startup.queued = 0;
            return;
        }
        self.startup.queued = self.startup.queued.saturating_add(1);
        if self.startup.queued >= STANDING_SAMPLES && self.startup.held.is_none() {
            self.startup.held = Some((core.window(), 0));
        }
    }
}

impl Algorithm for Vegas {
    fn begin(&mut self, core: &mut Core, reason: Reason, now: Timestamp) {
        self.reno.begin(core, reason, now);
        self.startup = StartupQueue::default();
        self.round.restart();
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        self.floor.on_batch(&mut core.rtt, batch);
        match self.round.on_batch(batch) {
            Some(RoundEnd::Measured(rtt_ns)) => {
                let base = core.rtt.min_ns().unwrap_or(rtt_ns);
                let queued = self.queued(core, base, rtt_ns);
                let mtu = core.mtu();
                if queued > self.beta {
                    core.set_window(core.window().saturating_sub(mtu));
                    core.ssthresh = core.ssthresh.map(|ssthresh| ssthresh.min(core.window()));
                } else if queued < self.alpha && batch.allowance > 0 {
                    core.grow(mtu);
                }
                // `tcp_current_ssthresh`: after a later timeout, slow start returns to three quarters of the reached
                // window.
                let reached = (core.window() / 4).saturating_mul(3);
                core.ssthresh = core.ssthresh.map(|ssthresh| ssthresh.max(reached));
            }
            Some(RoundEnd::TooFew) => self.reno.on_batch(core, batch),
            None => {}
        }
    }

    /// Leaves slow start when more than γ segments are queued; the window becomes the path's capacity plus one segment.
    fn watch_startup(&mut self, core: &mut Core, batch: &Batch) -> Option<Reason> {
        let end = self.round.on_batch(batch);
        self.look_for_queue(core, batch);
        if let Some((window, rounds)) = &mut self.startup.held {
            core.set_window(core.window().min(*window));
            *rounds = rounds.saturating_add(u8::from(end.is_some()));
            if *rounds < 2 {
                return None;
            }
        }
        let Some(RoundEnd::Measured(rtt_ns)) = end else {
            return None;
        };
        // Either slow start ends now or the queue is gone again.
        self.startup = StartupQueue::default();
        let base = core.rtt.min_ns().unwrap_or(rtt_ns);
        if self.queued(core, base, rtt_ns) <= self.gamma {
            return None;
        }
        let target = self.segments(core) * base as f64 / rtt_ns.max(1) as f64;
        let target = match self.arithmetic {
            Arithmetic::Linux => target.floor(),
            Arithmetic::Original => target,
        };
        core.set_window(core.window().min(floor_bytes((target + 1.0) * core.mtu() as f64)));
        let window = core.window();
        core.ssthresh = Some(core.ssthresh.map_or(window, |ssthresh| ssthresh.min(window)));
        Some(Reason::RttRose)
    }

    fn on_congestion(&mut self, core: &mut Core, event: &Congestion) -> Option<Reduction> {
        self.startup = StartupQueue::default();
        self.round.restart();
        self.reno.on_congestion(core, event)
    }

    fn on_persistent(&mut self, core: &mut Core) {
        self.startup = StartupQueue::default();
        self.round.restart();
        self.reno.on_persistent(core);
    }

    fn on_pause(&mut self, _core: &mut Core) {
        self.startup = StartupQueue::default();
        self.round.restart();
    }
}

pub(crate) const PARAMETERS: &[Parameter] = &[
    Parameter::number("alpha", 2.0, 0.0..=1000.0)
        .about("fewer queued segments than this: one segment more per round trip"),
    Parameter::number("beta", 4.0, 0.0..=1000.0)
        .about("more queued segments than this: one segment less per round trip"),
    Parameter::number("gamma", 1.0, 0.0..=1000.0).about("more queued segments than this end slow start"),
    Parameter::word("arithmetic", "linux", &["linux", "original"]).about("how queued segments are counted"),
];

#[cfg(test)]
#[path = "vegas_tests.rs"]
mod tests;
