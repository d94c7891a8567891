//! [`Core`]: the state that the components of one controller share.

mod batch;
mod number;
mod resends;
mod rules;

use core::time::Duration;
use std::sync::Arc;

use crate::algorithm::coupled::Membership;
use crate::component::{Bursts, Needs};
use crate::estimator::{Capacity, LimitedTime, Rounds, Rtt};
use crate::events::{AckFrame, Congestion, Sent, Signal};
use crate::{Bitrate, Bytes, Path, Phase, Reason, Snapshot, Timestamp, VideoKnowledge};

pub(crate) use batch::Batch;
use number::sane_mtu;
pub(crate) use number::{float, floor_bytes};
pub(crate) use rules::{GROWTH, Rules, of_all_algorithms};

/// Above this quinn stops pacing.
const MAXIMUM_WINDOW: u64 = u32::MAX as u64;

/// Linux's `TCP_RTO_MIN`, 200 ms: a shorter silence is not a pause.
pub(crate) const MINIMUM_RTO_NS: u64 = 200_000_000;

/// Shared state. Sizes are bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Core {
    /// The algorithm's window, before shaping and ceilings.
    window: u64,
    /// Slow start threshold; `None` while it is infinite.
    pub(crate) ssthresh: Option<u64>,
    mtu: u64,
    /// The transport sends only while `in_flight + mtu` is less than the window ([`Path::strict`]).
    strict: bool,
    /// The transport paces by the controller's rate ([`Path::paced`]).
    pub(crate) paced: bool,
    /// The window's lower bound in packets: 2 for loss-based algorithms, 4 for delay-based ones.
    minimum_packets: u64,
    /// Merged needs of all components.
    pub(crate) needs: Needs,
    /// Packets that left at or before this time belong to the current or last recovery.
    pub(crate) recovery_start: Option<Timestamp>,
    /// Only the `enter` of a controller writes it.
    pub(crate) phase: Phase,
    /// Cause of the last change of phase, or of the window except for growth.
    pub(crate) reason: Reason,
    pub(crate) rtt: Rtt,
    /// Capacity estimator, if a component needs it.
    capacity: Option<Box<Capacity>>,
    rounds: Rounds,
    /// Time that does not count for algorithms that grow by time.
    pub(crate) limited: LimitedTime,
    /// Bytes in flight as of the last ACK frame, less those lost since. Bytes sent since are not included.
    pub(crate) in_flight: u64,
    /// Bytes of the bursts that were reported, modulo 2³².
    pub(crate) sent: u32,
    /// Departure of the last burst.
    pub(crate) last_sent: Option<Timestamp>,
    /// Arrival of the last ACK frame.
    pub(crate) last_acked: Option<Timestamp>,
    /// A ceiling determines the published window: the algorithm must not grow.
    pub(crate) capped: bool,
    rules: Rules,
    /// Largest flight in bytes since the window was last reduced: `maxFS` of draft-ietf-ccwg-ratelimited-increase.
    /// Before the first reduction, it is at least the initial window.
    pub(crate) max_flight: u64,
    /// Upper bound of growth in this batch.
    growth_bound: u64,
    /// Facts of the video.
    pub(crate) known: Arc<VideoKnowledge>,
    /// The path's place among the connection's paths, if the algorithm couples them.
    pub(crate) membership: Option<Membership>,
}

impl Core {
    pub(crate) fn new(path: &Path, minimum_packets: u64, needs: Needs, known: Arc<VideoKnowledge>) -> Self {
        let mtu = sane_mtu(path.mtu);
        let rules = Rules::default();
        let initial_window = rules.initial_window(mtu);
        Self {
            window: initial_window.max(minimum_packets.saturating_mul(mtu)),
            mtu,
            strict: path.strict,
            paced: path.paced,
            minimum_packets,
            needs,
            rtt: Rtt::remembering(needs.rtt_window_ns),
            capacity: (needs.bursts >= Bursts::Capacity).then(Box::default),
            growth_bound: u64::MAX,
            max_flight: initial_window,
            rules,
            known,
            membership: (path.coupled.clone().filter(|_| needs.coupled)).map(Membership::new),
            ..Self::default()
        }
    }

    /// The algorithm's window, bytes.
    pub(crate) const fn window(&self) -> u64 {
        self.window
    }

    /// Sets the algorithm's window, within the minimum and `u32::MAX`.
    pub(crate) fn set_window(&mut self, window: u64) {
        self.window = self.bounded(window);
    }

    /// Notes that congestion or a pause reduced the window.
    pub(crate) const fn note_reduction(&mut self) {
        self.max_flight = 0;
    }

    /// Applies these rules to the start of the connection.
    pub(crate) fn set_rules(&mut self, rules: Rules) {
        self.rules = rules;
        self.ssthresh = self.rules.ssthresh;
        self.set_window(self.initial_window());
        self.max_flight = self.initial_window();
    }

    /// Notes a loss; returns true if the data had been resent and the sender now waits for a timeout.
    pub(crate) fn lost_again(&mut self, event: &Congestion) -> bool {
        let (Some(resends), Signal::Loss { bytes, .. }) = (&mut self.rules.resends, event.signal) else {
            return false;
        };
        let rto_ns = self.rtt.rto_ns().unwrap_or(0);
        resends.on_loss(event.newest_sent, bytes.as_u64(), rto_ns)
    }

    /// Returns true while the sender waits for a timeout. Nothing grows its window until then.
    pub(crate) fn is_silent(&self, now: Timestamp) -> bool {
        self.rules
            .resends
            .as_ref()
            .is_some_and(|resends| resends.is_silent(now))
    }

    /// Undoes growth of the window beyond its bound for this batch. `before` is the window when the algorithm got the
    /// batch.
    #[inline]
    pub(crate) fn bound_growth(&mut self, before: u64) {
        let bound = self.growth_bound.max(before);
        if self.window > bound {
            self.window = self.bounded(bound);
        }
    }

    /// Adds to the algorithm's window, up to `u32::MAX`.
    pub(crate) fn grow(&mut self, bytes: u64) {
        self.set_window(self.window.saturating_add(bytes));
    }

    /// A window within its bounds.
    pub(crate) fn bounded(&self, window: u64) -> u64 {
        window.max(self.minimum()).min(MAXIMUM_WINDOW)
    }

    /// The smallest window, bytes.
    pub(crate) const fn minimum(&self) -> u64 {
        self.minimum_packets.saturating_mul(self.mtu)
    }

    /// Largest UDP payload; a segment.
    pub(crate) const fn mtu(&self) -> u64 {
        self.mtu
    }

    /// A connection's first window: by default that of RFC 9002 §7.2.
    pub(crate) fn initial_window(&self) -> u64 {
        self.bounded(self.rules.initial_window(self.mtu))
    }

    /// Divisor of acknowledged bytes for growth in slow start ([`rules::MAX_SSTHRESH`]); at least 1.
    #[inline]
    pub(crate) fn slow_start_divisor(&self) -> u64 {
        self.rules.slow_start_divisor(self.window, self.mtu)
    }

    /// Capacity of the path's narrowest link in bytes that count towards a window, after at least this many samples.
    pub(crate) fn capacity_after(&self, least_samples: u8) -> Option<Bitrate> {
        self.capacity.as_ref()?.estimate(least_samples)
    }

    /// The window that carries the video's rate over a path with this RTT, bytes: VR·rtt, and the part that the
    /// transport holds back ([`Path::strict`]). `None` while the rate is unknown.
    pub(crate) fn video_window(&self, rtt_ns: u64) -> Option<u64> {
        let rate = self.known.wire_rate()?;
        let window = rate * Duration::from_nanos(rtt_ns);
        Some(window.as_u64().saturating_add(self.headroom()))
    }

    /// Surplus of a window derived from a rate, bytes.
    pub(crate) fn headroom(&self) -> u64 {
        if self.strict { self.mtu } else { 0 }
    }

    /// Changes the phase. All controllers change it here, so that all follow the state machine.
    pub(crate) fn enter(&mut self, phase: Phase, reason: Reason) {
        debug_assert!(
            self.phase.may_become(phase, reason),
            "{} -> {phase} because {reason}",
            self.phase
        );
        self.phase = phase;
        self.reason = reason;
    }

    /// Returns true if a packet that left at `sent` belongs to the current or last recovery.
    #[inline]
    pub(crate) fn in_recovery(&self, sent: Timestamp) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    /// Time, ns, since something was last sent or acknowledged; `None` if packets were in flight. Read it before noting
    /// a burst.
    pub(crate) fn quiet_ns(&self, now: Timestamp) -> Option<u64> {
        let last = self.last_sent.max(self.last_acked)?;
        (self.in_flight == 0).then(|| now.nanos_since(last))
    }

    /// [`quiet_ns`](Self::quiet_ns) and the RTO, ns, if the silence exceeds it. The RTO is smoothed RTT + max(4 ·
    /// variance, 1 ms), but at least `minimum_rto_ns`.
    pub(crate) fn pause(&self, now: Timestamp, minimum_rto_ns: u64) -> Option<(u64, u64)> {
        let quiet = self.quiet_ns(now)?;
        let rto = self.rtt.rto_ns()?.max(minimum_rto_ns);
        (quiet > rto).then_some((quiet, rto))
    }

    #[inline]
    pub(crate) fn note_sent(&mut self, event: &Sent) {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_sent(event);
        }
        if self.needs.limited_time {
            self.limited.on_sent(event.now, self.last_acked);
        }
        if let Some(resends) = &mut self.rules.resends {
            resends.on_sent(event.now, event.bytes.as_u64());
        }
        let sent = u32::try_from(event.bytes.as_u64()).unwrap_or(u32::MAX);
        self.sent = self.sent.wrapping_add(sent);
        self.last_sent = Some(event.now);
    }

    /// Adds up an ACK frame; returns `None` if it acknowledged nothing.
    #[inline]
    pub(crate) fn note_acked(&mut self, event: &AckFrame<'_>) -> Option<Batch> {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_ack_frame(event);
        }
        let (mut acked, mut packets, mut granted) = (0_u64, 0_u32, 0_u64);
        let (mut newest_sent, mut after_recovery) = (Timestamp::ZERO, false);
        for run in event.acked {
            let bytes = run.bytes.as_u64();
            acked = acked.saturating_add(bytes);
            packets = packets.saturating_add(run.packets);
            newest_sent = newest_sent.max(run.sent);
            if !self.in_recovery(run.sent) {
                after_recovery = true;
                if self.rules.rate_limited || !(run.app_limited || self.capped) {
                    granted = granted.saturating_add(bytes);
                }
            }
        }
        let in_flight = event.in_flight.as_u64();
        self.max_flight = self.max_flight.max(in_flight.saturating_add(acked));
        // No window grows beyond about twice the largest flight (RFC 9002 §7.8), even if the transport reports no
        // limit: a sender limited by its own processor never reports that the application is the limit. A strict
        // transport leaves a packet of each half unused.
        let most = self.max_flight.saturating_add(self.mtu).saturating_mul(2);
        let room = most.saturating_sub(self.window);
        let limited = event.app_limited || self.capped || room == 0;
        let last = self.last_acked.replace(event.now);
        self.in_flight = in_flight;
        let mut allowance = if self.rules.rate_limited {
            self.rate_limited_allowance(granted, limited)
        } else {
            granted
        };
        allowance = allowance.min(room);
        if self.phase.is_slow_start() {
            allowance = allowance.checked_div(self.slow_start_divisor()).unwrap_or(0);
        }
        if self.needs.limited_time {
            // If the window grew although it was not used in full, the time does count.
            let unused = limited && !(self.rules.rate_limited && allowance > 0);
            let elapsed_ns = last.map(|last| event.now.nanos_since(last));
            self.limited.on_batch(elapsed_ns, unused, in_flight);
        }
        if packets == 0 {
            return None;
        }
        self.rtt.set_transport_smoothed(event.smoothed_rtt);
        let rtt_ns = self.rtt.on_batch(event.now, newest_sent, packets);
        Some(Batch {
            now: event.now,
            newest_sent,
            acked,
            packets,
            allowance,
            in_flight,
            limited,
            rtt_ns,
            new_round: self.rounds.on_batch(event.now, newest_sent),
            after_recovery,
        })
    }

    /// Bounds the growth of a window that may grow while it is not used in full; returns the remaining allowance.
    #[inline(never)]
    fn rate_limited_allowance(&mut self, allowance: u64, limited: bool) -> u64 {
        self.growth_bound = if !limited {
            u64::MAX
        } else if self.phase.is_slow_start() {
            self.max_flight.saturating_mul(2)
        } else {
            self.max_flight.saturating_add(self.mtu)
        };
        if self.window < self.growth_bound {
            allowance
        } else {
            0
        }
    }

    /// Reduces an ACK frame's allowance to one packet if frames are counted instead of bytes.
    ///
    /// For an algorithm that grows by time, this applies only in slow start: Linux's CUBIC compensated for delayed ACKs
    /// in avoidance (`delayed_ack` of `tcp_cubic.c`, Linux 3.6).
    pub(crate) fn count_frame(&self, batch: &mut Batch) {
        let grows_by_time = self.needs.limited_time;
        if self.rules.counts_acks && (self.phase.is_slow_start() || !grows_by_time) {
            batch.allowance = batch.allowance.min(self.mtu);
        }
    }

    /// The controller's state for telemetry. The controller publishes `window` bytes, and adds what the core does not
    /// know.
    pub(crate) fn snapshot(&self, window: u64) -> Snapshot {
        Snapshot {
            phase: self.phase,
            window: Bytes::new(window),
            smoothed_rtt: self.rtt.smoothed_ns().map(Duration::from_nanos),
            min_rtt: self.rtt.min_ns().map(Duration::from_nanos),
            max_rtt: self.rtt.max_ns().map(Duration::from_nanos),
            reason: self.reason,
            waiting_for: self.known.unknown_of(self.needs.knowledge),
            ..Snapshot::default()
        }
    }

    /// Subtracts lost bytes from the flight, after the components have seen the event.
    pub(crate) fn note_congestion(&mut self, event: &Congestion) {
        if let Some(capacity) = &mut self.capacity {
            capacity.on_congestion(event);
        }
        self.in_flight = self.in_flight.saturating_sub(event.lost());
    }

    /// RFC 9002 §7.2: a smaller MTU found while the handshake runs sets the window to the new initial window;
    /// otherwise the window only has to stay at or above the new minimum.
    pub(crate) fn set_mtu(&mut self, mtu: Bytes) {
        let mtu = sane_mtu(mtu);
        let untouched = self.last_acked.is_none() && self.recovery_start.is_none();
        let shrinks = mtu < self.mtu;
        self.mtu = mtu;
        let before = self.window;
        self.set_window(if untouched && shrinks {
            self.initial_window()
        } else {
            before
        });
        if self.window != before {
            self.reason = Reason::MtuChanged;
        }
    }
}
