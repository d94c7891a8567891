//! [`PathShare`]: the share of a connection's data that one of its paths delivers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use playrate_units::{Bytes, Probability};

/// Time over which a share is measured: a few round trips of most paths.
const INTERVAL: Duration = Duration::from_secs(1);
/// Time between two counts of a path that delivers.
const STEP: Duration = Duration::from_millis(100);

/// Measures a path's share. Each path adds the bytes that it delivers to a counter of the connection; its share is its
/// part of the counter's increase over an interval. A time without a count of the path, longer than an interval, is
/// left out: a backup path that takes over would begin with a share near zero.
#[derive(Clone, Debug)]
pub(crate) struct PathShare {
    /// Bytes delivered on all paths of the connection.
    all: Arc<AtomicU64>,
    /// Bytes of this path in `all`.
    own: u64,
    began: Instant,
    /// Time and `all` of the last count.
    counted: (Instant, u64),
    /// Time of the next count. It is kept because adding to an `Instant` for every ACK frame is slow.
    due: Instant,
    /// `own` and `all` at the beginning of the interval.
    before: (u64, u64),
}

impl PathShare {
    /// The share of a path that begins at `now` and has counted `delivered` so far.
    pub(crate) fn new(all: Arc<AtomicU64>, now: Instant, delivered: Bytes) -> Self {
        let (own, counted) = (delivered.as_u64(), all.load(Relaxed));
        Self {
            before: (own, counted),
            counted: (now, counted),
            due: now + STEP,
            all,
            own,
            began: now,
        }
    }

    /// Returns true if the path should [count](Self::update) again.
    #[inline]
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    /// Counts up to `delivered` bytes. Returns the share at the end of an interval, unless nothing was delivered.
    pub(crate) fn update(&mut self, now: Instant, delivered: Bytes) -> Option<Probability> {
        let own = delivered.as_u64();
        let added = own.saturating_sub(self.own);
        let all = self.all.fetch_add(added, Relaxed).saturating_add(added);
        let pause = now.saturating_duration_since(self.counted.0);
        if pause > INTERVAL {
            self.began += pause;
            self.before.0 += added;
            self.before.1 += all.saturating_sub(self.counted.1);
        }
        (self.own, self.counted, self.due) = (own, (now, all), now + STEP);
        if now.saturating_duration_since(self.began) < INTERVAL {
            return None;
        }
        let (own_before, all_before) = self.before;
        (self.began, self.before) = (now, (own, all));
        let parts = u128::from(own.saturating_sub(own_before)) * 1_000_000_000;
        let parts = parts.checked_div(u128::from(all.saturating_sub(all_before)))?;
        Some(Probability::from_parts_per_billion(
            u32::try_from(parts).unwrap_or(u32::MAX),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::origin;

    #[test]
    fn a_share_is_measured_over_a_second_and_follows_the_paths() {
        let (start, all) = (origin(), Arc::<AtomicU64>::default());
        let at = |ms| start + Duration::from_millis(ms);
        // Totals continue from an earlier path, whose bytes are not this path's.
        let mut first = PathShare::new(Arc::clone(&all), start, Bytes::new(5_000));
        assert_eq!(first.update(at(999), Bytes::new(9_000)), None, "too early");
        assert_eq!(first.update(at(1_000), Bytes::new(9_000)), Some(Probability::ONE));
        let mut second = PathShare::new(all, at(1_000), Bytes::ZERO);
        assert_eq!(second.update(at(1_500), Bytes::new(3_000)), None);
        assert_eq!(first.update(at(2_000), Bytes::new(10_000)), "25%".parse().ok());
        assert_eq!(second.update(at(2_000), Bytes::new(3_000)), "75%".parse().ok());
        assert_eq!(
            first.update(at(3_000), Bytes::new(10_000)),
            None,
            "nothing arrived"
        );
        let _ = second.update(at(3_500), Bytes::new(4_000));
        assert_eq!(
            first.update(at(4_000), Bytes::new(10_000)),
            Some(Probability::ZERO)
        );
    }

    #[test]
    fn a_backup_path_that_takes_over_has_a_share_of_the_time_since() {
        let (start, all) = (origin(), Arc::<AtomicU64>::default());
        let mut paths = [(); 2].map(|()| PathShare::new(Arc::clone(&all), start, Bytes::ZERO));
        let mut delivered = [0; 2];
        let mut shares = Vec::new();
        for step in 0..=230 {
            // The second path delivers a little at first, and everything once the first one has died.
            let bytes = match step {
                0..=2 => [50_000, 1_000],
                3..=200 => [50_000, 0],
                _ => [0, 50_000],
            };
            for ((path, delivered), bytes) in paths.iter_mut().zip(&mut delivered).zip(bytes) {
                *delivered += bytes;
                if bytes > 0 {
                    let share = path.update(start + step * STEP, Bytes::new(*delivered));
                    shares.extend(share.filter(|_| step > 200).map(Probability::as_f64));
                }
            }
        }
        assert!(shares.len() >= 2, "{shares:?}");
        assert!(shares[0] > 0.7, "{shares:?}");
        assert_eq!(shares[1..].iter().find(|&&share| share < 1.0), None, "{shares:?}");
    }
}
