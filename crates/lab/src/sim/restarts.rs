//! [`Restarts`]: what happens when a sender goes on after a pause.

use std::time::Duration;

use playrate_cc::Phase;
use playrate_transport::telemetry::Sample;
use playrate_units::Bytes;

/// A pause is a time of at least this without an acknowledgement: more than the least RTO of idle parts (200 ms) and the
/// round trip after it.
const PAUSE: Duration = Duration::from_millis(300);
/// For so many propagation RTTs losses are counted as those of a restart.
const ROUND_TRIPS: u32 = 10;

/// What happened when a sender went on after pauses.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RestartSpread {
    /// How often it did.
    pub count: u64,
    /// After how many of these packets were lost within ten propagation RTTs.
    pub lossy: u64,
    /// Bytes lost in that time, on average.
    pub lost_mean: Bytes,
    /// How many of them came to congestion avoidance before the next pause.
    pub avoided: u64,
    /// How long that took from the first packet on, on average of those; zero where slow start did not begin again.
    pub avoidance_mean: Duration,
}

/// Counts them.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    open: Option<Open>,
    count: u64,
    lossy: u64,
    lost: u64,
    avoided: u64,
    avoidance: Duration,
}

/// From a restart to the next pause.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// When its first packet left.
    since: Duration,
    /// Bytes lost before.
    before: Bytes,
    lost: Bytes,
    avoided: bool,
}

impl Restarts {
    /// A sample came, the newest before it was `last`.
    pub(super) fn see(&mut self, last: &Sample, sample: &Sample, round_trip: Duration) {
        if sample.at.saturating_sub(last.at) >= PAUSE {
            self.close();
            // What is acknowledged first left an RTT before.
            let since = sample.at.saturating_sub(sample.latest_rtt.unwrap_or_default());
            self.open = Some(Open {
                since,
                before: last.lost,
                lost: Bytes::ZERO,
                avoided: false,
            });
            if sample.snapshot.phase == Phase::Avoidance {
                self.avoid(Duration::ZERO);
            }
        }
        let Some(open) = &mut self.open else { return };
        let passed = sample.at.saturating_sub(open.since);
        if passed <= round_trip.saturating_mul(ROUND_TRIPS) {
            open.lost = Bytes::new(sample.lost.as_u64().saturating_sub(open.before.as_u64()));
        }
        if sample.snapshot.phase == Phase::Avoidance && !open.avoided {
            self.avoid(passed);
        }
    }

    fn avoid(&mut self, after: Duration) {
        if let Some(open) = &mut self.open {
            open.avoided = true;
            self.avoided += 1;
            self.avoidance = self.avoidance.saturating_add(after);
        }
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.count += 1;
            self.lossy += u64::from(open.lost > Bytes::ZERO);
            self.lost = self.lost.saturating_add(open.lost.as_u64());
        }
    }

    /// What there was so far; `None` without a pause.
    pub(super) fn spread(&self) -> Option<RestartSpread> {
        let open = self.open?;
        let count = self.count + 1;
        let lost = self.lost.saturating_add(open.lost.as_u64());
        let avoided = u32::try_from(self.avoided).unwrap_or(u32::MAX);
        Some(RestartSpread {
            count,
            lossy: self.lossy + u64::from(open.lost > Bytes::ZERO),
            lost_mean: Bytes::new(lost / count),
            avoided: self.avoided,
            avoidance_mean: self.avoidance.checked_div(avoided).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    fn sample(millis: u64, phase: Phase, lost: u64) -> Sample {
        let mut sample = Sample::default();
        sample.at = Duration::from_millis(millis);
        sample.snapshot.phase = phase;
        sample.latest_rtt = Some(RTT);
        sample.lost = Bytes::new(lost);
        sample
    }

    fn spread(samples: &[Sample]) -> Option<RestartSpread> {
        let mut restarts = Restarts::default();
        for pair in samples.windows(2) {
            restarts.see(&pair[0], &pair[1], RTT);
        }
        restarts.spread()
    }

    #[test]
    fn a_restart_is_followed_to_congestion_avoidance_and_its_losses_are_counted() {
        let seen = spread(&[
            sample(100, Phase::Avoidance, 3_000),
            sample(2_100, Phase::AfterIdle, 3_000), // the first packet left at 2,060 ms
            sample(2_140, Phase::AfterIdle, 3_000),
            sample(2_180, Phase::Recovery, 9_000),
            sample(2_220, Phase::Avoidance, 9_000),  // after 160 ms
            sample(2_480, Phase::Avoidance, 20_000), // 420 ms after the restart: another story
            sample(5_100, Phase::AfterIdle, 20_000),
            sample(5_140, Phase::Avoidance, 20_000), // after 80 ms
        ])
        .unwrap();
        assert_eq!((seen.count, seen.lossy, seen.avoided), (2, 1, 2));
        assert_eq!(seen.lost_mean, Bytes::new(3_000));
        assert_eq!(seen.avoidance_mean, Duration::from_millis(120));
    }

    #[test]
    fn a_sender_that_keeps_its_window_is_in_avoidance_at_once() {
        let seen = spread(&[
            sample(100, Phase::Avoidance, 0),
            sample(2_100, Phase::Avoidance, 0),
            sample(2_140, Phase::Avoidance, 0),
        ])
        .unwrap();
        assert_eq!((seen.count, seen.avoided), (1, 1));
        assert_eq!(seen.avoidance_mean, Duration::ZERO);
    }

    #[test]
    fn without_a_pause_there_is_no_restart() {
        assert_eq!(
            spread(&[sample(100, Phase::Startup, 0), sample(399, Phase::Startup, 0)]),
            None
        );
        // A pause in which everything ends is none that anything came after.
        assert_eq!(spread(&[sample(100, Phase::Startup, 0)]), None);
    }
}
