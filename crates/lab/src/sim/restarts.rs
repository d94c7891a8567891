//! [`Restarts`]: losses and congestion avoidance after a sender's pauses.

use std::time::Duration;

use playrate_cc::Phase;
use playrate_transport::telemetry::Sample;
use playrate_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::rounding::{ratio, seconds};

/// Minimum pause: a time without an acknowledgement that exceeds the smallest RTO of idle policies (200 ms) plus the
/// following round trip.
pub(crate) const PAUSE: Duration = Duration::from_millis(300);
/// Losses within this many propagation RTTs after a pause count towards the restart.
const ROUND_TRIPS: u32 = 10;

/// Statistics of the restarts after a sender's pauses, as in a row.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RestartStatistics {
    /// Number of restarts after pauses.
    pub restarts: u64,
    /// Share of restarts with packets lost within ten propagation RTTs.
    pub restart_loss_share: f64,
    /// Mean bytes lost during that time, over all restarts.
    pub restart_lost_mean_bytes: u64,
    /// Share of restarts that reached congestion avoidance before the next pause.
    pub restart_avoidance_share: f64,
    /// Mean time from the first packet until then, over those restarts; zero if slow start did not begin again.
    pub restart_avoidance_mean_s: f64,
}

/// Counts restarts sample by sample.
#[derive(Debug, Default)]
pub(super) struct Restarts {
    current: Option<Restart>,
    count: u64,
    lossy: u64,
    lost: u64,
    avoided: u32,
    avoidance: Duration,
}

/// A restart after a pause, up to the next one.
#[derive(Clone, Copy, Debug)]
struct Restart {
    /// Departure of the first packet after the pause.
    since: Duration,
    /// Bytes lost before the restart.
    before: Bytes,
    lost: u64,
    avoided: bool,
}

impl Restarts {
    /// Adds `sample`, which follows `last`.
    pub(super) fn see(&mut self, last: &Sample, sample: &Sample, round_trip: Duration) {
        let begins = sample.at.saturating_sub(last.at) >= PAUSE;
        if begins {
            self.count += 1;
            self.current = Some(Restart {
                // The first acknowledged packet left one RTT earlier.
                since: sample.at.saturating_sub(sample.latest_rtt.unwrap_or_default()),
                before: last.lost,
                lost: 0,
                avoided: false,
            });
        }
        let Some(open) = &mut self.current else { return };
        let passed = sample.at.saturating_sub(open.since);
        if passed <= round_trip.saturating_mul(ROUND_TRIPS) {
            let losses = sample.lost.as_u64().saturating_sub(open.before.as_u64());
            self.lossy += u64::from(open.lost == 0 && losses > 0);
            self.lost = self.lost.saturating_add(losses.saturating_sub(open.lost));
            open.lost = losses;
        }
        if sample.snapshot.phase == Phase::Avoidance && !open.avoided {
            open.avoided = true;
            self.avoided += 1;
            self.avoidance = self
                .avoidance
                .saturating_add(if begins { Duration::ZERO } else { passed });
        }
    }

    /// Statistics so far; `None` without a pause.
    pub(super) fn statistics(&self) -> Option<RestartStatistics> {
        let share = |some: u64| ratio(some as f64 / self.count as f64);
        Some(RestartStatistics {
            restarts: self.count,
            restart_loss_share: share(self.lossy),
            restart_lost_mean_bytes: self.lost.checked_div(self.count)?,
            restart_avoidance_share: share(self.avoided.into()),
            restart_avoidance_mean_s: seconds(self.avoidance.checked_div(self.avoided).unwrap_or_default()),
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

    fn statistics(samples: &[Sample]) -> Option<RestartStatistics> {
        let mut restarts = Restarts::default();
        for pair in samples.windows(2) {
            restarts.see(&pair[0], &pair[1], RTT);
        }
        restarts.statistics()
    }

    #[test]
    fn a_restart_is_followed_to_congestion_avoidance_and_its_losses_are_counted() {
        let seen = statistics(&[
            sample(100, Phase::Avoidance, 3_000),
            sample(2_100, Phase::AfterIdle, 3_000), // the first packet left at 2,060 ms
            sample(2_140, Phase::AfterIdle, 3_000),
            sample(2_180, Phase::Recovery, 9_000),
            sample(2_220, Phase::Avoidance, 9_000),  // after 160 ms
            sample(2_480, Phase::Avoidance, 20_000), // 420 ms after the restart: not counted
            sample(5_100, Phase::AfterIdle, 20_000),
            sample(5_140, Phase::Avoidance, 20_000), // after 80 ms
        ])
        .unwrap();
        let expected = RestartStatistics {
            restarts: 2,
            restart_loss_share: 0.5,
            restart_lost_mean_bytes: 3_000,
            restart_avoidance_share: 1.0,
            restart_avoidance_mean_s: 0.12,
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn a_sender_that_keeps_its_window_is_in_avoidance_at_once() {
        let seen = statistics(&[
            sample(100, Phase::Avoidance, 0),
            sample(2_100, Phase::Avoidance, 0),
            sample(2_140, Phase::Avoidance, 0),
        ])
        .unwrap();
        let expected = RestartStatistics {
            restarts: 1,
            restart_loss_share: 0.0,
            restart_lost_mean_bytes: 0,
            restart_avoidance_share: 1.0,
            restart_avoidance_mean_s: 0.0,
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn without_a_pause_there_is_no_restart() {
        let samples = [100, 399].map(|millis| sample(millis, Phase::Startup, 0));
        assert_eq!(statistics(&samples), None);
        // A pause at the very end is not followed by a restart.
        assert_eq!(statistics(&[sample(100, Phase::Startup, 0)]), None);
    }
}
