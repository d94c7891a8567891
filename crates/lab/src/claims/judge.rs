//! [`judge()`]: what results say of claims.

use std::collections::BTreeSet;

use super::check::{Check, Claim, Relation, Substitution, Term};
use super::results::{Missing, Results, Values};
use crate::statistics::{Interval, Method, Paired, Sample};

/// What results say of a check or a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The confidence interval says so.
    Holds,
    /// It says the opposite.
    Fails,
    /// It says neither.
    Undecided,
    /// There are no results, or not all that are needed.
    NotRun,
}

impl Outcome {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 4] = [Self::Holds, Self::Fails, Self::Undecided, Self::NotRun];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
            Self::NotRun => "not run",
        }
    }

    /// Of a statement all of whose parts have to hold: it fails if one fails. Without parts it is not run.
    pub fn of_all(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: BTreeSet<Self> = parts.into_iter().collect();
        [Self::Fails, Self::NotRun, Self::Undecided, Self::Holds]
            .into_iter()
            .find(|outcome| parts.contains(outcome))
            .unwrap_or(Self::NotRun)
    }

    /// Of a statement one of whose parts has to hold: it fails if all fail.
    pub fn of_any(parts: impl IntoIterator<Item = Self>) -> Self {
        let parts: BTreeSet<Self> = parts.into_iter().collect();
        [Self::Holds, Self::NotRun, Self::Undecided, Self::Fails]
            .into_iter()
            .find(|outcome| parts.contains(outcome))
            .unwrap_or(Self::NotRun)
    }
}

impl Claim {
    fn outcome(&self, checks: &[CheckResult]) -> Outcome {
        let outcomes = checks.iter().map(|check| check.outcome);
        if self.any {
            Outcome::of_any(outcomes)
        } else {
            Outcome::of_all(outcomes)
        }
    }
}

/// What results say of a check.
#[derive(Clone, Debug)]
pub struct CheckResult {
    /// The check.
    pub check: Check,
    /// What they say.
    pub outcome: Outcome,
    /// The numbers; `None` if they are missing.
    pub numbers: Option<Numbers>,
    /// Why it is undecided or not run.
    pub reason: Option<String>,
}

/// The numbers of a check.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    /// Trials that all readings have.
    pub trials: usize,
    /// The left side.
    pub left: Interval,
    /// The right side.
    pub right: Interval,
    /// The left beyond the right, seed by seed.
    pub paired: Paired,
    /// Whether both sides are read from results of controllers, so that an effect size means something.
    pub compares: bool,
}

/// What results say of a claim.
#[derive(Clone, Debug)]
pub struct ClaimResult {
    /// The claim.
    pub claim: Claim,
    /// What they say.
    pub outcome: Outcome,
    /// What they say of its checks.
    pub checks: Vec<CheckResult>,
    /// The same with other controllers in place.
    pub beside: Vec<Beside>,
}

/// A claim with other controllers in place.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What this is called.
    pub name: String,
    /// What results say of the claim.
    pub outcome: Outcome,
    /// What they say of its checks; those without a replaced controller are as they were.
    pub checks: Vec<CheckResult>,
}

/// Holds `claim` against `results`.
pub fn judge(claim: &Claim, substitutions: &[Substitution], results: &Results) -> ClaimResult {
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
                    outcome: claim.outcome(&checks),
                    checks,
                }
            })
        })
        .collect();
    ClaimResult {
        outcome: claim.outcome(&checks),
        claim: claim.clone(),
        checks,
        beside,
    }
}

fn judge_check(check: &Check, scenario: &str, results: &Results) -> CheckResult {
    let missing = |missing| {
        let (outcome, reason) = match missing {
            Missing::Run(reason) => (Outcome::NotRun, reason),
            Missing::Value(reason) => (Outcome::Undecided, reason),
        };
        CheckResult {
            check: check.clone(),
            outcome,
            numbers: None,
            reason: Some(reason),
        }
    };
    let (left, right) = match (
        side(&check.left, scenario, results),
        side(&check.right, scenario, results),
    ) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(reason), _) | (_, Err(reason)) => return missing(reason),
    };
    let compares = matches!((&left, &right), (Values::BySeed(_), Values::BySeed(_)));
    let (left, right) = together(left, right);
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
        let reason = "its controllers were not run with the same seeds";
        return missing(Missing::Run(reason.to_owned()));
    };
    let outcome = match check.relation {
        Relation::About(share) => about(&left, &right, share),
        relation => decide(relation, &numbers.paired.difference),
    };
    let reason = (outcome == Outcome::Undecided).then(|| match numbers.paired.difference.method {
        Method::Single => "one trial has no interval".to_owned(),
        _ if numbers.trials < 5 => format!("the interval of {} trials allows both", numbers.trials),
        _ => "the interval allows both".to_owned(),
    });
    CheckResult {
        check: check.clone(),
        outcome,
        numbers: Some(numbers),
        reason,
    }
}

/// What the interval of the left beyond the right says.
fn decide(relation: Relation, difference: &Interval) -> Outcome {
    let (low, high) = (difference.low, difference.high);
    let (holds, fails) = match relation {
        Relation::Less => (high < 0.0, low >= 0.0),
        Relation::AtMost => (high <= 0.0, low > 0.0),
        Relation::More => (low > 0.0, high <= 0.0),
        Relation::AtLeast => (low >= 0.0, high < 0.0),
        Relation::About(_) => (false, false),
    };
    match (holds, fails) {
        (true, _) => Outcome::Holds,
        (_, true) => Outcome::Fails,
        _ => Outcome::Undecided,
    }
}

/// Two are about equal if the interval of their difference lies within `share` of the right, and are not if it lies outside.
fn about(left: &Sample, right: &Sample, share: f64) -> Outcome {
    let beyond = |factor: f64| {
        let right = right
            .iter()
            .map(|(seed, value)| (*seed, value + factor * value.abs()));
        Paired::of(left, &right.collect()).map(|paired| paired.difference)
    };
    match (beyond(share), beyond(-share)) {
        (Some(above), Some(below)) if above.high <= 0.0 && below.low >= 0.0 => Outcome::Holds,
        (Some(above), Some(below)) if above.low > 0.0 || below.high < 0.0 => Outcome::Fails,
        _ => Outcome::Undecided,
    }
}

fn interval(sample: &Sample) -> Option<Interval> {
    let values: Vec<f64> = sample.values().copied().collect();
    Interval::of(&values)
}

/// A sum, seed by seed.
fn side(terms: &[Term], scenario: &str, results: &Results) -> Result<Values, Missing> {
    let mut sum = Values::Fixed(0.0);
    for term in terms {
        let value = match &term.reading {
            Some(reading) => results.values(scenario, reading)?,
            None => Values::Fixed(1.0),
        };
        sum = sum.plus(term.factor, value);
    }
    Ok(sum)
}

impl Values {
    /// This and `factor` times another, for the seeds that both have.
    fn plus(self, factor: f64, other: Self) -> Self {
        match (self, other) {
            (Self::Fixed(one), Self::Fixed(other)) => Self::Fixed(one + factor * other),
            (Self::Fixed(one), Self::BySeed(other)) => Self::BySeed(
                other
                    .into_iter()
                    .map(|(seed, value)| (seed, one + factor * value))
                    .collect(),
            ),
            (Self::BySeed(one), Self::Fixed(other)) => Self::BySeed(
                one.into_iter()
                    .map(|(seed, value)| (seed, value + factor * other))
                    .collect(),
            ),
            (Self::BySeed(one), Self::BySeed(other)) => {
                let both = one
                    .into_iter()
                    .filter_map(|(seed, value)| Some((seed, value + factor * other.get(&seed)?)));
                Self::BySeed(both.collect())
            }
        }
    }
}

/// Both sides for the same seeds.
fn together(left: Values, right: Values) -> (Sample, Sample) {
    let spread = |value: f64, seeds: &Sample| seeds.keys().map(|seed| (*seed, value)).collect();
    match (left, right) {
        // Nothing of it depends on a seed: as sure as two equal trials.
        (Values::Fixed(left), Values::Fixed(right)) => {
            let twice = |value: f64| Sample::from([(0, value), (1, value)]);
            (twice(left), twice(right))
        }
        (Values::Fixed(left), Values::BySeed(right)) => (spread(left, &right), right),
        (Values::BySeed(left), Values::Fixed(right)) => {
            let right = spread(right, &left);
            (left, right)
        }
        (Values::BySeed(mut left), Values::BySeed(mut right)) => {
            left.retain(|seed, _| right.contains_key(seed));
            right.retain(|seed, _| left.contains_key(seed));
            (left, right)
        }
    }
}
