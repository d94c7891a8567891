//! [`TrialValues`]: the values that vary between the trials of a scenario, drawn from their seeds.
//!
//! In a laboratory no two trials are alike: a film is never requested at the same point of its pattern, a path's delay
//! and a queue's size never match their nominal values exactly, and flows do not begin simultaneously. Every quantity
//! is drawn from its own seed, so that adding one changes no other, and all controllers have the same draws.

use std::time::Duration;

use playrate_netsim::{PathConfig, Seed};

use super::Scenario;
use super::file::{TimeRange, Vary};
use crate::sim::ServedTitle;

/// Maximum deviation of a trial's RTT from the scenario's in either direction, in millionths: 2 %.
const RTT_SPREAD: u64 = 20_000;
/// Maximum deviation of a trial's queue from the scenario's in either direction, in millionths: 5 %.
const QUEUE_SPREAD: u64 = 50_000;
/// Maximum delay of a flow's beginning after the scenario's time, if there are several flows.
const LATEST_START: Duration = Duration::from_millis(50);
/// Denominator of the spreads.
pub(super) const MILLION: u64 = 1_000_000;

/// The values of one trial that differ between trials.
#[derive(Clone, Debug)]
pub(crate) struct TrialValues {
    pub(crate) title: ServedTitle,
    pub(crate) path: PathConfig,
    /// Range of the delays of flows after the scenario's times.
    late_starts: TimeRange,
}

impl TrialValues {
    /// Delay of the flow with this seed after the scenario's time.
    pub(super) fn late_start(&self, flow: Seed) -> Duration {
        self.late_starts.draw(flow.child("late start"))
    }
}

/// Seed of a trial's values.
fn variation(seed: u64) -> Seed {
    Seed::new(seed).child("variation")
}

/// The path with its RTT and its queue towards the viewers varied within the spreads.
fn varied(path: &PathConfig, seed: Seed) -> PathConfig {
    let rtt = part(RTT_SPREAD, seed.child("rtt"));
    let queue = part(QUEUE_SPREAD, seed.child("queue"));
    let delay = |delay: Duration| {
        let nanos = delay.as_nanos() * u128::from(rtt) / u128::from(MILLION);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    };
    let PathConfig {
        forward, backward, ..
    } = path.clone();
    let (there, back) = (forward.delay.map(delay), backward.delay.map(delay));
    // A multiple of the bandwidth-delay product refers to the scenario's RTT, so that RTT and queue are independent.
    let forward = forward.with_scaled_queue(path.round_trip(), (queue, MILLION));
    PathConfig::new(forward.with_delay(there), backward.with_delay(back))
}

/// Millionths between a million minus `spread` and a million plus `spread`, both included, uniformly distributed.
pub(super) fn part(spread: u64, seed: Seed) -> u64 {
    MILLION - spread + below(2 * spread + 1, seed)
}

/// A uniformly distributed number below `end`; 0 if that is 0.
fn below(end: u64, seed: Seed) -> u64 {
    // A child's number is uniformly distributed over 64 bits.
    let drawn = (u128::from(end) * u128::from(seed.number())) >> 64;
    u64::try_from(drawn).unwrap_or(u64::MAX)
}

impl Scenario {
    /// The values of the trial with this seed, the same for all controllers and for the ideal sender; the scenario's
    /// own values if its trials do not vary.
    pub(crate) fn trial_values(&self, seed: u64) -> TrialValues {
        let mut values = TrialValues {
            title: self.viewer.title.clone(),
            path: self.trial_path(seed),
            late_starts: TimeRange::ZERO,
        };
        if let Some(frames) = &self.frames
            // The scenario's frames could be scaled to their rate, so these can be, too.
            && let Ok(title) = frames.title(Some(variation(seed).child("frame sizes")))
        {
            values.title = title;
        }
        if self.vary == Vary::Trials {
            let beginning = below(values.title.beginnings(), variation(seed).child("title"));
            values.title = values.title.rotated_to(beginning);
            if self.flows() > 1 {
                values.late_starts.to = LATEST_START;
            }
        }
        values
    }

    /// The path of the trial with this seed.
    pub(crate) fn trial_path(&self, seed: u64) -> PathConfig {
        match self.vary {
            Vary::None => self.path.clone(),
            Vary::Trials => varied(&self.path, variation(seed)),
        }
    }
}
