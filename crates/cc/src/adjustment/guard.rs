//! `guard`: a ceiling that answers congestive loss for algorithms that do not.
//!
//! CCP and CCPD ignore loss. RFC 9002 §7 requires every controller to follow RFC 8085 §3.1, and the pure algorithm does
//! not: twelve CCP flows on a link with a buffer of one bandwidth-delay product lose two packets in three. The guard
//! leaves random loss unanswered, so that an algorithm keeps its strengths, and answers loss that a full queue
//! explains.

use crate::Timestamp;
use crate::algorithm::cubic::{ALPHA, BETA, C, FAST_CONVERGENCE, MAX_TARGET};
use crate::estimator::{RisenFloor, Rtt};
use crate::events::{Congestion, Signal};
use crate::state::{Batch, Core, MINIMUM_RTO_NS, float, floor_bytes};

/// Minimum number of packets for computing a loss share.
const MIN_PACKETS: u64 = 8;
/// A loss average above 10 % is congestive regardless of the queue length; in fractions of [`WHOLE`].
const TOLERATED: u32 = WHOLE / 10;
/// A loss average above 2 % at queues shorter than the longest refutes that length; in fractions of [`WHOLE`]. It
/// exceeds the residual loss of a radio link, and is far below the loss of a controller that knows the length. Where
/// the loss average alone decides, it is also the tolerated loss under a ceiling.
const REFUTING: u32 = WHOLE / 50;
/// A loss share of 1.
const WHOLE: u32 = 1 << 16;
/// Lower bound of the ceiling.
const MIN_PACKETS_IN_FLIGHT: u64 = 4;

/// Returns true if the queue is at least three quarters as long as its maximum, provided that there ever was a queue
/// (largest RTT more than 1.05 times the smallest).
fn queue_is_full(rtt: &Rtt) -> bool {
    let latest = rtt.latest_ns().unwrap_or(0);
    let min = rtt.min_ns().unwrap_or(latest);
    let max = rtt.max_ns().unwrap_or(0);
    let queue = |rtt: u64| u128::from(rtt.saturating_sub(min));
    u128::from(max).saturating_mul(20) > u128::from(min).saturating_mul(21)
        && queue(latest).saturating_mul(4) >= queue(max).saturating_mul(3)
}

/// Answers congestive loss by an upper bound of the window. Sizes are bytes.
///
/// A loss is *congestive* if the [queue is full](queue_is_full), or if the loss average exceeds 10 %; ECN-CE always is.
/// The loss average moves by a quarter per round trip towards the share of bytes lost while the queue was not full;
/// rounds with fewer than 8 packets are merged. The first congestive loss of a round sets the ceiling to 0.7 of the
/// flight, at least four packets, and never raises it. After each round without such a loss, the ceiling rises [as
/// CUBIC's window does](Ceiling). It is removed when it exceeds twice the algorithm's window.
///
/// For [`copa`](crate::standalone), which answers a full queue itself, the loss average alone decides: above 10 %, or
/// above 2 % while there is a ceiling.
///
/// Persistent congestion removes the ceiling: the algorithm then starts again from the minimum window.
///
/// The largest RTT defines a full queue, and also the window of the algorithms that need a guard. The guard corrects
/// this RTT where the path contradicts it. After a silence of more than an RTO with data in flight, it is restored to
/// its value before the silence: an RTT sampled across an outage does not indicate queueing. While the loss average
/// exceeds 2 %, the largest RTT is that of the current round trip, because an overflowing queue shows its length;
/// otherwise it is the connection's. The smallest RTT is also corrected, when the [floor has risen](RisenFloor).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossGuard {
    ceiling: Option<Ceiling>,
    /// Plateau of the last ceiling (`W_max` of RFC 9438), kept for fast convergence.
    plateau: f64,
    /// Bytes in flight before the last ACK frame.
    prior_in_flight: u64,
    /// Packets that left up to this time belong to the last congestive loss.
    cut_at: Option<Timestamp>,
    round_start: Timestamp,
    round_was_cut: bool,
    newest_sent: Timestamp,
    /// Acknowledged since the loss average was last updated.
    acked: u64,
    acked_packets: u64,
    /// Lost while the queue was not full, since the loss average was last updated.
    lost: u64,
    /// Loss average in fractions of [`WHOLE`].
    average: u32,
    silence: Silence,
    floor: RisenFloor,
    /// Ignores the queue's length when deciding if a loss is congestive.
    ignores_queue: bool,
}

/// The upper bound of the window after congestive loss: CUBIC's window (RFC 9438 §4), so that a guarded flow recovers
/// exactly as fast as a CUBIC flow after the same loss. Evaluated once per round trip.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    bytes: u64,
    /// Beginning of the epoch.
    began: Timestamp,
    /// Plateau of the curve in bytes, and the time from the epoch's beginning to it in s.
    plateau: f64,
    k: f64,
    /// Bytes that were in flight at the loss.
    prior: f64,
    /// Reno-friendly estimate of the window, bytes.
    reno: f64,
}

impl Ceiling {
    /// The ceiling after a loss at `now` that reduced `prior` bytes in flight to `bytes`. The curve reaches its plateau
    /// after K (RFC 9438 §4.2, figure 2).
    fn new(now: Timestamp, (prior, bytes): (u64, u64), plateau: f64, mtu: u64) -> Self {
        let segments = (plateau - float(bytes)).max(0.0) / float(mtu);
        Self {
            bytes,
            began: now,
            plateau: plateau.max(float(bytes)),
            k: libm::cbrt(segments / C),
            prior: float(prior),
            reno: float(bytes),
        }
    }

    /// The ceiling after a round trip without congestive loss that ended at `now`.
    fn raised(mut self, now: Timestamp, mtu: u64) -> Self {
        let mtu = float(mtu);
        let alpha = if self.reno >= self.prior { 1.0 } else { ALPHA };
        self.reno += alpha * mtu;
        let x = float(now.nanos_since(self.began)) * 1e-9 - self.k;
        let curve = C * mtu * x * x * x + self.plateau;
        let most = float(self.bytes) * MAX_TARGET;
        self.bytes = floor_bytes(curve.max(self.reno).min(most)).max(self.bytes);
        self
    }
}

/// A path that stopped: no ACK frame for longer than an RTO, with data in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    /// Arrival of the last ACK frame, and the flight after it.
    last: Timestamp,
    in_flight: u64,
    /// RTO and largest RTT as of that frame, ns.
    rto_ns: Option<u64>,
    max_ns: Option<u64>,
    /// End of a silence whose packets are still arriving, and the largest RTT before it, ns.
    ended: Option<(Timestamp, Option<u64>)>,
}

impl Silence {
    /// Processes an ACK frame. Once a packet that left after a silence arrives, restores the largest RTT from before
    /// it.
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        let silent_ns = batch.now.nanos_since(self.last);
        let stood_still =
            self.in_flight > 0 && self.rto_ns.is_some_and(|rto| silent_ns > rto.max(MINIMUM_RTO_NS));
        if stood_still {
            let before = self.ended.map_or(self.max_ns, |(_, before)| before);
            self.ended = Some((batch.now, before));
        } else if let Some((end, before)) = self.ended
            && batch.newest_sent > end
        {
            core.rtt.set_max(before);
            self.ended = None;
        }
        self.last = batch.now;
        self.in_flight = batch.in_flight;
        self.rto_ns = core.rtt.rto_ns();
        self.max_ns = core.rtt.max_ns();
    }
}

fn least(core: &Core) -> u64 {
    core.mtu().saturating_mul(MIN_PACKETS_IN_FLIGHT)
}

impl LossGuard {
    /// A guard that uses only the loss average.
    pub(crate) fn by_average() -> Self {
        Self {
            ignores_queue: true,
            ..Self::default()
        }
    }

    fn end_round(&mut self, core: &mut Core, now: Timestamp) {
        let mtu = core.mtu();
        if !core::mem::take(&mut self.round_was_cut) {
            self.ceiling = self.ceiling.map(|ceiling| ceiling.raised(now, mtu));
        }
        let lost_packets = self.lost.div_ceil(mtu);
        if self.acked_packets.saturating_add(lost_packets) >= MIN_PACKETS {
            self.update_average();
        }
        if self.average > REFUTING {
            core.rtt.set_max(core.rtt.latest_ns());
        }
    }

    fn update_average(&mut self) {
        let (acked, lost) = (u128::from(self.acked), u128::from(self.lost));
        let share = lost
            .saturating_mul(u128::from(WHOLE))
            .checked_div(acked.saturating_add(lost));
        let share = u32::try_from(share.unwrap_or(0)).unwrap_or(WHOLE);
        // At most WHOLE.
        self.average = self.average.saturating_mul(3).saturating_add(share) / 4;
        (self.acked, self.acked_packets, self.lost) = (0, 0, 0);
    }

    /// Sets the ceiling after the first congestive loss of a round trip.
    fn cut(&mut self, core: &Core, now: Timestamp) {
        self.cut_at = Some(now);
        self.round_was_cut = true;
        let prior = self.prior_in_flight;
        let reduced = floor_bytes(float(prior) * BETA).max(least(core));
        if self.ceiling.is_some_and(|ceiling| ceiling.bytes <= reduced) {
            return;
        }
        // RFC 9438 §4.7.
        self.plateau = if float(prior) < self.plateau {
            float(prior) * FAST_CONVERGENCE
        } else {
            float(prior)
        };
        self.ceiling = Some(Ceiling::new(now, (prior, reduced), self.plateau, core.mtu()));
    }

    /// Processes an ACK frame in any phase; `core.window()` is the algorithm's window after it.
    pub(crate) fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
        self.silence.on_batch(core, batch);
        self.floor.on_batch(&mut core.rtt, batch);
        self.acked = self.acked.saturating_add(batch.acked);
        self.acked_packets = self.acked_packets.saturating_add(u64::from(batch.packets));
        self.newest_sent = self.newest_sent.max(batch.newest_sent);
        self.prior_in_flight = batch.prior_in_flight();
        if batch.acked > 0 && self.newest_sent >= self.round_start {
            self.round_start = batch.now;
            self.end_round(core, batch.now);
        }
    }

    /// Handles a congestion event, of a new recovery or not, after the algorithm. `core.in_flight` still contains the
    /// lost bytes.
    pub(crate) fn on_congestion(&mut self, core: &Core, event: &Congestion) {
        let congestive = match event.signal {
            Signal::Loss { persistent: true, .. } => {
                *self = Self {
                    round_start: event.now,
                    ignores_queue: self.ignores_queue,
                    ..Self::default()
                };
                return;
            }
            Signal::Loss { bytes, .. } => {
                let full = !self.ignores_queue && queue_is_full(&core.rtt);
                if !full {
                    self.lost = self.lost.saturating_add(bytes.as_u64());
                }
                let refuted = self.ignores_queue && self.ceiling.is_some();
                full || self.average > if refuted { REFUTING } else { TOLERATED }
            }
            Signal::EcnCe => true,
        };
        if congestive && self.cut_at.is_none_or(|at| event.newest_sent > at) {
            self.cut(core, event.now);
        }
    }

    /// The window under the ceiling, bytes. Removes a ceiling of more than twice the window.
    pub(crate) fn adjust(&mut self, core: &Core, window: u64) -> u64 {
        // The MTU, and with it the lower bound, may have grown.
        let least = least(core);
        if let Some(ceiling) = &mut self.ceiling {
            ceiling.bytes = ceiling.bytes.max(least);
        }
        self.ceiling = self
            .ceiling
            .filter(|ceiling| ceiling.bytes <= window.saturating_mul(2));
        self.ceiling.map_or(window, |ceiling| ceiling.bytes.min(window))
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
