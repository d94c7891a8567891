//! Claims: statements about results, and the verdict of results on them.
//!
//! A scenario file makes claims (`[[claim]]`); a claim has checks, each an inequality between means or a superlative
//! ([`check`]); [`judge()`] decides them by the results of `lab run`, and [`judge_by_means`] by their means alone. A
//! check *holds* if the confidence intervals confirm it, *fails* if they contradict it, and is *undecided* otherwise.
//! `docs/scenarios.md` has the syntax, `docs/claims.md` the rules.

mod check;
mod command;
mod decide;
mod json;
mod judge;
mod means;
mod page;
mod papers;
mod read;
mod readings;
mod syntax;
mod values;
mod verdict;

pub(crate) use check::Claim;
pub(crate) use command::{ClaimsArgs, ClaimsReport, RowReport, claims, report};
pub(crate) use json::{claim_json, to_json};
pub(crate) use judge::{ClaimResult, judge};
pub(crate) use means::judge_by_means;
pub(crate) use page::{numbers, to_markdown, to_text};
pub(crate) use read::read;
pub(crate) use verdict::Verdict;

#[cfg(test)]
mod tests;
