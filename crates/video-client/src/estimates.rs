//! [`Estimates`]: a distribution of throughput estimates.

use playrate_units::Bitrate;
use serde::Serialize;

/// Distribution of throughput estimates in bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Estimates {
    /// Mean of the estimates.
    pub mean_bps: f64,
    /// Standard deviation of the sample (n − 1); zero for a single one.
    pub sd_bps: f64,
    /// 5th percentile (nearest rank).
    pub p5_bps: u64,
    /// 50th percentile, the median (nearest rank).
    pub p50_bps: u64,
    /// 95th percentile (nearest rank).
    pub p95_bps: u64,
    /// Coefficient of variation: standard deviation over mean; zero if the mean is.
    pub variation: f64,
}

impl Estimates {
    /// The distribution of `rates`; `None` if there are none.
    pub fn of(rates: impl IntoIterator<Item = Bitrate>) -> Option<Self> {
        let mut rates: Vec<u64> = rates.into_iter().map(Bitrate::as_bits_per_second).collect();
        rates.sort_unstable();
        let count = rates.len();
        let mean = rates.iter().map(|&rate| rate as f64).sum::<f64>() / count as f64;
        let squares: f64 = rates.iter().map(|&rate| (rate as f64 - mean).powi(2)).sum();
        let sd = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Self {
            mean_bps: mean,
            sd_bps: sd,
            p5_bps: nearest_rank(&rates, 5)?,
            p50_bps: nearest_rank(&rates, 50)?,
            p95_bps: nearest_rank(&rates, 95)?,
            variation: if mean > 0.0 { sd / mean } else { 0.0 },
        })
    }
}

/// The given percentile of the `sorted` values (nearest rank); `None` if there are none.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], percent: u8) -> Option<T> {
    let rank = (sorted.len() * usize::from(percent)).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied()
}
