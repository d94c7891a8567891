//! pipeACK: how much of the window the sender lately proved that it uses (RFC 7661 §4.2).

use core::time::Duration;

use playrate_units::Bytes;

use crate::Timestamp;

use super::nanos;

/// RFC 7661 §4.5.1 keeps the samples of a period in a few bins instead of all of them.
const BINS: u8 = 4;
/// RFC 7661 §4.2: the period is max(3 · RTT, 1 second).
const MIN_PERIOD_NS: u64 = 1_000_000_000;

/// RFC 7661's pipeACK: the largest number of bytes acknowledged in one round trip within the last max(3 · smoothed RTT, 1 s).
///
/// Undefined until the first round trip is complete, and after [`reset`](Self::reset). Once defined it falls to zero, not
/// back to undefined, when a period passes without acknowledgements: an idle sender proves nothing. (Of the implementations,
/// ngtcp2 has "undefined" there, the Linux module the last value, Apple zero.)
///
/// A sample counts from when its round's last acknowledgement arrived, so a round that a pause cut in two does not count as of
/// today. It lives between three quarters of a period and a whole one.
#[derive(Clone, Copy, Debug)]
pub struct PipeAck {
    round_start: Timestamp,
    /// Bytes acknowledged in the current round.
    round_bytes: u64,
    last_ack: Timestamp,
    bins: [Bin; BINS as usize],
    head: u8,
    period_ns: u64,
    defined: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    began: Timestamp,
    max: u64,
}

impl PipeAck {
    /// Undefined.
    pub const fn new() -> Self {
        Self {
            round_start: Timestamp::ZERO,
            round_bytes: 0,
            last_ack: Timestamp::ZERO,
            bins: [Bin {
                began: Timestamp::ZERO,
                max: 0,
            }; BINS as usize],
            head: 0,
            period_ns: MIN_PERIOD_NS,
            defined: false,
        }
    }

    /// An ACK batch of `acked` bytes, the newest of which left at `newest_sent`, arrived.
    pub fn on_ack_batch(
        &mut self,
        now: Timestamp,
        newest_sent: Timestamp,
        acked: Bytes,
        smoothed_rtt: Option<Duration>,
    ) {
        if let Some(rtt) = smoothed_rtt {
            self.period_ns = nanos(rtt).saturating_mul(3).max(MIN_PERIOD_NS);
        }
        if newest_sent >= self.round_start {
            if self.round_bytes > 0 {
                self.add(self.last_ack, self.round_bytes);
            }
            self.round_start = now;
            self.round_bytes = 0;
        }
        self.round_bytes = self.round_bytes.saturating_add(acked.as_u64());
        self.last_ack = now;
    }

    /// pipeACK as of now; `None` while undefined.
    pub fn value(&self, now: Timestamp) -> Option<Bytes> {
        self.defined.then(|| {
            let fresh = self
                .bins
                .iter()
                .filter(|bin| now.nanos_since(bin.began) < self.period_ns);
            Bytes::new(fresh.map(|bin| bin.max).max().unwrap_or(0))
        })
    }

    /// The sampling period: max(3 · smoothed RTT, 1 s).
    pub const fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns)
    }

    /// Whether a window of this size is validated: pipeACK is undefined or at least half of it (RFC 7661 §4.3).
    pub fn validates(&self, window: Bytes, now: Timestamp) -> bool {
        self.value(now).is_none_or(|used| used * 2 >= window)
    }

    /// The window after congestion while the window was not validated: `(max(pipeACK, LossFlightSize) − R) / 2`.
    ///
    /// At the congestion event `retransmitted` is zero; when recovery ends it is `R`, all bytes retransmitted in it (RFC 7661
    /// §4.4.1). `loss_flight` is what was in flight at the event, lost bytes included. The caller keeps the window at or above its
    /// minimum.
    pub fn reduced_window(&self, now: Timestamp, loss_flight: Bytes, retransmitted: Bytes) -> Bytes {
        let used = self.value(now).unwrap_or(Bytes::ZERO).max(loss_flight);
        (used - retransmitted) / 2
    }

    /// At the end of a recovery: undefined again, until a packet that leaves from now on is acknowledged.
    pub fn reset(&mut self, now: Timestamp) {
        *self = Self {
            round_start: now,
            period_ns: self.period_ns,
            ..Self::new()
        };
    }

    fn add(&mut self, at: Timestamp, bytes: u64) {
        self.defined = true;
        let bin = &mut self.bins[usize::from(self.head)];
        if at.nanos_since(bin.began) < self.period_ns / u64::from(BINS) {
            bin.max = bin.max.max(bytes);
        } else {
            self.head = (self.head + 1) % BINS;
            self.bins[usize::from(self.head)] = Bin {
                began: at,
                max: bytes,
            };
        }
    }
}

impl Default for PipeAck {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const RTT_MS: u64 = 100;

    fn at(ms: u64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    /// Rounds of 100 ms from `from` on, each of two batches of `half` bytes. Returns when the last batch arrived.
    fn rounds(pipe: &mut PipeAck, from: u64, count: u64, half: u64) -> u64 {
        for round in 0..count {
            for offset in [0, 50] {
                let sent = from + round * RTT_MS + offset;
                pipe.on_ack_batch(
                    at(sent + RTT_MS),
                    at(sent),
                    Bytes::new(half),
                    Some(Duration::from_millis(RTT_MS)),
                );
            }
        }
        from + count * RTT_MS + 50
    }

    #[test]
    fn undefined_until_a_round_is_complete() {
        let mut pipe = PipeAck::new();
        rounds(&mut pipe, 0, 1, 6_000);
        assert_eq!(pipe.value(at(150)), None);
        assert!(
            pipe.validates(Bytes::MAX, at(150)),
            "undefined counts as validated"
        );
        rounds(&mut pipe, 100, 1, 1_000);
        assert_eq!(pipe.value(at(250)), Some(Bytes::new(12_000)));
    }

    #[test]
    fn the_largest_round_of_the_period_counts() {
        let mut pipe = PipeAck::new();
        let mut end = rounds(&mut pipe, 0, 3, 6_000);
        assert_eq!(end, 350);
        end = rounds(&mut pipe, 300, 3, 30_000);
        end = rounds(&mut pipe, end - 50, 4, 6_000);
        assert_eq!(pipe.value(at(end)), Some(Bytes::new(60_000)));
        end = rounds(&mut pipe, end - 50, 8, 6_000);
        assert_eq!(
            pipe.value(at(end)),
            Some(Bytes::new(12_000)),
            "the large ones are over a second old"
        );
    }

    #[test]
    fn a_period_without_acknowledgements_leaves_zero() {
        let mut pipe = PipeAck::new();
        let end = rounds(&mut pipe, 0, 5, 30_000);
        assert_eq!(pipe.value(at(end)), Some(Bytes::new(60_000)));
        assert_eq!(pipe.value(at(end + 1_000)), Some(Bytes::ZERO));
        assert!(!pipe.validates(Bytes::new(12_000), at(end + 1_000)));
    }

    #[test]
    fn a_round_that_a_pause_cut_in_two_does_not_count_as_of_now() {
        let mut pipe = PipeAck::new();
        rounds(&mut pipe, 0, 5, 30_000);
        // After ten seconds two small batches: they complete the round that the pause interrupted, then one of their own.
        rounds(&mut pipe, 10_000, 2, 600);
        assert_eq!(pipe.value(at(10_300)), Some(Bytes::new(1_200)));
    }

    #[test]
    fn after_recovery_it_is_undefined_again() {
        let mut pipe = PipeAck::new();
        let end = rounds(&mut pipe, 0, 5, 30_000);
        pipe.reset(at(end));
        assert_eq!(pipe.value(at(end)), None);
        // A packet that left before the reset completes nothing.
        pipe.on_ack_batch(at(end + 40), at(end - 60), Bytes::new(5_000), None);
        assert_eq!(pipe.value(at(end + 40)), None);
    }

    // RFC 7661 §4.3.
    #[rstest]
    #[case(60_000, true)]
    #[case(59_999, false)]
    fn half_the_window_validates_it(#[case] used: u64, #[case] validated: bool) {
        let mut pipe = PipeAck::new();
        pipe.add(at(0), used);
        assert_eq!(pipe.validates(Bytes::new(120_000), at(0)), validated);
    }

    // RFC 7661 §4.4.1: pipeACK 30 000, R 2 400.
    #[rstest]
    #[case(24_000, 15_000, 13_800)]
    #[case(48_000, 24_000, 22_800)]
    fn a_loss_while_not_validated_halves_what_was_used(
        #[case] loss_flight: u64,
        #[case] at_once: u64,
        #[case] at_the_end: u64,
    ) {
        let mut pipe = PipeAck::new();
        pipe.add(at(0), 30_000);
        let reduced = |r| pipe.reduced_window(at(0), Bytes::new(loss_flight), Bytes::new(r));
        assert_eq!(reduced(0), Bytes::new(at_once));
        assert_eq!(reduced(2_400), Bytes::new(at_the_end));
        assert_eq!(reduced(1_000_000), Bytes::ZERO);
    }

    #[rstest]
    #[case(50, 1_000)]
    #[case(400, 1_200)]
    fn the_period_is_three_rtts_or_a_second(#[case] rtt: u64, #[case] period: u64) {
        let mut pipe = PipeAck::new();
        pipe.on_ack_batch(at(rtt), at(0), Bytes::new(1), Some(Duration::from_millis(rtt)));
        assert_eq!(pipe.period(), Duration::from_millis(period));
    }
}
