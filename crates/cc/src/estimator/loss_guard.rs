//! A ceiling that answers congestive loss on behalf of a law that does not.
//!
//! CCP and CCPD ignore loss. RFC 9002 §7 asks every controller to live up to RFC 8085 §3.1, and the pure law does not: with
//! twelve CCP flows on a link with a buffer of one bandwidth-delay product two packets in three are lost. The guard leaves
//! random loss unanswered, so that a law keeps what it is good at, and answers loss that a full queue explains.

use core::time::Duration;

use playrate_units::Bytes;

use crate::Timestamp;
use crate::events::{AckBatch, Acked, Congestion, MtuChange, Signal};

use super::nanos;

/// Packets that a loss share must be made of.
const MIN_PACKETS: u64 = 8;
/// A loss average above 10 % is congestive whatever the queue; in parts of [`WHOLE`].
const TOLERATED: u32 = WHOLE / 10;
/// A loss share of 1.
const WHOLE: u32 = 1 << 16;
/// The ceiling's floor.
const MIN_PACKETS_IN_FLIGHT: u64 = 4;

/// RTTs of the path as of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttRange {
    /// Newest sample.
    pub latest: Duration,
    /// Smallest of the connection.
    pub min: Duration,
    /// Largest of the connection, delayed acknowledgements left out; `None` if none counts yet.
    pub max: Option<Duration>,
}

impl RttRange {
    /// Whether the queue is at least three quarters as long as it ever was, given that it ever was (largest RTT more than
    /// 1.05 times the smallest).
    pub fn queue_is_full(&self) -> bool {
        let (latest, min) = (nanos(self.latest), nanos(self.min));
        let max = self.max.map_or(0, nanos);
        let queue = |rtt: u64| u128::from(rtt.saturating_sub(min));
        u128::from(max) * 20 > u128::from(min) * 21 && queue(latest) * 4 >= queue(max) * 3
    }
}

/// Turns congestive loss into an upper bound of the window.
///
/// A loss is *congestive* if the [queue is full](RttRange::queue_is_full), or if the loss average (a quarter of each round trip's
/// share of lost bytes, rounds joined until they are 8 packets) exceeds 10 %. ECN-CE always is. The first congestive loss of a round
/// sets the ceiling to 0.7 of what was in flight, at least four packets, and never raises it; each round without one raises
/// it by a sixteenth, at least one packet. It goes when it exceeds twice what the law wants.
///
/// Persistent congestion lifts it: the law then starts anew from the minimum window.
#[derive(Clone, Copy, Debug)]
pub struct LossGuard {
    mtu: u64,
    ceiling: Option<u64>,
    /// In flight before the last ACK frame.
    prior_in_flight: u64,
    /// Packets that left up to this moment belong to the last congestive loss.
    cut_at: Option<Timestamp>,
    round_start: Timestamp,
    round_was_cut: bool,
    gathered: u64,
    newest_sent: Timestamp,
    /// Since the loss average was last updated.
    acked: u64,
    acked_packets: u64,
    lost: u64,
    /// Loss average in parts of [`WHOLE`].
    average: u32,
}

impl LossGuard {
    /// No ceiling.
    pub fn new(mtu: Bytes) -> Self {
        Self {
            mtu: mtu.as_u64().max(1),
            ceiling: None,
            prior_in_flight: 0,
            cut_at: None,
            round_start: Timestamp::ZERO,
            round_was_cut: false,
            gathered: 0,
            newest_sent: Timestamp::ZERO,
            acked: 0,
            acked_packets: 0,
            lost: 0,
            average: 0,
        }
    }

    /// Packets were acknowledged.
    #[inline]
    pub fn on_acked(&mut self, event: &Acked) {
        self.gathered = self.gathered.saturating_add(event.bytes.as_u64());
        self.acked_packets = self.acked_packets.saturating_add(u64::from(event.packets));
        self.newest_sent = self.newest_sent.max(event.sent);
    }

    /// The ACK frame has been read.
    pub fn on_ack_batch(&mut self, event: &AckBatch) {
        let acked = core::mem::take(&mut self.gathered);
        self.acked = self.acked.saturating_add(acked);
        self.prior_in_flight = event.in_flight.as_u64().saturating_add(acked);
        if acked > 0 && self.newest_sent >= self.round_start {
            self.round_start = event.now;
            self.end_round();
        }
    }

    /// The path said that it is congested.
    pub fn on_congestion(&mut self, event: &Congestion, rtt: &RttRange) {
        let congestive = match event.signal {
            Signal::Loss { persistent: true, .. } => {
                *self = Self {
                    round_start: event.now,
                    ..Self::new(Bytes::new(self.mtu))
                };
                return;
            }
            Signal::Loss { bytes, .. } => {
                self.lost = self.lost.saturating_add(bytes.as_u64());
                rtt.queue_is_full() || self.average > TOLERATED
            }
            Signal::EcnCe => true,
        };
        if congestive && self.cut_at.is_none_or(|at| event.newest_sent > at) {
            self.cut_at = Some(event.now);
            self.round_was_cut = true;
            let reduced = self.prior_in_flight / 10 * 7 + self.prior_in_flight % 10 * 7 / 10;
            let ceiling = self.ceiling.map_or(reduced, |ceiling| ceiling.min(reduced));
            self.ceiling = Some(ceiling.max(self.least()));
        }
    }

    /// The path's MTU changed.
    pub fn on_mtu_change(&mut self, event: &MtuChange) {
        self.mtu = event.mtu.as_u64().max(1);
        self.ceiling = self.ceiling.map(|ceiling| ceiling.max(self.least()));
    }

    /// The window: what the law wants, but not above the ceiling. Lifts a ceiling of more than twice that.
    pub fn limit(&mut self, law: Bytes) -> Bytes {
        let law = law.as_u64();
        self.ceiling = self.ceiling.filter(|&ceiling| ceiling <= law.saturating_mul(2));
        Bytes::new(self.ceiling.map_or(law, |ceiling| ceiling.min(law)))
    }

    /// The ceiling, if there is one.
    pub fn ceiling(&self) -> Option<Bytes> {
        self.ceiling.map(Bytes::new)
    }

    /// The loss average, 0 to 1.
    pub fn loss_average(&self) -> f64 {
        f64::from(self.average) / f64::from(WHOLE)
    }

    const fn least(&self) -> u64 {
        self.mtu.saturating_mul(MIN_PACKETS_IN_FLIGHT)
    }

    fn end_round(&mut self) {
        if !core::mem::take(&mut self.round_was_cut) {
            let step = |ceiling: u64| ceiling.saturating_add((ceiling / 16).max(self.mtu));
            self.ceiling = self.ceiling.map(step);
        }
        let packets = self.acked_packets.saturating_add(self.lost.div_ceil(self.mtu));
        if packets < MIN_PACKETS {
            return;
        }
        let all = u128::from(self.acked) + u128::from(self.lost);
        let share = (u128::from(self.lost) * u128::from(WHOLE)).checked_div(all);
        let share = u32::try_from(share.unwrap_or(0)).unwrap_or(WHOLE);
        // (3 · average + share) / 4, at most WHOLE.
        self.average = (self.average * 3 + share) / 4;
        (self.acked, self.acked_packets, self.lost) = (0, 0, 0);
    }
}
