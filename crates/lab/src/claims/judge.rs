//! [`judge()`]: decides claims by results. `docs/claims.md` has the rules.

use super::check::{Check, Claim, Comparison, Reading, Relation, Substitution, Superlative};
use super::decide::{Difference, Margin, Standing, decide};
use super::judge_by_means;
use super::values::{Missing, Values};
use super::verdict::Verdict;
use crate::result::ResultSet;
use crate::statistics::{Interval, Method, Paired, Sample};

#[derive(Clone, Debug)]
pub(crate) struct CheckResult {
    pub(crate) check: Check,
    pub(crate) verdict: Verdict,
    /// `None` if results are missing.
    pub(crate) numbers: Option<Numbers>,
    /// All who are compared; `None` unless the check is a superlative with results.
    pub(crate) ranking: Option<Ranking>,
    /// Reason for which the check is undecided or not run.
    pub(crate) reason: Option<String>,
}

/// The means of all flows that a superlative compares.
#[derive(Clone, Debug)]
pub(crate) struct Ranking {
    /// The members stand before the others.
    pub(crate) means: Vec<FlowMean>,
    /// The member and the other whose numbers decide the check, or come closest to it.
    pub(crate) pair: [String; 2],
}

#[derive(Clone, Debug)]
pub(crate) struct FlowMean {
    pub(crate) flow: String,
    pub(crate) is_member: bool,
    pub(crate) mean: f64,
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
    /// The verdict by the means alone ([`judge_by_means`]).
    pub(crate) by_means: Verdict,
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
                    verdict: claim.verdict(verdicts(&checks)),
                    checks,
                }
            })
        })
        .collect();
    ClaimResult {
        verdict: claim.verdict(verdicts(&checks)),
        by_means: judge_by_means(claim, results),
        claim: claim.clone(),
        checks,
        beside,
    }
}

fn verdicts(checks: &[CheckResult]) -> impl Iterator<Item = Verdict> {
    checks.iter().map(|check| check.verdict)
}

fn judge_check(check: &Check, scenario: &str, results: &ResultSet<'_>) -> CheckResult {
    let judged = match check {
        Check::Comparison(comparison) => judge_comparison(comparison, scenario, results),
        Check::Superlative(superlative) => judge_superlative(superlative, scenario, results),
    };
    judged.map_or_else(
        |missing| CheckResult {
            check: check.clone(),
            verdict: missing.verdict(),
            numbers: None,
            ranking: None,
            reason: Some(missing.into_reason()),
        },
        |judged| CheckResult {
            check: check.clone(),
            verdict: judged.verdict,
            numbers: Some(judged.numbers),
            ranking: judged.ranking,
            reason: judged.reason,
        },
    )
}

/// A check that has numbers.
struct Judged {
    verdict: Verdict,
    numbers: Numbers,
    ranking: Option<Ranking>,
    reason: Option<String>,
}

fn judge_comparison(
    comparison: &Comparison,
    scenario: &str,
    results: &ResultSet<'_>,
) -> Result<Judged, Missing> {
    let left = Values::of_sum(&comparison.left, scenario, results)?;
    let right = Values::of_sum(&comparison.right, scenario, results)?;
    let sides = Sides::of(&left, &right)?;
    let margin = comparison.margin();
    let difference = sides.difference(margin);
    let verdict = match comparison.relation {
        Relation::About(share) => about(&sides.left, &sides.right, share),
        relation => decide(relation, difference),
    };
    let reason = (verdict == Verdict::Undecided).then(|| {
        if comparison.relation.is_strict() && !difference.matters {
            format!("tie: {}", margin.of_ties())
        } else {
            sides.numbers.allows_both()
        }
    });
    Ok(Judged {
        verdict,
        numbers: sides.numbers,
        ranking: None,
        reason,
    })
}

/// Both sides of a comparison, seed by seed.
struct Sides {
    left: Sample,
    right: Sample,
    numbers: Numbers,
}

impl Sides {
    fn of(left: &Values, right: &Values) -> Result<Self, Missing> {
        let compares = matches!((left, right), (Values::BySeed(_), Values::BySeed(_)));
        let (left, right) = Values::paired(left.clone(), right.clone());
        let numbers = || {
            Some(Numbers {
                trials: left.len(),
                left: interval(&left)?,
                right: interval(&right)?,
                paired: Paired::of(&left, &right)?,
                compares,
            })
        };
        match numbers() {
            Some(numbers) => Ok(Self { left, right, numbers }),
            None => Err(Missing::Run(
                "the controllers were not run with the same seeds".to_owned(),
            )),
        }
    }

    fn difference(&self, margin: Margin) -> Difference {
        let numbers = &self.numbers;
        let matters = margin.is_exceeded(numbers.left.mean, numbers.right.mean);
        Difference::of_interval(&numbers.paired.difference, matters)
    }
}

impl Numbers {
    /// The reason for which the interval decides nothing.
    fn allows_both(&self) -> String {
        match self.paired.difference.method {
            Method::Single => "a single trial has no confidence interval".to_owned(),
            _ if self.trials < 5 => {
                format!("the confidence interval of {} trials allows both", self.trials)
            }
            _ => "the confidence interval allows both".to_owned(),
        }
    }
}

fn judge_superlative(
    superlative: &Superlative,
    scenario: &str,
    results: &ResultSet<'_>,
) -> Result<Judged, Missing> {
    let values_of = |reading| -> Result<(&Reading, Values), Missing> {
        Ok((reading, Values::of_reading(reading, scenario, results)?))
    };
    let members: Vec<(&Reading, Values)> = superlative
        .members
        .iter()
        .map(values_of)
        .collect::<Result<_, _>>()?;
    let others: Vec<(&Reading, Values)> = superlative.others().map(values_of).collect::<Result<_, _>>()?;
    let margin = superlative.margin();
    // Of each other beside each member.
    let beside = |(_, other): &(&Reading, Values)| {
        let sides = members.iter().map(|(_, member)| Sides::of(member, other));
        sides.collect::<Result<Vec<Sides>, Missing>>()
    };
    let sides: Vec<Vec<Sides>> = others.iter().map(beside).collect::<Result<_, _>>()?;
    let differences: Vec<Vec<Difference>> = sides
        .iter()
        .map(|sides| sides.iter().map(|sides| sides.difference(margin)).collect())
        .collect();
    let found = Standing::of(superlative.extreme, &differences).and_then(|standing| {
        let [other, member] = standing.pair;
        let pair = [members.get(member)?.0, others.get(other)?.0];
        Some((standing, pair, sides.get(other)?.get(member)?.numbers))
    });
    let Some((standing, pair, numbers)) = found else {
        return Err(Missing::Run(
            "there is no other controller to compare with".to_owned(),
        ));
    };
    let means: Vec<FlowMean> = FlowMean::of(&members, true)
        .chain(FlowMean::of(&others, false))
        .collect();
    let reason = (standing.verdict == Verdict::Undecided).then(|| {
        let mut pairs = means
            .iter()
            .flat_map(|one| means.iter().map(move |other| (one.mean, other.mean)));
        if pairs.all(|(one, other)| !margin.is_exceeded(one, other)) {
            format!("tie: {}", margin.of_ties())
        } else if standing.is_beyond {
            numbers.allows_both()
        } else {
            superlative.extreme.without_loser().to_owned()
        }
    });
    Ok(Judged {
        verdict: standing.verdict,
        numbers,
        ranking: Some(Ranking {
            means,
            pair: pair.map(|reading| reading.flow.to_string()),
        }),
        reason,
    })
}

impl FlowMean {
    fn of<'v>(values: &'v [(&Reading, Values)], is_member: bool) -> impl Iterator<Item = Self> + 'v {
        values.iter().map(move |(reading, values)| Self {
            flow: reading.flow.to_string(),
            is_member,
            mean: values.mean(),
        })
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
