//! `stream`: TCP Stream, a loss window that stops at the video's rate and a delay window for the remaining capacity.

use playrate_units::Bitrate;

use crate::component::{Needs, Reduction};
use crate::events::Congestion;
use crate::state::{Batch, Core, floor_bytes};
use crate::{Facts, Reason, Timestamp};

use super::Algorithm;
use super::round_rtt::{RoundEnd, queued_segments};
use super::segments::TwoWindows;

/// The delay window grows below `N + 2` queued segments and shrinks above `N + 4`. Oda et al. 2012, eq. (4): "The
/// control parameters α and β are determined as follows, based on the configuration value of the control parameter of
/// TCP Vegas": α = 2 + N, β = 4 + N.
const ALPHA: f64 = 2.0;
/// The upper bound for [`ALPHA`].
const BETA: f64 = 4.0;
/// `N` is never below the smallest window, segments.
const MINIMUM: u64 = 2;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// TCP Stream. The window `core.window()` is the sum of the delay window (`dwnd`, [`TwoWindows::delay`]) and the loss
/// window (`lwnd`), which stops at [`segments_for`] the video's rate. While the rate is unknown, the loss window does
/// not stop and the delay window is zero: this is Reno.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stream {
    windows: TwoWindows,
    /// Segments at which the loss window stops in this round trip: `N` of the rate on the wire, and the segment that
    /// the transport holds back ([`Path::strict`](crate::Path::strict)). `None` while the rate is unknown.
    enough: Option<f64>,
    /// `N` of the paper in segments, from the media's rate; α and β are computed from it.
    media: f64,
}

/// `N = ⌈Rate·RTT/(8·mtu)⌉` (Oda et al. 2012, eq. (1)), in whole bits and nanoseconds so that an exact
/// quotient stays exact.
///
/// NOTE: the paper's RTT is "the round-trip time"; this is the smoothed one, taken once per round trip.
pub(crate) fn segments_for(rate: Bitrate, rtt_ns: u64, mtu: u64) -> u64 {
    let bits = u128::from(rate.as_bits_per_second()).saturating_mul(u128::from(rtt_ns));
    let segment = u128::from(mtu.max(1)).saturating_mul(8 * NANOS_PER_SECOND);
    u64::try_from(bits.div_ceil(segment))
        .unwrap_or(u64::MAX)
        .max(MINIMUM)
}

impl Stream {
    /// Computes `N` again, once per round trip.
    fn refresh(&mut self, core: &Core) {
        let known = &core.known;
        let rates = known.average_rate().zip(known.wire_rate());
        self.enough = rates.zip(core.rtt.smoothed_ns()).map(|((media, wire), rtt)| {
            self.media = segments_for(media, rtt, core.mtu()) as f64;
            let spare = core.headroom().checked_div(core.mtu()).unwrap_or(0);
            segments_for(wire, rtt, core.mtu()).saturating_add(spare) as f64
        });
    }

    /// The loss window after `acked` segments.
    fn grown(&self, loss: f64, acked: f64, in_slow_start: bool) -> f64 {
        let grown = if in_slow_start {
            loss + acked
        } else {
            loss + acked / loss
        };
        self.enough.map_or(grown, |enough| grown.min(enough))
    }

    /// The delay window after a round trip with `queued` segments in the queue.
    fn delay_after(&self, queued: f64, loss: f64, may_grow: bool) -> f64 {
        let Some(enough) = self.enough else { return 0.0 };
        if queued > BETA + self.media {
            (self.windows.delay - 1.0).max(0.0)
        } else if queued < ALPHA + self.media && loss >= enough && may_grow {
            self.windows.delay + 1.0
        } else {
            self.windows.delay
        }
    }
}

impl Algorithm for Stream {
    fn add_needs(&self, needs: &mut Needs) {
        needs.knowledge = needs.knowledge.union(Facts::AVERAGE_RATE);
    }

    fn begin(&mut self, core: &mut Core, reason: Reason, _now: Timestamp) {
        self.windows.begin(reason);
        self.refresh(core);
    }

    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        let window = self.windows.sum(core);
        let mut loss = window - self.windows.delay;
        if batch.new_round {
            self.refresh(core);
        }
        if let Some(enough) = self.enough {
            loss = loss.min(enough);
        }
        let (acked, mtu) = (batch.allowance as f64 / core.mtu() as f64, core.mtu() as f64);
        if acked > 0.0 {
            let in_slow_start = core.ssthresh.is_none_or(|ssthresh| loss * mtu < ssthresh as f64);
            loss = self.grown(loss.max(1.0), acked, in_slow_start && self.enough.is_some());
        }
        if let Some(RoundEnd::Measured(rtt_ns)) = self.windows.round.on_batch(batch) {
            let base = core.rtt.min_ns().unwrap_or(rtt_ns);
            let queued = queued_segments(window, base, rtt_ns);
            self.windows.delay = self.delay_after(queued, loss, batch.allowance > 0);
        }
        let sum = loss + self.windows.delay;
        self.windows.set(core, sum, batch.allowance > 0);
    }

    /// Slow start stops at `N` segments: from there on the delay window does the growing.
    fn watch_startup(&mut self, core: &mut Core, batch: &Batch) -> Option<Reason> {
        if batch.new_round || self.enough.is_none() {
            self.refresh(core);
        }
        let enough = floor_bytes(self.enough? * core.mtu() as f64);
        if core.window() < enough {
            return None;
        }
        core.set_window(enough);
        Some(Reason::VideoRateReached)
    }

    /// Both windows halve. The paper does not say what a loss does to the delay window; halving it satisfies RFC 8085
    /// §3.1.2.
    fn on_congestion(&mut self, core: &mut Core, _event: &Congestion) -> Option<Reduction> {
        let loss = self.windows.loss(core) / 2.0;
        self.windows.delay /= 2.0;
        Some(self.windows.reduce(core, loss, loss))
    }

    fn on_persistent(&mut self, _core: &mut Core) {
        self.windows.begin(Reason::PersistentCongestion);
    }

    fn on_pause(&mut self, core: &mut Core) {
        self.windows.on_pause(core);
    }

    fn on_mtu_change(&mut self, core: &mut Core, before: u64) {
        self.windows.on_mtu_change(core, before);
        self.refresh(core);
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
