//! [`LinkFault`]: a temporary impairment of a link.

use core::time::Duration;

use playrate_units::{Bytes, Probability};
use rand_core::Rng;
use rand_pcg::Pcg32;

use super::loss::LossSampler;
use super::{Loss, Reordering, draw};
use crate::{Seed, Time};

/// Bytes of a datagram after the first that may be damaged: in a QUIC packet, the version or the beginning of a
/// connection ID.
const DAMAGED_HEAD: usize = 4;
/// Offset from which a datagram may be damaged again. In between, QUIC packets have the lengths of fields with random
/// contents (RFC 9000 §17.2), and a peer's answer to a damaged length would depend on these contents.
const DAMAGED_BODY: usize = 64;

/// An impairment of a link from one time of the run to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkFault {
    /// Time of the run at which it begins.
    pub from: Duration,
    /// Time of the run at which it has ended; never if `Duration::MAX`.
    pub until: Duration,
    /// Effect on the link's packets.
    pub kind: LinkFaultKind,
}

impl LinkFault {
    /// A fault of this kind between these times.
    pub const fn new(from: Duration, until: Duration, kind: LinkFaultKind) -> Self {
        Self { from, until, kind }
    }

    fn applies(&self, now: Time) -> bool {
        (self.from..self.until).contains(&now.elapsed())
    }
}

/// Effect of a [`LinkFault`] on the packets of a link, except for cross traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkFaultKind {
    /// All packets that leave the queue are lost.
    Outage,
    /// Loss in addition to the link's own.
    Loss(Loss),
    /// Packets arrive with one bit inverted, each with this probability.
    /// The first byte and bytes 5 to 63 are never damaged.
    Corruption(Probability),
    /// Packets arrive twice, each with this probability; the copy arrives up to one propagation delay later.
    Duplication(Probability),
    /// Reordering in addition to the link's own.
    Reordering(Reordering),
    /// Packets above this size, headers included, are dropped, as if the path's MTU had become smaller.
    Mtu(Bytes),
}

/// The bit of a datagram that a link inverts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    byte: usize,
    bit: u32,
}

impl Damage {
    /// Draws a bit of a datagram of `payload` bytes.
    fn draw(draws: &mut Pcg32, payload: usize) -> Self {
        let places = DAMAGED_HEAD + payload.saturating_sub(DAMAGED_BODY);
        let bit = draws.next_u32() >> 29;
        let place = draw::index(draws, places);
        let byte = if place < DAMAGED_HEAD {
            place + 1
        } else {
            place - DAMAGED_HEAD + DAMAGED_BODY
        };
        Self { byte, bit }
    }

    /// Inverts the bit in `datagram`, unless the datagram is shorter.
    pub fn apply(self, datagram: &mut [u8]) {
        if let Some(byte) = datagram.get_mut(self.byte) {
            *byte ^= 1 << self.bit;
        }
    }
}

/// Faults of a running link. They have their own generators, so a link without faults is not affected.
#[derive(Debug)]
pub(super) struct FaultState {
    faults: Vec<(LinkFault, LossSampler)>,
    draws: Pcg32,
}

impl FaultState {
    /// The state for a link that needs `packet_time` for a full packet.
    pub(super) fn new(faults: &[LinkFault], packet_time: Duration, seed: Seed) -> Self {
        let sampled = faults.iter().map(|fault| {
            let loss = match fault.kind {
                LinkFaultKind::Loss(loss) => loss,
                _ => Loss::None,
            };
            (*fault, loss.sampler(packet_time))
        });
        Self {
            faults: sampled.collect(),
            draws: seed.child("faults").generator(),
        }
    }

    /// The largest packet that `mtu` and the faults at `now` permit.
    pub(super) fn mtu(&self, now: Time, mtu: Bytes) -> Bytes {
        let applying = self.faults.iter().filter(|(fault, _)| fault.applies(now));
        applying.fold(mtu, |mtu, (fault, _)| match fault.kind {
            LinkFaultKind::Mtu(limit) => mtu.min(limit),
            _ => mtu,
        })
    }

    /// Returns true if a packet whose turn is at `start` and that leaves the queue at `now` is lost.
    pub(super) fn loses(&mut self, start: Time, now: Time) -> bool {
        let Self { faults, draws } = self;
        let mut lost = false;
        for (fault, loss) in faults.iter_mut().filter(|(fault, _)| fault.applies(now)) {
            // Every channel must see every packet, so this must not short-circuit.
            lost |= fault.kind == LinkFaultKind::Outage || loss.loses(start, now, draws);
        }
        lost
    }

    /// Makes a draw for every fault at `now` and returns the last effect whose probability accepts its draw; `of`
    /// returns both.
    fn drawn<T>(&mut self, now: Time, of: impl Fn(LinkFaultKind) -> Option<(Probability, T)>) -> Option<T> {
        let Self { faults, draws } = self;
        let applying = faults.iter().filter(|(fault, _)| fault.applies(now));
        let effects = applying.filter_map(|(fault, _)| of(fault.kind));
        effects.fold(None, |last, (probability, effect)| {
            probability.accepts(draws.next_u32()).then_some(effect).or(last)
        })
    }

    /// Additional delay of a packet that leaves the queue at `now` and is overtaken; `None` if it is not.
    pub(super) fn delays(&mut self, now: Time) -> Option<Duration> {
        self.drawn(now, |kind| match kind {
            LinkFaultKind::Reordering(Reordering { probability, by }) => Some((probability, by)),
            _ => None,
        })
    }

    /// Damage to a packet of `payload` bytes that leaves at `now`.
    pub(super) fn damages(&mut self, now: Time, payload: usize) -> Option<Damage> {
        let is_damaged = self.drawn(now, |kind| match kind {
            LinkFaultKind::Corruption(probability) => Some((probability, ())),
            _ => None,
        });
        is_damaged.map(|()| Damage::draw(&mut self.draws, payload))
    }

    /// Delay, up to `most`, of a copy of a packet that leaves at `now`.
    pub(super) fn duplicates(&mut self, now: Time, most: Duration) -> Option<Duration> {
        let is_duplicated = self.drawn(now, |kind| match kind {
            LinkFaultKind::Duplication(probability) => Some((probability, ())),
            _ => None,
        });
        is_duplicated.map(|()| draw::uniform(&mut self.draws, most))
    }

    /// The longest additional delay of `faults`, with the same bound as the link's own delays.
    pub(super) fn longest_delay(faults: &[LinkFault]) -> Duration {
        let delays = faults.iter().map(|fault| match fault.kind {
            LinkFaultKind::Reordering(Reordering { by, .. }) => by,
            _ => Duration::ZERO,
        });
        delays.max().unwrap_or_default()
    }
}
