//! `lab claims`: the claims of all scenarios, held against the results in a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;

use clap::Args;
use thiserror::Error;

use super::contract::{CONTRACT, ContractRow};
use super::judge::{ClaimResult, Outcome, judge};
use super::results::Results;
use crate::run::{IDEAL, Row, read_directory};
use crate::scenario::{self, BUILT_IN, Changes, ScenarioClaims, ScenarioError};

/// What `lab claims` is told.
#[derive(Args, Clone, Debug)]
pub struct ClaimsArgs {
    /// Directory of `lab run`
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    /// Only claims whose id begins with this, such as P13 or P13-4; all if not given
    #[arg(long, value_name = "ID")]
    pub only: Vec<String>,

    /// A scenario file of your own whose claims are wanted too
    #[arg(long = "scenario", value_name = "FILE")]
    pub scenarios: Vec<String>,
}

/// Why there is no answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClaimsFailure {
    /// A scenario is no good.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The results cannot be read.
    #[error("cannot read the results of `lab run` in {}: {error}", .directory.display())]
    Results {
        /// Where.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// No claim begins so.
    #[error("no claim begins with `{0}`; there are P12-3a, P13-4 and so on: `lab claims DIR` has them all")]
    NoSuchClaim(String),
}

impl ClaimsFailure {
    /// Whether the user asked for something that cannot be.
    pub fn is_bad_input(&self) -> bool {
        match self {
            Self::Scenario(_) | Self::NoSuchClaim(_) => true,
            Self::Results { error, .. } => error.kind() == io::ErrorKind::NotFound,
        }
    }
}

/// What results say of all claims.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The rows of the papers' claims, each with the claims of scenarios about it.
    pub rows: Vec<RowReport>,
    /// Claims of scenarios that are about none of them.
    pub others: Vec<ClaimResult>,
    /// What was run of each scenario that has claims.
    pub runs: BTreeMap<String, RunsOf>,
    /// What else has to be known.
    pub notes: Vec<String>,
}

/// A row of the papers' claims.
#[derive(Clone, Debug)]
pub struct RowReport {
    /// The row.
    pub row: ContractRow,
    /// It holds if all claims about it hold.
    pub outcome: Outcome,
    /// These claims; none if no scenario decides it.
    pub claims: Vec<ClaimResult>,
}

/// What was run of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunsOf {
    /// Trials of the controller that has most.
    pub trials: usize,
    /// Whether it was run with `--quick`.
    pub quick: bool,
}

/// The claims that `args` ask for, held against the results that they name.
///
/// # Errors
/// See [`ClaimsFailure`].
pub fn claims(args: &ClaimsArgs) -> Result<Report, ClaimsFailure> {
    let rows = read_directory(&args.directory).map_err(|error| ClaimsFailure::Results {
        directory: args.directory.clone(),
        error,
    })?;
    let mut all = report(rows, &args.scenarios)?;
    let wanted =
        |id: &str| args.only.is_empty() || args.only.iter().any(|only| id.starts_with(only.as_str()));
    for only in &args.only {
        let others = all.others.iter().map(|claim| claim.claim.id.as_str());
        let parts = all
            .rows
            .iter()
            .flat_map(|row| &row.claims)
            .map(|claim| claim.claim.id.as_str());
        let mut ids = all.rows.iter().map(|row| row.row.id).chain(others).chain(parts);
        if !ids.any(|id| id.starts_with(only.as_str())) {
            return Err(ClaimsFailure::NoSuchClaim(only.clone()));
        }
    }
    all.rows.retain_mut(|row| {
        let whole = wanted(row.row.id);
        row.claims.retain(|claim| whole || wanted(&claim.claim.id));
        whole || !row.claims.is_empty()
    });
    all.others.retain(|claim| wanted(&claim.claim.id));
    Ok(all)
}

/// Every claim of the scenarios that come with the lab, and of `scenarios` by file, held against `rows`.
///
/// # Errors
/// If a scenario is no good.
pub fn report(rows: Vec<Row>, scenarios: &[String]) -> Result<Report, ScenarioError> {
    let mut report = Report::default();
    let mut by_scenario: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    for row in rows {
        by_scenario.entry(row.key.scenario.clone()).or_default().push(row);
    }
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    let (mut made, mut kept) = (Vec::new(), Vec::new());
    for name in names.chain(scenarios.iter().map(String::as_str)) {
        let claims: ScenarioClaims = scenario::claims(name)?;
        if let Some(rows) = by_scenario.remove(&claims.scenario) {
            kept.extend(current(name, &rows, &mut report)?);
        }
        made.push(claims);
    }
    let results = Results::of(kept);
    let mut judged = Vec::new();
    for made in &made {
        let claims = made.claims.iter();
        judged.extend(claims.map(|claim| judge(claim, &made.beside, &results)));
    }
    for row in CONTRACT {
        let mine = judged.extract_if(.., |claim| claim.claim.row() == row.id);
        let claims: Vec<ClaimResult> = mine.collect();
        report.rows.push(RowReport {
            row: *row,
            outcome: Outcome::of_all(claims.iter().map(|claim| claim.outcome)),
            claims,
        });
    }
    report.others = judged;
    Ok(report)
}

/// Those of `rows` that are of the scenario as it is now: in full if there are such, or else of `--quick`.
fn current(name: &str, rows: &[Row], report: &mut Report) -> Result<Vec<Row>, ScenarioError> {
    let hashes = |quick| -> Result<BTreeSet<(String, String)>, ScenarioError> {
        let changes = Changes {
            quick,
            ..Changes::default()
        };
        let cases = scenario::open(name, &changes)?;
        Ok(cases.into_iter().map(|case| (case.case, case.hash)).collect())
    };
    let all = rows.len();
    let of = |rows: &[Row], hashes: &BTreeSet<(String, String)>| -> Vec<Row> {
        let known = |row: &&Row| hashes.contains(&(row.key.case.clone(), row.key.scenario_hash.clone()));
        rows.iter().filter(known).cloned().collect()
    };
    let (mut kept, mut quick) = (of(rows, &hashes(false)?), false);
    if kept.is_empty() {
        (kept, quick) = (of(rows, &hashes(true)?), true);
    }
    if kept.len() < all {
        report.notes.push(format!(
            "{} of {all} results of {name} are of other settings than these claims are judged by, and were passed over",
            all - kept.len()
        ));
    }
    let mut seeds: BTreeMap<(&str, &str), BTreeSet<u64>> = BTreeMap::new();
    for key in kept
        .iter()
        .map(|row| &row.key)
        .filter(|key| key.controller != IDEAL)
    {
        seeds
            .entry((&key.case, &key.controller))
            .or_default()
            .insert(key.seed);
    }
    let trials = seeds.values().map(BTreeSet::len).max().unwrap_or(0);
    if let Some(row) = kept.first() {
        report
            .runs
            .insert(row.key.scenario.clone(), RunsOf { trials, quick });
    }
    Ok(kept)
}
