//! [`TimeSeries`]: a connection's samples in bounded memory.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{Sample, Sink};

/// Keeps a connection's samples in bounded memory. When it is full, every other sample is dropped, and later samples
/// are kept at twice the spacing, so that it always spans the whole connection. Dropping causes no miscounts: a
/// sample's totals count from the connection's beginning, and its delivery rate is computed again from the previous
/// kept sample.
#[derive(Debug)]
pub struct TimeSeries {
    capacity: usize,
    state: Mutex<KeptSamples>,
}

#[derive(Debug, Default)]
struct KeptSamples {
    kept: Vec<Sample>,
    /// The newest sample, while it is closer than `spacing` to the last kept one.
    tail: Option<Sample>,
    spacing: Duration,
}

impl TimeSeries {
    /// A series of at most `capacity` samples (at least 16).
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(16),
            state: Mutex::default(),
        }
    }

    /// Samples kept so far, oldest first. The newest one is always among them.
    pub fn samples(&self) -> Vec<Sample> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut samples = state.kept.clone();
        if let Some(mut tail) = state.tail {
            tail.rate_since(samples.last());
            samples.push(tail);
        }
        samples
    }

    /// The newest sample, with its delivery rate since the previous kept one.
    pub fn latest(&self) -> Option<Sample> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tail = state.tail;
        if let Some(tail) = &mut tail {
            tail.rate_since(state.kept.last());
        }
        tail.or(state.kept.last().copied())
    }
}

impl Sink for TimeSeries {
    fn take(&self, sample: &Sample) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state
            .kept
            .last()
            .is_some_and(|last| sample.at < last.at + state.spacing)
        {
            state.tail = Some(*sample);
            return;
        }
        state.tail = None;
        let mut sample = *sample;
        if state.spacing > Duration::ZERO {
            sample.rate_since(state.kept.last());
        }
        state.kept.push(sample);
        // One place remains for the tail.
        if state.kept.len() + 1 >= self.capacity {
            state.thin_out();
        }
    }
}

impl KeptSamples {
    fn thin_out(&mut self) {
        let [first, .., last] = self.kept.as_slice() else {
            return;
        };
        let span = last.at.saturating_sub(first.at);
        let gaps = u32::try_from(self.kept.len().saturating_sub(1))
            .unwrap_or(u32::MAX)
            .max(1);
        // Twice the mean spacing so far.
        self.spacing = (span / gaps * 2).max(self.spacing);
        let mut kept: Vec<Sample> = Vec::with_capacity(self.kept.capacity());
        for mut sample in self.kept.drain(..).step_by(2) {
            sample.rate_since(kept.last());
            kept.push(sample);
        }
        self.kept = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_units::{Bitrate, Bytes};

    fn sample(millis: u64) -> Sample {
        Sample {
            at: Duration::from_millis(millis),
            delivered: Bytes::new(millis * 2_500),
            ..Sample::default()
        }
    }

    #[test]
    fn a_long_connection_stays_within_the_capacity_and_is_spanned_completely() {
        let series = TimeSeries::new(64);
        for step in 0..10_000 {
            series.take(&sample(step * 20));
            assert!(series.samples().len() <= 64);
            assert_eq!(series.latest(), series.samples().pop());
        }
        let samples = series.samples();
        assert!(samples.len() >= 16, "{}", samples.len());
        assert_eq!(samples[0].at, Duration::ZERO);
        assert_eq!(samples.last().unwrap().at, Duration::from_millis(9_999 * 20));
        assert!(samples.windows(2).all(|pair| pair[0].at < pair[1].at));
    }

    #[test]
    fn the_delivery_rate_survives_thinning_out() {
        let series = TimeSeries::new(32);
        for step in 0..1_000 {
            series.take(&sample(step * 20));
        }
        for sample in &series.samples()[1..] {
            assert_eq!(
                sample.delivery_rate,
                Some(Bitrate::from_mbps(20)),
                "{:?}",
                sample.at
            );
        }
    }

    #[test]
    fn samples_at_the_same_time_do_not_displace_others() {
        let series = TimeSeries::new(32);
        for _ in 0..1_000 {
            series.take(&sample(0));
        }
        series.take(&sample(20));
        let samples = series.samples();
        assert!(samples.len() <= 32);
        assert_eq!(samples.last().unwrap().at, Duration::from_millis(20));
    }
}
