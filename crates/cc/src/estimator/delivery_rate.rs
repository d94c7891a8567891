//! Delivery rate: bytes that arrive per time, over at least a round trip.
//!
//! As draft-ietf-ccwg-bbr §4.1 (Cheng et al., *Delivery Rate Estimation*), but without a record per packet. The state
//! that the draft stores with each packet is looked up by the packet's send time in a ring of marks, one per eighth of
//! an RTT. Rounding a send time down to a mark only lengthens the interval.

use playrate_units::Bitrate;

use crate::Timestamp;
use crate::events::{AckFrame, Congestion, Sent};

use super::{NANOS_PER_SECOND, SlotMax, bytes_per_second};

/// Number of marks: one and a half round trips' worth. Sixteen would make the largest controllers exceed 2 KiB.
pub(crate) const MARKS: u8 = 12;
/// Marks per round trip.
const MARKS_PER_RTT: u64 = 8;
/// An interval may not start at a mark older than this. The marks' clock wraps after 18 min.
const MAX_INTERVAL_NS: u64 = 60_000_000_000;
/// Longest time that a peer delays an acknowledgement unless it declares another (RFC 9000 §18.2, `max_ack_delay`: "If
/// this value is absent, a default of 25 milliseconds is assumed.").
const MAX_ACK_DELAY_NS: u64 = 25_000_000;

/// One measurement of the delivery rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RateSample {
    /// Bytes delivered per second, over the longer of the times for sending and for acknowledging them.
    pub(crate) bytes_per_second: u32,
    /// The application or flow control, not the window, limited the sender when the sampled packet left.
    pub(crate) app_limited: bool,
    /// The link was busy throughout the interval, so `rate` is its capacity less cross traffic. True if, at both ends,
    /// the narrowest link's queue held more than acknowledgement delay can explain, the sender was not limited, and
    /// acknowledging took longer than sending.
    pub(crate) busy: bool,
    /// Bytes delivered in the interval.
    pub(crate) delivered: u32,
    /// Index of the mark where the interval began: the newest that is no younger than the packet.
    pub(crate) mark: usize,
}

/// Delivery rate and its maximum over ten seconds.
///
/// The flag of the ACK frames and the bytes in flight determine if a packet counts as application-limited. Once a frame
/// has the flag, every departing packet counts as limited until a packet that left after that frame is delivered. So do
/// packets that leave when nothing is in flight.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeliveryRate {
    marks: [Mark; MARKS as usize],
    /// Index of the next mark.
    next: u8,
    count: u8,
    /// Bit i: a burst that left after `marks[i]` and before the next was limited.
    limited: u16,
    last_mark: Timestamp,
    spacing_ns: u64,
    /// Send time of the newest packet of the last sample.
    sampled: Timestamp,
    /// Bytes delivered so far.
    delivered: u64,
    /// Send time of the newest packet delivered.
    newest_sent: Timestamp,
    in_flight: u64,
    /// Time when the sender was last limited. The effect ends when a packet that left later is delivered.
    limited_at: Option<Timestamp>,
    min_rtt_ns: Option<u64>,
    /// Largest rates of the last ten seconds, in slots of a second, bytes per second.
    max: SlotMax<u32, 10>,
    busy_max: SlotMax<u32, 10>,
}

/// The state of delivery at a moment. Times are in units of 256 ns and wrap; so do bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    at: u32,
    delivered: u32,
    /// Send time of the newest packet delivered by then.
    sent: u32,
}

impl DeliveryRate {
    #[inline]
    pub(crate) fn on_sent(&mut self, event: &Sent) {
        if self.in_flight == 0 {
            // Delivery starts again: the interval must not contain the pause.
            self.mark(event.now, event.now);
            self.limited_at = Some(event.now);
        }
        self.in_flight = self.in_flight.saturating_add(event.bytes.as_u64());
        if self.limited_at.is_some() && self.count > 0 {
            self.limited |= 1 << self.newest_mark();
        }
    }

    /// Processes an ACK frame. Returns about eight samples per round trip, and another for each later frame that
    /// acknowledges the last sampled burst: the first such frame covers only a part of the burst.
    pub(crate) fn on_ack_frame(&mut self, event: &AckFrame<'_>) -> Option<RateSample> {
        let now = event.now;
        self.max.advance_to(now, NANOS_PER_SECOND);
        self.busy_max.advance_to(now, NANOS_PER_SECOND);
        self.in_flight = event.in_flight.as_u64();
        if event.acked.is_empty() {
            return None;
        }
        for run in event.acked {
            self.delivered = self.delivered.saturating_add(run.bytes.as_u64());
            self.newest_sent = self.newest_sent.max(run.sent);
        }
        let rtt_ns = now.nanos_since(self.newest_sent);
        let min_rtt_ns = self.min_rtt_ns.map_or(rtt_ns, |min| min.min(rtt_ns));
        self.min_rtt_ns = Some(min_rtt_ns);
        if self.limited_at.is_some_and(|at| self.newest_sent > at) {
            self.limited_at = None;
        }
        if event.app_limited {
            self.limited_at = Some(now);
        }
        let is_due = self.count == 0 || now.nanos_since(self.last_mark) >= self.spacing_ns;
        if !is_due && self.newest_sent != self.sampled {
            return None;
        }
        self.sampled = self.newest_sent;
        let sample = self.sample(now, rtt_ns, min_rtt_ns);
        if let Some(sample) = sample {
            let rate = sample.bytes_per_second;
            if !sample.app_limited || rate > self.max.max() {
                self.max.insert(rate);
            }
            if sample.busy {
                self.busy_max.insert(rate);
            }
        }
        if is_due {
            self.spacing_ns = rtt_ns / MARKS_PER_RTT;
            self.mark(now, self.newest_sent);
        }
        sample
    }

    pub(crate) fn on_congestion(&mut self, event: &Congestion) {
        self.in_flight = self.in_flight.saturating_sub(event.lost());
    }

    /// Largest sample of the last ten seconds, a lower bound of the capacity. Limited samples count only if they raise
    /// it.
    pub(super) fn max(&self) -> Option<Bitrate> {
        rate(self.max.max())
    }

    /// Largest [busy](RateSample::busy) sample of the last ten seconds: the capacity, if no other traffic
    /// used the link.
    pub(super) fn busy_max(&self) -> Option<Bitrate> {
        rate(self.busy_max.max())
    }

    /// Counts all departing packets as limited, until one that leaves after `now` is delivered.
    pub(crate) const fn mark_limited(&mut self, now: Timestamp) {
        self.limited_at = Some(now);
    }

    /// Bytes in flight: as of the last ACK frame, less those lost and with those sent since.
    pub(crate) const fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns true if a burst that left after this mark and before the next was limited.
    pub(crate) const fn is_limited(&self, mark: usize) -> bool {
        self.limited & (1 << mark) != 0
    }

    /// Index of the newest mark.
    pub(crate) fn newest_mark(&self) -> usize {
        usize::from(self.next.wrapping_add(MARKS - 1) % MARKS)
    }

    fn mark(&mut self, now: Timestamp, sent: Timestamp) {
        if now.nanos_since(self.last_mark) > MAX_INTERVAL_NS {
            self.count = 0;
        }
        self.last_mark = now;
        self.marks[usize::from(self.next)] = Mark {
            at: ticks(now),
            delivered: low_bits(self.delivered),
            sent: ticks(sent),
        };
        self.limited &= !(1 << self.next);
        self.next = self.next.wrapping_add(1) % MARKS;
        self.count = self.count.saturating_add(1).min(MARKS);
    }

    /// Index of the newest mark that is no younger than a packet that left at `sent`; `None` if every mark is younger
    /// than that packet.
    pub(crate) fn mark_of(&self, now: Timestamp, sent: Timestamp) -> Option<usize> {
        if now.nanos_since(sent) > MAX_INTERVAL_NS || now.nanos_since(self.last_mark) > MAX_INTERVAL_NS {
            return None;
        }
        let (now, sent) = (ticks(now), ticks(sent));
        let age = now.wrapping_sub(sent);
        let newest = self.next.wrapping_add(MARKS - 1);
        (0..self.count)
            .map(|back| usize::from(newest.wrapping_sub(back) % MARKS))
            .find(|&at| now.wrapping_sub(self.marks[at].at) >= age)
    }

    fn sample(&self, now: Timestamp, rtt_ns: u64, min_rtt_ns: u64) -> Option<RateSample> {
        let at = self.mark_of(now, self.newest_sent)?;
        let mark = self.marks[at];
        let acked_in = ticks(now).wrapping_sub(mark.at);
        let sent_in = ticks(self.newest_sent).wrapping_sub(mark.sent);
        // One more unit: both times were rounded.
        let interval_ns = (u64::from(acked_in.max(sent_in)) + 1) << TICK_SHIFT;
        let bytes = low_bits(self.delivered).wrapping_sub(mark.delivered);
        let measured = bytes_per_second(u64::from(bytes), interval_ns)?;
        let app_limited = self.is_limited(at);
        let queued_ns = (min_rtt_ns / 8).saturating_add(MAX_ACK_DELAY_NS);
        let full_ns = min_rtt_ns.saturating_add(queued_ns);
        let rtt_before_ns = u64::from(mark.at.wrapping_sub(mark.sent)) << TICK_SHIFT;
        let acks_took_longer = sent_in <= acked_in.saturating_add(acked_in / 64);
        let busy = !app_limited && acks_took_longer && rtt_ns >= full_ns && rtt_before_ns >= full_ns;
        Some(RateSample {
            bytes_per_second: measured,
            app_limited,
            busy,
            delivered: bytes,
            mark: at,
        })
    }
}

/// A unit of the marks' clock is 2⁸ ns.
const TICK_SHIFT: u32 = 8;

fn ticks(time: Timestamp) -> u32 {
    low_bits(time.as_nanos() >> TICK_SHIFT)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "only differences of far less than 2³² are read"
)]
const fn low_bits(value: u64) -> u32 {
    value as u32
}

/// Converts bytes per second to a rate; `None` if zero.
fn rate(bytes_per_second: u32) -> Option<Bitrate> {
    (bytes_per_second > 0).then(|| Bitrate::from_bytes_per_second(bytes_per_second.into()))
}
