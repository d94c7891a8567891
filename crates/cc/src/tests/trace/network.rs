//! [`Network`]: one narrow link with a drop-tail queue, and a receiver with its [`Habit`] of acknowledging.

use std::collections::VecDeque;

use crate::{Bitrate, Bytes};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// `max_ack_delay` (RFC 9000 §18.2), ns.
pub(super) const ACK_DELAY_NS: u64 = 25_000_000;

/// Rule by which a receiver acknowledges packets that arrive in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Habit {
    /// With the one that completes so many packets,
    pub(super) packets: usize,
    /// or when the first of them has waited this long, ns.
    pub(super) longest_ns: u64,
}

impl Habit {
    /// RFC 9000 §13.2.2, and quinn.
    pub(crate) const STANDARD: Self = Self {
        packets: 2,
        longest_ns: ACK_DELAY_NS,
    };
    /// Chromium after its first hundred packets, where the RTT is 100 ms: it waits for a quarter of that.
    pub(crate) const BROWSER: Self = Self {
        packets: 10,
        longest_ns: ACK_DELAY_NS,
    };
}

/// A path with one narrow link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Rate of the narrow link. It carries the packets' own bytes; headers below QUIC are left out.
    pub(crate) rate: Bitrate,
    /// Round-trip time without queue and without the time that the link takes for a packet.
    pub(crate) rtt: core::time::Duration,
    /// Bytes that the queue at the link holds; what exceeds them is dropped.
    pub(crate) queue: Bytes,
}

impl Link {
    /// Rate times round-trip time.
    pub(crate) fn bdp(&self) -> Bytes {
        self.rate * self.rtt
    }
}

/// A link, the way behind it, and the receiver. Times are nanoseconds since the connection began.
#[derive(Debug)]
pub(super) struct Network {
    bytes_per_second: u64,
    one_way_ns: u64,
    queue: u64,
    /// Time at which the link will have sent what it holds.
    busy_until: u64,
    /// The next packet after this moment is lost behind the link.
    lose_after: Option<u64>,
    habit: Habit,
    /// Packets that wait to be acknowledged, and when the first of them arrived.
    waiting: Vec<u64>,
    waiting_since: u64,
    /// The packet that comes next if none is lost.
    expected: u64,
    /// On their way back, oldest first.
    acks: VecDeque<Ack>,
}

/// An ACK frame on its way.
#[derive(Debug)]
pub(super) struct Ack {
    /// Arrival at the sender, ns.
    at: u64,
    /// The packets that it newly acknowledges, in ascending order.
    pub(super) numbers: Vec<u64>,
    /// Time for which the receiver held it back, ns.
    pub(super) delay_ns: u64,
}

impl Network {
    /// `lose_after`: the first packet sent after this moment (ns) is lost though there is room for it.
    pub(super) fn new(link: Link, habit: Habit, lose_after: Option<u64>) -> Self {
        Self {
            bytes_per_second: link.rate.as_bytes_per_second(),
            one_way_ns: u64::try_from(link.rtt.as_nanos() / 2).expect("round trips are short"),
            queue: link.queue.as_u64(),
            busy_until: 0,
            lose_after,
            habit,
            waiting: Vec::new(),
            waiting_since: 0,
            expected: 0,
            acks: VecDeque::new(),
        }
    }

    /// Bytes that wait at the link, with what is left of the packet that it is sending.
    pub(super) fn queued(&self, now: u64) -> u64 {
        self.busy_until.saturating_sub(now) * self.bytes_per_second / NANOS_PER_SECOND
    }

    /// Other traffic fills the queue up to `bytes`, whatever the sender does.
    pub(super) fn fill(&mut self, now: u64, bytes: u64) {
        let full = now + bytes * NANOS_PER_SECOND / self.bytes_per_second;
        self.busy_until = self.busy_until.max(full);
    }

    /// Packet `number` reaches the link.
    pub(super) fn take(&mut self, now: u64, number: u64, bytes: u64) {
        if self.queued(now) > self.queue {
            return;
        }
        self.busy_until = self.busy_until.max(now) + bytes * NANOS_PER_SECOND / self.bytes_per_second;
        if self.lose_after.take_if(|moment| *moment < now).is_none() {
            self.receive(self.busy_until + self.one_way_ns, number);
        }
    }

    fn receive(&mut self, now: u64, number: u64) {
        if self.held_until().is_some_and(|until| until < now) {
            self.acknowledge_held();
        }
        // RFC 9000 §13.2.1: out of order is acknowledged at once.
        let in_order = number == self.expected;
        self.expected = number + 1;
        if self.waiting.is_empty() {
            self.waiting_since = now;
        }
        self.waiting.push(number);
        if !in_order || self.waiting.len() >= self.habit.packets {
            let numbers = std::mem::take(&mut self.waiting);
            self.acknowledge(now, numbers, 0);
        }
    }

    /// Time at which those that wait are acknowledged at the latest.
    fn held_until(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.waiting_since + self.habit.longest_ns)
    }

    /// The receiver's timer expires.
    fn acknowledge_held(&mut self) {
        if let Some(until) = self.held_until() {
            let numbers = std::mem::take(&mut self.waiting);
            self.acknowledge(until, numbers, self.habit.longest_ns);
        }
    }

    fn acknowledge(&mut self, now: u64, numbers: Vec<u64>, delay_ns: u64) {
        self.acks.push_back(Ack {
            at: now + self.one_way_ns,
            numbers,
            delay_ns,
        });
    }

    /// Time at which the next ACK frame reaches the sender.
    pub(super) fn next_ack(&self) -> Option<u64> {
        let held = self.held_until().map(|until| until + self.one_way_ns);
        self.acks.front().map(|ack| ack.at).or(held)
    }

    /// The ACK frame that has reached the sender by now.
    pub(super) fn pop_ack(&mut self, now: u64) -> Option<Ack> {
        if self.acks.is_empty() && self.next_ack().is_some_and(|at| at <= now) {
            self.acknowledge_held();
        }
        let arrived = self.acks.front().is_some_and(|ack| ack.at <= now);
        if arrived { self.acks.pop_front() } else { None }
    }
}
