//! [`DelaySchedule`]: a propagation delay that changes when the route changes.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::duration;

use super::steps::Steps;
use crate::{ConfigError, Time};

/// Text of a step without a route.
const DOWN: &str = "down";

/// Propagation delays and the times from which they apply. A packet's delay is that at its departure from the queue.
///
/// Each step is a separate route: packets on a shorter route overtake those that are still on the longer one. While
/// there is no route (`down`), packets that leave the queue are lost.
///
/// Text form: `20ms`, `20ms,100ms@30s`, `20ms,down@30s,100ms@30.3s`, and `,repeat@60s` at its end to start again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DelaySchedule(Steps<Option<Duration>>);

impl DelaySchedule {
    fn new(steps: Steps<Option<Duration>>) -> Result<Self, ConfigError> {
        let begins_down = matches!(steps.steps.first(), Some((_, None)));
        let rule = begins_down.then_some("its first step must be a time");
        match steps.broken_rule().or(rule) {
            None => Ok(Self(steps)),
            Some(what) => Err(ConfigError::Schedule {
                schedule: steps.show(shown),
                what: what.to_owned(),
            }),
        }
    }

    /// Delay of the first route. Queues in multiples of the bandwidth-delay product refer to it.
    pub fn first(&self) -> Duration {
        let first = self.0.steps.first().and_then(|(_, delay)| *delay);
        first.unwrap_or_default()
    }

    /// Delay of the longest route.
    pub fn longest(&self) -> Duration {
        let delays = self.0.steps.iter().filter_map(|(_, delay)| *delay);
        delays.max().unwrap_or_default()
    }

    /// Returns true if the delay ever changes.
    pub fn changes(&self) -> bool {
        self.0.steps.len() > 1
    }

    /// The same routes with other delays.
    #[must_use]
    pub fn map(&self, delay: impl Fn(Duration) -> Duration) -> Self {
        let steps = self.0.steps.iter();
        Self(Steps {
            steps: steps.map(|(from, step)| (*from, step.map(&delay))).collect(),
            repeat: self.0.repeat,
        })
    }

    /// Delays of the two directions of a round trip, forward first.
    pub(crate) fn halves(&self) -> (Self, Self) {
        let forward = self.map(|delay| delay.saturating_sub(delay / 2));
        (forward, self.map(|delay| delay / 2))
    }

    /// Delay at `now`, `None` without a route, and the start of the step.
    pub(super) fn at(&self, now: Time) -> (Option<Duration>, Time) {
        let step = self.0.at(now);
        step.map_or((None, Time::ZERO), |(delay, from, _)| (delay, from))
    }
}

fn shown(delay: Option<Duration>) -> String {
    delay.map_or_else(|| DOWN.to_owned(), |delay| duration::display(delay).to_string())
}

impl Default for DelaySchedule {
    fn default() -> Self {
        Duration::ZERO.into()
    }
}

impl From<Duration> for DelaySchedule {
    fn from(delay: Duration) -> Self {
        Self(Steps {
            steps: vec![(Duration::ZERO, Some(delay))],
            repeat: None,
        })
    }
}

impl FromStr for DelaySchedule {
    type Err = ConfigError;

    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let step = |text: &str| match text {
            DOWN => Some(None),
            _ => duration::parse(text).ok().map(Some),
        };
        let steps = Steps::read(text, step);
        Self::new(steps.ok_or_else(|| ConfigError::DelayText(text.to_owned()))?)
    }
}

impl fmt::Display for DelaySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.show(shown))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_delay_applies_from_its_time_on_and_the_schedule_repeats() {
        let delays: DelaySchedule = "20ms,down@30s,100ms@30.3s,repeat@60s".parse().unwrap();
        let at = |seconds: u64| delays.at(Time::from_millis(seconds * 100));
        assert_eq!(at(0), (Some(Duration::from_millis(20)), Time::ZERO));
        assert_eq!(at(302), (None, Time::from_millis(30_000)));
        assert_eq!(
            at(303),
            (Some(Duration::from_millis(100)), Time::from_millis(30_300))
        );
        assert_eq!(
            at(600),
            (Some(Duration::from_millis(20)), Time::from_millis(60_000))
        );
        assert_eq!(delays.first(), Duration::from_millis(20));
        assert_eq!(delays.longest(), Duration::from_millis(100));
        let (forward, backward) = delays.halves();
        assert_eq!(forward.to_string(), "10ms,down@30s,50ms@30.3s,repeat@60s");
        assert_eq!(backward, forward);
    }

    #[rstest]
    #[case("20ms")]
    #[case("20ms,100ms@30s")]
    #[case("20ms,down@30s,100ms@30.3s,repeat@60s")]
    fn text_round_trips(#[case] text: &str) {
        assert_eq!(text.parse::<DelaySchedule>().unwrap().to_string(), text);
    }

    #[rstest]
    #[case("down,20ms@1s", "must be a time")]
    #[case("20ms@1s", "from the beginning")]
    #[case("20ms,30ms@2s,20ms@2s", "must increase")]
    #[case("20ms,30ms@2s,repeat@2s", "repeats before")]
    #[case("20", "such as 100ms")]
    #[case("20ms,up@2s", "such as 100ms")]
    fn an_impossible_schedule_is_refused_with_the_reason(#[case] text: &str, #[case] reason: &str) {
        let error = text.parse::<DelaySchedule>().unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(text), "{error}");
    }
}
