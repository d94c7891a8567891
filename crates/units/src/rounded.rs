//! Quantities as readable texts, rounded to about three digits.
//!
//! ```
//! use playrate_units::{Bitrate, Duration, rounded};
//!
//! assert_eq!(rounded::time(Duration::from_micros(1_234)), "1.2 ms");
//! assert_eq!(rounded::rate(Bitrate::from_kbps(2_634)), "2.63 Mbit/s");
//! ```

use core::time::Duration;

use crate::{Bitrate, Bytes};

/// A duration with three digits: `1.52 s`, `38 ms`.
pub fn time(value: Duration) -> String {
    let seconds = value.as_secs_f64();
    match seconds {
        0.0 => "0 s".to_owned(),
        ..0.001 => format!("{:.2} ms", seconds * 1e3),
        ..0.01 => format!("{:.1} ms", seconds * 1e3),
        ..1.0 => format!("{:.0} ms", seconds * 1e3),
        ..10.0 => format!("{seconds:.2} s"),
        _ => format!("{seconds:.1} s"),
    }
}

/// A rate with three digits: `2.63 Mbit/s`.
pub fn rate(value: Bitrate) -> String {
    let mbps = value.as_mbps();
    match mbps {
        ..0.1 => format!("{:.0} kbit/s", mbps * 1e3),
        ..10.0 => format!("{mbps:.2} Mbit/s"),
        _ => format!("{mbps:.1} Mbit/s"),
    }
}

/// A size with two or three digits: `66 kB`, `1.3 MB`.
pub fn size(value: Bytes) -> String {
    let kilo = value.as_u64() as f64 / 1e3;
    match kilo {
        ..1.0 => format!("{} B", value.as_u64()),
        ..9.95 => format!("{kilo:.1} kB"),
        ..999.5 => format!("{kilo:.0} kB"),
        _ => format!("{:.1} MB", kilo / 1e3),
    }
}

/// A share as a percentage: `12 %`, `0.40 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.01 => "below 0.01 %".to_owned(),
        ..0.995 => format!("{percent:.2} %"),
        ..9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A number with separators, unrounded: `12,345`.
pub fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_rounded_for_reading() {
        assert_eq!(time(Duration::from_micros(1_234)), "1.2 ms");
        assert_eq!(time(Duration::from_millis(38)), "38 ms");
        assert_eq!(time(Duration::from_millis(1_520)), "1.52 s");
        assert_eq!(rate(Bitrate::from_kbps(2_634)), "2.63 Mbit/s");
        assert_eq!(rate(Bitrate::from_kbps(64)), "64 kbit/s");
        assert_eq!(size(Bytes::new(65_872)), "66 kB");
        assert_eq!(size(Bytes::new(999_900)), "1.0 MB");
        assert_eq!(percent(0.004), "0.40 %");
        assert_eq!(percent(0.5), "50 %");
    }

    #[test]
    fn numbers_have_separators() {
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_034_567), "1,034,567");
    }
}
