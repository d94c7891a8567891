//! [`RateSchedule`]: a rate that changes in steps, outages included.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::{Bitrate, duration};

use super::FASTEST;
use crate::time::nanos;
use crate::{ConfigError, Time};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Rates and the times from which they apply; a rate of zero is an outage. The last one applies for ever, or
/// the schedule repeats.
///
/// Text form: `20Mbit/s,5Mbit/s@30s,0bit/s@60s,20Mbit/s@62s`, and `,repeat@90s` at its end to start again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSchedule {
    steps: Vec<(Time, u64)>,
    repeat: Option<u64>,
}

impl RateSchedule {
    /// Creates a schedule of `(from, rate)` steps: the first applies from zero on, the others in order of
    /// time. With `repeat` it starts again whenever that much time has passed; without it the last rate
    /// applies for ever and must not be zero.
    pub fn new(steps: &[(Duration, Bitrate)], repeat: Option<Duration>) -> Result<Self, ConfigError> {
        let error = |what: &str| ConfigError::Schedule {
            schedule: show(steps, repeat),
            what: what.to_owned(),
        };
        if steps.first().is_none_or(|(from, _)| !from.is_zero()) {
            return Err(error("its first rate must apply from the beginning"));
        }
        if steps
            .windows(2)
            .any(|pair| matches!(pair, [(one, _), (two, _)] if one >= two))
        {
            return Err(error("its times must increase"));
        }
        if steps.iter().any(|(_, rate)| rate.as_bits_per_second() > FASTEST) {
            return Err(error("a rate is above 1000Gbit/s"));
        }
        let moves = |(_, rate): &(Duration, Bitrate)| *rate != Bitrate::ZERO;
        if let Some(repeat) = repeat {
            if steps.last().is_some_and(|(from, _)| *from >= repeat) {
                return Err(error("it repeats before its last step"));
            }
            if !steps.iter().any(moves) {
                return Err(error("all of its rates are zero, so nothing ever passes"));
            }
        } else if !steps.last().is_some_and(moves) {
            return Err(error(
                "its last rate is zero for ever, so the queue never empties",
            ));
        }
        let steps = steps
            .iter()
            .map(|(from, rate)| (Time::from(*from), rate.as_bits_per_second()));
        Ok(Self {
            steps: steps.collect(),
            repeat: repeat.map(nanos),
        })
    }

    /// Mean over one repetition, or until the last step; the last rate if there is only one step.
    pub fn mean(&self) -> Bitrate {
        let last = self
            .steps
            .last()
            .map_or((0, 0), |(from, rate)| (from.as_nanos(), *rate));
        let end = self.repeat.unwrap_or(last.0);
        if end == 0 {
            return Bitrate::from_bits_per_second(last.1);
        }
        let ends = self
            .steps
            .iter()
            .skip(1)
            .map(|(from, _)| from.as_nanos())
            .chain([end]);
        let bits: u128 = self
            .steps
            .iter()
            .zip(ends)
            .map(|((from, rate), end)| u128::from(*rate) * u128::from(end.saturating_sub(from.as_nanos())))
            .sum();
        Bitrate::from_bits_per_second(u64::try_from(bits / u128::from(end)).unwrap_or(u64::MAX))
    }

    /// Rate at `now` and the time at which it ends, [`Time::MAX`] if never.
    fn at(&self, now: Time) -> (u64, Time) {
        let (start, within) = match self.repeat {
            Some(repeat) => {
                let within = now.as_nanos() % repeat;
                (now.as_nanos() - within, within)
            }
            None => (0, now.as_nanos()),
        };
        let next = self.steps.partition_point(|(from, _)| from.as_nanos() <= within);
        let rate = next
            .checked_sub(1)
            .and_then(|index| self.steps.get(index))
            .map_or(0, |(_, rate)| *rate);
        let end = self
            .steps
            .get(next)
            .map(|(from, _)| from.as_nanos())
            .or(self.repeat);
        (
            rate,
            end.map_or(Time::MAX, |end| Time::from_nanos(start.saturating_add(end))),
        )
    }

    /// First time from `start` on at which bytes can leave.
    pub(super) fn begin(&self, start: Time) -> Time {
        let mut now = start;
        loop {
            let (rate, end) = self.at(now);
            if rate > 0 || end == Time::MAX {
                return now;
            }
            now = end;
        }
    }

    /// Departure time of a packet of `bytes` whose first bit leaves at `start`.
    pub(super) fn finish(&self, start: Time, bytes: u64) -> Time {
        let mut work = u128::from(bytes) * 8 * NANOS_PER_SECOND;
        let mut now = start;
        loop {
            let (rate, end) = self.at(now);
            let done = u128::from(rate) * u128::from(end.as_nanos() - now.as_nanos());
            if work <= done || end == Time::MAX {
                let wait = work.checked_div(u128::from(rate)).unwrap_or(0);
                return now + Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
            }
            work -= done;
            now = end;
        }
    }
}

fn show(steps: &[(Duration, Bitrate)], repeat: Option<Duration>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (from, rate) in steps {
        parts.push(if from.is_zero() {
            rate.to_string()
        } else {
            format!("{rate}@{}", duration::display(*from))
        });
    }
    parts.extend(repeat.map(|repeat| format!("repeat@{}", duration::display(repeat))));
    parts.join(",")
}

impl fmt::Display for RateSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: Vec<_> = self
            .steps
            .iter()
            .map(|(from, rate)| (from.elapsed(), Bitrate::from_bits_per_second(*rate)))
            .collect();
        f.pad(&show(&steps, self.repeat.map(Duration::from_nanos)))
    }
}

impl FromStr for RateSchedule {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let error = || ConfigError::RateText(text.to_owned());
        let mut steps = Vec::new();
        let mut repeat = None;
        for part in text.split(',') {
            let (what, from) = part.split_once('@').unwrap_or((part, "0s"));
            let from = duration::parse(from).map_err(|_| error())?;
            if repeat.is_some() {
                return Err(error());
            }
            if what.trim() == "repeat" {
                repeat = Some(from);
            } else {
                steps.push((from, what.parse().map_err(|_| error())?));
            }
        }
        Self::new(&steps, repeat)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[test]
    fn a_packet_spans_steps_and_waits_out_an_outage() {
        let schedule: RateSchedule = "8Mbit/s,0bit/s@1ms,4Mbit/s@3ms".parse().unwrap();
        // 1 ms at 8 Mbit/s is 1000 bytes.
        assert_eq!(schedule.finish(Time::ZERO, 1_000), Time::from_millis(1));
        assert_eq!(schedule.finish(Time::ZERO, 1_500), Time::from_millis(4));
        assert_eq!(schedule.begin(Time::from_micros(1_500)), Time::from_millis(3));
        assert_eq!(schedule.begin(Time::from_micros(500)), Time::from_micros(500));
    }

    #[test]
    fn it_repeats_after_the_repeat_time() {
        let schedule: RateSchedule = "8Mbit/s,0bit/s@1ms,repeat@2ms".parse().unwrap();
        assert_eq!(schedule.mean(), Bitrate::from_mbps(4));
        assert_eq!(schedule.finish(Time::ZERO, 2_500), Time::from_micros(4_500));
        assert_eq!(
            schedule.begin(Time::from_micros(1_000_001_500)),
            Time::from_micros(1_000_002_000)
        );
    }

    #[rstest]
    #[case("20Mbit/s,5Mbit/s@30s,0bit/s@60s,20Mbit/s@62s")]
    #[case("20Mbit/s,5Mbit/s@30s,repeat@60s")]
    fn text_round_trips(#[case] text: &str) {
        assert_eq!(text.parse::<RateSchedule>().unwrap().to_string(), text);
    }

    #[rstest]
    #[case("20Mbit/s@1s", "from the beginning")]
    #[case("20Mbit/s,5Mbit/s@2s,6Mbit/s@2s", "must increase")]
    #[case("20Mbit/s,0bit/s@2s", "never empties")]
    #[case("0bit/s,repeat@2s", "nothing ever passes")]
    #[case("1Mbit/s,2Mbit/s@3s,repeat@3s", "repeats before")]
    #[case("1Mbit/s,soon@3s", "such as 20Mbit/s")]
    fn an_impossible_schedule_is_refused_with_the_reason(#[case] text: &str, #[case] reason: &str) {
        let error = text.parse::<RateSchedule>().unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains(text), "{error}");
    }
}
