//! [`Draws`]: the random choices of a plan.

use std::time::Duration;

use playrate_netsim::Seed;
use rand_core::Rng as _;
use rand_pcg::Pcg32;

/// A generator with a seed. The same seed gives the same choices on every machine.
pub(crate) struct Draws(Pcg32);

impl Draws {
    pub(crate) fn new(seed: Seed) -> Self {
        Self(Pcg32::new(seed.number(), seed.child("stream").number()))
    }

    /// Uniform between 0 (included) and 1 (excluded).
    fn unit(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / 4_294_967_296.0
    }

    /// True with the given probability.
    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// A whole number from `low` to `high`, both included, where small ones are as likely as large ones: the factor
    /// relative to `low` is distributed uniformly, in powers of two and linearly between them.
    pub(crate) fn spread(&mut self, low: u64, high: u64) -> u64 {
        let (low, high) = (low.max(1), high.max(1));
        let octaves = (high as f64 / low as f64).log2();
        let position = self.unit() * octaves;
        let factor = (position.floor()).exp2() * (1.0 + position.fract());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, and float casts saturate"
        )]
        let drawn = (low as f64 * factor) as u64;
        drawn.clamp(low, high)
    }

    /// A time between these, in whole milliseconds, distributed as in [`Self::spread`].
    pub(crate) fn time(&mut self, low: Duration, high: Duration) -> Duration {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.spread(millis(low), millis(high)))
    }

    /// A time up to `most`, in whole milliseconds, uniformly distributed.
    pub(crate) fn moment(&mut self, most: Duration) -> Duration {
        let drawn = most.mul_f64(self.unit());
        Duration::from_millis(u64::try_from(drawn.as_millis()).unwrap_or(u64::MAX))
    }

    /// A number below `count`; 0 if that is 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let scaled = (u64::from(self.0.next_u32()) * count as u64) >> 32;
        usize::try_from(scaled).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_number_is_within_its_bounds_and_as_often_below_as_above_their_geometric_mean() {
        let mut draws = Draws::new(Seed::new(1));
        let numbers: Vec<u64> = (0..10_000).map(|_| draws.spread(10, 1_000)).collect();
        assert!(numbers.iter().all(|number| (10..=1_000).contains(number)));
        let below = numbers.iter().filter(|number| **number < 100).count();
        assert!((4_800..5_200).contains(&below), "{below} of 10000");
    }
}
