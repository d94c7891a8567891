//! [`Core`]: the state that the parts of one controller share.

use std::sync::Arc;

use crate::estimator::Capacity;
use crate::estimator::{limited::LimitedTime, rounds::Rounds, rtt::Rtt};
use crate::events::{AckBatch, Acked, Congestion, Sent, Signal};
use crate::{Bitrate, Bytes, Path, Phase, Reason, Timestamp, VideoKnowledge};

use super::phases::is_slow_start;
use super::{Batch, Growth, Needs};

/// Above this quinn stops pacing.
const MAXIMUM_WINDOW: u64 = u32::MAX as u64;

/// Linux's `TCP_RTO_MIN`, 200 ms: a shorter silence is no pause.
const MINIMUM_RTO_NS: u64 = 200_000_000;

/// Shared state. Sizes are bytes.
#[derive(Clone, Debug)]
pub(crate) struct Core {
    /// The law's window, before shaping and ceilings.
    window: u64,
    /// Slow start threshold; `None` while it is infinite.
    pub(crate) ssthresh: Option<u64>,
    mtu: u64,
    /// The transport sends only while a packet fits below the window with room to spare.
    strict: bool,
    /// The window's lower bound in packets: 2 for laws that live by loss, 4 for those that live by delay.
    minimum_packets: u64,
    /// The window's lower bound in bytes, read at every event.
    minimum: u64,
    /// What the parts asked for.
    pub(super) needs: Needs,
    /// Packets that left at or before this moment belong to the current or last recovery.
    pub(crate) recovery_start: Option<Timestamp>,
    /// Only `Composed::enter` writes it.
    pub(super) phase: Phase,
    /// Why the phase or the window last changed other than by growth.
    pub(crate) reason: Reason,
    /// RTT estimator.
    pub(crate) rtt: Rtt,
    /// Capacity estimator, if a part needs it.
    capacity: Option<Box<Capacity>>,
    rounds: Rounds,
    /// Time that does not count for laws that grow by time.
    pub(crate) limited: LimitedTime,
    /// Bytes in flight as of the last ACK frame, less those lost since. What was sent since is not in it.
    pub(crate) in_flight: u64,
    /// When a burst last left.
    pub(crate) last_sent: Option<Timestamp>,
    /// When an ACK frame last arrived.
    pub(crate) last_acked: Option<Timestamp>,
    /// The published window is a ceiling's, not the law's: the law must not grow.
    pub(super) capped: bool,
    /// How the window grows while it is not used in full.
    growth: Growth,
    /// What the window may grow to in this batch.
    growth_bound: u64,
    gathered: Gathered,
    /// What is known of the video.
    pub(crate) known: Arc<VideoKnowledge>,
}

/// The ACK frame that is being read.
///
/// The order of the fields differs from [`Batch`]'s on purpose: were they alike, two that were just written one by one would be read
/// as one vector, which a processor can do only once both writes have left its store buffer.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct Gathered {
    acked: u64,
    newest_sent: Timestamp,
    credit: u64,
    packets: u32,
    after_recovery: bool,
}

impl Core {
    pub(super) fn new(path: &Path, minimum_packets: u64, needs: Needs, known: Arc<VideoKnowledge>) -> Self {
        let mtu = sane_mtu(path.mtu);
        let minimum = minimum_packets.saturating_mul(mtu);
        Self {
            window: initial_window(mtu).max(minimum),
            ssthresh: None,
            mtu,
            strict: path.strict,
            minimum_packets,
            minimum,
            needs,
            recovery_start: None,
            phase: Phase::Startup,
            reason: Reason::Began,
            rtt: Rtt::default(),
            capacity: needs.capacity.then(Box::default),
            rounds: Rounds::default(),
            limited: LimitedTime::default(),
            in_flight: 0,
            last_sent: None,
            last_acked: None,
            capped: false,
            growth: Growth::default(),
            growth_bound: u64::MAX,
            gathered: Gathered::default(),
            known,
        }
    }

    /// Whether bursts that leave while something is in flight matter.
    pub(super) const fn needs_every_burst(&self) -> bool {
        self.capacity.is_some()
    }

    /// The law's window.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// Sets the law's window, raised to the minimum and lowered to `u32::MAX` if need be.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.window = self.bounded(window);
    }

    /// Congestion or a pause reduced the window.
    pub(super) fn note_reduction(&mut self) {
        self.growth.on_reduction();
    }

    /// Sets how the window grows while it is not used in full.
    pub(super) fn set_growth(&mut self, growth: Growth) {
        self.growth = growth.starting_at(self.initial_window());
    }

    /// Undoes what the window grew by beyond its bound for this batch. It was `before` when the law got the batch.
    #[inline]
    pub(super) fn bound_growth(&mut self, before: u64) {
        let bound = self.growth_bound.max(before);
        if self.window > bound {
            self.window = self.bounded(bound);
        }
    }

    /// Adds to the law's window, up to `u32::MAX`.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.set_window(self.window.saturating_add(bytes));
    }

    /// A window within its bounds.
    pub(crate) fn bounded(&self, window: u64) -> u64 {
        window.max(self.minimum()).min(MAXIMUM_WINDOW)
    }

    /// The smallest window.
    pub(crate) const fn minimum(&self) -> u64 {
        self.minimum
    }

    /// Largest UDP payload; a segment.
    pub(crate) const fn mtu(&self) -> u64 {
        self.mtu
    }

    /// The window that a connection starts with (RFC 9002 §7.2).
    pub(crate) fn initial_window(&self) -> u64 {
        self.bounded(initial_window(self.mtu))
    }

    /// Capacity of the path's narrowest link in bytes that count towards a window, once four packet trains have told.
    pub(crate) fn capacity(&self) -> Option<Bitrate> {
        self.capacity.as_deref().and_then(Capacity::estimate)
    }

    /// The same once one has.
    pub(crate) fn early_capacity(&self) -> Option<Bitrate> {
        self.capacity.as_deref().and_then(Capacity::early_estimate)
    }

    /// The window that carries the video's rate over a path with this RTT, bytes: VR·rtt, and what the transport holds back of
    /// a window ([`Path::strict`]). `None` while the rate is unknown.
    pub(crate) fn video_window(&self, rtt_ns: u64) -> Option<u64> {
        let rate = self.known.wire_rate()?;
        let window = rate * core::time::Duration::from_nanos(rtt_ns);
        Some(window.as_u64().saturating_add(self.headroom()))
    }

    /// What a window that follows from a rate needs on top, bytes.
    pub(crate) fn headroom(&self) -> u64 {
        if self.strict { self.mtu } else { 0 }
    }

    /// What governs the window now.
    pub(crate) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether a packet that left at `sent` belongs to the current or last recovery.
    #[inline]
    pub(crate) fn in_recovery(&self, sent: Timestamp) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    /// How long nothing has been sent or acknowledged, if nothing was in flight, ns. Asked before a burst is noted.
    pub(crate) fn quiet_ns(&self, now: Timestamp) -> Option<u64> {
        let last = self.last_sent.max(self.last_acked)?;
        (self.in_flight == 0).then(|| now.nanos_since(last))
    }

    /// [`quiet_ns`](Self::quiet_ns) if it is longer than an RTO, and than Linux's smallest RTO.
    pub(crate) fn pause_ns(&self, now: Timestamp) -> Option<u64> {
        let rto = self.rtt.rto_ns()?.max(MINIMUM_RTO_NS);
        self.quiet_ns(now).filter(|&quiet| quiet > rto)
    }

    #[inline]
    pub(super) fn note_sent(&mut self, event: &Sent) {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_sent(event);
        }
        if self.needs.limited_time {
            self.limited.on_sent(event.now, self.last_acked);
        }
        self.last_sent = Some(event.now);
    }

    #[inline]
    pub(super) fn note_acked(&mut self, event: &Acked) {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_acked(event);
        }
        self.gathered = self.gather(self.gathered, event);
    }

    /// What an ACK frame acknowledged, with these packets.
    #[inline]
    fn gather(&self, mut gathered: Gathered, event: &Acked) -> Gathered {
        let bytes = event.bytes.as_u64();
        gathered.acked = gathered.acked.saturating_add(bytes);
        gathered.packets = gathered.packets.saturating_add(event.packets);
        gathered.newest_sent = gathered.newest_sent.max(event.sent);
        if self.recovery_start.is_none_or(|start| event.sent > start) {
            gathered.after_recovery = true;
            if self.growth.is_rate_limited() || !(event.app_limited || self.capped) {
                gathered.credit = gathered.credit.saturating_add(bytes);
            }
        }
        gathered
    }

    /// Ends the ACK frame; `None` if it acknowledged nothing. `last_run` is what has not been [noted](Self::note_acked), which for
    /// nearly every frame is all of it.
    #[inline]
    pub(super) fn close_batch(&mut self, last_run: Option<&Acked>, event: &AckBatch) -> Option<Batch> {
        let mut gathered = Gathered::default();
        if self.gathered.packets > 0 {
            gathered = core::mem::take(&mut self.gathered);
        }
        if let Some(acked) = last_run {
            gathered = self.gather(gathered, acked);
        }
        if let Some(capacity) = &mut self.capacity {
            if let Some(acked) = last_run {
                capacity.on_acked(acked);
            }
            capacity.on_ack_batch(event);
        }
        let in_flight = event.in_flight.as_u64();
        let limited = event.app_limited || self.capped;
        let last = self.last_acked.replace(event.now);
        self.in_flight = in_flight;
        let credit = if self.growth.is_rate_limited() {
            self.rate_limited_credit(gathered.acked, gathered.credit, limited)
        } else {
            gathered.credit
        };
        if self.needs.limited_time {
            // Time in which the window grew although it was not used in full does count.
            let unused = limited && !(self.growth.is_rate_limited() && credit > 0);
            self.limited.on_batch(event.now, last, unused, in_flight);
        }
        if gathered.packets == 0 {
            return None;
        }
        let newest_sent = gathered.newest_sent;
        let rtt_ns = self
            .rtt
            .on_batch(event.now, newest_sent, gathered.packets, event.smoothed_rtt);
        Some(Batch {
            now: event.now,
            newest_sent,
            acked: gathered.acked,
            packets: gathered.packets,
            credit,
            in_flight,
            limited,
            rtt_ns,
            new_round: self.rounds.on_batch(event.now, newest_sent),
            after_recovery: gathered.after_recovery,
        })
    }

    /// Bounds the growth of a window that may grow while it is not used in full; says what it gets.
    #[inline(never)]
    fn rate_limited_credit(&mut self, acked: u64, credit: u64, limited: bool) -> u64 {
        self.growth.on_flight(self.in_flight.saturating_add(acked));
        self.growth_bound = if limited {
            self.growth.bound(is_slow_start(self.phase), self.mtu)
        } else {
            u64::MAX
        };
        if self.window < self.growth_bound {
            credit
        } else {
            0
        }
    }

    /// Takes lost bytes out of what is in flight, after the parts have seen the event.
    pub(super) fn note_congestion(&mut self, event: &Congestion) {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_congestion(event);
        }
        if let Signal::Loss { bytes, .. } = event.signal {
            self.in_flight = self.in_flight.saturating_sub(bytes.as_u64());
        }
    }

    /// RFC 9002 §7.2: a smaller MTU found while the handshake runs sets the window to the new initial window; otherwise
    /// the window only has to stay at or above the new minimum.
    pub(crate) fn set_mtu(&mut self, mtu: Bytes) {
        let mtu = sane_mtu(mtu);
        let untouched = self.last_acked.is_none() && self.recovery_start.is_none();
        let shrinks = mtu < self.mtu;
        self.mtu = mtu;
        self.minimum = self.minimum_packets.saturating_mul(mtu);
        let before = self.window;
        self.set_window(if untouched && shrinks {
            initial_window(mtu)
        } else {
            before
        });
        if self.window != before {
            self.reason = Reason::MtuChanged;
        }
    }
}

#[cfg(test)]
impl Core {
    /// A core for tests of one part: `window` and these RTTs (the smallest, then the latest) on a path of 1200 B packets.
    pub(crate) fn sample(window: u64, base_ms: u64, rtt_ms: u64) -> Self {
        let mut core = Self::new(&Path::default(), 2, Needs::default(), Arc::default());
        core.set_window(window);
        let at = Timestamp::from_millis;
        core.rtt.on_batch(at(base_ms), at(0), 2, None);
        let smoothed = core::time::Duration::from_millis(rtt_ms);
        core.rtt
            .on_batch(at(1_000 + rtt_ms), at(1_000), 2, Some(smoothed));
        core
    }
}

/// RFC 9002 §7.2: ten packets, at most max(14,720 B, two packets).
fn initial_window(mtu: u64) -> u64 {
    mtu.saturating_mul(10).min(mtu.saturating_mul(2).max(14_720))
}

/// A UDP payload is 1 to 65,535 bytes.
fn sane_mtu(mtu: Bytes) -> u64 {
    mtu.as_u64().clamp(1, 65_535)
}

/// A size or a time as a float, saturating at 2⁶³, which no size or time reaches: so it is `value as f64` in a fifth of the
/// instructions.
#[inline]
pub(crate) const fn float(value: u64) -> f64 {
    let value = if value > i64::MAX as u64 {
        i64::MAX
    } else {
        value.cast_signed()
    };
    value as f64
}

/// A law's float window as whole bytes, rounded down; what is negative or no number is zero.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "float-to-integer casts saturate, and no number becomes zero"
)]
pub(crate) const fn floor_bytes(bytes: f64) -> u64 {
    let whole = bytes as i64;
    if whole > 0 { whole.cast_unsigned() } else { 0 }
}
