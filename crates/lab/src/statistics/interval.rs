//! [`Interval`]: where the mean of many more trials would be.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

use super::bootstrap::{RESAMPLES, SEED, quantile, resample};

/// How often an interval is to hold the true mean.
pub const CONFIDENCE: f64 = 0.95;
/// With fewer trials a bootstrap interval is too narrow whatever is done, since it lies within the range of their values: of five
/// normal trials it holds the mean in 90 % of cases, Student's in 95 %.
pub const FEWEST_FOR_BOOTSTRAP: usize = 8;

/// How an interval was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A single trial: it has no interval, and could be anywhere.
    Single,
    /// No variation between seeds: all trials have the same value.
    Constant,
    /// Student's t, for two to seven trials.
    StudentT,
    /// Bootstrap percentiles, for eight trials and more.
    Bootstrap,
}

impl Method {
    /// Its name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Constant => "constant",
            Self::StudentT => "student-t",
            Self::Bootstrap => "bootstrap",
        }
    }
}

/// The mean of some trials and its confidence interval ([`CONFIDENCE`]).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// How many trials.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// The lower end; minus infinity for a single trial.
    pub low: f64,
    /// The upper end; infinity for a single trial.
    pub high: f64,
    /// How the ends were found.
    pub method: Method,
}

impl Interval {
    /// The interval of the mean of `values`; `None` if there are none, or one is no number.
    pub fn of(values: &[f64]) -> Option<Self> {
        Self::with(values, RESAMPLES, SEED)
    }

    pub(super) fn with(values: &[f64], resamples: usize, seed: u64) -> Option<Self> {
        let first = *values.first()?;
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = values.len();
        let mean = mean(values.iter().copied(), count);
        let ends = |method, low, high| Self {
            count,
            mean,
            low,
            high,
            method,
        };
        let constant = values.iter().all(|value| value.total_cmp(&first).is_eq());
        Some(if count == 1 {
            ends(Method::Single, f64::NEG_INFINITY, f64::INFINITY)
        } else if constant {
            // The mean of equal numbers may differ from them in its last digit.
            Self {
                mean: first,
                ..ends(Method::Constant, first, first)
            }
        } else if count < FEWEST_FOR_BOOTSTRAP {
            let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
            let degrees = (count - 1) as f64;
            let half = t_quantile(degrees) * (squares / degrees / count as f64).sqrt();
            ends(Method::StudentT, mean - half, mean + half)
        } else {
            let means = resample(count, resamples, seed, |drawn| {
                let values = drawn.iter().filter_map(|index| values.get(*index).copied());
                self::mean(values, count)
            });
            let tail = tail(count);
            ends(
                Method::Bootstrap,
                quantile(&means, tail),
                quantile(&means, 1.0 - tail),
            )
        })
    }

    /// Student's interval of the difference of two means whose trials are as many and are not paired, with the fewest degrees of
    /// freedom that it may have (Welch).
    pub(super) fn unpaired(left: &Self, ones: &[f64], right: &Self, others: &[f64]) -> Self {
        let mean = left.mean - right.mean;
        let degrees = left.count.saturating_sub(1) as f64;
        let squares =
            |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        let sum = squares(ones, left.mean) + squares(others, right.mean);
        let half = t_quantile(degrees) * (sum / degrees / left.count as f64).sqrt();
        Self {
            count: left.count,
            mean,
            low: mean - half,
            high: mean + half,
            method: Method::StudentT,
        }
    }

    /// Whether all trials have the same value.
    pub fn is_constant(&self) -> bool {
        self.method == Method::Constant
    }
}

fn mean(values: impl Iterator<Item = f64>, count: usize) -> f64 {
    values.sum::<f64>() / count as f64
}

/// How many standard errors an interval reaches to either side with so many degrees of freedom.
fn t_quantile(degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}

/// The share of bootstrap means below the interval. Percentiles as they are make an interval too narrow by √((n − 1) / n),
/// and take the normal distribution for Student's; so it reaches further out (Hesterberg 2015, "What Teachers Should Know About
/// the Bootstrap", The American Statistician 69: expanded percentiles).
pub(super) fn tail(count: usize) -> f64 {
    let count = count as f64;
    let reach = t_quantile(count - 1.0) * (count / (count - 1.0)).sqrt();
    Normal::standard().cdf(-reach)
}
