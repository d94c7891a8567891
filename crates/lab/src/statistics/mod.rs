//! Confidence in results: intervals, paired comparisons, effect sizes.
//!
//! All controllers run with the same seeds, so they are compared seed by seed: the trials of one seed give one value,
//! and the interval is that of the mean of these values ([`Interval`]). `docs/statistics.md` lists the methods and the
//! share of intervals that contain the true mean.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rand_core::Rng;
use rand_pcg::Pcg32;
use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// Share of intervals that contain the true mean.
const CONFIDENCE: f64 = 0.95;
/// Fewest trials for a bootstrap interval. With fewer it is too narrow, since it lies within the range of their values:
/// of five normal trials it contains the mean in 90 % of cases, Student's in 95 %.
const FEWEST_FOR_BOOTSTRAP: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// A single trial, whose interval is unbounded.
    Single,
    /// No variation between seeds: all trials have the same value.
    Constant,
    /// Student's t, for two to seven trials.
    StudentT,
    /// Bootstrap percentiles, for eight trials and more.
    Bootstrap,
}

impl Method {
    /// The name in JSON files.
    pub(crate) const fn name(self) -> &'static str {
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
pub(crate) struct Interval {
    pub(crate) count: usize,
    pub(crate) mean: f64,
    /// The lower end; minus infinity for a single trial.
    pub(crate) low: f64,
    /// The upper end; infinity for a single trial.
    pub(crate) high: f64,
    pub(crate) method: Method,
}

impl Interval {
    /// The interval of the mean of `values`; `None` if there are none, or one is not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        Self::with(values, RESAMPLES, SEED)
    }

    fn with(values: &[f64], resamples: usize, seed: u64) -> Option<Self> {
        let first = *values.first()?;
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        let count = values.len();
        let mean = mean_of(values.iter().copied(), count);
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
                mean_of(values, count)
            });
            let tail = tail(count);
            ends(
                Method::Bootstrap,
                quantile(&means, tail),
                quantile(&means, 1.0 - tail),
            )
        })
    }

    /// Student's interval of the difference of two means of unpaired trials, equally many of each, with the fewest
    /// degrees of freedom possible (Welch).
    fn unpaired(left: &Self, ones: &[f64], right: &Self, others: &[f64]) -> Self {
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

    pub(crate) fn is_constant(&self) -> bool {
        self.method == Method::Constant
    }
}

fn mean_of(values: impl Iterator<Item = f64>, count: usize) -> f64 {
    values.sum::<f64>() / count as f64
}

/// Half the width of an interval in standard errors, by degrees of freedom.
fn t_quantile(degrees: f64) -> f64 {
    StudentsT::new(0.0, 1.0, degrees).map_or(f64::INFINITY, |t| t.inverse_cdf(f64::midpoint(1.0, CONFIDENCE)))
}

/// The share of bootstrap means below the interval of `count` trials. Plain percentiles make an interval too narrow by
/// √((n − 1) / n) and assume a normal distribution instead of Student's, so the interval reaches further out
/// (Hesterberg 2015, "What Teachers Should Know About the Bootstrap", The American Statistician 69: expanded
/// percentiles).
fn tail(count: usize) -> f64 {
    let count = count as f64;
    let reach = t_quantile(count - 1.0) * (count / (count - 1.0)).sqrt();
    Normal::standard().cdf(-reach)
}

/// Number of draws. Ends of intervals are then stable to about a fiftieth of the interval.
const RESAMPLES: usize = 10_000;
/// Seed of the draws, fixed so that equal results have equal intervals.
const SEED: u64 = 0x706c_6179_7261_7465;

/// The values of `statistic` over `resamples` draws of `count` indices below `count`, with replacement, in rising
/// order.
fn resample(
    count: usize,
    resamples: usize,
    seed: u64,
    mut statistic: impl FnMut(&[usize]) -> f64,
) -> Vec<f64> {
    let mut generator = Pcg32::new(seed, count as u64);
    let mut drawn = vec![0; count];
    let mut values: Vec<f64> = (0..resamples)
        .map(|_| {
            for index in &mut drawn {
                *index = below(&mut generator, count);
            }
            statistic(&drawn)
        })
        .collect();
    values.sort_by(f64::total_cmp);
    values
}

/// A random number below `count`: the upper half of a product, uniform to one part in 2³² / `count`.
fn below(generator: &mut Pcg32, count: usize) -> usize {
    let product = u64::from(generator.next_u32()) * count as u64;
    usize::try_from(product >> 32).unwrap_or(0)
}

/// The `share` quantile of values in rising order, interpolated (Hyndman and Fan 1996, type 7); NaN without values.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share.clamp(0.0, 1.0) * last as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the last index"
    )]
    let below = place as usize;
    let weight = place - below as f64;
    let low = sorted.get(below).copied().unwrap_or(f64::NAN);
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    low + (high - low) * weight
}

/// The values of a controller by seed.
pub(crate) type Sample = BTreeMap<u64, f64>;

/// The comparison of one controller with another over the same seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Paired {
    /// The first minus the second, seed by seed.
    pub(crate) difference: Interval,
    /// The mean of the first over that of the second; `None` unless all values of the second are above zero.
    pub(crate) ratio: Option<Ratio>,
    /// Cliff's delta of the first against the second.
    pub(crate) delta: f64,
}

/// One mean over another, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) value: f64,
    /// Lower and upper end; `None` below [`FEWEST_FOR_BOOTSTRAP`] trials.
    pub(crate) ends: Option<(f64, f64)>,
}

impl Paired {
    /// Compares the seeds that both have; `None` if they have none in common.
    pub(crate) fn of(one: &Sample, other: &Sample) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = one
            .iter()
            .filter_map(|(seed, value)| Some((*value, *other.get(seed)?)))
            .collect();
        let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
        let (ones, others): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let mut difference = Interval::of(&differences)?;
        let (left, right) = (Interval::of(&ones)?, Interval::of(&others)?);
        if difference.is_constant() && !left.is_constant() && pairs.len() < FEWEST_FOR_BOOTSTRAP {
            // A few varying numbers may differ by the same amount by chance, so their own variation counts.
            difference = Interval::unpaired(&left, &ones, &right, &others);
        }
        Some(Self {
            difference,
            ratio: ratio(&pairs),
            delta: cliffs_delta(&ones, &others)?,
        })
    }
}

fn ratio(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let of = |drawn: &mut dyn Iterator<Item = (f64, f64)>| {
        let (one, other) = drawn.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
        one / other
    };
    if pairs.iter().any(|(_, other)| *other <= 0.0) {
        return None;
    }
    let value = of(&mut pairs.iter().copied());
    let fixed = pairs.len() > 1 && pairs.windows(2).all(|two| two[0] == two[1]);
    let ends = if fixed {
        Some((value, value))
    } else if pairs.len() < FEWEST_FOR_BOOTSTRAP {
        None
    } else {
        let values = resample(pairs.len(), RESAMPLES, SEED, |drawn| {
            of(&mut drawn.iter().filter_map(|index| pairs.get(*index).copied()))
        });
        let tail = tail(pairs.len());
        Some((quantile(&values, tail), quantile(&values, 1.0 - tail)))
    };
    Some(Ratio { value, ends })
}

/// Cliff's delta: the share of pairs of trials, one of each controller, in which the first has more, minus the share in
/// which it has less. From −1 (always less) to 1 (always more); `None` if one has no trials.
///
/// Preferred to Cohen's d because discards and underflows are far from normal, and because trials of a path without
/// random loss hardly vary: a difference divided by a standard deviation near zero has no meaning.
fn cliffs_delta(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.is_empty() || other.is_empty() {
        return None;
    }
    let pairs = one
        .iter()
        .flat_map(|one| other.iter().map(move |other| one.total_cmp(other)));
    let sum: i64 = pairs
        .map(|order| match order {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        })
        .sum();
    Some(sum as f64 / (one.len() * other.len()) as f64)
}

/// Sizes of Cliff's delta (Romano et al. 2006).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// A magnitude below 0.147.
    Negligible,
    /// A magnitude below 0.33.
    Small,
    /// A magnitude below 0.474.
    Medium,
    /// Magnitude of 0.474 and more.
    Large,
}

impl Effect {
    /// The size of this delta, of either sign.
    pub(crate) fn of(delta: f64) -> Self {
        match delta.abs() {
            size if size < 0.147 => Self::Negligible,
            size if size < 0.33 => Self::Small,
            size if size < 0.474 => Self::Medium,
            _ => Self::Large,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Negligible => "negligible",
            Self::Small => "small",
            Self::Medium => "medium",
            Self::Large => "large",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub count: usize,
    pub mean: f64,
    /// Standard deviation with n − 1 degrees of freedom; zero for a single value.
    pub sd: f64,
    pub min: f64,
    pub max: f64,
}

impl Spread {
    /// The spread of `values`; `None` if there are none.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        if values.is_empty() {
            return None;
        }
        let count = values.len();
        let mean = values.iter().sum::<f64>() / count as f64;
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
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }

    /// `12.3 ± 1.4 (11 to 14)` with `decimals` in the range; only the mean if all values are equal.
    pub(crate) fn text(self, decimals: usize) -> String {
        if self.min >= self.max {
            return format!("{:.decimals$}", self.mean);
        }
        let more = decimals.max(1);
        format!(
            "{:.more$} ± {:.more$} ({:.decimals$} to {:.decimals$})",
            self.mean, self.sd, self.min, self.max
        )
    }
}

#[cfg(test)]
mod tests;
