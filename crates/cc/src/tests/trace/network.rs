//! [`Network`]: one narrow link with a drop-tail queue, and a receiver with its acknowledgement [`Habit`].

use std::collections::VecDeque;

use crate::{Bitrate, Bytes};

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// `max_ack_delay` (RFC 9000 §18.2), ns.
pub(super) const ACK_DELAY_NS: u64 = 25_000_000;

/// Receiver's rule for acknowledging packets that arrive in order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Habit {
    /// Number of waiting packets at which it acknowledges them.
    pub(super) packets: usize,
    /// Time after which it acknowledges them, since the first of them arrived, ns.
    pub(super) longest_ns: u64,
}

impl Habit {
    /// RFC 9000 §13.2.2, and quinn.
    pub(crate) const STANDARD: Self = Self {
        packets: 2,
        longest_ns: ACK_DELAY_NS,
    };
    /// A peer with the ACK frequency extension that was asked to send one frame per this many packets.
    pub(super) const fn asked(packets: u32) -> Self {
        Self {
            packets: packets as usize,
            longest_ns: 10_000_000,
        }
    }

    /// One frame per this many packets.
    pub(crate) const fn every(packets: usize) -> Self {
        Self {
            packets,
            ..Self::STANDARD
        }
    }

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
    /// Round-trip time without queueing and without the link's transmission time.
    pub(crate) rtt: core::time::Duration,
    /// Capacity of the link's queue in bytes; packets beyond it are dropped.
    pub(crate) queue: Bytes,
}

impl Link {
    /// Rate times round-trip time.
    pub(crate) fn bdp(&self) -> Bytes {
        self.rate * self.rtt
    }
}

/// Conditions of a path besides its narrow link; by default there are none. Times are nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Conditions {
    /// From the first time on the path is longer by the second.
    pub(crate) longer: Option<(u64, u64)>,
    /// Each packet takes up to this much longer; none overtakes another.
    pub(crate) jitter: u64,
    /// ACK frames take up to this much longer; none overtakes another.
    pub(crate) ack_jitter: u64,
    /// ACK frames arrive at multiples of this time.
    pub(crate) ack_slot: Option<u64>,
    /// Capacity of the return path, bytes per second.
    pub(crate) uplink: Option<u64>,
    /// Bytes per second and bucket of a policer in front of the link.
    pub(crate) policer: Option<(u64, u64)>,
    /// One packet in this many is lost.
    pub(crate) lose_one_in: Option<u64>,
    /// Processing time of the sender per packet; the application always has more to send.
    pub(crate) processor: Option<u64>,
    /// Nothing is known of the video.
    pub(crate) uninformed: bool,
}

/// Size of a packet with an ACK frame, headers included, and the length of a slow uplink's queue in bytes.
const ACK_BYTES: u64 = 80;
const UPLINK_QUEUE: u64 = 50 * ACK_BYTES;

/// A link, the path after it, and the receiver. Times are nanoseconds since the connection began.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) bytes_per_second: u64,
    pub(crate) one_way_ns: u64,
    pub(crate) queue: u64,
    /// Time when the link's queue will be empty.
    busy_until: u64,
    /// The next packet after this moment is lost after it has passed the link.
    lose_after: Option<u64>,
    habit: Habit,
    /// Packets that wait to be acknowledged, and the arrival of the first of them.
    waiting: Vec<u64>,
    waiting_since: u64,
    /// The next packet if none is lost.
    expected: u64,
    /// ACK frames on their way back, oldest first.
    acks: VecDeque<Ack>,
    pub(crate) conditions: Conditions,
    /// End of the run.
    pub(super) end: u64,
    /// The policer's tokens in bytes, and the time of their last update.
    tokens: (u64, u64),
    /// Arrival of the last packet.
    arrived: u64,
    /// Arrivals of packets that others overtake, and their numbers; earliest first.
    late: VecDeque<(u64, u64)>,
    /// Time when the uplink's queue will be empty, and arrival of the last delayed ACK frame.
    uplink_until: u64,
    acked: u64,
    /// State of the generator of jitter.
    pub(crate) random: u64,
    /// True if the last packet was dropped; and the times when the receiver's gaps began.
    dropped: bool,
    gaps: VecDeque<u64>,
    /// Largest number of gaps that began within one and a half round trips.
    pub(super) most_gaps: usize,
}

/// An ACK frame on its way.
#[derive(Debug)]
pub(super) struct Ack {
    /// Arrival at the sender, ns.
    at: u64,
    /// The packets that it newly acknowledges, in ascending order.
    pub(super) numbers: Vec<u64>,
    /// Time for which the receiver delayed it, ns.
    pub(super) delay_ns: u64,
}

impl Network {
    /// `lose_after`: the first packet sent after this time (ns) is lost although the queue has room for it.
    pub(crate) fn new(link: Link, habit: Habit, lose_after: Option<u64>) -> Self {
        Self {
            bytes_per_second: link.rate.as_bytes_per_second(),
            one_way_ns: u64::try_from(link.rtt.as_nanos() / 2).expect("round trips are short"),
            queue: link.queue.as_u64(),
            lose_after,
            habit,
            end: super::LENGTH_NS,
            tokens: (u64::MAX, 0),
            ..Self::default()
        }
    }

    /// Bytes that wait at the link, including the rest of the packet in transmission.
    pub(super) fn queued(&self, now: u64) -> u64 {
        self.busy_until.saturating_sub(now) * self.bytes_per_second / NANOS_PER_SECOND
    }

    /// Fills the queue up to `bytes` with other traffic, regardless of the sender.
    pub(super) fn fill(&mut self, now: u64, bytes: u64) {
        let full = now + bytes * NANOS_PER_SECOND / self.bytes_per_second;
        self.busy_until = self.busy_until.max(full);
    }

    /// Handles the arrival of packet `number` at the link.
    pub(crate) fn take(&mut self, now: u64, number: u64, bytes: u64) {
        let every = self.conditions.lose_one_in;
        let lost = every.is_some_and(|every| number % every == every - 1);
        if lost || !self.passes_policer(now, bytes) || !self.carry(now, bytes) {
            self.note_gap(now);
            return;
        }
        self.dropped = false;
        if self.lose_after.take_if(|moment| *moment < now).is_none() {
            self.deliver(now, number);
        }
    }

    /// Passes a packet through the link, unless the queue is full.
    pub(crate) fn carry(&mut self, now: u64, bytes: u64) -> bool {
        let fits = self.queued(now) <= self.queue;
        if fits {
            self.busy_until = self.busy_until.max(now) + bytes * NANOS_PER_SECOND / self.bytes_per_second;
        }
        fits
    }

    /// Delivers the packet that passed the link last, after all earlier ones.
    pub(crate) fn deliver(&mut self, now: u64, number: u64) {
        let arrival = self.busy_until + self.one_way_ns + self.further(now);
        self.arrived = self.arrived.max(arrival);
        self.receive_late(self.arrived);
        self.receive(self.arrived, number);
    }

    /// Delivers the packet that passed the link last this much later, so that others may overtake it.
    pub(crate) fn deliver_late(&mut self, by: u64, number: u64) {
        self.late
            .push_back((self.busy_until + self.one_way_ns + by, number));
    }

    /// Delivers the late packets that have arrived by now.
    fn receive_late(&mut self, now: u64) {
        while let Some(&(arrival, number)) = self.late.front().filter(|late| late.0 <= now) {
            self.late.pop_front();
            self.receive(arrival, number);
        }
    }

    fn note_gap(&mut self, now: u64) {
        let repaired = 3 * self.one_way_ns + (self.busy_until.saturating_sub(now));
        while self.gaps.front().is_some_and(|&began| began + repaired < now) {
            self.gaps.pop_front();
        }
        if !std::mem::replace(&mut self.dropped, true) {
            self.gaps.push_back(now);
        }
        self.most_gaps = self.most_gaps.max(self.gaps.len());
    }

    /// Returns true if the packet passes the policer, or if there is none.
    fn passes_policer(&mut self, now: u64, bytes: u64) -> bool {
        let Some((rate, bucket)) = self.conditions.policer else {
            return true;
        };
        let (tokens, since) = self.tokens;
        let earned = rate * (now - since) / NANOS_PER_SECOND;
        let tokens = tokens.saturating_add(earned).min(bucket);
        let passes = tokens >= bytes;
        self.tokens = (if passes { tokens - bytes } else { tokens }, now);
        passes
    }

    /// The next random number.
    fn drawn(&mut self, now: u64) -> u64 {
        self.random = (self.random ^ now)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15)
            .rotate_left(23);
        self.random
    }

    /// Additional delay of a packet that leaves now.
    fn further(&mut self, now: u64) -> u64 {
        let conditions = self.conditions;
        let longer = conditions.longer.filter(|&(from, _)| now >= from);
        let jitter = self.drawn(now).checked_rem(conditions.jitter).unwrap_or(0);
        longer.map_or(0, |(_, by)| by) + jitter
    }

    fn receive(&mut self, now: u64, number: u64) {
        if self.held_until().is_some_and(|until| until < now) {
            self.acknowledge_held();
        }
        // RFC 9000 §13.2.1: packets out of order are acknowledged immediately.
        let in_order = number == self.expected;
        self.expected = self.expected.max(number + 1);
        if self.waiting.is_empty() {
            self.waiting_since = now;
        }
        self.waiting.push(number);
        if !in_order || self.waiting.len() >= self.habit.packets {
            let numbers = std::mem::take(&mut self.waiting);
            self.acknowledge(now, numbers, 0);
        }
    }

    /// Latest time when the waiting packets are acknowledged.
    fn held_until(&self) -> Option<u64> {
        (!self.waiting.is_empty()).then_some(self.waiting_since + self.habit.longest_ns)
    }

    /// Acknowledges the waiting packets when the receiver's timer expires.
    fn acknowledge_held(&mut self) {
        if let Some(until) = self.held_until() {
            let numbers = std::mem::take(&mut self.waiting);
            self.acknowledge(until, numbers, self.habit.longest_ns);
        }
    }

    fn acknowledge(&mut self, now: u64, mut numbers: Vec<u64>, delay_ns: u64) {
        let mut at = now;
        if let Some(rate) = self.conditions.uplink {
            let backlog = self.uplink_until.saturating_sub(now);
            if backlog * rate / NANOS_PER_SECOND > UPLINK_QUEUE {
                // Dropped: the next frame also acknowledges its packets.
                numbers.append(&mut self.waiting);
                self.waiting = numbers;
                return;
            }
            self.uplink_until = self.uplink_until.max(now) + ACK_BYTES * NANOS_PER_SECOND / rate;
            at = self.uplink_until;
        }
        at += self.one_way_ns;
        if self.conditions.ack_jitter > 0 {
            at += self.drawn(now) % (self.conditions.ack_jitter + 1);
            at = at.max(self.acked);
            self.acked = at;
        }
        if let Some(slot) = self.conditions.ack_slot {
            at = at.next_multiple_of(slot);
        }
        self.acks.push_back(Ack {
            at,
            numbers,
            delay_ns,
        });
    }

    /// Time when the next ACK frame reaches the sender.
    pub(crate) fn next_ack(&self) -> Option<u64> {
        let held = self.held_until().map(|until| until + self.one_way_ns);
        let late = self.late.front().map(|late| late.0 + self.one_way_ns);
        self.acks
            .front()
            .map(|ack| ack.at)
            .or(held)
            .into_iter()
            .chain(late)
            .min()
    }

    /// The ACK frame that has reached the sender by now.
    pub(super) fn pop_ack(&mut self, now: u64) -> Option<Ack> {
        self.receive_late(now.saturating_sub(self.one_way_ns));
        if self.acks.is_empty() && self.next_ack().is_some_and(|at| at <= now) {
            self.acknowledge_held();
        }
        let arrived = self.acks.front().is_some_and(|ack| ack.at <= now);
        if arrived { self.acks.pop_front() } else { None }
    }
}
