//! The spread of measurements. Benchmarks include this file by its path.

/// The median, and a text with the median and the 10th and 90th percentiles.
pub(crate) fn spread(mut values: Vec<f64>) -> (f64, String) {
    values.sort_by(f64::total_cmp);
    let at = |tenths: usize| values[(values.len() - 1) * tenths / 10];
    (at(5), format!("{:.2} [{:.2}–{:.2}]", at(5), at(1), at(9)))
}
