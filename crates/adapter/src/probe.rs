//! [`Probe`]: padding by which an application that sends little finds out what its path may carry.

use std::time::{Duration, Instant};

use playrate_cc::{Estimate, EstimateSource};
use playrate_units::{Bitrate, Bytes};

use crate::estimator::Measurement;

/// Rate of application and padding against the estimate, in percent: as far as a probe of BBR exceeds its bandwidth
/// (draft-ietf-ccwg-bbr §5.3.3). On a busy link the queue grows by a quarter of the link's rate until the estimate
/// shows that the link is busy.
const GROWTH: u64 = 125;
/// Share of the target that counts as reached, in percent: an estimate reads low, and bytes are sent in portions.
const REACHED: u64 = 95;
/// Longest time of one probe: enough to grow thirtyfold.
const LONGEST: Duration = Duration::from_secs(10);
/// Longest time between two calls for which bytes are due.
const LONGEST_STEP: Duration = Duration::from_millis(100);

/// Decides how many bytes of padding an application writes in addition to its own. The connection's [`Estimate`] then
/// shows how much the path carries, up to a target.
///
/// While only the application limits the sender, the estimate is a lower bound that never exceeds what is sent. A
/// probe adds bytes until the estimate reaches the target, or the link or the congestion window limits the sender.
/// Then it pauses for so long that padding takes no more than a given rate on average. Padding belongs on a stream of
/// lower priority than everything else, which the receiver discards. Reset this stream when
/// [`is_active`](Self::is_active) turns false, so that bytes that were not sent never are.
#[derive(Clone, Debug)]
pub struct Probe {
    target: Bitrate,
    cost: Bitrate,
    /// Time of the last call.
    called: Option<Instant>,
    /// Beginning of the probe in progress, and its padding so far.
    current: Option<(Instant, Bytes)>,
    /// Beginning and length of the pause after the last probe.
    pause: Option<(Instant, Duration)>,
    found: Option<Measurement>,
}

impl Probe {
    /// A probe for rates of up to `target`, in bytes of QUIC packets as [`Estimate::rate`], whose padding takes at most
    /// `cost` on average. There is only one probe if `cost` is zero.
    pub const fn new(target: Bitrate, cost: Bitrate) -> Self {
        Self {
            target,
            cost,
            called: None,
            current: None,
            pause: None,
            found: None,
        }
    }

    /// Number of padding bytes to write at `now`, with the connection's `estimate`, after the application wrote `wrote`
    /// bytes since the last call. Call it regularly, such as with every frame: a longer time between two calls counts
    /// as 100 ms only.
    pub fn bytes_due(&mut self, now: Instant, wrote: Bytes, estimate: Option<Estimate>) -> Bytes {
        let step = self
            .called
            .replace(now)
            .map_or(Duration::ZERO, |called| now.saturating_duration_since(called));
        let estimate = estimate.filter(Estimate::is_current);
        let is_within = |(began, length)| now.saturating_duration_since(began) < length;
        let has_time = match self.current {
            Some((began, _)) => is_within((began, LONGEST)),
            None => !self.pause.is_some_and(is_within),
        };
        let may_grow = |estimate: &Estimate| {
            estimate.source == EstimateSource::Application && estimate.rate < self.target.scaled(REACHED, 100)
        };
        let Some(bound) = estimate.filter(|estimate| has_time && may_grow(estimate)) else {
            if let Some((_, padding)) = self.current.take() {
                self.pause = Some((now, self.cost.time_for(padding).unwrap_or(Duration::MAX)));
                self.found = estimate.and_then(|estimate| {
                    Some(Measurement {
                        rate: estimate.rate,
                        source: estimate.source,
                        at: now.checked_sub(estimate.age)?,
                        span: estimate.span,
                    })
                });
            }
            return Bytes::ZERO;
        };
        let rate = bound.rate.scaled(GROWTH, 100).min(self.target);
        let due = rate * step.min(LONGEST_STEP) - wrote;
        let (_, padding) = self.current.get_or_insert((now, Bytes::ZERO));
        *padding += due;
        due
    }

    /// Returns true while a probe is in progress.
    pub const fn is_active(&self) -> bool {
        self.current.is_some()
    }

    /// The estimate at the end of the last probe, as of `now`. It is `None` before the end of the first probe, and if
    /// the last one ended because there was no [current](Estimate::is_current) estimate. If its source is
    /// [`Application`](EstimateSource::Application), the target was reached or time was up: the path may carry more.
    pub fn found(&self, now: Instant) -> Option<Estimate> {
        self.found.as_ref().map(|found| found.estimate(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::origin;

    const STEP: Duration = Duration::from_millis(100);

    /// Steps a probe with these estimates in Mbit/s; returns the bytes due after an application of 1 Mbit/s.
    fn due(probe: &mut Probe, start: Instant, estimates: &[(EstimateSource, u64)]) -> Vec<u64> {
        let step = |(number, &(source, mbps)): (usize, &(EstimateSource, u64))| {
            let now = start + STEP * u32::try_from(number).unwrap();
            let estimate = Estimate::new(Bitrate::from_mbps(mbps), source, Duration::ZERO);
            probe.bytes_due(now, Bytes::new(12_500), Some(estimate)).as_u64()
        };
        estimates.iter().enumerate().map(step).collect()
    }

    #[test]
    fn application_and_padding_exceed_the_estimate_by_a_quarter_up_to_the_target() {
        use EstimateSource::{Application, Window};
        let (mut probe, start) = (
            Probe::new(Bitrate::from_mbps(10), Bitrate::from_mbps(1)),
            origin(),
        );
        assert_eq!(probe.bytes_due(start, Bytes::ZERO, None), Bytes::ZERO);
        let estimates = [
            (Application, 4),
            (Application, 4),
            (Application, 9),
            (Window, 9),
            (Application, 4),
        ];
        assert_eq!(
            due(&mut probe, start + STEP, &estimates),
            [50_000, 50_000, 112_500, 0, 0]
        );
        let found = probe
            .found(start + STEP * 4)
            .map(|found| (found.rate, found.source));
        assert_eq!(found, Some((Bitrate::from_mbps(9), Window)));
    }

    #[test]
    fn a_pause_is_as_long_as_the_padding_takes_at_the_cost() {
        use EstimateSource::{Application, BusyLink};
        let (mut probe, start) = (
            Probe::new(Bitrate::from_mbps(10), Bitrate::from_mbps(1)),
            origin(),
        );
        // 50,000 bytes take 0.4 s at 1 Mbit/s.
        let mut estimates = vec![(Application, 4), (Application, 4), (BusyLink, 4)];
        estimates.extend([(Application, 4); 5]);
        assert_eq!(
            due(&mut probe, start, &estimates),
            [0, 50_000, 0, 0, 0, 0, 50_000, 50_000]
        );
    }

    #[test]
    fn a_probe_ends_and_finds_nothing_once_there_is_no_current_estimate() {
        let application = |age| {
            let (rate, source) = (Bitrate::from_mbps(4), EstimateSource::Application);
            Some(Estimate::new(rate, source, Duration::from_millis(age)))
        };
        for ending in [None, application(600)] {
            let mut probe = Probe::new(Bitrate::from_mbps(10), Bitrate::from_mbps(1));
            let start = origin();
            let mut step = |number, estimate| {
                let due = probe.bytes_due(start + STEP * number, Bytes::ZERO, estimate);
                let found = probe.found(start).map(|found| found.rate);
                (due.as_u64(), probe.is_active(), found)
            };
            assert_eq!(step(0, application(0)), (0, true, None));
            assert_eq!(step(1, ending), (0, false, None));
            // The next probe takes until its maximum time and finds a rate; the one after that none again.
            assert_eq!(step(2, application(599)), (62_500, true, None));
            let found = Some(Bitrate::from_mbps(4));
            assert_eq!(step(102, application(0)), (0, false, found));
            assert_eq!(step(110, application(0)), (62_500, true, found));
            assert_eq!(step(111, ending), (0, false, None));
        }
    }

    #[test]
    fn neither_a_stale_estimate_nor_a_reached_target_nor_time_without_calls_makes_bytes_due() {
        let mut probe = Probe::new(Bitrate::from_mbps(10), Bitrate::from_mbps(1));
        let start = origin();
        let estimate = |mbps, age| {
            let source = EstimateSource::Application;
            Some(Estimate::new(
                Bitrate::from_mbps(mbps),
                source,
                Duration::from_millis(age),
            ))
        };
        for (seconds, mbps, age, expected) in [(0, 4, 0, 0), (1, 4, 700, 0), (2, 10, 0, 0), (9, 4, 0, 62_500)]
        {
            let due = probe.bytes_due(
                start + Duration::from_secs(seconds),
                Bytes::ZERO,
                estimate(mbps, age),
            );
            assert_eq!(due, Bytes::new(expected), "{seconds} s");
        }
    }
}
