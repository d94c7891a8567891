//! A sender, one narrow link and a receiver with a given acknowledgement policy, in integer nanoseconds.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use crate::estimator::Capacity;
use crate::events::{Acked, Congestion, Sent, Signal};
use crate::tests::OwnedFrame;
use crate::{Bytes, Timestamp};

pub(super) use crate::tests::{MS_IN_NS as MS, MTU as PACKET};

/// Most packets that leave together.
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
    /// Longest delay of an acknowledgement by the peer.
    pub(super) ack_delay: u64,
    /// Acknowledgements are delayed by up to this much, in order.
    pub(super) jitter: u64,
    /// Share of the link, in percent, that other packets of 1500 B take at random moments.
    pub(super) cross_percent: u64,
    /// One packet in this many is lost behind the link; 0 for none.
    pub(super) lose_one_in: u64,
    /// One packet in this many is late by 3 ms behind the link; 0 for none.
    pub(super) late_one_in: u64,
    /// Makes what is random differ.
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
            ack_delay: 25 * MS,
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

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Train(Vec<u64>),
    Pump,
    Cross,
    Arrives(u64),
    AckTimer(u64),
    Ack(Vec<u64>),
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
}

struct World {
    path: Path,
    now: u64,
    queue: BinaryHeap<Reverse<(u64, u64, Happens)>>,
    scheduled: u64,
    random: Random,
    reported: Vec<PathEvent>,
    // Sender
    load: Load,
    next_packet: u64,
    outstanding: BTreeMap<u64, (u64, u64)>,
    in_flight: u64,
    largest_acked: u64,
    pump_at: u64,
    // Link
    free_at: u64,
    // Receiver
    expected: u64,
    received: Vec<u64>,
    timer: u64,
    last_ack: u64,
}

/// All events of a load, as an estimator receives them.
pub(super) fn run(path: &Path, load: Load) -> Vec<PathEvent> {
    let mut world = World {
        path: path.clone(),
        now: 0,
        queue: BinaryHeap::new(),
        scheduled: 0,
        random: Random(0x9E37_79B9_7F4A_7C15 ^ path.seed.wrapping_mul(0xD1B5_4A32_D192_ED03)),
        reported: Vec::new(),
        load: Load::Trains(Vec::new()),
        next_packet: 0,
        outstanding: BTreeMap::new(),
        in_flight: 0,
        largest_acked: 0,
        pump_at: 0,
        free_at: 0,
        expected: 0,
        received: Vec::new(),
        timer: 0,
        last_ack: 0,
    };
    let end = match &load {
        Load::Trains(trains) => {
            for (at, sizes) in trains {
                world.at(*at, Happens::Train(sizes.clone()));
            }
            trains.last().map_or(0, |last| last.0)
        }
        Load::Window { until, .. } => {
            world.at(0, Happens::Pump);
            *until
        }
    };
    world.load = load;
    if path.cross_percent > 0 {
        world.at(0, Happens::Cross);
    }
    while let Some(Reverse((at, _, happens))) = world.queue.pop() {
        world.now = at;
        match happens {
            Happens::Train(sizes) => world.send(&sizes),
            Happens::Pump => world.pump(),
            Happens::Cross if at <= end => world.cross(),
            Happens::Arrives(packet) => world.arrive(packet),
            Happens::AckTimer(timer) if timer == world.timer => world.acknowledge(),
            Happens::Cross | Happens::AckTimer(_) => {}
            Happens::Ack(packets) => world.acked(&packets),
        }
    }
    world.reported
}

fn since(steps: &[(u64, u64)], now: u64) -> u64 {
    steps
        .iter()
        .rev()
        .find(|(from, _)| *from <= now)
        .map_or(0, |step| step.1)
}

impl World {
    fn at(&mut self, at: u64, happens: Happens) {
        self.scheduled += 1;
        self.queue.push(Reverse((at, self.scheduled, happens)));
    }

    /// Time when a packet of this size has passed the link, unless its queue is full.
    fn carry(&mut self, size: u64) -> Option<u64> {
        let rate = since(&self.path.rate, self.now);
        let queued = self.free_at.saturating_sub(self.now) * rate / 8 / 1_000_000_000;
        if queued + size > self.path.queue {
            return None;
        }
        self.free_at = self.free_at.max(self.now) + size * 8 * 1_000_000_000 / rate;
        Some(self.free_at)
    }

    fn one_in(&mut self, count: u64) -> bool {
        count > 0 && self.random.below(count) == 0
    }

    fn send(&mut self, sizes: &[u64]) {
        for &size in sizes {
            let packet = self.next_packet;
            self.next_packet += 1;
            self.outstanding.insert(packet, (self.now, size));
            self.in_flight += size;
            let passed = self.carry(size + self.path.header);
            let lost = self.one_in(self.path.lose_one_in);
            let late = if self.one_in(self.path.late_one_in) {
                3 * MS
            } else {
                0
            };
            if let Some(passed) = passed.filter(|_| !lost) {
                self.at(passed + self.path.base_rtt / 2 + late, Happens::Arrives(packet));
            }
        }
        self.reported.push(PathEvent::Sent(Sent::new(
            Timestamp::from_nanos(self.now),
            Bytes::new(sizes.iter().sum()),
        )));
    }

    fn pump(&mut self) {
        let Load::Window { bytes, apart, until } = &self.load else {
            return;
        };
        let (window, apart) = (since(bytes, self.now), *apart);
        if self.now > *until || self.now < self.pump_at {
            return;
        }
        let room = window.saturating_sub(self.in_flight) / PACKET;
        if room > 0 {
            self.send(&vec![PACKET; usize::try_from(room.min(BURST)).unwrap()]);
            self.pump_at = self.now + apart;
            self.at(self.pump_at, Happens::Pump);
        }
    }

    fn cross(&mut self) {
        self.carry(1_500);
        let mean =
            1_500 * 8 * 1_000_000_000 / since(&self.path.rate, self.now) * 100 / self.path.cross_percent;
        let gap = self.random.below(2 * mean);
        self.at(self.now + gap, Happens::Cross);
    }

    fn arrive(&mut self, packet: u64) {
        let in_order = packet == self.expected;
        self.expected = self.expected.max(packet + 1);
        self.received.push(packet);
        if !in_order || self.received.len() >= self.path.ack_every {
            self.acknowledge();
        } else if self.received.len() == 1 {
            self.at(self.now + self.path.ack_delay, Happens::AckTimer(self.timer));
        }
    }

    fn acknowledge(&mut self) {
        self.timer += 1;
        let packets = std::mem::take(&mut self.received);
        let late = self.random.below(self.path.jitter + 1);
        self.last_ack = self.last_ack.max(self.now + self.path.base_rtt / 2 + late);
        self.at(self.last_ack, Happens::Ack(packets));
    }

    fn acked(&mut self, packets: &[u64]) {
        let now = Timestamp::from_nanos(self.now);
        let app_limited = matches!(self.load, Load::Trains(_));
        let mut packets = packets.to_vec();
        packets.sort_unstable();
        let mut acked = Vec::new();
        for packet in packets {
            self.largest_acked = self.largest_acked.max(packet);
            // A packet that arrives after it was declared lost is not reported.
            if let Some((sent, size)) = self.outstanding.remove(&packet) {
                self.in_flight -= size;
                let run = Acked::new(Timestamp::from_nanos(sent), Bytes::new(size), 1);
                acked.push(run.with_app_limited(app_limited));
            }
        }
        if !acked.is_empty() {
            self.reported.push(PathEvent::Acked(OwnedFrame {
                now,
                acked,
                in_flight: Bytes::new(self.in_flight),
                app_limited,
                smoothed_rtt: None,
            }));
        }
        self.detect_losses(now);
        self.pump();
    }

    fn detect_losses(&mut self, now: Timestamp) {
        let kept = self
            .outstanding
            .split_off(&(self.largest_acked.saturating_sub(2)));
        let lost = std::mem::replace(&mut self.outstanding, kept);
        if let Some(newest) = lost.values().next_back() {
            let bytes: u64 = lost.values().map(|packet| packet.1).sum();
            self.in_flight -= bytes;
            self.reported.push(PathEvent::Lost(Congestion::new(
                now,
                Timestamp::from_nanos(newest.0),
                Signal::loss(Bytes::new(bytes)),
            )));
        }
    }
}
