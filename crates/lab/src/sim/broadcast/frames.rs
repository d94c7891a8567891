//! [`Frames`]: the frames of a broadcast, from the encoder to the receiver.

use std::time::Duration;

use playrate_units::Bytes;
use serde::{Deserialize, Serialize};

use super::super::spread::Histogram;
use crate::rounding::{ratio, seconds};

/// Latency and rate of a broadcast's frames, as in a row (`docs/runs.md` describes the fields). Percentiles are
/// accurate to 1.1 %.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "docs/runs.md describes the fields by these names")]
pub struct BroadcastStatistics {
    pub frames_made: u64,
    pub frames_arrived: u64,
    /// Frames that arrived within the latency bound, of those made.
    pub frames_on_time_share: f64,
    /// Latencies of the frames that arrived.
    pub frame_latency_p50_s: f64,
    pub frame_latency_p95_s: f64,
    pub frame_latency_p99_s: f64,
    pub frame_latency_max_s: f64,
    /// Bytes of the frames made, over the time that the encoder took.
    pub encoded_rate_bps: u64,
    /// Median of the sender's smoothed RTT when a frame is made.
    pub srtt_p50_s: f64,
}

/// The frames made so far, and the arrivals.
#[derive(Debug, Default)]
pub(super) struct Frames {
    made: Vec<MadeFrame>,
    smoothed_rtt: Histogram,
    latency: Histogram,
    on_time: u64,
    arrived: u64,
    received: u64,
}

#[derive(Clone, Copy, Debug)]
struct MadeFrame {
    at: Duration,
    size: u64,
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Frames {
    /// Adds a frame made at `at`, and returns its number from 0.
    pub(super) fn make(&mut self, at: Duration, size: u32, smoothed_rtt: Duration) -> u32 {
        self.made.push(MadeFrame {
            at,
            size: size.into(),
        });
        self.smoothed_rtt.add(nanos(smoothed_rtt), 1);
        u32::try_from(self.made.len() - 1).unwrap_or(u32::MAX)
    }

    /// Records that a frame has arrived in full at `now`. It is on time if its latency is at most `bound`.
    pub(super) fn arrive(&mut self, number: u32, now: Duration, bound: Duration) {
        let made = usize::try_from(number)
            .ok()
            .and_then(|number| self.made.get(number));
        let Some(made) = made else { return };
        let latency = now.saturating_sub(made.at);
        self.latency.add(nanos(latency), 1);
        self.arrived += 1;
        self.on_time += u64::from(latency <= bound);
        self.received = self.received.saturating_add(made.size);
    }

    /// Bytes of the frames that have arrived.
    pub(super) fn received(&self) -> Bytes {
        Bytes::new(self.received)
    }

    /// The statistics so far; `None` before the second frame. The last frame takes the mean time of the others.
    pub(super) fn statistics(&self) -> Option<BroadcastStatistics> {
        let (first, last) = (self.made.first()?, self.made.last()?);
        let gaps = u32::try_from(self.made.len() - 1).ok()?;
        let time = last.at.saturating_sub(first.at);
        let time = time.saturating_add(time.checked_div(gaps)?);
        let bytes = self.made.iter().map(|frame| frame.size).sum();
        let percentile = |times: &Histogram, percent| {
            seconds(Duration::from_nanos(
                times.percentile(percent).unwrap_or_default(),
            ))
        };
        Some(BroadcastStatistics {
            frames_made: self.made.len() as u64,
            frames_arrived: self.arrived,
            frames_on_time_share: ratio(self.on_time as f64 / self.made.len() as f64),
            frame_latency_p50_s: percentile(&self.latency, 50),
            frame_latency_p95_s: percentile(&self.latency, 95),
            frame_latency_p99_s: percentile(&self.latency, 99),
            frame_latency_max_s: seconds(Duration::from_nanos(self.latency.max())),
            encoded_rate_bps: Bytes::new(bytes).per(time)?.as_bits_per_second(),
            srtt_p50_s: percentile(&self.smoothed_rtt, 50),
        })
    }
}
