//! The samples with the smallest keys of the last ten seconds.

use crate::Timestamp;

use super::NANOS_PER_SECOND;

/// Samples kept per second, and samples that enter the estimate.
pub(super) const BEST: u8 = 8;
/// Index of the worst of them.
const LAST: usize = BEST as usize - 1;
/// Seconds that are remembered.
const SECONDS: u8 = 10;

/// A rate and a measure of its disturbance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sample {
    /// Rank of the sample, smallest first.
    pub(super) key: u32,
    /// Rate in bytes per second.
    pub(super) rate: u32,
}

/// The eight samples with the smallest keys of each of the last ten seconds.
///
/// A sample keeps its tag during its second and the next, so that it can be removed.
#[derive(Clone, Debug, Default)]
pub(super) struct BestSamples {
    seconds: [Best; SECONDS as usize],
    /// Tags of the current second's samples and of the last one's.
    tags: [[u32; BEST as usize]; 2],
    /// The current second's index.
    head: u8,
    /// Beginning of the current second.
    head_began: Timestamp,
}

impl BestSamples {
    /// Forgets expired samples. Returns true if a second ended.
    pub(super) fn advance(&mut self, now: Timestamp) -> bool {
        let ended = now.nanos_since(self.head_began) / NANOS_PER_SECOND;
        if ended == 0 {
            return false;
        }
        for _ in 0..ended.min(u64::from(SECONDS)) {
            self.head = self.head.wrapping_add(1) % SECONDS;
            self.seconds[usize::from(self.head)].count = 0;
            self.tags[1] = self.tags[0];
        }
        self.head_began = self.head_began.plus_nanos(ended.saturating_mul(NANOS_PER_SECOND));
        true
    }

    /// Adds a sample to the current second if it is among its best. Returns true if it is.
    pub(super) fn insert(&mut self, sample: Sample, tag: u32) -> bool {
        let Some(place) = self.seconds[usize::from(self.head)].insert(sample) else {
            return false;
        };
        self.tags[0].copy_within(place..LAST, place.saturating_add(1));
        self.tags[0][place] = tag;
        true
    }

    /// Returns true if a sample with this key would be among the best of the current second.
    pub(super) fn wants(&self, key: u32) -> bool {
        let worst = self.seconds[usize::from(self.head)].worst_key();
        worst.is_none_or(|worst| key < worst)
    }

    /// Removes the samples with this tag. Returns true if there were any.
    pub(super) fn remove(&mut self, tag: u32) -> bool {
        let last = self.head.wrapping_add(SECONDS - 1) % SECONDS;
        let mut removed = false;
        for (second, tags) in [self.head, last].into_iter().zip(&mut self.tags) {
            let Best { samples, count } = &mut self.seconds[usize::from(second)];
            let mut kept = 0_u8;
            for at in 0..usize::from(*count) {
                if tags[at] != tag {
                    samples[usize::from(kept)] = samples[at];
                    tags[usize::from(kept)] = tags[at];
                    kept = kept.saturating_add(1);
                }
            }
            removed |= kept < *count;
            *count = kept;
        }
        removed
    }

    /// The best eight of all seconds, or fewer if there are fewer.
    pub(super) fn best(&self) -> Best {
        let mut best = Best::default();
        for second in &self.seconds {
            let samples = &second.samples[..usize::from(second.count)];
            // Once a sample is not among the best, the remaining ones of the same second are not either.
            let _ = samples
                .iter()
                .try_for_each(|&sample| best.insert(sample).map(drop));
        }
        best
    }
}

/// Up to eight samples, in ascending order of their keys.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Best {
    samples: [Sample; BEST as usize],
    pub(super) count: u8,
}

impl Best {
    /// Adds a sample if it is among the best; returns its place. Of equal keys, the earlier one stays ahead.
    fn insert(&mut self, sample: Sample) -> Option<usize> {
        let kept = &self.samples[..usize::from(self.count)];
        let place = kept.partition_point(|kept| kept.key <= sample.key);
        if place >= usize::from(BEST) {
            return None;
        }
        self.samples.copy_within(place..LAST, place.saturating_add(1));
        self.samples[place] = sample;
        self.count = self.count.saturating_add(1).min(BEST);
        Some(place)
    }

    /// The key that a sample must undercut to be among the best; `None` while there are fewer than eight.
    pub(super) fn worst_key(&self) -> Option<u32> {
        (self.count >= BEST).then_some(self.samples[LAST].key)
    }

    /// Median of the rates; the mean of the middle two if their number is even; `None` if there are none.
    pub(super) fn median(&self) -> Option<u32> {
        let mut rates = self.samples.map(|sample| sample.rate);
        let rates = &mut rates[..usize::from(self.count)];
        rates.sort_unstable();
        let upper = *rates.get(rates.len() / 2)?;
        let lower = *rates.get(rates.len().saturating_sub(1) / 2)?;
        Some(lower.midpoint(upper))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(key: u32) -> Sample {
        Sample { key, rate: key * 10 }
    }

    fn keys(samples: &BestSamples) -> Vec<u32> {
        let best = samples.best();
        let taken = &best.samples[..usize::from(best.count)];
        taken.iter().map(|sample| sample.key).collect()
    }

    /// One second with samples of these keys.
    fn second(keys: impl IntoIterator<Item = u32>) -> BestSamples {
        let mut samples = BestSamples::default();
        for key in keys {
            samples.insert(sample(key), 0);
        }
        samples
    }

    #[test]
    fn keeps_the_eight_smallest_of_a_second_in_order() {
        let mut samples = second([9, 3, 12, 7, 1, 11, 5, 10, 2, 8, 4, 6]);
        assert_eq!(keys(&samples), [1, 2, 3, 4, 5, 6, 7, 8]);
        assert!(!samples.insert(sample(8), 0), "a tie is no improvement");
    }

    #[test]
    fn a_bad_second_does_not_push_out_a_good_one() {
        let mut samples = second(1..=8);
        samples.advance(Timestamp::from_millis(1_500));
        for key in 100..120 {
            samples.insert(sample(key), 0);
        }
        assert_eq!(keys(&samples), [1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn forgets_after_ten_seconds() {
        let mut samples = second([1]);
        samples.advance(Timestamp::from_millis(9_999));
        assert_eq!(keys(&samples), [1]);
        assert!(samples.advance(Timestamp::from_millis(10_000)));
        assert_eq!(keys(&samples), [0_u32; 0]);
        samples.insert(sample(2), 0);
        assert!(samples.advance(Timestamp::from_nanos(u64::MAX)));
        assert_eq!(samples.best().median(), None);
    }

    #[test]
    fn takes_back_by_tag_across_two_seconds() {
        let mut samples = BestSamples::default();
        samples.insert(sample(1), 7);
        samples.insert(sample(2), 8);
        samples.advance(Timestamp::from_millis(1_000));
        samples.insert(sample(3), 7);
        samples.insert(sample(4), 9);
        assert!(samples.remove(7));
        assert!(!samples.remove(7));
        assert_eq!(keys(&samples), [2, 4]);
    }

    #[test]
    fn the_median_of_an_even_number_is_the_mean_of_the_middle_two() {
        let mut samples = BestSamples::default();
        for (key, rate) in [(1, 100), (2, 900), (3, 300), (4, 200)] {
            samples.insert(Sample { key, rate }, 0);
        }
        assert_eq!(samples.best().median(), Some(250));
        samples.insert(Sample { key: 5, rate: 950 }, 0);
        assert_eq!(samples.best().median(), Some(300));
    }
}
