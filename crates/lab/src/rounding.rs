//! Numbers in the format of rows and other files: a change here changes the bytes of every `runs.jsonl`.

use std::time::Duration;

/// Seconds rounded to the microsecond, so that they print short.
pub(crate) fn seconds(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e6
}

/// A ratio rounded to the millionth, so that it prints short.
pub(crate) fn ratio(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// The nearest whole number; zero for negative values.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates at both ends"
)]
pub(crate) fn whole(value: f64) -> u64 {
    value.round() as u64
}
