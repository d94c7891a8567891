//! [`RateSchedule`]: a rate that changes in steps, outages included.

use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use playrate_units::Bitrate;

use super::super::steps::Steps;
use super::FASTEST;
use crate::{ConfigError, Time};

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// Rates and the times from which they apply; a rate of zero is an outage. The last one applies for ever, or the
/// schedule repeats.
///
/// Text form: `20Mbit/s,5Mbit/s@30s,0bit/s@60s,20Mbit/s@62s`, and `,repeat@90s` at its end to start again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateSchedule(Steps<Bitrate>);

impl RateSchedule {
    /// Creates a schedule of `(from, rate)` steps: the first applies from zero on, the others in order of time. With
    /// `repeat` it starts again each time this period has passed; without it the last rate applies for ever and must
    /// not be zero.
    pub fn new(steps: &[(Duration, Bitrate)], repeat: Option<Duration>) -> Result<Self, ConfigError> {
        let steps = steps.to_vec();
        Self::checked(Steps { steps, repeat })
    }

    fn checked(steps: Steps<Bitrate>) -> Result<Self, ConfigError> {
        let moves = |(_, rate): &(Duration, Bitrate)| *rate != Bitrate::ZERO;
        let mut rates = steps.steps.iter();
        let rule = steps.broken_rule().or_else(|| {
            if rates.any(|(_, rate)| rate.as_bits_per_second() > FASTEST) {
                Some("a rate is above 1000Gbit/s")
            } else if steps.repeat.is_some() {
                let passes = steps.steps.iter().any(moves);
                (!passes).then_some("all of its rates are zero, so nothing ever passes")
            } else {
                let passes = steps.steps.last().is_some_and(moves);
                (!passes).then_some("its last rate is zero for ever, so the queue never empties")
            }
        });
        match rule {
            None => Ok(Self(steps)),
            Some(what) => Err(ConfigError::Schedule {
                schedule: steps.show(|rate| rate),
                what: what.to_owned(),
            }),
        }
    }

    /// Mean over one repetition, or until the last step; the last rate if there is only one step.
    pub fn mean(&self) -> Bitrate {
        let steps = &self.0.steps;
        let (last, rate) = steps.last().copied().unwrap_or_default();
        let end = self.0.repeat.unwrap_or(last);
        if end.is_zero() {
            return rate;
        }
        let ends = steps.iter().skip(1).map(|(from, _)| *from).chain([end]);
        let bits = steps.iter().zip(ends).map(|((from, rate), end)| {
            u128::from(rate.as_bits_per_second()) * end.saturating_sub(*from).as_nanos()
        });
        let bits: u128 = bits.sum();
        Bitrate::from_bits_per_second(u64::try_from(bits / end.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Rate in bit/s at `now` and the end of its step, [`Time::MAX`] if it never ends.
    pub(super) fn at(&self, now: Time) -> (u64, Time) {
        let step = self.0.at(now);
        step.map_or((0, Time::MAX), |(rate, _, end)| (rate.as_bits_per_second(), end))
    }

    /// First time from `start` on when bytes can leave.
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

impl fmt::Display for RateSchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.show(|rate| rate))
    }
}

impl FromStr for RateSchedule {
    type Err = ConfigError;
    fn from_str(text: &str) -> Result<Self, ConfigError> {
        let steps = Steps::read(text, |rate| rate.parse().ok());
        Self::checked(steps.ok_or_else(|| ConfigError::RateText(text.to_owned()))?)
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
