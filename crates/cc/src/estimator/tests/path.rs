//! A sender, one narrow link and a receiver with a given acknowledgement policy, in integer nanoseconds.

use core::time::Duration;

use crate::estimator::Capacity;
use crate::events::{Congestion, Sent};
use crate::tests::OwnedFrame;
use crate::tests::trace::flight::Flight;
use crate::tests::trace::{Habit, Link, Network};
use crate::{Bitrate, Bytes, Timestamp};

pub(super) use crate::tests::{MS_IN_NS as MS, MTU as PACKET};

/// Maximum number of packets that leave together.
const BURST: u64 = 10;

/// Input of an estimator.
#[derive(Clone, Debug)]
pub(super) enum PathEvent {
    Sent(Sent),
    Acked(OwnedFrame),
    Lost(Congestion),
}

pub(super) fn tell(capacity: &mut Capacity, reported: &PathEvent) {
    match reported {
        PathEvent::Sent(event) => capacity.on_sent(event),
        PathEvent::Acked(frame) => capacity.on_ack_frame(&frame.event()),
        PathEvent::Lost(event) => capacity.on_congestion(event),
    }
}

/// A path and its peer.
#[derive(Clone, Debug)]
pub(super) struct Path {
    /// Rate in bit/s from each time (ns) on.
    pub(super) rate: Vec<(u64, u64)>,
    /// Bytes of headers on the link per packet.
    pub(super) header: u64,
    /// Propagation, there and back.
    pub(super) base_rtt: u64,
    /// Bytes that fit into the link's queue.
    pub(super) queue: u64,
    /// Packets that one acknowledgement covers.
    pub(super) ack_every: usize,
    /// Acknowledgements are delayed by up to this much, in order.
    pub(super) jitter: u64,
    /// Share of the link, in percent, that other packets of 1500 B take at random moments.
    pub(super) cross_percent: u64,
    /// One packet in this many is lost after the link; 0 for none.
    pub(super) lose_one_in: u64,
    /// One packet in this many is delayed by 3 ms after the link; 0 for none.
    pub(super) late_one_in: u64,
    /// Seed of the path's random numbers.
    pub(super) seed: u64,
}

impl Path {
    /// 20 Mbit/s, 100 ms, a queue of 250 kB, every other packet acknowledged.
    pub(super) fn new() -> Self {
        Self {
            rate: vec![(0, 20_000_000)],
            header: 0,
            base_rtt: 100 * MS,
            queue: 250_000,
            ack_every: 2,
            jitter: 0,
            cross_percent: 0,
            lose_one_in: 0,
            late_one_in: 0,
            seed: 0,
        }
    }

    /// The default path, modified by `change`.
    pub(super) fn with(change: impl FnOnce(&mut Self)) -> Self {
        let mut path = Self::new();
        change(&mut path);
        path
    }
}

/// Traffic of the sender.
#[derive(Clone, Debug)]
pub(super) enum Load {
    /// Trains: the time and the packets' sizes. The application limits the sender.
    Trains(Vec<(u64, Vec<u64>)>),
    /// A window of this many bytes from each time on, in bursts of at most ten packets, at least this far apart.
    Window {
        bytes: Vec<(u64, u64)>,
        apart: u64,
        until: u64,
    },
}

/// A window of this many bytes from each time (ms) on until `seconds`, in bursts at least `apart` ns apart.
pub(super) fn windows(bytes: &[(u64, u64)], apart: u64, seconds: u64) -> Load {
    Load::Window {
        bytes: bytes.iter().map(|&(ms, bytes)| (ms * MS, bytes)).collect(),
        apart,
        until: seconds * 1_000 * MS,
    }
}

/// `count` trains of `packets` full packets, `apart` ns apart.
pub(super) fn trains(count: u64, packets: usize, apart: u64) -> Load {
    Load::Trains((0..count).map(|i| (i * apart, vec![PACKET; packets])).collect())
}

/// The path's random numbers: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % bound.max(1)
    }

    fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.below(count) == 0
    }
}

/// The value of a schedule at `now`.
fn since(steps: &[(u64, u64)], now: u64) -> u64 {
    let begun = steps.iter().rev().find(|(from, _)| *from <= now);
    begun.map_or(0, |step| step.1)
}

struct World {
    path: Path,
    network: Network,
    flight: Flight,
    random: Random,
    reported: Vec<PathEvent>,
}

/// All events of a load, as an estimator receives them.
pub(super) fn run(path: &Path, load: Load) -> Vec<PathEvent> {
    let link = Link {
        rate: Bitrate::from_bits_per_second(path.rate[0].1),
        rtt: Duration::from_nanos(path.base_rtt),
        queue: Bytes::new(path.queue),
    };
    let mut network = Network::new(link, Habit::every(path.ack_every), None);
    network.conditions.ack_jitter = path.jitter;
    network.random = 0x9E37_79B9_7F4A_7C15 ^ path.seed.wrapping_mul(0xD1B5_4A32_D192_ED03);
    let mut world = World {
        path: path.clone(),
        random: Random(network.random),
        network,
        flight: Flight::default(),
        reported: Vec::new(),
    };
    let (trains, bytes, apart, end) = match load {
        Load::Trains(trains) => {
            let end = trains.last().map_or(0, |last| last.0);
            (trains, Vec::new(), 0, end)
        }
        Load::Window { bytes, apart, until } => (Vec::new(), bytes, apart, until),
    };
    let limited = bytes.is_empty();
    let mut trains = trains.into_iter().peekable();
    let mut cross_at = (path.cross_percent > 0).then_some(0);
    let (mut now, mut pump_at) = (0, 0);
    loop {
        let room = since(&bytes, now).saturating_sub(world.flight.bytes()) / PACKET;
        let pump = (room > 0).then_some(pump_at.max(now)).filter(|at| *at <= end);
        let train = trains.peek().map(|train| train.0);
        let ack = world.network.next_ack();
        let Some(next) = [ack, train, pump, cross_at].into_iter().flatten().min() else {
            return world.reported;
        };
        now = next;
        world.network.bytes_per_second = since(&path.rate, now) / 8;
        if ack == Some(now) {
            world.receive(now, limited);
        } else if let Some((_, sizes)) = trains.next_if(|train| train.0 == now) {
            world.send(now, &sizes);
        } else if cross_at == Some(now) {
            cross_at = Some(world.cross(now)).filter(|at| *at <= end);
        } else {
            world.send(now, &vec![PACKET; usize::try_from(room.min(BURST)).unwrap()]);
            pump_at = now + apart;
        }
    }
}

impl World {
    fn send(&mut self, now: u64, sizes: &[u64]) {
        let sent = Timestamp::from_nanos(now);
        for &size in sizes {
            let number = self.flight.leave(sent, size);
            let passed = self.network.carry(now, size + self.path.header);
            if !passed || self.random.one_in(self.path.lose_one_in) {
                continue;
            }
            if self.random.one_in(self.path.late_one_in) {
                self.network.deliver_late(3 * MS, number);
            } else {
                self.network.deliver(now, number);
            }
        }
        let bytes = Bytes::new(sizes.iter().sum());
        self.reported.push(PathEvent::Sent(Sent::new(sent, bytes)));
    }

    /// A packet of other traffic. Returns the time of the next one.
    fn cross(&mut self, now: u64) -> u64 {
        self.network.carry(now, 1_500);
        let rate = since(&self.path.rate, now) * self.path.cross_percent / 100;
        now + self.random.below(2 * 1_500 * 8 * 1_000_000_000 / rate)
    }

    fn receive(&mut self, now: u64, limited: bool) {
        let now = Timestamp::from_nanos(now);
        let frame = self.flight.receive(&mut self.network, now, limited);
        self.reported.extend(frame.map(PathEvent::Acked));
        let lost = self.flight.detect_losses(now, 3);
        self.reported.extend(lost.map(PathEvent::Lost));
    }
}
