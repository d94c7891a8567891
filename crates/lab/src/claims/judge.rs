//! [`judge()`]: decides claims by results. `docs/claims.md` has the rules.

use super::check::{Check, Claim, Reading, Relation, Substitution, Term};
use crate::result::{IDEAL, ResultSet, Row};
use crate::statistics::{Interval, Method, Paired, Sample};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The confidence interval confirms it.
    Holds,
    /// The confidence interval contradicts it.
    Fails,
    /// The confidence interval does neither.
    Undecided,
    /// Results that it needs are missing.
    NotRun,
}

impl Verdict {
    /// All verdicts, in the order in which they are counted.
    pub(super) const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Undecided, Self::NotRun];

    /// Name in tables and JSON.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
            Self::NotRun => "not run",
        }
    }

    /// The verdict on a statement that needs all `verdicts` to hold: it fails if one fails, and is not run
    /// without any.
    pub(super) fn of_all(verdicts: impl IntoIterator<Item = Self>) -> Self {
        Self::first_of(
            [Self::Fails, Self::NotRun, Self::Undecided, Self::Holds],
            verdicts,
        )
    }

    /// The verdict on a statement that needs one of `verdicts` to hold: it fails if all fail.
    pub(super) fn of_any(verdicts: impl IntoIterator<Item = Self>) -> Self {
        Self::first_of(
            [Self::Holds, Self::NotRun, Self::Undecided, Self::Fails],
            verdicts,
        )
    }

    /// The first of `order` that is among `verdicts`.
    fn first_of(order: [Self; 4], verdicts: impl IntoIterator<Item = Self>) -> Self {
        let place = |verdict: Self| order.iter().position(|one| *one == verdict);
        let first = verdicts.into_iter().min_by_key(|verdict| place(*verdict));
        first.unwrap_or(Self::NotRun)
    }
}

impl Claim {
    fn verdict(&self, checks: &[CheckResult]) -> Verdict {
        let verdicts = checks.iter().map(|check| check.verdict);
        if self.any {
            Verdict::of_any(verdicts)
        } else {
            Verdict::of_all(verdicts)
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct CheckResult {
    pub(crate) check: Check,
    pub(crate) verdict: Verdict,
    /// `None` if results are missing.
    pub(crate) numbers: Option<Numbers>,
    /// Reason for which the check is undecided or not run.
    pub(crate) reason: Option<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Numbers {
    /// Trials that all readings have in common.
    pub(crate) trials: usize,
    pub(crate) left: Interval,
    pub(crate) right: Interval,
    /// Left minus right, seed by seed.
    pub(crate) paired: Paired,
    /// True if both sides are results of controllers, so that an effect size means something.
    pub(crate) compares: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ClaimResult {
    pub(crate) claim: Claim,
    pub(crate) verdict: Verdict,
    pub(crate) checks: Vec<CheckResult>,
    /// The same claim with other controllers in place.
    pub(crate) beside: Vec<Beside>,
}

/// A claim with other controllers in place.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    /// Checks without a replaced controller are those of the claim.
    pub(crate) checks: Vec<CheckResult>,
}

pub(crate) fn judge(claim: &Claim, substitutions: &[Substitution], results: &ResultSet<'_>) -> ClaimResult {
    let judged = |check: &Check| judge_check(check, &claim.scenario, results);
    let checks: Vec<CheckResult> = claim.checks.iter().map(judged).collect();
    let beside = substitutions
        .iter()
        .filter_map(|substitution| {
            let others: Vec<Option<Check>> = claim
                .checks
                .iter()
                .map(|check| check.substituted(substitution))
                .collect();
            others.iter().any(Option::is_some).then(|| {
                let others = others.iter().zip(&checks);
                let checks: Vec<CheckResult> = others
                    .map(|(other, same)| other.as_ref().map_or_else(|| same.clone(), judged))
                    .collect();
                Beside {
                    name: substitution.name.clone(),
                    verdict: claim.verdict(&checks),
                    checks,
                }
            })
        })
        .collect();
    ClaimResult {
        verdict: claim.verdict(&checks),
        claim: claim.clone(),
        checks,
        beside,
    }
}

fn judge_check(check: &Check, scenario: &str, results: &ResultSet<'_>) -> CheckResult {
    let missing = |missing| {
        let (verdict, reason) = match missing {
            Missing::Run(reason) => (Verdict::NotRun, reason),
            Missing::Value(reason) => (Verdict::Undecided, reason),
        };
        CheckResult {
            check: check.clone(),
            verdict,
            numbers: None,
            reason: Some(reason),
        }
    };
    let (left, right) = match (
        Values::of_sum(&check.left, scenario, results),
        Values::of_sum(&check.right, scenario, results),
    ) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(reason), _) | (_, Err(reason)) => return missing(reason),
    };
    let compares = matches!((&left, &right), (Values::BySeed(_), Values::BySeed(_)));
    let (left, right) = Values::paired(left, right);
    let numbers = || {
        Some(Numbers {
            trials: left.len(),
            left: interval(&left)?,
            right: interval(&right)?,
            paired: Paired::of(&left, &right)?,
            compares,
        })
    };
    let Some(numbers) = numbers() else {
        let reason = "the controllers were not run with the same seeds";
        return missing(Missing::Run(reason.to_owned()));
    };
    let verdict = match check.relation {
        Relation::About(share) => about(&left, &right, share),
        relation => decide(relation, &numbers.paired.difference),
    };
    let reason = (verdict == Verdict::Undecided).then(|| match numbers.paired.difference.method {
        Method::Single => "a single trial has no confidence interval".to_owned(),
        _ if numbers.trials < 5 => {
            format!("the confidence interval of {} trials allows both", numbers.trials)
        }
        _ => "the confidence interval allows both".to_owned(),
    });
    CheckResult {
        check: check.clone(),
        verdict,
        numbers: Some(numbers),
        reason,
    }
}

/// The verdict by the confidence interval of left minus right.
fn decide(relation: Relation, difference: &Interval) -> Verdict {
    let (low, high) = (difference.low, difference.high);
    let (holds, fails) = match relation {
        Relation::Less => (high < 0.0, low >= 0.0),
        Relation::AtMost => (high <= 0.0, low > 0.0),
        Relation::More => (low > 0.0, high <= 0.0),
        Relation::AtLeast => (low >= 0.0, high < 0.0),
        Relation::About(_) => (false, false),
    };
    match (holds, fails) {
        (true, _) => Verdict::Holds,
        (_, true) => Verdict::Fails,
        _ => Verdict::Undecided,
    }
}

/// The verdict on approximate equality: it holds if the interval of the difference lies within `share` of the
/// right side, and fails if it lies outside.
fn about(left: &Sample, right: &Sample, share: f64) -> Verdict {
    let beyond = |factor: f64| {
        let right = right
            .iter()
            .map(|(seed, value)| (*seed, value + factor * value.abs()));
        Paired::of(left, &right.collect()).map(|paired| paired.difference)
    };
    match (beyond(share), beyond(-share)) {
        (Some(above), Some(below)) if above.high <= 0.0 && below.low >= 0.0 => Verdict::Holds,
        (Some(above), Some(below)) if above.low > 0.0 || below.high < 0.0 => Verdict::Fails,
        _ => Verdict::Undecided,
    }
}

fn interval(sample: &Sample) -> Option<Interval> {
    let values: Vec<f64> = sample.values().copied().collect();
    Interval::of(&values)
}

/// A number for each trial.
#[derive(Clone, Debug, PartialEq)]
enum Values {
    /// The same for every seed: a constant, or a number of the ideal row of trials that do not vary.
    Fixed(f64),
    BySeed(Sample),
}

/// A reason for which a check has no numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Missing {
    /// A controller was not run.
    Run(String),
    /// No run has the number.
    Value(String),
}

impl Values {
    /// The values of a sum. `scenario` is the one that makes the claim.
    fn of_sum(terms: &[Term], scenario: &str, results: &ResultSet<'_>) -> Result<Self, Missing> {
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
    fn of_reading(reading: &Reading, scenario: &str, results: &ResultSet<'_>) -> Result<Self, Missing> {
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

    /// Both sides of a check for the seeds that both have.
    fn paired(left: Self, right: Self) -> (Sample, Sample) {
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
