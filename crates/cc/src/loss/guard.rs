//! `guard`: a ceiling that answers congestive loss on behalf of an algorithm that does not.
//!
//! CCP and CCPD ignore loss. RFC 9002 §7 asks every controller to live up to RFC 8085 §3.1, and the pure
//! algorithm does not: with twelve CCP flows on a link with a buffer of one bandwidth-delay product two
//! packets in three are lost. The guard leaves random loss unanswered, so that an algorithm keeps what it is
//! good at, and answers loss that a full queue explains.

use crate::Timestamp;
use crate::algorithm::cubic::{ALPHA, BETA, C, FAST_CONVERGENCE, MAX_TARGET};
use crate::estimator::{RisenFloor, Rtt};
use crate::events::{Congestion, Signal};
use crate::state::{Batch, Core, MINIMUM_RTO_NS, float, floor_bytes};

use super::LossPolicy;

/// Packets that a loss share must be made of.
const MIN_PACKETS: u64 = 8;
/// A loss average above 10 % is congestive whatever the queue; in fractions of [`WHOLE`].
const TOLERATED: u32 = WHOLE / 10;
/// A loss average above 2 % at queues shorter than the longest refutes that length; in fractions of [`WHOLE`]. Above
/// the residual loss of a radio link, and far below what a controller that knows the length leaves. Where the loss
/// average alone decides, it is also what a path may lose under a ceiling.
const REFUTING: u32 = WHOLE / 50;
/// A loss share of 1.
const WHOLE: u32 = 1 << 16;
/// Lower bound of the ceiling.
const MIN_PACKETS_IN_FLIGHT: u64 = 4;

/// Returns true if the queue is at least three quarters as long as it ever was, given that there ever was one
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
/// A loss is *congestive* if the [queue is full](queue_is_full), or if the loss average (a quarter of each round trip's
/// share of bytes that were lost although the queue was not full, rounds joined until they are 8 packets) exceeds 10 %.
/// ECN-CE always is. The first congestive loss of a round sets the ceiling to 0.7 of what was in flight, at least four
/// packets, and never raises it; after each round without one it rises [as CUBIC's window does](Ceiling). It goes when
/// it exceeds twice the algorithm's window.
///
/// For [`copa`](crate::standalone), which answers a full queue itself, the loss average alone decides: above 10 %, and
/// above 2 % while there is a ceiling.
///
/// Persistent congestion lifts it: the algorithm then starts again from the minimum window.
///
/// What is full depends on the largest RTT, and so does the window of the algorithms that need a guard. It is corrected
/// where the path itself contradicts it. After a silence of more than an RTO with data in flight it is that of before
/// the silence: an RTT of a path that stood still is no queue. While the loss average exceeds 2 % it is that of the
/// present round trip: a queue that overflows shows its length. Without either, it is the connection's. So is the
/// smallest RTT corrected, when the [floor has risen](RisenFloor).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LossGuard {
    ceiling: Option<Ceiling>,
    /// Plateau of the last ceiling (`W_max` of RFC 9438), which outlives it for fast convergence.
    plateau: f64,
    /// In flight before the last ACK frame.
    prior_in_flight: u64,
    /// Packets that left up to this moment belong to the last congestive loss.
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
    /// The queue's length does not make a loss congestive.
    ignores_queue: bool,
}

/// The upper bound of the window after congestive loss: CUBIC's window (RFC 9438 §4), so that a guarded flow comes back
/// as fast as a CUBIC flow that met the same loss, and no faster. Evaluated once per round trip.
#[derive(Clone, Copy, Debug)]
struct Ceiling {
    bytes: u64,
    /// Beginning of the epoch.
    began: Timestamp,
    /// Plateau of the curve, bytes, and the time from the epoch's beginning to it, s.
    plateau: f64,
    k: f64,
    /// Bytes that were in flight at the loss.
    prior: f64,
    /// Reno-friendly estimate of the window, bytes.
    reno: f64,
}

impl Ceiling {
    /// The ceiling after a loss at `now`, which reduced `prior` bytes in flight to `bytes`, with a plateau at `prior`.
    fn new(now: Timestamp, prior: u64, bytes: u64) -> Self {
        Self {
            bytes,
            began: now,
            plateau: float(prior),
            k: 0.0,
            prior: float(prior),
            reno: float(bytes),
        }
    }

    /// The same with another plateau, which it reaches after K (RFC 9438 §4.2, figure 2).
    fn with_plateau(mut self, plateau: f64, mtu: u64) -> Self {
        let segments = (plateau - float(self.bytes)).max(0.0) / float(mtu);
        self.plateau = plateau.max(float(self.bytes));
        self.k = libm::cbrt(segments / C);
        self
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

/// A path that stood still: no ACK frame for longer than an RTO, with data in flight.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    /// Arrival of the last ACK frame, and what it left in flight.
    last: Timestamp,
    in_flight: u64,
    /// RTO and largest RTT as of that frame, ns.
    rto_ns: Option<u64>,
    max_ns: Option<u64>,
    /// End of a silence whose packets are still arriving, and the largest RTT before it, ns.
    ended: Option<(Timestamp, Option<u64>)>,
}

impl Silence {
    /// Takes an ACK frame. Undoes what a silence did to the largest RTT once a packet arrives that left after it.
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
    /// A guard whose loss average alone decides.
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

    /// The first congestive loss of a round trip.
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
        let ceiling = Ceiling::new(now, prior, reduced);
        self.ceiling = Some(ceiling.with_plateau(self.plateau, core.mtu()));
    }
}

impl LossPolicy for LossGuard {
    fn on_batch(&mut self, core: &mut Core, batch: &Batch) {
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

    fn on_congestion(&mut self, core: &Core, event: &Congestion) {
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

    /// Lifts a ceiling of more than twice the window.
    fn limit(&mut self, core: &Core, window: u64) -> u64 {
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
