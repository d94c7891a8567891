//! [`Timestamp`]: the time of an event, on the connection's own clock.

use core::ops::Add;
use core::time::Duration;

/// Nanoseconds since the connection began. The adapter converts the host's clock to it; nothing here reads a clock.
///
/// 2⁶⁴ ns are 584 years. Arithmetic saturates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The moment the connection began.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds after the connection began.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// `millis` milliseconds after the connection began.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Nanoseconds since the connection began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn plus_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }

    /// Nanoseconds from `earlier` to this timestamp; zero if `earlier` is later.
    pub(crate) const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Timestamp {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        self.plus_nanos(nanos(time))
    }
}

/// Whole nanoseconds of `time`, saturating after 584 years.
pub(crate) fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Seconds of a time in nanoseconds.
pub(crate) const fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}
