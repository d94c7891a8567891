//! Distributions in bounded memory: a histogram of magnitudes, and mean with standard deviation.

use std::collections::BTreeMap;

/// Number of bins per octave: neighbouring bins are 1.1 % apart.
const OCTAVE_BINS: u64 = 64;
const OCTAVE_BINS_LOG2: u32 = OCTAVE_BINS.ilog2();

/// The weight of each number, accurate to 1.1 % of the number. Mean and maximum are exact.
#[derive(Clone, Debug, Default)]
pub(super) struct Histogram {
    /// The bins that have a weight: one for each number below [`OCTAVE_BINS`], then [`OCTAVE_BINS`] for each octave.
    bins: BTreeMap<u64, u64>,
    sum: u128,
    weight: u64,
    max: u64,
}

impl Histogram {
    pub(super) fn add(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        let bin = self.bins.entry(bin(value)).or_default();
        *bin = bin.saturating_add(weight);
        self.sum = self
            .sum
            .saturating_add(u128::from(value).saturating_mul(weight.into()));
        self.weight = self.weight.saturating_add(weight);
        self.max = self.max.max(value);
    }

    /// Weighted mean; `None` if nothing was added.
    pub(super) fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(self.weight.into())?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }

    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// The number below which `percent` of the weight lies; `None` if nothing was added.
    pub(super) fn percentile(&self, percent: u32) -> Option<u64> {
        let wanted = u128::from(self.weight) * u128::from(percent);
        let mut below = 0_u128;
        for (&bin, &weight) in &self.bins {
            below += u128::from(weight) * 100;
            if below >= wanted {
                return Some(middle(bin).min(self.max));
            }
        }
        (self.weight > 0).then_some(self.max)
    }
}

fn bin(value: u64) -> u64 {
    if value < OCTAVE_BINS {
        return value;
    }
    let shift = value.ilog2() - OCTAVE_BINS_LOG2;
    u64::from(shift) * OCTAVE_BINS + (value >> shift)
}

/// The number in the middle of a bin.
fn middle(bin: u64) -> u64 {
    if bin < OCTAVE_BINS {
        return bin;
    }
    let shift = (bin - OCTAVE_BINS) / OCTAVE_BINS;
    let low = (OCTAVE_BINS + (bin - OCTAVE_BINS) % OCTAVE_BINS) << shift;
    low.saturating_add((1_u64 << shift) / 2)
}

/// Mean and standard deviation, updated number by number (Welford's recurrence, with weights as of West 1979).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moments {
    weight: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64, weight: f64) {
        if weight > 0.0 {
            self.weight += weight;
            let off = value - self.mean;
            self.mean += off * weight / self.weight;
            self.squares += weight * off * (value - self.mean);
        }
    }

    pub(super) fn mean(&self) -> Option<f64> {
        (self.weight > 0.0).then_some(self.mean)
    }

    /// Standard deviation of the population; `None` if nothing was added.
    pub(super) fn sd(&self) -> Option<f64> {
        (self.weight > 0.0).then(|| (self.squares / self.weight).max(0.0).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_right_to_one_in_sixty_four_from_one_byte_to_the_largest() {
        for exponent in 0..64 {
            for value in [1_u64 << exponent, (1_u64 << exponent) / 3 * 4] {
                let mut histogram = Histogram::default();
                histogram.add(value, 5);
                histogram.add(u64::MAX, 1);
                let found = histogram.percentile(50).unwrap();
                assert!(found.abs_diff(value) <= value / 64, "{value}: {found}");
            }
        }
    }

    #[test]
    fn weights_decide_where_the_percentiles_are() {
        let mut histogram = Histogram::default();
        histogram.add(10, 94);
        histogram.add(50, 6);
        let percentiles = [5, 50, 94, 95, 100].map(|percent| histogram.percentile(percent));
        assert_eq!(percentiles, [Some(10), Some(10), Some(10), Some(50), Some(50)]);
        assert_eq!((histogram.mean(), histogram.max()), (Some(12), 50));
        assert_eq!(Histogram::default().percentile(50), None);
    }

    #[test]
    fn moments_are_those_of_the_numbers_repeated_by_their_weight() {
        let mut moments = Moments::default();
        moments.add(2.0, 3.0);
        moments.add(6.0, 1.0);
        assert!((moments.mean().unwrap() - 3.0).abs() < 1e-12);
        assert!((moments.sd().unwrap() - 3.0_f64.sqrt()).abs() < 1e-12);
        assert_eq!(Moments::default().mean(), None);
    }
}
