//! [`ThroughputHistory`]: what a player makes of how long its segments took.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

// dash.js 4.0.0, `ThroughputHistory.js`, and `Settings.js` for those that can be set there.

/// Measurements kept.
const MOST: usize = 20;
/// Throughputs averaged, of a title that is not live.
const SAMPLES: usize = 4;
/// Latencies averaged.
const LATENCY_SAMPLES: usize = 4;
/// Two throughputs in a row that differ by this factor make the average one sample longer.
const VARIES: f64 = 1.3;
/// What of the average is taken to be sure (`bandwidthSafetyFactor`).
const SAFETY: f64 = 0.9;
/// A segment that took less than this is taken to come from a cache (`cacheLoadThresholds.video`).
const CACHED: Duration = Duration::from_millis(50);

/// Throughput and latency of the last segments, as dash.js 4.0.0 measures and averages them.
///
/// *Throughput* is a segment's bytes over the time from its first byte to its last, in whole kbit/s; *latency* is the
/// time from the request to the first byte (`useDeadTimeLatency`). Both go by a clock of whole milliseconds, and no time is
/// shorter than one.
#[derive(Clone, Debug, Default)]
pub struct ThroughputHistory {
    /// kbit/s
    throughputs: VecDeque<u64>,
    /// ms
    latencies: VecDeque<u64>,
    /// Whether all of them are of segments that seemed to come from a cache.
    cached: bool,
}

/// What a segment said of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Its bytes over the time from its first byte to its last: dash.js's "instantaneous" estimate.
    pub throughput: Bitrate,
    /// From the request to its first byte.
    pub latency: Duration,
    /// Whether it went into the averages: one that came as if from a cache does not, once others have.
    pub counted: bool,
}

impl ThroughputHistory {
    /// A segment of so many bytes came. Times are since the session began.
    pub fn push(
        &mut self,
        requested: Duration,
        first_byte: Duration,
        finished: Duration,
        bytes: Bytes,
    ) -> Measured {
        let latency = millis_between(requested, first_byte);
        let download = millis_between(first_byte, finished);
        // Rounded as `Math.round` does.
        let doubled = u128::from(bytes.as_u64()) * 16 + u128::from(download);
        let throughput = u64::try_from(doubled / (2 * u128::from(download))).unwrap_or(u64::MAX);
        let cached = Duration::from_millis(download) < CACHED;
        let counted = !cached || self.throughputs.is_empty() || self.cached;
        if counted {
            if !cached && self.cached {
                self.throughputs.clear();
                self.latencies.clear();
            }
            self.cached = cached;
            keep(&mut self.throughputs, throughput);
            keep(&mut self.latencies, latency);
        }
        Measured {
            throughput: Bitrate::from_kbps(throughput),
            latency: Duration::from_millis(latency),
            counted,
        }
    }

    /// How many throughputs are averaged: four, and one more for each two neighbours among them that vary much.
    fn sample_size(&self) -> usize {
        let known = self.throughputs.len();
        let mut size = SAMPLES.min(known);
        if size == known {
            return size;
        }
        // The size grows while it is walked towards.
        let mut back = 1;
        while back < size && size < known {
            let pair = (
                self.throughputs.get(known - back),
                self.throughputs.get(known - back - 1),
            );
            if let (Some(&after), Some(&before)) = pair {
                let ratio = after as f64 / before as f64;
                size += usize::from(ratio >= VARIES || ratio <= 1.0 / VARIES);
            }
            back += 1;
        }
        size
    }

    /// Mean of the last throughputs, kbit/s; `None` before the first.
    fn mean(&self) -> Option<f64> {
        mean(&self.throughputs, self.sample_size())
    }

    /// What is taken to be sure of the mean throughput: dash.js's "smoothed" estimate, less a tenth. `None` before the
    /// first measurement.
    pub fn smoothed(&self) -> Option<Bitrate> {
        self.mean().map(|kbps| from_kbps(kbps * SAFETY))
    }

    /// The rate that segments of `duration` can have: the [smoothed](Self::smoothed) throughput, less the share of the time
    /// that requests spend waiting for the first byte. Zero if they wait longer than a segment plays.
    pub fn usable(&self, duration: Duration) -> Option<Bitrate> {
        let kbps = self.mean()? * SAFETY;
        let latency = mean(&self.latencies, LATENCY_SAMPLES.min(self.latencies.len()))?;
        let dead = latency / 1_000.0 / duration.as_secs_f64();
        Some(from_kbps(if dead > 1.0 { 0.0 } else { kbps * (1.0 - dead) }))
    }
}

/// Mean of the newest `count` values.
fn mean(values: &VecDeque<u64>, count: usize) -> Option<f64> {
    let sum: f64 = values.iter().rev().take(count).map(|&value| value as f64).sum();
    (count > 0).then(|| sum / count as f64)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are positive, and the cast saturates"
)]
fn from_kbps(kbps: f64) -> Bitrate {
    Bitrate::from_bits_per_second((kbps * 1_000.0) as u64)
}

/// Keeps the newest measurements.
fn keep(values: &mut VecDeque<u64>, value: u64) {
    values.push_back(value);
    if values.len() > MOST {
        values.pop_front();
    }
}

/// Between two times of a clock of whole milliseconds, at least one.
fn millis_between(from: Duration, to: Duration) -> u64 {
    let millis = to.as_millis().saturating_sub(from.as_millis());
    u64::try_from(millis).unwrap_or(u64::MAX).max(1)
}
