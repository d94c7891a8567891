//! The mean of some trials with its confidence interval, and their spread.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Share of intervals that contain the true mean.
const CONFIDENCE: f64 = 0.95;

/// Minimum number of trials for equal differences not to count as a coincidence.
const MANY: usize = 8;

/// The mean of some trials and its confidence interval ([`CONFIDENCE`]), by Student's t.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Interval {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    /// Lower end; `None` for a single trial.
    pub(crate) low: Option<f64>,
    /// Upper end; `None` for a single trial.
    pub(crate) high: Option<f64>,
}

impl Interval {
    /// The interval of the mean of `values`; `None` if there are none, or one is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let spread = Spread::of(values.iter().copied())?;
        let Spread { count, mean, sd, .. } = spread;
        let half = if count == 1 {
            f64::INFINITY
        } else if spread.min >= spread.max {
            0.0
        } else {
            t_quantile((count - 1) as f64) * sd / (count as f64).sqrt()
        };
        Some(Self::around(count, mean, half))
    }

    /// The interval that extends `half` to each side of `mean`; without ends if that is infinite.
    fn around(count: usize, mean: f64, half: f64) -> Self {
        let finite = |end: f64| end.is_finite().then_some(end);
        Self {
            count,
            mean,
            low: finite(mean - half),
            high: finite(mean + half),
        }
    }
}

/// The interval of the mean difference of paired values; `None` as for [`Interval::of`].
pub(crate) fn paired(pairs: &[(f64, f64)]) -> Option<Interval> {
    let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
    let interval = Interval::of(&differences)?;
    let one = Spread::of(pairs.iter().map(|pair| pair.0))?;
    let other = Spread::of(pairs.iter().map(|pair| pair.1))?;
    let count = pairs.len();
    if interval.low < interval.high || one.min >= one.max || count >= MANY {
        return Some(interval);
    }
    // A few varying numbers may differ by the same amount by chance, so their own variation counts (Welch, with the
    // fewest possible degrees of freedom).
    let half = t_quantile((count - 1) as f64) * ((one.sd.powi(2) + other.sd.powi(2)) / count as f64).sqrt();
    Some(Interval::around(count, interval.mean, half))
}

/// Half the width of an interval in standard errors, by degrees of freedom.
fn t_quantile(degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}

/// Mean and range of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    /// Standard deviation with n − 1 degrees of freedom; zero for a single value.
    pub(crate) sd: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let first = *values.first()?;
        let count = values.len();
        let min = values.iter().copied().fold(first, f64::min);
        let max = values.iter().copied().fold(first, f64::max);
        // The computed mean of equal numbers may differ from them in the last digit.
        let mean = if min >= max {
            first
        } else {
            values.iter().sum::<f64>() / count as f64
        };
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let sd = if count > 1 {
            (squares / (count - 1) as f64).sqrt()
        } else {
            0.0
        };
        Some(Self {
            count,
            mean,
            sd,
            min,
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(values: &[f64]) -> Interval {
        Interval::of(values).unwrap()
    }

    #[test]
    fn an_interval_is_students() {
        // Quantile of t with four degrees of freedom: 2.776; standard error √0.5.
        let of = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((of.count, of.mean), (5, 3.0));
        let half = 2.776_445_105 * 0.5_f64.sqrt();
        for (end, expected) in [(of.low, 3.0 - half), (of.high, 3.0 + half)] {
            assert!((end.unwrap() - expected).abs() < 1e-8);
        }
    }

    #[test]
    fn few_trials_that_differ_by_the_same_amount_have_an_interval_of_their_own_variation() {
        let ends = |pairs: &[(f64, f64)]| paired(pairs).map(|one| (one.mean, one.low < one.high)).unwrap();
        assert_eq!(ends(&[(10.0, 11.0), (12.0, 13.0)]), (-1.0, true));
        assert_eq!(ends(&[(10.0, 11.0); 2]), (-1.0, false));
        assert_eq!(ends(&[(1.0, 0.0), (3.0, 1.0), (5.0, 2.0)]), (2.0, true));
        let many = [0, 1, 2, 3, 4, 5, 6, 7].map(|trial| (f64::from(trial), f64::from(trial + 1)));
        assert_eq!(ends(&many), (-1.0, false));
    }

    #[test]
    fn a_single_trial_has_no_bounds_and_equal_trials_have_no_width() {
        let single = interval(&[0.1]);
        assert_eq!((single.low, single.high), (None, None));
        let constant = interval(&[0.1; 3]);
        assert_eq!([constant.low, Some(constant.mean), constant.high], [Some(0.1); 3]);
        assert_eq!(Interval::of(&[]), None);
        assert_eq!(Interval::of(&[1.0, f64::NAN]), None);
    }
}
