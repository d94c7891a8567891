//! Quantities as texts, rounded for reading, and lines of at most [`WIDTH`] columns.

use std::time::Duration;

use playrate_units::{Bitrate, Bytes};

/// Width of all output in columns.
pub(crate) const WIDTH: usize = 80;

/// A duration with three digits: `1.52 s`, `38 ms`.
pub(crate) fn time(value: Duration) -> String {
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
pub(crate) fn rate(value: Bitrate) -> String {
    let mbps = value.as_mbps();
    match mbps {
        ..0.1 => format!("{:.0} kbit/s", mbps * 1e3),
        ..10.0 => format!("{mbps:.2} Mbit/s"),
        _ => format!("{mbps:.1} Mbit/s"),
    }
}

/// A size with two or three digits: `66 kB`, `1.3 MB`.
pub(crate) fn size(value: Bytes) -> String {
    let kilo = value.as_u64() as f64 / 1e3;
    match kilo {
        ..1.0 => format!("{} B", value.as_u64()),
        ..9.95 => format!("{kilo:.1} kB"),
        ..999.5 => format!("{kilo:.0} kB"),
        _ => format!("{:.1} MB", kilo / 1e3),
    }
}

/// A share as percentage: `12 %`, `0.40 %`.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        0.0 => "0 %".to_owned(),
        ..0.01 => "below 0.01 %".to_owned(),
        ..0.995 => format!("{percent:.2} %"),
        ..9.95 => format!("{percent:.1} %"),
        _ => format!("{percent:.0} %"),
    }
}

/// A number with separators: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        _ => format!("{},{:03}", grouped(number / 1_000), number % 1_000),
    }
}

/// `words` after `mark`, broken into lines of at most [`WIDTH`] columns. Further lines are indented by the width of
/// the mark. Ends with a line break.
pub(crate) fn wrapped(mark: &str, words: &str) -> String {
    let indent = mark.chars().count();
    let (mut text, mut line) = (String::new(), mark.to_owned());
    for word in words.split_whitespace() {
        let length = line.chars().count();
        if length > indent && length + word.chars().count() >= WIDTH {
            text += line.trim_end();
            text.push('\n');
            line = " ".repeat(indent);
        } else if length > indent {
            line.push(' ');
        }
        line += word;
    }
    text + line.trim_end() + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_rounded_for_reading() {
        assert_eq!(time(Duration::from_micros(1_234)), "1.2 ms");
        assert_eq!(time(Duration::from_millis(1_520)), "1.52 s");
        assert_eq!(rate(Bitrate::from_kbps(2_634)), "2.63 Mbit/s");
        assert_eq!(size(Bytes::new(999_900)), "1.0 MB");
        assert_eq!(percent(0.004), "0.40 %");
        assert_eq!(grouped(1_034_567), "1,034,567");
        assert_eq!(grouped(999), "999");
    }

    #[test]
    fn words_are_broken_below_their_mark() {
        let word = "x".repeat(38);
        let text = format!("{word} {word} {word}");
        assert_eq!(wrapped("- ", &text), format!("- {word} {word}\n  {word}\n"));
        let indented = format!("--- {word}\n    {word}\n    {word}\n");
        assert_eq!(wrapped("--- ", &text), indented);
    }
}
