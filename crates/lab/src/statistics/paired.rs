//! [`Paired`]: two controllers over the same seeds.

use std::collections::BTreeMap;

use super::bootstrap::{RESAMPLES, SEED, quantile, resample};
use super::effect::cliffs_delta;
use super::interval::{FEWEST_FOR_BOOTSTRAP, Interval, Method, tail};

/// Values by seed.
pub type Sample = BTreeMap<u64, f64>;

/// What one controller has beyond another with the same seeds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Paired {
    /// The first minus the second, seed by seed.
    pub difference: Interval,
    /// The mean of the first over that of the second. Its ends are missing below eight trials, which are too few for the bootstrap; all is
    /// missing if the second is not above zero.
    pub ratio: Option<Ratio>,
    /// Cliff's delta of the first against the second.
    pub delta: f64,
}

/// One mean over another, with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The ratio of the means.
    pub value: f64,
    /// Lower and upper end.
    pub ends: Option<(f64, f64)>,
}

impl Paired {
    /// Compares the seeds that both have; `None` if there are none.
    pub fn of(one: &Sample, other: &Sample) -> Option<Self> {
        let pairs: Vec<(f64, f64)> = one
            .iter()
            .filter_map(|(seed, value)| Some((*value, *other.get(seed)?)))
            .collect();
        let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
        let (ones, others): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let mut difference = Interval::of(&differences)?;
        let (left, right) = (Interval::of(&ones)?, Interval::of(&others)?);
        if difference.is_constant() && !left.is_constant() && pairs.len() < FEWEST_FOR_BOOTSTRAP {
            // Few small numbers that vary may differ by the same by chance: then their own variation counts.
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
    let constant =
        |values: Vec<f64>| Interval::of(&values).is_some_and(|interval| interval.method == Method::Constant);
    let fixed = constant(pairs.iter().map(|pair| pair.0).collect())
        && constant(pairs.iter().map(|pair| pair.1).collect());
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
