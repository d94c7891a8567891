//! [`Throughput`]: throughput of the path to a client, from acknowledgements.

use std::time::Duration;

use parking_lot::Mutex;
use playrate_cc::{Estimate, EstimateSource};
use playrate_transport::telemetry::{Sample, Sink};
use playrate_units::Bitrate;

/// Time after which the weight of an old rate has fallen to 1/e: about one segment.
const AVERAGING_TIME: Duration = Duration::from_secs(3);
/// Minimum measured time before there is an estimate.
const MIN_MEASURED: Duration = Duration::from_millis(100);

/// A connection's throughput: the [estimate](playrate_transport::telemetry::Sample::estimate) of the path's rate. A
/// transfer may be too short for an estimate, or the application may have limited the sender for a part of it. The
/// throughput then is the delivery rate while the sender was not application-limited, averaged over the last seconds of
/// such time, or the estimate if that is higher. Pauses between segments are ignored, and so are small requests before
/// the first such time. cwnd/RTT is not used, because it describes what could be sent, not what arrives.
#[derive(Debug, Default)]
pub(super) struct Throughput(Mutex<ThroughputEstimate>);

#[derive(Debug, Default)]
struct ThroughputEstimate {
    before: Option<Sample>,
    /// Estimated rate in bit/s.
    estimate: f64,
    /// Measured time in total.
    measured: Duration,
}

impl Throughput {
    /// The throughput; `None` until there is an estimate of the path without the application as the limit, or
    /// [`MIN_MEASURED`] was measured.
    pub(super) fn estimate(&self) -> Option<Bitrate> {
        let state = self.0.lock();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a rate, not negative"
        )]
        let rate = Bitrate::from_bits_per_second(state.estimate as u64);
        (state.measured >= MIN_MEASURED).then_some(rate)
    }
}

impl Sink for Throughput {
    fn take(&self, sample: &Sample) {
        let mut state = self.0.lock();
        let before = state.before.replace(*sample);
        if let Some(path) = sample.estimate.filter(Estimate::is_current) {
            let rate = path.rate.as_bits_per_second() as f64;
            if path.source != EstimateSource::Application {
                (state.estimate, state.measured) = (rate, AVERAGING_TIME);
                return;
            }
            // A lower bound raises the average and counts as no measured time.
            if state.measured >= MIN_MEASURED && rate > state.estimate {
                state.estimate = rate;
                return;
            }
        }
        let Some(before) = before.filter(|before| !before.app_limited && !sample.app_limited) else {
            return;
        };
        let time = sample.at.saturating_sub(before.at);
        let Some(rate) = (sample.delivered - before.delivered).per(time) else {
            return;
        };
        // The first seconds get a plain average; later ones replace the oldest.
        let weight = time.as_secs_f64() / (state.measured + time).min(AVERAGING_TIME).as_secs_f64();
        let rate = rate.as_bits_per_second() as f64;
        state.estimate += weight.min(1.0) * (rate - state.estimate);
        state.measured += time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playrate_units::Bytes;

    fn sample(ms: u64, delivered: u64, app_limited: bool) -> Sample {
        let mut sample = Sample::default();
        sample.at = Duration::from_millis(ms);
        sample.delivered = Bytes::new(delivered);
        sample.app_limited = app_limited;
        sample
    }

    /// Adds 100 samples, one every 20 ms, of this many bytes each.
    fn run(throughput: &Throughput, from_ms: u64, from_bytes: u64, each: u64) {
        for step in 0..=100 {
            throughput.take(&sample(from_ms + 20 * step, from_bytes + each * step, false));
        }
    }

    #[test]
    fn it_is_the_delivery_rate_while_there_is_enough_to_send() {
        let throughput = Throughput::default();
        throughput.take(&sample(0, 0, false));
        throughput.take(&sample(20, 50_000, false));
        assert_eq!(throughput.estimate(), None, "20 ms say little");
        run(&throughput, 40, 100_000, 50_000);
        let rate = throughput.estimate().unwrap().as_mbps();
        assert!((rate - 20.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn pauses_between_segments_do_not_lower_it() {
        let throughput = Throughput::default();
        run(&throughput, 0, 0, 50_000);
        throughput.take(&sample(2_020, 5_050_000, true));
        throughput.take(&sample(9_000, 5_060_000, true));
        throughput.take(&sample(9_020, 5_070_000, false));
        run(&throughput, 9_040, 5_120_000, 50_000);
        let rate = throughput.estimate().unwrap().as_mbps();
        assert!((rate - 20.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn an_estimate_of_the_path_replaces_the_average_unless_it_is_stale_or_a_lower_bound_below_it() {
        let throughput = Throughput::default();
        let estimated = |ms, mbps, source, age| {
            let mut sample = sample(ms, 0, true);
            let age = Duration::from_millis(age);
            sample.estimate = Some(Estimate::new(Bitrate::from_mbps(mbps), source, age));
            throughput.take(&sample);
            throughput.estimate().map(Bitrate::as_mbps)
        };
        assert_eq!(estimated(0, 9, EstimateSource::BusyLink, 2_000), None);
        for (ms, mbps, source, age, expected) in [
            (20, 2, EstimateSource::Application, 0, None),
            (40, 12, EstimateSource::BusyLink, 0, Some(12.0)),
            (60, 7, EstimateSource::Application, 0, Some(12.0)),
            (80, 8, EstimateSource::Window, 50, Some(8.0)),
            (100, 9, EstimateSource::Application, 0, Some(9.0)),
            (120, 5, EstimateSource::Window, 700, Some(9.0)),
        ] {
            assert_eq!(estimated(ms, mbps, source, age), expected, "at {ms} ms");
        }
        run(&throughput, 140, 0, 50_000);
        run(&throughput, 2_200, 5_000_000, 50_000);
        let rate = throughput.estimate().unwrap().as_mbps();
        assert!((14.0..20.0).contains(&rate), "{rate}: the average continues");
    }

    #[test]
    fn small_requests_before_the_first_segment_say_nothing_and_do_not_weigh() {
        let throughput = Throughput::default();
        for step in 0..50 {
            let mut sample = sample(20 * step, 250 * step, true);
            let (rate, source) = (Bitrate::from_kbps(100), EstimateSource::Application);
            sample.estimate = Some(Estimate::new(rate, source, Duration::ZERO));
            throughput.take(&sample);
        }
        assert_eq!(throughput.estimate(), None);
        for step in 0..10 {
            throughput.take(&sample(1_000 + 20 * step, 20_000 + 50_000 * step, false));
        }
        let rate = throughput.estimate().unwrap().as_mbps();
        assert!((rate - 20.0).abs() < 0.1, "{rate}");
    }

    #[test]
    fn it_follows_the_path() {
        let throughput = Throughput::default();
        run(&throughput, 0, 0, 50_000);
        for round in 0..5 {
            run(
                &throughput,
                2_020 + round * 2_000,
                5_000_000 + round * 250_000,
                2_500,
            );
        }
        let rate = throughput.estimate().unwrap().as_mbps();
        assert!((1.0..2.0).contains(&rate), "{rate}");
    }
}
