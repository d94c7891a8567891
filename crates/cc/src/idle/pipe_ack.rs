//! [`PipeAck`]: bytes of the window acknowledged per recent round trip (RFC 7661 §4.2, §4.5).

use crate::Timestamp;
use crate::state::Batch;

/// The sampling period is divided into this many bins, as in the authors' own module. A bin expires as a whole, so a
/// sample counts for between three quarters of a period and a full one.
const BINS: usize = 4;
const BINS_NS: u64 = BINS as u64;
/// The sampling period is three round trips, but at least a second (RFC 7661 §4.5.1).
const MINIMUM_PERIOD_NS: u64 = 1_000_000_000;

/// Samples of bytes acknowledged in one round trip, and their maximum over the sampling period. Sizes are
/// bytes.
///
/// NOTE: once all samples have expired, pipeACK is zero, so the window is not validated. RFC 7661 does not define this:
/// ngtcp2 makes pipeACK undefined, and the authors' Linux module keeps the last sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PipeAck {
    /// Largest sample of each bin, newest bin first; zero if it has none. 32 bits keep a connection's state small and
    /// suffice, because no window is larger.
    bins: [u32; BINS],
    /// Beginning of the newest bin.
    newest: Timestamp,
    /// True once there has been a sample.
    is_defined: bool,
    /// Bytes acknowledged in the current round trip; `None` until one begins.
    round: Option<u32>,
    /// Time when `round` last grew. A sample belongs to this time, not to the end of a following pause.
    round_acked: Timestamp,
}

/// The sampling period, ns.
pub(super) fn sampling_period_ns(smoothed_rtt_ns: Option<u64>) -> u64 {
    let rounds = smoothed_rtt_ns.unwrap_or(0).saturating_mul(3);
    rounds.max(MINIMUM_PERIOD_NS)
}

impl PipeAck {
    /// Number of bins that have passed since the newest began.
    fn passed(&self, now: Timestamp, period_ns: u64) -> usize {
        let (age, width) = (now.nanos_since(self.newest), period_ns / BINS_NS);
        // True for nearly every call; a division costs as much as the rest of this component.
        if age < width {
            return 0;
        }
        usize::try_from(age.checked_div(width).unwrap_or(u64::MAX))
            .unwrap_or(usize::MAX)
            .min(BINS)
    }

    pub(super) fn sample(&mut self, bytes: u32, at: Timestamp, period_ns: u64) {
        let passed = self.passed(at, period_ns);
        if passed == BINS || !self.is_defined {
            self.bins = [0; BINS];
            self.newest = at;
        } else if passed > 0 {
            self.bins.rotate_right(passed);
            self.bins[..passed].fill(0);
            let bins = u64::try_from(passed).unwrap_or(0);
            self.newest = self.newest.plus_nanos((period_ns / BINS_NS).saturating_mul(bins));
        }
        self.bins[0] = self.bins[0].max(bytes);
        self.is_defined = true;
    }

    /// Processes an ACK batch; the first batch of a new round trip completes the previous one's sample.
    pub(super) fn on_batch(&mut self, batch: &Batch, period_ns: u64) {
        if batch.new_round {
            if let Some(bytes) = self.round {
                self.sample(bytes, self.round_acked, period_ns);
            }
            self.round = Some(0);
        }
        let acked = u32::try_from(batch.acked).unwrap_or(u32::MAX);
        self.round = self.round.map(|bytes| bytes.saturating_add(acked));
        self.round_acked = batch.now;
    }

    /// pipeACK; `None` while it is undefined.
    pub(super) fn get(&self, now: Timestamp, period_ns: u64) -> Option<u64> {
        let alive = BINS.saturating_sub(self.passed(now, period_ns));
        let largest = self.bins[..alive].iter().max().copied().unwrap_or(0);
        (self.is_defined || self.broke_off(now, period_ns)).then_some(largest.into())
    }

    /// Returns true if a sampling period has passed since the last acknowledgement of an incomplete round trip.
    fn broke_off(&self, now: Timestamp, period_ns: u64) -> bool {
        self.round.is_some_and(|bytes| bytes > 0) && now.nanos_since(self.round_acked) >= period_ns
    }

    /// Makes pipeACK undefined until the next complete sample.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{MS_IN_NS as MS, at};
    use rstest::rstest;

    // RFC 7661 §4.5.1: max(3·RTT, 1 s).
    #[rstest]
    #[case(50, 1_000)]
    #[case(333, 1_000)]
    #[case(400, 1_200)]
    fn the_sampling_period_is_three_round_trips_but_at_least_a_second(
        #[case] srtt_ms: u64,
        #[case] period_ms: u64,
    ) {
        assert_eq!(sampling_period_ns(Some(srtt_ms * MS)), period_ms * MS);
    }

    #[test]
    fn it_is_the_largest_sample_of_the_period() {
        let mut pipe = PipeAck::default();
        assert_eq!(
            pipe.get(at(0), 1_000 * MS),
            None,
            "undefined before the first sample"
        );
        for (ms, bytes) in [(100, 20_000), (400, 50_000), (700, 30_000), (990, 10_000)] {
            pipe.sample(bytes, at(ms), 1_000 * MS);
        }
        assert_eq!(pipe.get(at(1_000), 1_000 * MS), Some(50_000));
        pipe.sample(10_000, at(1_300), 1_000 * MS);
        // The largest sample has expired.
        assert_eq!(pipe.get(at(1_400), 1_000 * MS), Some(30_000));
    }

    #[test]
    fn after_a_sampling_period_without_acknowledgements_the_samples_are_out() {
        let mut pipe = PipeAck::default();
        pipe.sample(50_000, at(100), 1_000 * MS);
        assert_eq!(pipe.get(at(1_099), 1_000 * MS), Some(50_000));
        assert_eq!(pipe.get(at(1_100), 1_000 * MS), Some(0));
    }

    #[test]
    fn forgetting_makes_it_undefined_until_the_next_sample() {
        let mut pipe = PipeAck::default();
        pipe.sample(50_000, at(100), 1_000 * MS);
        pipe.forget();
        assert_eq!(pipe.get(at(5_000), 1_000 * MS), None);
        pipe.sample(7_000, at(5_100), 1_000 * MS);
        assert_eq!(pipe.get(at(5_100), 1_000 * MS), Some(7_000));
    }
}
