//! [`ThroughputHistory`]: a player's throughput estimate from the download times of its segments.

use std::collections::VecDeque;
use std::time::Duration;

use playrate_units::Bitrate;

use crate::transfer::Transfer;

// dash.js 4.0.0, `ThroughputHistory.js`, and `Settings.js` for its settings.

/// Number of measurements kept for the averages.
const MOST: usize = 20;
/// Throughputs averaged for a title that is not live.
const SAMPLES: usize = 4;
/// Latencies averaged for [`ThroughputHistory::usable`].
const LATENCY_SAMPLES: usize = 4;
/// Two consecutive throughputs that differ by this factor make the average one sample longer.
const VARIES: f64 = 1.3;
/// Share of the average that the player relies on (`bandwidthSafetyFactor`).
const SAFETY: f64 = 0.9;
/// Download time below which a segment counts as cached (`cacheLoadThresholds.video`).
const CACHED: Duration = Duration::from_millis(50);

/// Throughput and latency of the last segments, as dash.js 4.0.0 measures and averages them.
///
/// *Throughput* is a segment's bytes over the time from its first byte to its last, in whole kbit/s; *latency* is the
/// time from the request to the first byte (`useDeadTimeLatency`). Both are measured in whole milliseconds, at least
/// one.
#[derive(Clone, Debug, Default)]
pub(super) struct ThroughputHistory {
    /// Newest last, in kbit/s.
    throughputs: VecDeque<u64>,
    /// Newest last, in milliseconds.
    latencies: VecDeque<u64>,
    /// True if all of them come from segments that counted as cached.
    cached: bool,
}

impl ThroughputHistory {
    /// Adds the times and the size of a segment. Returns its size over the time from the first byte to the last, which
    /// is dash.js's "instantaneous" estimate, and true if the averages include it. A segment that counts as cached is
    /// left out once there are others.
    pub(super) fn push(&mut self, transfer: &Transfer) -> (Bitrate, bool) {
        let latency = millis_between(transfer.requested, transfer.first_byte);
        let download = millis_between(transfer.first_byte, transfer.finished);
        // Rounded like `Math.round`.
        let doubled = u128::from(transfer.bytes.as_u64()) * 16 + u128::from(download);
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
        (Bitrate::from_kbps(throughput), counted)
    }

    /// Number of throughputs averaged: four, plus one for each pair of neighbours that differ much.
    fn sample_size(&self) -> usize {
        let known = self.throughputs.len();
        let mut size = SAMPLES.min(known);
        if size == known {
            return size;
        }
        // The size grows during the loop that walks towards it.
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

    /// Mean throughput (dash.js's "smoothed" estimate) less a tenth. `None` before the first measurement.
    pub(super) fn smoothed(&self) -> Option<Bitrate> {
        self.mean().map(|kbps| from_kbps(kbps * SAFETY))
    }

    /// Highest rate for segments of `duration`: the [smoothed](Self::smoothed) throughput, less the share of the time
    /// that requests spend waiting for the first byte. Zero if they wait longer than a segment plays.
    pub(super) fn usable(&self, duration: Duration) -> Option<Bitrate> {
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

/// Difference of two times in whole milliseconds, at least one.
fn millis_between(from: Duration, to: Duration) -> u64 {
    let millis = to.as_millis().saturating_sub(from.as_millis());
    u64::try_from(millis).unwrap_or(u64::MAX).max(1)
}
