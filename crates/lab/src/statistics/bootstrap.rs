//! Resampling: what would the number have been, had other trials of the same kind been made?

use rand_core::Rng;
use rand_pcg::Pcg32;

/// How often trials are drawn anew. Ends of intervals then stand still to about a fiftieth of the interval.
pub const RESAMPLES: usize = 10_000;
/// Seed of the draws: the same results have the same intervals, always.
pub const SEED: u64 = 0x706c_6179_7261_7465;

/// The values of `statistic` over `resamples` draws of `count` indices below `count`, with replacement, in rising order.
pub(super) fn resample(
    count: usize,
    resamples: usize,
    seed: u64,
    mut statistic: impl FnMut(&[usize]) -> f64,
) -> Vec<f64> {
    let mut generator = Pcg32::new(seed, count as u64);
    let mut drawn = vec![0; count];
    let mut values: Vec<f64> = (0..resamples)
        .map(|_| {
            for index in &mut drawn {
                *index = below(&mut generator, count);
            }
            statistic(&drawn)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A number below `count`: the upper half of a product, which is even to one part in 2³² / `count`.
fn below(generator: &mut Pcg32, count: usize) -> usize {
    let product = u64::from(generator.next_u32()) * count as u64;
    usize::try_from(product >> 32).unwrap_or(0)
}

/// The `share` quantile of values in rising order, between neighbours by weight (Hyndman and Fan 1996, type 7).
pub(super) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let below = place as usize;
    let weight = place - below as f64;
    let low = sorted.get(below).copied().unwrap_or(f64::NAN);
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * weight
}
