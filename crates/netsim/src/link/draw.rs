//! Random draws from a seeded generator, the same on every machine.

use core::time::Duration;

use rand_core::Rng;
use rand_pcg::Pcg32;

use crate::time::nanos;

/// Uniform between 0 (included) and 1 (excluded).
pub(super) fn unit(generator: &mut Pcg32) -> f64 {
    f64::from(generator.next_u32()) / 4_294_967_296.0
}

/// Uniform between zero and `most`.
pub(super) fn uniform(generator: &mut Pcg32, most: Duration) -> Duration {
    scale(most, unit(generator))
}

/// Uniform among the whole numbers below `count`; 0 if that is 0.
pub(super) fn index(generator: &mut Pcg32, count: usize) -> usize {
    let scaled = (u64::from(generator.next_u32()) * (count as u64 & u64::from(u32::MAX))) >> 32;
    usize::try_from(scaled).unwrap_or_default()
}

/// Exponential with this mean.
pub(super) fn exponential(generator: &mut Pcg32, mean: Duration) -> Duration {
    // 1 − u is never zero; libm gives the same bits everywhere.
    scale(mean, -libm::log(1.0 - unit(generator)))
}

/// `time` times a factor that is not negative, to the nanosecond.
pub(super) fn scale(time: Duration, factor: f64) -> Duration {
    Duration::from_nanos(whole(nanos(time) as f64 * factor))
}

/// The nearest whole number, saturating.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float casts saturate, and the value is never negative"
)]
pub(super) fn whole(value: f64) -> u64 {
    libm::round(value) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Seed;

    #[test]
    fn exponential_draws_have_their_mean_and_their_tail() {
        let mut generator = Seed::new(1).generator();
        let mean = Duration::from_millis(10);
        let draws: Vec<_> = (0..100_000).map(|_| exponential(&mut generator, mean)).collect();
        let average = draws.iter().sum::<Duration>() / 100_000;
        assert!((9_900..10_100).contains(&average.as_micros()), "{average:?}");
        let beyond = draws.iter().filter(|draw| **draw > mean).count();
        // e⁻¹ of them exceed the mean.
        assert!((36_300..37_300).contains(&beyond), "{beyond}");
    }
}
