//! [`Values`]: the numbers that a check compares, read from results.

use super::check::{Reading, Term};
use super::verdict::Verdict;
use crate::result::{IDEAL, ResultSet, Row};
use crate::statistics::Sample;

/// Trials from which on a distance from their median says something of their spread.
const SPREAD_TRIALS: usize = 3;

/// A number for each trial.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Values {
    /// The same for every seed: a constant, or a number of the ideal row of trials that do not vary.
    Fixed(f64),
    BySeed(Sample),
}

/// A reason for which a check has no numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A controller was not run.
    Run(String),
    /// No run has the number.
    Value(String),
}

impl Missing {
    pub(super) const fn verdict(&self) -> Verdict {
        match self {
            Self::Run(_) => Verdict::NotRun,
            Self::Value(_) => Verdict::Undecided,
        }
    }

    pub(super) fn into_reason(self) -> String {
        match self {
            Self::Run(reason) | Self::Value(reason) => reason,
        }
    }
}

impl Values {
    /// The values of a sum. `scenario` is the one that makes the claim.
    pub(super) fn of_sum(terms: &[Term], scenario: &str, results: &ResultSet<'_>) -> Result<Self, Missing> {
        let mut sum = Self::Fixed(0.0);
        for term in terms {
            let value = match &term.reading {
                Some(reading) => Self::of_reading(reading, scenario, results)?,
                None => Self::Fixed(1.0),
            };
            sum = sum.plus(term.factor, value);
        }
        Ok(sum)
    }

    /// The values of a metric; flows of one run are pooled. Failed runs and runs without the number are left out.
    pub(super) fn of_reading(
        reading: &Reading,
        scenario: &str,
        results: &ResultSet<'_>,
    ) -> Result<Self, Missing> {
        let flow = &reading.flow;
        let scenario = reading.scenario.as_deref().unwrap_or(scenario);
        let rows = results.rows(scenario, &flow.case, &flow.controller);
        let ideal = results.ideal(scenario, &flow.case);
        let not_run = |who: &str| {
            Missing::Run(match &reading.scenario {
                Some(other) => format!("{who} was not run in {other}"),
                None => format!("{who} was not run"),
            })
        };
        if rows.is_empty() {
            return Err(not_run(&flow.to_string()));
        }
        if ideal.is_empty() && reading.measure.over_ideal {
            return Err(not_run(IDEAL));
        }
        let trials = ResultSet::trials(rows, &flow.role);
        let mut sample: Sample = trials
            .into_iter()
            .filter_map(|(seed, rows)| Some((seed, reading.value(&rows, ideal)?)))
            .collect();
        if reading.deviation {
            if sample.len() < SPREAD_TRIALS {
                return Err(Missing::Run(format!(
                    "`{}` needs at least {SPREAD_TRIALS} trials of {flow}",
                    reading.measure.name()
                )));
            }
            sample = from_median(&sample);
        }
        match sample.first_key_value() {
            None => Err(Missing::Value(format!(
                "no run of {flow} has the metric `{}`",
                reading.measure.name()
            ))),
            Some((_, value)) if flow.controller == IDEAL && ideal.iter().all(|row| !row.varied) => {
                Ok(Self::Fixed(*value))
            }
            Some(_) => Ok(Self::BySeed(sample)),
        }
    }

    /// Adds `factor` times another, for the seeds that both have.
    fn plus(self, factor: f64, other: Self) -> Self {
        let scaled = |sample: Sample, scale: f64, offset: f64| {
            let values = sample.into_iter();
            Self::BySeed(
                values
                    .map(|(seed, value)| (seed, offset + scale * value))
                    .collect(),
            )
        };
        match (self, other) {
            (Self::Fixed(one), Self::Fixed(other)) => Self::Fixed(one + factor * other),
            (Self::Fixed(one), Self::BySeed(other)) => scaled(other, factor, one),
            (Self::BySeed(one), Self::Fixed(other)) => scaled(one, 1.0, factor * other),
            (Self::BySeed(one), Self::BySeed(other)) => {
                let both = one
                    .into_iter()
                    .filter_map(|(seed, value)| Some((seed, value + factor * other.get(&seed)?)));
                Self::BySeed(both.collect())
            }
        }
    }

    /// The mean over the seeds.
    pub(super) fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::BySeed(sample) => sample.values().sum::<f64>() / sample.len() as f64,
        }
    }

    /// Both sides of a check for the seeds that both have.
    pub(super) fn paired(left: Self, right: Self) -> (Sample, Sample) {
        let spread = |value: f64, seeds: &Sample| seeds.keys().map(|seed| (*seed, value)).collect();
        match (left, right) {
            // Nothing depends on a seed: as certain as two equal trials.
            (Self::Fixed(left), Self::Fixed(right)) => {
                let twice = |value: f64| Sample::from([(0, value), (1, value)]);
                (twice(left), twice(right))
            }
            (Self::Fixed(left), Self::BySeed(right)) => (spread(left, &right), right),
            (Self::BySeed(left), Self::Fixed(right)) => {
                let right = spread(right, &left);
                (left, right)
            }
            (Self::BySeed(mut left), Self::BySeed(mut right)) => {
                left.retain(|seed, _| right.contains_key(seed));
                right.retain(|seed, _| left.contains_key(seed));
                (left, right)
            }
        }
    }
}

impl Reading {
    /// The number of one run, given by the rows of its flows.
    fn value(&self, rows: &[&Row], ideal: &[&Row]) -> Option<f64> {
        let rows = rows.iter().copied();
        match self.window {
            Some((window, _)) => self.measure.metric.pooled_in(window, rows),
            None => self.measure.pooled(rows, ideal),
        }
    }
}

/// The distance of each value from the median of all.
fn from_median(sample: &Sample) -> Sample {
    let mut sorted: Vec<f64> = sample.values().copied().collect();
    sorted.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (
        sorted.get(sorted.len().saturating_sub(1) / 2),
        sorted.get(sorted.len() / 2),
    ) else {
        return Sample::default();
    };
    let median = f64::midpoint(*low, *high);
    sample
        .iter()
        .map(|(seed, value)| (*seed, (value - median).abs()))
        .collect()
}
