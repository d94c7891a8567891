//! Time series of stored runs: columns of CSV files as points.

use std::fs;
use std::path::Path;

/// Seconds and value of one column, in the order of the file; rows without a value are left out. Empty if there is no such file or
/// column.
pub(super) fn column(file: &Path, name: &str) -> Vec<(f64, f64)> {
    let Ok(text) = fs::read_to_string(file) else {
        return Vec::new();
    };
    points(&text, name)
}

fn points(text: &str, name: &str) -> Vec<(f64, f64)> {
    let mut lines = text.lines();
    let heads: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let place = |name: &str| heads.iter().position(|head| *head == name);
    let (Some(time), Some(value)) = (place("at_s"), place(name)) else {
        return Vec::new();
    };
    let point = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        Some((cells.get(time)?.parse().ok()?, cells.get(value)?.parse().ok()?))
    };
    lines.filter_map(point).collect()
}

/// Bytes over time as rates in Mbit/s over windows of at least `window` seconds.
pub(super) fn rates(bytes: &[(f64, f64)], window: f64) -> Vec<(f64, f64)> {
    let mut rates = Vec::new();
    let mut from = 0;
    for to in 0..bytes.len() {
        let span = bytes[to].0 - bytes[from].0;
        if span >= window {
            let middle = bytes[from].0 + span / 2.0;
            rates.push((middle, (bytes[to].1 - bytes[from].1) * 8.0 / span / 1e6));
            from = to;
        }
    }
    rates
}

/// Seconds without a sample after which a sender was idle.
const IDLE: f64 = 0.1;

/// A window over time with the pauses in it: it is as it was until it changes, where a line from sample to sample would show a slope.
pub(super) fn held(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut all: Vec<(f64, f64)> = Vec::with_capacity(points.len());
    for &(at, value) in points {
        if let Some(&(before, last)) = all.last()
            && at - before > IDLE
        {
            all.push((at, last));
        }
        all.push((at, value));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "at_s,window_bytes,ssthresh_bytes\n0.1,14720,\n0.2,20000,90000\n0.3,torn";

    #[test]
    fn a_column_is_read_by_its_name_and_gaps_are_left_out() {
        assert_eq!(points(TEXT, "window_bytes"), [(0.1, 14_720.0), (0.2, 20_000.0)]);
        assert_eq!(points(TEXT, "ssthresh_bytes"), [(0.2, 90_000.0)]);
        assert_eq!(points(TEXT, "srtt_s"), []);
        assert_eq!(column(Path::new("no/such/file.csv"), "window_bytes"), []);
    }

    #[test]
    fn rates_are_bytes_over_the_time_they_took() {
        let bytes: Vec<_> = (0..11)
            .map(|i| (f64::from(i) * 0.25, f64::from(i) * 125_000.0))
            .collect();
        let rates = rates(&bytes, 0.5);
        assert_eq!(rates.len(), 5);
        assert!(rates.iter().all(|rate| (rate.1 - 4.0).abs() < 1e-9));
        assert!((rates[0].0 - 0.25).abs() < 1e-9);
    }

    #[test]
    fn a_window_is_held_through_a_pause() {
        let points = [(1.0, 8.0), (1.02, 9.0), (3.0, 2.0), (3.02, 3.0)];
        let all = [(1.0, 8.0), (1.02, 9.0), (3.0, 9.0), (3.0, 2.0), (3.02, 3.0)];
        assert_eq!(held(&points), all);
    }
}
