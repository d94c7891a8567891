//! Claims: statements about results, and the verdict of results on them.
//!
//! A scenario file makes claims (`[[claim]]`); a claim has checks, each an inequality between means ([`check`]);
//! [`judge()`] decides them by the results of `lab run`. A check *holds* if the confidence interval confirms it,
//! *fails* if the interval contradicts it, and is *undecided* otherwise. `docs/scenarios.md` has the syntax,
//! `docs/claims.md` the rules.

mod check;
mod command;
mod json;
mod judge;
mod page;
mod papers;
mod read;

pub(crate) use command::{ClaimsArgs, ClaimsReport, claims, report};
pub(crate) use json::{claim_json, to_json};
pub(crate) use judge::{ClaimResult, judge};
pub(crate) use page::{numbers, to_markdown, to_text};
pub(crate) use read::read;

#[cfg(test)]
mod tests;
