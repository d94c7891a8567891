//! The readings of a claim: which runs it needs.

use super::check::{Check, Claim, Reading};

impl Claim {
    /// The metrics that the claim reads.
    pub(crate) fn readings(&self) -> impl Iterator<Item = &Reading> {
        self.checks.iter().flat_map(readings)
    }

    /// The claim without the checks that read a scenario and case for which `has` is false; `None` if no check is left.
    pub(crate) fn limited_to(&self, has: impl Fn(&str, &str) -> bool) -> Option<Self> {
        let mut claim = self.clone();
        claim.checks.retain(|check| {
            let mut readings = readings(check).into_iter();
            readings.all(|reading| has(reading.of_scenario(&self.scenario), &reading.flow.case))
        });
        (!claim.checks.is_empty()).then_some(claim)
    }
}

/// The readings of a check; those of a superlative are the flows that are compared, its members among them.
fn readings(check: &Check) -> Vec<&Reading> {
    match check {
        Check::Comparison(comparison) => comparison.readings().collect(),
        Check::Superlative(superlative) => superlative.among.iter().chain(&superlative.members).collect(),
    }
}

impl Reading {
    /// The scenario whose runs are read, in a claim of the scenario `own`.
    pub(crate) fn of_scenario<'a>(&'a self, own: &'a str) -> &'a str {
        self.scenario.as_deref().unwrap_or(own)
    }
}
