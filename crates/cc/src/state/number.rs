//! Conversions between whole numbers and floats, and of an MTU.

use crate::Bytes;

/// A size or a time as a float. Saturates at 2⁶³, which no size or time reaches, so that it is `value as f64` in a
/// fifth of the instructions.
#[inline]
pub(crate) const fn float(value: u64) -> f64 {
    let value = if value > i64::MAX as u64 {
        i64::MAX
    } else {
        value.cast_signed()
    };
    value as f64
}

/// An algorithm's float window as whole bytes, rounded down; negative values and NaN become zero.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "float-to-integer casts saturate, and NaN becomes zero"
)]
pub(crate) const fn floor_bytes(bytes: f64) -> u64 {
    let whole = bytes as i64;
    if whole > 0 { whole.cast_unsigned() } else { 0 }
}

/// A UDP payload is 1 to 65,535 bytes.
pub(super) fn sane_mtu(mtu: Bytes) -> u64 {
    mtu.as_u64().clamp(1, 65_535)
}
