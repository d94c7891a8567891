//! A [`Duration`] in files: decimal seconds to the nanosecond, for `#[serde(with = "playrate_units::seconds")]`.
//!
//! [`optional`] is the same for an `Option<Duration>`, whose field must exist even if it is `null`.

use core::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `time` in seconds, by a single division, so that the result is the double nearest to the decimal and prints without
/// trailing digits.
pub fn from_duration(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}

fn to_duration<E: serde::de::Error>(seconds: f64) -> Result<Duration, E> {
    Duration::try_from_secs_f64(seconds).map_err(|_| E::custom(format!("{seconds} is not a time in seconds")))
}

/// Writes `time` as decimal seconds.
///
/// # Errors
/// Errors of the serializer.
pub fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    from_duration(*time).serialize(to)
}

/// Reads a time from decimal seconds.
///
/// # Errors
/// If the number is negative or too large, and errors of the deserializer.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    to_duration(f64::deserialize(from)?)
}

/// An `Option<Duration>` as decimal seconds or `null`.
pub mod optional {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer, from_duration, to_duration};

    /// Writes `time` as decimal seconds or `null`.
    ///
    /// # Errors
    /// Errors of the serializer.
    pub fn serialize<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(from_duration).serialize(to)
    }

    /// Reads decimal seconds or `null`.
    ///
    /// # Errors
    /// If the number is negative or too large, and errors of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Option::deserialize(from)?.map(to_duration).transpose()
    }
}
