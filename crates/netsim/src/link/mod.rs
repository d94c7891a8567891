//! [`Link`]: one direction of a path, without a clock.

mod config;
mod loss;
mod queue;
mod rate;
mod series;
mod stats;
#[cfg(test)]
mod tests;

use core::fmt;
use core::time::Duration;
use std::collections::VecDeque;

use playrate_units::Bytes;
use rand_pcg::Pcg32;

pub use config::LinkConfig;
pub use loss::Loss;
pub use queue::QueueLimit;
pub use rate::Rate;
pub use series::{LinkBin, LinkSeries};
pub use stats::{DropReason, Drops, LinkStats, Tally};

use crate::{Seed, Time};

/// What IPv4 (20 bytes) and UDP (8 bytes) add to a datagram.
pub const IP_UDP_OVERHEAD: u64 = 28;

/// A datagram as a link sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packet {
    /// The length of its UDP payload in bytes.
    pub payload: usize,
}

impl Packet {
    /// A datagram with `payload` bytes in it.
    pub const fn new(payload: usize) -> Self {
        Self { payload }
    }
}

/// What becomes of a packet, known the moment it is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verdict {
    /// It reaches the far end.
    Deliver {
        /// When its last bit arrives.
        at: Time,
    },
    /// It does not.
    Dropped(DropReason),
}

impl Verdict {
    /// When the packet arrives, if it does.
    pub const fn arrival(self) -> Option<Time> {
        match self {
            Self::Deliver { at } => Some(at),
            Self::Dropped(_) => None,
        }
    }
}

/// One packet and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkEvent {
    /// When it was offered.
    pub at: Time,
    /// Its size, headers included.
    pub size: Bytes,
    /// What became of it.
    pub verdict: Verdict,
    /// The queue it left behind it, itself included if it was taken.
    pub queue: Bytes,
}

/// Someone who watches every packet of a link.
pub trait LinkObserver: Send {
    /// Called once for each packet offered, in order.
    fn observe(&mut self, event: &LinkEvent);
}

impl<F: FnMut(&LinkEvent) + Send> LinkObserver for F {
    fn observe(&mut self, event: &LinkEvent) {
        self(event);
    }
}

/// The mixing step of rustc's `FxHash`: fast, and any change of any word changes what follows.
pub(crate) const fn mix(digest: u64, word: u64) -> u64 {
    (digest.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
}

/// A packet that has been taken and has not left yet.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    departs: Time,
    bytes: u64,
    lost: bool,
}

/// One direction of a path: a first-in-first-out drop-tail queue, a rate, a loss process and a propagation delay.
///
/// A packet offered at time *a* leaves at `max(a, free) + size/rate`, *free* being when the packet before it has left:
/// departures follow from logical time alone, so a driver that is late never lowers the rate. What is lost at random
/// has taken its place in the queue and its time on the link.
///
/// Memory is bounded by the queue limit.
pub struct Link {
    server: rate::Server,
    delay: Duration,
    overhead: u64,
    mtu: u64,
    queue_bytes: u64,
    queue_packets: u64,
    loss: loss::LossSampler,
    generator: Pcg32,

    now: Time,
    free_at: Time,
    waiting: VecDeque<Waiting>,
    backlog: u64,

    accepted: Tally,
    queue_delay_sum: u128,
    served: u64,
    stats: LinkStats,
    digest: u64,
    series: Option<LinkSeries>,
    observer: Option<Box<dyn LinkObserver>>,
}

impl Link {
    fn new(
        config: &LinkConfig,
        server: rate::Server,
        queue_bytes: u64,
        queue_packets: u64,
        seed: Seed,
    ) -> Self {
        Self {
            server,
            delay: config.delay,
            overhead: config.overhead.as_u64(),
            mtu: config.mtu.as_u64(),
            queue_bytes,
            queue_packets,
            loss: config.loss.sampler(),
            generator: seed.child("loss").generator(),
            now: Time::ZERO,
            free_at: Time::ZERO,
            waiting: VecDeque::new(),
            backlog: 0,
            accepted: Tally::default(),
            queue_delay_sum: 0,
            served: 0,
            stats: LinkStats::default(),
            digest: 0,
            series: None,
            observer: None,
        }
    }

    /// Keeps `series` from here on; see [`Link::series`].
    #[must_use]
    pub fn with_series(mut self, series: LinkSeries) -> Self {
        self.series = Some(series);
        self
    }

    /// Shows every packet to `observer` from here on.
    #[must_use]
    pub fn with_observer(mut self, observer: impl LinkObserver + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Offers a packet at time `now` and says what becomes of it. Times must not run backwards; one that does is taken
    /// as the latest seen.
    pub fn offer(&mut self, now: Time, packet: Packet) -> Verdict {
        self.settle(now);
        let now = self.now;
        let bytes = u64::try_from(packet.payload)
            .unwrap_or(u64::MAX)
            .saturating_add(self.overhead);
        self.stats.offered.add(bytes);
        let verdict = self.judge(now, bytes);
        if let Verdict::Dropped(reason) = verdict {
            self.stats.dropped.add(reason, bytes);
        }
        self.record(now, bytes, verdict);
        verdict
    }

    fn judge(&mut self, now: Time, bytes: u64) -> Verdict {
        if bytes > self.mtu {
            return Verdict::Dropped(DropReason::TooBig);
        }
        let packets = self.waiting.len() as u64;
        if self.backlog.saturating_add(bytes) > self.queue_bytes || packets >= self.queue_packets {
            return Verdict::Dropped(DropReason::QueueFull);
        }
        let busy = self.free_at >= now && self.served > 0;
        let start = self.free_at.max(now);
        let departs = self.server.finish(start, busy, bytes);
        self.free_at = departs;
        self.count_wait(start.since(now));
        let lost = self.loss.loses(&mut self.generator);
        self.enqueue(Waiting { departs, bytes, lost });
        if lost {
            return Verdict::Dropped(DropReason::Loss);
        }
        Verdict::Deliver {
            at: departs + self.delay,
        }
    }

    fn count_wait(&mut self, wait: Duration) {
        self.served += 1;
        self.queue_delay_sum = self.queue_delay_sum.saturating_add(wait.as_nanos());
        self.stats.max_queue_delay = self.stats.max_queue_delay.max(wait);
    }

    fn enqueue(&mut self, packet: Waiting) {
        if !packet.lost {
            self.accepted.add(packet.bytes);
        }
        if packet.departs <= self.now {
            self.depart(packet);
            return;
        }
        self.backlog += packet.bytes;
        self.waiting.push_back(packet);
        self.stats.max_queue = self.stats.max_queue.max(Bytes::new(self.backlog));
        self.stats.max_queue_packets = self.stats.max_queue_packets.max(self.waiting.len() as u64);
    }

    fn depart(&mut self, packet: Waiting) {
        if packet.lost {
            return;
        }
        self.stats.delivered.add(packet.bytes);
        if let Some(bin) = self.series.as_mut().and_then(|series| series.at(packet.departs)) {
            bin.delivered += Bytes::new(packet.bytes);
        }
    }

    /// Lets time pass until `now`: what has left by then no longer waits.
    pub fn settle(&mut self, now: Time) {
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
            Verdict::Deliver { at } => at.as_nanos(),
            Verdict::Dropped(reason) => u64::MAX - reason as u64,
        };
        for word in [now.as_nanos(), bytes, outcome] {
            self.digest = mix(self.digest, word);
        }
        let queue = Bytes::new(self.backlog);
        if let Some(bin) = self.series.as_mut().and_then(|series| series.at(now)) {
            bin.offered += 1;
            bin.dropped += u64::from(verdict.arrival().is_none());
            bin.max_queue = bin.max_queue.max(queue);
        }
        if let Some(observer) = &mut self.observer {
            observer.observe(&LinkEvent {
                at: now,
                size: Bytes::new(bytes),
                verdict,
                queue,
            });
        }
    }

    /// What waits at the latest time seen, the packet on the wire included.
    pub fn backlog(&self) -> Bytes {
        Bytes::new(self.backlog)
    }

    /// What the link has done until the latest time it was offered a packet or settled.
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

    /// The series of [`Link::with_series`].
    pub fn series(&self) -> Option<&LinkSeries> {
        self.series.as_ref()
    }

    /// A running hash of every packet's time, size and fate: equal for equal runs.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// How long a packet travels once it has left.
    pub fn delay(&self) -> Duration {
        self.delay
    }

    /// The queue's limit in bytes, if it has one: what a multiple of the bandwidth-delay product came to.
    pub fn queue_limit(&self) -> Option<Bytes> {
        (self.queue_bytes != u64::MAX).then_some(Bytes::new(self.queue_bytes))
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("server", &self.server)
            .field("delay", &self.delay)
            .field("queue_bytes", &self.queue_bytes)
            .field("queue_packets", &self.queue_packets)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
