//! [`Link`]: one direction of a path, without a clock.

mod aqm;
mod config;
mod cross;
mod delay;
mod draw;
mod fault;
mod loss;
mod packet;
mod policer;
mod queue;
mod rate;
mod reordering;
mod series;
mod stats;
mod steps;
#[cfg(test)]
mod tests;

use core::time::Duration;
use std::collections::VecDeque;

use playrate_units::Bytes;
use rand_core::Rng;
use rand_pcg::Pcg32;

pub use aqm::{Aqm, Codel};
pub use config::LinkConfig;
pub use cross::{CrossPattern, CrossTraffic};
pub use delay::DelaySchedule;
pub use fault::{Damage, LinkFault, LinkFaultKind};
pub use loss::{GilbertElliott, Loss};
pub use packet::{Packet, Verdict};
pub use policer::Policer;
pub use queue::QueueLimit;
pub use rate::*;
pub use reordering::Reordering;
pub use series::{LinkBin, LinkSeries};
pub use stats::{CrossStats, DropReason, Drops, LinkStats, PacketCount};

use aqm::{AqmAction, CodelState};
use fault::FaultState;
use policer::PolicerState;

use crate::{Seed, Time};

/// Bytes that IPv4 (20) and UDP (8) headers add to a datagram.
pub(crate) const IP_UDP_OVERHEAD: u64 = 28;

/// Mixing step of rustc's `FxHash`: fast, and a change of any word changes all later results.
pub(crate) const fn mix(digest: u64, word: u64) -> u64 {
    (digest.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// The comma-separated parts of `text` if it is `name(part,…)`.
fn parts_of<'a>(text: &'a str, name: &str) -> Option<Vec<&'a str>> {
    let inner = text
        .trim()
        .strip_prefix(name)?
        .strip_prefix('(')?
        .strip_suffix(')')?;
    Some(inner.split(',').map(str::trim).collect())
}

/// A packet that arrives at the queue.
#[derive(Clone, Copy, Debug)]
struct OfferedPacket {
    /// Size in bytes, headers included.
    bytes: u64,
    markable: bool,
    /// Belongs to cross traffic.
    cross: bool,
}

/// A packet that was accepted and has not left yet.
#[derive(Clone, Copy, Debug)]
struct QueuedPacket {
    departs: Time,
    bytes: u64,
    /// False for cross traffic and for lost packets. They use room in the queue, and time on the link unless queue
    /// management drops them.
    is_delivered: bool,
}

/// One direction of a path: a first-in-first-out queue, a rate, a loss process and a propagation delay.
///
/// A packet offered at time *a* leaves at `max(a, free) + size/rate`, where *free* is the departure of the previous
/// packet. Departures depend only on logical time, so a late driver never lowers the rate. A randomly lost packet still
/// uses its place in the queue and its time on the link.
///
/// The queue limit bounds memory.
#[derive(Debug)]
pub struct Link {
    /// Used for delay, jitter, reordering and MTU; the other fields are derived from the rest.
    config: LinkConfig,
    transmitter: Transmitter,
    queue_bytes: u64,
    queue_packets: u64,
    loss: loss::LossSampler,
    codel: Option<CodelState>,
    policer: Option<PolicerState>,
    sources: Vec<cross::CrossSource>,
    faults: FaultState,
    loss_draws: Pcg32,
    delay_draws: Pcg32,

    now: Time,
    free_at: Time,
    /// Time from which the route of the latest packet applies.
    route: Time,
    /// The latest arrival at the far end among packets of this route that were not reordered.
    last_arrival: Time,
    waiting: VecDeque<QueuedPacket>,
    /// Bytes in the queue, including the packet on the wire.
    backlog: u64,

    accepted: PacketCount,
    queue_delay_sum: u128,
    served: u64,
    stats: LinkStats,
    digest: u64,
    series: Option<LinkSeries>,
}

impl Link {
    fn new(
        config: &LinkConfig,
        transmitter: Transmitter,
        (queue_bytes, queue_packets): (u64, u64),
        seed: Seed,
    ) -> Self {
        let packet_time = config
            .rate
            .mean()
            .and_then(|rate| rate.time_for(config.mtu))
            .unwrap_or_default();
        Self {
            config: config.clone(),
            transmitter,
            queue_bytes,
            queue_packets,
            loss: config.loss.sampler(packet_time),
            codel: match config.aqm {
                Aqm::None => None,
                Aqm::Codel(codel) => Some(CodelState::new(codel, packet_time)),
            },
            policer: None,
            sources: Vec::new(),
            faults: FaultState::new(&config.faults, packet_time, seed),
            loss_draws: seed.child("loss").generator(),
            delay_draws: seed.child("delay").generator(),
            now: Time::ZERO,
            free_at: Time::ZERO,
            route: Time::ZERO,
            last_arrival: Time::ZERO,
            waiting: VecDeque::new(),
            backlog: 0,
            accepted: PacketCount::default(),
            queue_delay_sum: 0,
            served: 0,
            stats: LinkStats::default(),
            digest: 0,
            series: None,
        }
    }

    /// Records a time series from now on; see [`Link::series`].
    #[must_use]
    pub fn with_series(mut self, series: LinkSeries) -> Self {
        self.series = Some(series);
        self
    }

    /// Offers a packet at time `now` and returns its fate. Times must not decrease; an earlier one counts as the latest
    /// so far.
    pub fn offer(&mut self, now: Time, packet: Packet) -> Verdict {
        self.settle(now);
        let now = self.now;
        let bytes = u64::try_from(packet.payload)
            .unwrap_or(u64::MAX)
            .saturating_add(IP_UDP_OVERHEAD);
        self.stats.offered.add(bytes);
        let offered = OfferedPacket {
            bytes,
            markable: packet.markable,
            cross: false,
        };
        let verdict = match self.queue(now, offered) {
            Ok((departs, marked)) => {
                self.stats.marked += u64::from(marked);
                self.deliver(departs, packet.payload, marked)
            }
            Err(reason) => {
                self.stats.dropped.add(reason, bytes);
                Verdict::Dropped(reason)
            }
        };
        self.record(now, bytes, verdict);
        verdict
    }

    /// Puts a packet into the queue; returns its departure time and whether it is marked.
    fn queue(&mut self, now: Time, offered: OfferedPacket) -> Result<(Time, bool), DropReason> {
        let (bytes, cross) = (offered.bytes, offered.cross);
        if bytes > self.faults.mtu(now, self.config.mtu).as_u64() {
            return Err(DropReason::TooBig);
        }
        if let Some(policer) = &mut self.policer
            && !policer.passes(now, bytes)
        {
            return Err(DropReason::Policer);
        }
        let packets = self.waiting.len() as u64;
        if self.backlog.saturating_add(bytes) > self.queue_bytes || packets >= self.queue_packets {
            return Err(DropReason::QueueFull);
        }
        let next = self.free_at.max(now);
        let start = self.transmitter.begin(next);
        let decision = match &mut self.codel {
            Some(codel) => codel.decide(start, start.since(now), offered.markable),
            None => AqmAction::Pass,
        };
        if decision == AqmAction::Drop {
            // It has waited its turn and uses no time on the link.
            self.enqueue(QueuedPacket {
                departs: start,
                bytes,
                is_delivered: false,
            });
            return Err(DropReason::Aqm);
        }
        let busy = self.free_at == start && self.served > 0;
        let (departs, gave_up) = self.transmitter.finish(start, busy, bytes);
        self.free_at = departs;
        self.count_wait(start.since(now));
        // Both must see every packet, so these must not short-circuit.
        let lost = !cross && self.loss.loses(next, departs, &mut self.loss_draws);
        let lost_to_fault = !cross && self.faults.loses(next, departs);
        let has_route = cross || self.config.delay.at(departs).0.is_some();
        let lost = lost || lost_to_fault || !has_route;
        self.enqueue(QueuedPacket {
            departs,
            bytes,
            is_delivered: !(cross || lost || gave_up),
        });
        if gave_up {
            Err(DropReason::Retries)
        } else if lost {
            Err(DropReason::Loss)
        } else {
            Ok((departs, decision == AqmAction::Mark))
        }
    }

    /// Arrival of a packet of `payload` bytes that leaves at `departs`.
    fn deliver(&mut self, departs: Time, payload: usize, marked: bool) -> Verdict {
        let delay = self.delay(departs);
        let at = self.arrival(departs, delay);
        Verdict::Deliver {
            at,
            marked,
            damage: self.faults.damages(departs, payload),
            copy_at: self.faults.duplicates(departs, delay).map(|later| at + later),
        }
    }

    /// Propagation delay of a packet that leaves at `departs`, without jitter.
    fn delay(&mut self, departs: Time) -> Duration {
        let (delay, route) = self.config.delay.at(departs);
        if route != self.route {
            // Packets on a new route do not wait for those on the old one.
            self.route = route;
            self.last_arrival = Time::ZERO;
        }
        delay.unwrap_or_default()
    }

    /// Arrival time of a packet that leaves at `departs` and takes `delay`.
    fn arrival(&mut self, departs: Time, delay: Duration) -> Time {
        let mut at = departs.rounded_up(self.config.batches) + delay;
        if !self.config.jitter.is_zero() {
            at = at + draw::uniform(&mut self.delay_draws, self.config.jitter);
        }
        if let Some(Reordering { probability, by }) = self.config.reordering
            && probability.accepts(self.delay_draws.next_u32())
        {
            return at + by;
        }
        if let Some(by) = self.faults.delays(departs) {
            return at + by;
        }
        self.last_arrival = self.last_arrival.max(at);
        self.last_arrival
    }

    fn count_wait(&mut self, wait: Duration) {
        self.served += 1;
        self.queue_delay_sum = self.queue_delay_sum.saturating_add(wait.as_nanos());
        self.stats.max_queue_delay = self.stats.max_queue_delay.max(wait);
    }

    fn enqueue(&mut self, packet: QueuedPacket) {
        if packet.is_delivered {
            self.accepted.add(packet.bytes);
        }
        if packet.departs <= self.now {
            self.depart(packet);
            return;
        }
        self.backlog += packet.bytes;
        self.waiting.push_back(packet);
        self.stats.max_queue = self.stats.max_queue.max(Bytes::new(self.backlog));
    }

    fn depart(&mut self, packet: QueuedPacket) {
        if !packet.is_delivered {
            return;
        }
        self.stats.delivered.add(packet.bytes);
        if let Some(bin) = self.series.as_mut().and_then(|series| series.at(packet.departs)) {
            bin.delivered += Bytes::new(packet.bytes);
        }
    }

    /// Advances to `now`: cross traffic arrives, and packets that have left by then no longer wait.
    pub fn settle(&mut self, now: Time) {
        let now = self.now.max(now);
        loop {
            let next = self
                .sources
                .iter_mut()
                .filter(|source| source.next() <= now)
                .min_by_key(|source| source.next());
            let Some(source) = next else { break };
            let (at, bytes) = (source.next(), source.take());
            self.drain(at);
            self.stats.cross.offered.add(bytes);
            let offered = OfferedPacket {
                bytes,
                markable: false,
                cross: true,
            };
            if self.queue(at, offered).is_err() {
                self.stats.cross.dropped.add(bytes);
            }
        }
        self.drain(now);
    }

    fn drain(&mut self, now: Time) {
        self.now = self.now.max(now);
        while let Some(&packet) = self.waiting.front()
            && packet.departs <= self.now
        {
            self.waiting.pop_front();
            self.backlog -= packet.bytes;
            self.depart(packet);
        }
    }

    fn record(&mut self, now: Time, bytes: u64, verdict: Verdict) {
        let outcome = match verdict {
            Verdict::Deliver { at, marked, .. } => at.as_nanos() ^ u64::from(marked),
            Verdict::Dropped(reason) => u64::MAX - reason as u64,
        };
        for word in [now.as_nanos(), bytes, outcome] {
            self.digest = mix(self.digest, word);
        }
        if let Verdict::Deliver {
            copy_at: Some(copy), ..
        } = verdict
        {
            self.digest = mix(self.digest, copy.as_nanos());
        }
        if let Some(bin) = self.series.as_mut().and_then(|series| series.at(now)) {
            bin.offered += 1;
            bin.dropped += u64::from(verdict.arrival().is_none());
            bin.max_queue = bin.max_queue.max(Bytes::new(self.backlog));
        }
    }

    /// Counters up to the latest time when a packet was offered or time was advanced.
    pub fn stats(&self) -> LinkStats {
        let mean = self
            .queue_delay_sum
            .checked_div(u128::from(self.served))
            .unwrap_or(0);
        LinkStats {
            queued: self.accepted.minus(self.stats.delivered),
            mean_queue_delay: Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)),
            ..self.stats
        }
    }

    /// Time series that [`Link::with_series`] started.
    pub fn series(&self) -> Option<&LinkSeries> {
        self.series.as_ref()
    }

    /// Running hash of every packet's time, size and fate: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Returns true if the link ever inverts bits of its packets.
    pub(crate) fn damages(&self) -> bool {
        let mut faults = self.config.faults.iter();
        faults.any(|fault| matches!(fault.kind, LinkFaultKind::Corruption(_)))
    }
}
