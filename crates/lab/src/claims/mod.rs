//! Claims: statements over results that can be checked, and what the results say of them.
//!
//! A scenario file makes claims (`[[claim]]`, read by [`crate::scenario::claims`]); a claim has [`Check`]s, each an inequality between
//! means; [`judge()`] holds them against the [`Results`] of `lab run`. A check *holds* only when the confidence interval says so, *fails* when it
//! says the opposite, and is *undecided* otherwise. `docs/scenarios.md` has the grammar, `docs/claims.md` the rules.

mod check;
mod command;
mod contract;
mod expand;
mod grammar;
mod json;
mod judge;
mod results;
mod table;

pub use check::{Check, Claim, EVERYBODY, Flow, Reading, Relation, Substitution, Term};
pub use command::{ClaimsArgs, ClaimsFailure, Report, claims, report};
pub use contract::{CONTRACT, ContractRow};
pub(crate) use expand::expand;
pub(crate) use grammar::split;
pub use grammar::{GrammarError, Scope};
pub(crate) use json::claim_json;
pub use json::{FORMAT, VERSION, to_json};
pub use judge::{CheckResult, ClaimResult, Outcome, judge};
pub use results::Results;
pub(crate) use table::numbers;
pub use table::to_text;

#[cfg(test)]
mod tests;
