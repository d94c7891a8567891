//! [`Time`]: nanoseconds of model time.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

use playrate_units::duration;
use serde::{Deserialize, Serialize};

/// Nanoseconds since the run began; 2⁶⁴ of them are 584 years. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// Start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event.
    pub const MAX: Self = Self(u64::MAX);

    /// `nanos` nanoseconds after the beginning.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `micros` microseconds after the beginning.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// `millis` milliseconds after the beginning.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// `seconds` seconds after the beginning.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the beginning.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the beginning as a float, for reports and figures.
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The time since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// The first multiple of `interval` that is not earlier; this time itself if `interval` is zero.
    pub(crate) fn rounded_up(self, interval: Duration) -> Self {
        let past = self.0.checked_rem(nanos(interval)).unwrap_or_default();
        let rest = Duration::from_nanos(nanos(interval).saturating_sub(past));
        if past == 0 { self } else { self + rest }
    }

    /// The time since the beginning.
    pub const fn elapsed(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

impl From<Duration> for Time {
    /// The time this long after the beginning.
    fn from(since_start: Duration) -> Self {
        Self(nanos(since_start))
    }
}

impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(nanos(wait)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        duration::display(self.elapsed()).fmt(f)
    }
}

/// Whole nanoseconds of `time`, saturating after 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    time.as_secs()
        .saturating_mul(1_000_000_000)
        .saturating_add(u64::from(time.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Time::MAX + Duration::from_nanos(1), Time::MAX);
        assert_eq!(Time::ZERO.since(Time::from_secs(1)), Duration::ZERO);
        assert_eq!(
            Time::from_millis(3).since(Time::from_millis(1)),
            Duration::from_millis(2)
        );
        assert_eq!(Time::from_micros(1_500).to_string(), "1.5ms");
    }
}
