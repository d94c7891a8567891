//! The samples of `soak`, which `docs/draw.py` draws, and their summary.

use std::fmt::Write as _;

/// First line of the samples.
pub(crate) const HEAD: &str =
    "seconds,attack,memory_mb,descriptors,processor_time,watching,complete,failed,late,bytes,wrong_bytes";

/// Seconds after which memory and descriptors must be constant.
const SETTLED: f64 = 300.0;

/// Seconds since the beginning, memory in MB and open descriptors.
pub(crate) type Sample = [f64; 3];

/// Memory and descriptors in each tenth of the time after the first five minutes.
pub(crate) fn summary(samples: &[Sample]) -> String {
    let last = samples.last().map_or(0.0, |sample| sample[0]);
    let mut summary = String::from("minutes, MB (mean, most), descriptors (mean, most)\n");
    let settled = SETTLED.min(last / 2.0);
    for tenth in 0..10 {
        let at = |tenth: u32| settled + (last - settled) * f64::from(tenth) / 10.0;
        let (from, to) = (at(tenth), at(tenth + 1));
        let inside = samples.iter().filter(|sample| (from..to).contains(&sample[0]));
        let column = |column: usize| -> Vec<f64> { inside.clone().map(|sample| sample[column]).collect() };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
        let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
        let (memory, descriptors) = (column(1), column(2));
        let _ = writeln!(
            summary,
            "{:.1}–{:.1}: {:.1}, {:.1}; {:.0}, {:.0}",
            from / 60.0,
            to / 60.0,
            mean(&memory),
            most(&memory),
            mean(&descriptors),
            most(&descriptors)
        );
    }
    summary
}
