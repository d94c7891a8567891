//! [`judge_by_means`]: decides claims by the means alone.

use super::check::{Check, Claim, Comparison, Relation, Superlative};
use super::decide::{Difference, Standing, decide};
use super::values::{Missing, Values};
use super::verdict::Verdict;
use crate::result::ResultSet;

/// The verdict on a claim if the means were certain: the rules of [`super::judge()`] with the same margins, without
/// confidence intervals. One trial is enough for it, and it is cheap.
pub(crate) fn judge_by_means(claim: &Claim, results: &ResultSet<'_>) -> Verdict {
    let verdict = |check: &Check| {
        let verdict = match check {
            Check::Comparison(comparison) => of_comparison(comparison, &claim.scenario, results),
            Check::Superlative(superlative) => of_superlative(superlative, &claim.scenario, results),
        };
        verdict.unwrap_or_else(|missing| missing.verdict())
    };
    claim.verdict(claim.checks.iter().map(verdict))
}

fn of_comparison(
    comparison: &Comparison,
    scenario: &str,
    results: &ResultSet<'_>,
) -> Result<Verdict, Missing> {
    let left = Values::of_sum(&comparison.left, scenario, results)?.mean();
    let right = Values::of_sum(&comparison.right, scenario, results)?.mean();
    Ok(match comparison.relation {
        Relation::About(share) if (left - right).abs() <= share * right.abs() => Verdict::Holds,
        Relation::About(_) => Verdict::Fails,
        relation => decide(relation, Difference::of_means(left, right, comparison.margin())),
    })
}

fn of_superlative(
    superlative: &Superlative,
    scenario: &str,
    results: &ResultSet<'_>,
) -> Result<Verdict, Missing> {
    let mean_of =
        |reading| -> Result<f64, Missing> { Ok(Values::of_reading(reading, scenario, results)?.mean()) };
    let members: Vec<f64> = superlative
        .members
        .iter()
        .map(mean_of)
        .collect::<Result<_, _>>()?;
    let margin = superlative.margin();
    let others = superlative
        .others()
        .map(|other| -> Result<Vec<Difference>, Missing> {
            let other = mean_of(other)?;
            let differences = members
                .iter()
                .map(|member| Difference::of_means(*member, other, margin));
            Ok(differences.collect())
        });
    let others: Vec<Vec<Difference>> = others.collect::<Result<_, _>>()?;
    let standing = Standing::of(superlative.extreme, &others);
    Ok(standing.map_or(Verdict::Undecided, |standing| standing.verdict))
}
