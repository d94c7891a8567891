//! [`DashReport`]: which segments were fetched, in what quality, and what the player thought of the network.

use std::collections::BTreeMap;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};
use serde::Serialize;

/// One segment that was fetched. Times are since the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentRecord {
    /// Index of its representation, the lowest rate being 0.
    pub representation: usize,
    /// When it was asked for.
    pub requested: Duration,
    /// When its first byte came.
    pub first_byte: Duration,
    /// When its last byte came.
    pub finished: Duration,
    /// How many bytes it had.
    pub bytes: Bytes,
    /// Playing time in the buffer when it was asked for.
    pub held: Duration,
    /// Its bytes over the time from its first to its last.
    pub instantaneous: Bitrate,
    /// Whether that went into the average.
    pub counted: bool,
    /// What the player thought after it that the network can do: mean of the last throughputs, less a tenth.
    pub smoothed: Bitrate,
}

/// The segments of a session, in the order of playing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DashReport {
    /// What there was to choose from, the lowest rate first: name and rate.
    pub representations: Vec<(String, Bitrate)>,
    /// How many segments the title has.
    pub segment_count: usize,
    /// Where in the title fetching began, from 0.
    pub first_segment: usize,
    /// Those that were fetched.
    pub segments: Vec<SegmentRecord>,
}

impl DashReport {
    /// How often the representation index changed by how much from one segment to the next; 0 is no change.
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

    /// Changes of the representation.
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

    /// Mean of the rates of the representations that segments were fetched in; `None` without any.
    pub fn mean_rate(&self) -> Option<Bitrate> {
        let rates = self
            .segments
            .iter()
            .filter_map(|it| self.representations.get(it.representation));
        let sum: u128 = rates.map(|(_, rate)| u128::from(rate.as_bits_per_second())).sum();
        let mean = sum.checked_div(self.segments.len() as u128)?;
        u64::try_from(mean).ok().map(Bitrate::from_bits_per_second)
    }

    /// How many segments were fetched in each representation, in the order of [`representations`](Self::representations).
    pub fn segments_by_representation(&self) -> Vec<u64> {
        let mut counts = vec![0; self.representations.len()];
        for segment in &self.segments {
            if let Some(count) = counts.get_mut(segment.representation) {
                *count += 1;
            }
        }
        counts
    }

    /// The distribution of what segments measured.
    pub fn instantaneous(&self) -> Option<Estimates> {
        Estimates::of(self.segments.iter().map(|it| it.instantaneous))
    }

    /// The distribution of what the player thought after each segment.
    pub fn smoothed(&self) -> Option<Estimates> {
        Estimates::of(self.segments.iter().map(|it| it.smoothed))
    }
}

/// A distribution of estimates of the throughput, bit/s.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Estimates {
    /// Their mean.
    pub mean_bps: f64,
    /// Standard deviation of the sample (n − 1); zero for a single one.
    pub sd_bps: f64,
    /// 5th percentile (nearest rank).
    pub p5_bps: u64,
    /// Median (nearest rank).
    pub p50_bps: u64,
    /// 95th percentile (nearest rank).
    pub p95_bps: u64,
}

impl Estimates {
    /// Of these rates; `None` if there are none.
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
        })
    }

    /// Coefficient of variation: standard deviation over mean; zero if the mean is.
    pub fn variation(&self) -> f64 {
        if self.mean_bps > 0.0 {
            self.sd_bps / self.mean_bps
        } else {
            0.0
        }
    }
}
