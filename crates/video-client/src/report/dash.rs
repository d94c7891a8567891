//! [`DashReport`]: the segments of an adaptive session, their representations and the player's throughput estimates.

use std::collections::BTreeMap;
use std::time::Duration;

use playrate_units::Bitrate;
use serde::Serialize;

use crate::transfer::Transfer;

/// Measurements of one fetched segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentRecord {
    /// Index of the segment in the title, from 0.
    pub segment: usize,
    /// Index of its representation, the lowest rate being 0.
    pub representation: usize,
    /// Times and size of its transfer.
    pub transfer: Transfer,
    /// Playing time in the buffer at the request.
    pub held: Duration,
    /// Size over the time from the first to the last byte.
    pub instantaneous: Bitrate,
    /// True if the average includes this segment.
    pub counted: bool,
    /// The player's estimate after the segment: mean of the last throughputs, less a tenth.
    pub smoothed: Bitrate,
}

/// The segments of a session, in the order in which they were fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DashReport {
    /// Names and rates of the representations, the lowest rate first.
    pub representations: Vec<(String, Bitrate)>,
    /// Number of segments of the title.
    pub segment_count: usize,
    /// Index of the first segment fetched, from 0.
    pub first_segment: usize,
    /// The segments fetched, in this order; one that was replaced in a better representation is there twice.
    pub segments: Vec<SegmentRecord>,
}

impl DashReport {
    /// Number of changes of the representation index by their size (0 is no change) from one segment to the next.
    pub fn switches(&self) -> BTreeMap<i64, u64> {
        let mut sizes = BTreeMap::new();
        for pair in self.segments.windows(2) {
            if let [before, after] = pair {
                let [before, after] =
                    [before, after].map(|it| i64::try_from(it.representation).unwrap_or(i64::MAX));
                *sizes.entry(after.saturating_sub(before)).or_insert(0) += 1;
            }
        }
        sizes
    }

    /// Number of changes of the representation.
    pub fn switch_count(&self) -> u64 {
        let sizes = self.switches();
        sizes
            .iter()
            .filter(|(size, _)| **size != 0)
            .map(|(_, count)| count)
            .sum()
    }

    /// Changes of the representation over segments fetched; `None` without any.
    pub fn switch_share(&self) -> Option<f64> {
        let segments = self.segments.len();
        (segments > 0).then(|| self.switch_count() as f64 / segments as f64)
    }

    /// Mean rate of the representations of the fetched segments; `None` without any.
    pub fn mean_rate(&self) -> Option<Bitrate> {
        let rates = self
            .segments
            .iter()
            .filter_map(|it| self.representations.get(it.representation));
        let sum: u128 = rates.map(|(_, rate)| u128::from(rate.as_bits_per_second())).sum();
        let mean = sum.checked_div(self.segments.len() as u128)?;
        u64::try_from(mean).ok().map(Bitrate::from_bits_per_second)
    }

    /// Number of segments of each representation, in the order of [`representations`](Self::representations).
    pub fn segments_by_representation(&self) -> Vec<u64> {
        let mut counts = vec![0; self.representations.len()];
        for segment in &self.segments {
            if let Some(count) = counts.get_mut(segment.representation) {
                *count += 1;
            }
        }
        counts
    }

    /// Distribution of the segments' instantaneous throughput.
    pub fn instantaneous(&self) -> Option<Estimates> {
        Estimates::of(self.segments.iter().map(|it| it.instantaneous))
    }

    /// Distribution of the player's estimates.
    pub fn smoothed(&self) -> Option<Estimates> {
        Estimates::of(self.segments.iter().map(|it| it.smoothed))
    }
}

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
        let rank = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1);
            rates.get(rank - 1).copied()
        };
        let (p5, p50, p95) = (rank(5)?, rank(50)?, rank(95)?);
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
            p5_bps: p5,
            p50_bps: p50,
            p95_bps: p95,
            variation: if mean > 0.0 { sd / mean } else { 0.0 },
        })
    }
}
