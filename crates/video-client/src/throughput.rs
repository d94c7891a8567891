//! [`Throughput`]: the receiving rate, on average and by the second.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

use crate::estimates::nearest_rank;

/// Counts delivered bytes by whole seconds since the request was sent.
#[derive(Clone, Debug)]
pub struct Throughput {
    since: Duration,
    last: Duration,
    total: Bytes,
    seconds: Vec<u64>,
}

/// Maximum number of seconds counted separately (about 36 hours); later ones are added to the last.
const MAX_SECONDS: usize = 1 << 17;

impl Throughput {
    /// Starts counting at `since`, when the request is sent.
    pub fn new(since: Duration) -> Self {
        Self {
            since,
            last: since,
            total: Bytes::ZERO,
            seconds: Vec::new(),
        }
    }

    /// Counts `bytes` received at `now`.
    pub fn record(&mut self, now: Duration, bytes: Bytes) {
        let second = usize::try_from(now.saturating_sub(self.since).as_secs()).unwrap_or(MAX_SECONDS);
        let second = second.min(MAX_SECONDS - 1);
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, 0);
        }
        if let Some(sum) = self.seconds.get_mut(second) {
            *sum = sum.saturating_add(bytes.as_u64());
        }
        self.total += bytes;
        self.last = self.last.max(now);
    }

    /// Sum of all bytes received.
    pub fn total(&self) -> Bytes {
        self.total
    }

    /// All bytes over the time from the request to the last byte; `None` before the first.
    pub fn mean(&self) -> Option<Bitrate> {
        self.total().per(self.last.saturating_sub(self.since))
    }

    /// The given percentile of the rate over whole seconds (nearest rank). Seconds with paused reading count unchanged.
    /// `None` if less than one second has passed.
    pub fn percentile(&self, percent: u8) -> Option<Bitrate> {
        // The last second is incomplete when the last byte arrives.
        let (_, whole) = self.seconds.split_last()?;
        let mut sorted = whole.to_vec();
        sorted.sort_unstable();
        nearest_rank(&sorted, percent.min(100)).map(Bitrate::from_bytes_per_second)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_mean_runs_from_the_request_to_the_last_byte() {
        let mut throughput = Throughput::new(secs(5));
        assert_eq!(throughput.mean(), None);
        throughput.record(secs(7), Bytes::from_kb(1_000));
        throughput.record(secs(9), Bytes::from_kb(1_000));
        assert_eq!(throughput.mean(), Some(Bitrate::from_mbps(4)));
        assert_eq!(throughput.total(), Bytes::from_kb(2_000));
    }

    #[test]
    fn percentiles_are_over_whole_seconds_with_the_silent_ones() {
        let mut throughput = Throughput::new(secs(0));
        for (second, kb) in [(0, 100), (1, 300), (3, 200), (4, 999_999)] {
            throughput.record(secs(second) + Duration::from_millis(10), Bytes::from_kb(kb));
        }
        let rate = |percent| throughput.percentile(percent).map(Bitrate::as_bytes_per_second);
        assert_eq!(rate(0), Some(0));
        assert_eq!(rate(25), Some(0), "second 2");
        assert_eq!(rate(50), Some(100_000));
        assert_eq!(rate(95), Some(300_000));
        assert_eq!(rate(100), Some(300_000));
    }

    #[test]
    fn less_than_a_second_has_no_percentiles() {
        let mut throughput = Throughput::new(secs(0));
        throughput.record(Duration::from_millis(999), Bytes::new(1));
        assert_eq!(throughput.percentile(50), None);
    }

    #[test]
    fn a_session_of_years_takes_little_memory() {
        let mut throughput = Throughput::new(secs(0));
        throughput.record(secs(u64::MAX / 2), Bytes::new(1));
        throughput.record(secs(u64::MAX / 2 + 7), Bytes::new(1));
        assert_eq!(throughput.total(), Bytes::new(2));
        assert!(throughput.seconds.len() <= MAX_SECONDS);
    }
}
