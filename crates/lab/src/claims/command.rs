//! `lab claims`: decides the claims of all scenarios by the results in a directory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use clap::Args;

use super::judge::{ClaimResult, judge};
use super::papers::{PAPER_ROWS, PaperRow};
use super::read::read;
use super::verdict::Verdict;
use crate::error::CommandError;
use crate::result::{IDEAL, ResultSet, Row, read_directory};
use crate::scenario::{BUILT_IN, Changes, Document, ScenarioError, ScenarioSource};

/// Arguments of `lab claims`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ClaimsArgs {
    /// Directory with the results of `lab run`
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,

    /// Print the report as JSON
    #[arg(long, conflicts_with = "markdown")]
    pub(crate) json: bool,

    /// Print the report as a Markdown page
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Report only claims whose id begins with this, such as P13 or P13-4
    #[arg(long, value_name = "ID")]
    pub(crate) only: Vec<String>,

    /// Report the claims of this scenario file too
    #[arg(long = "scenario", value_name = "FILE")]
    pub(crate) scenarios: Vec<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ClaimsReport {
    pub(crate) rows: Vec<RowReport>,
    /// Claims of scenarios that belong to no row.
    pub(crate) others: Vec<ClaimResult>,
    /// Runs of each scenario that has claims.
    pub(crate) runs: BTreeMap<String, RunsOf>,
    /// Results that were ignored, in words.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct RowReport {
    pub(crate) row: PaperRow,
    /// A row holds if all its claims hold.
    pub(crate) verdict: Verdict,
    /// Empty if no scenario decides the row.
    pub(crate) claims: Vec<ClaimResult>,
    /// Claims that are reported and do not decide the row.
    pub(crate) beside: Vec<ClaimResult>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunsOf {
    /// Trials of the controller that has most.
    pub(crate) trials: usize,
    /// True for runs of `--quick`.
    pub(crate) quick: bool,
}

/// Decides the chosen claims by the results in a directory.
pub(crate) fn claims(args: &ClaimsArgs) -> Result<ClaimsReport, CommandError> {
    let rows = read_directory(&args.directory).map_err(|error| CommandError::read(&args.directory, error))?;
    let mut all = report(&rows, &args.scenarios)?;
    let wanted =
        |id: &str| args.only.is_empty() || args.only.iter().any(|only| id.starts_with(only.as_str()));
    for only in &args.only {
        let others = all.others.iter().map(|claim| claim.claim.id.as_str());
        let parts = all
            .rows
            .iter()
            .flat_map(|row| row.claims.iter().chain(&row.beside))
            .map(|claim| claim.claim.id.as_str());
        let mut ids = all.rows.iter().map(|row| row.row.id).chain(others).chain(parts);
        if !ids.any(|id| id.starts_with(only.as_str())) {
            return Err(CommandError::BadInput(format!(
                "no claim begins with `{only}`; expected an id such as P13, P13-4 or P13-4/discards"
            )));
        }
    }
    all.rows.retain_mut(|row| {
        let whole = wanted(row.row.id);
        row.claims.retain(|claim| whole || wanted(&claim.claim.id));
        row.beside.retain(|claim| whole || wanted(&claim.claim.id));
        whole || !row.claims.is_empty() || !row.beside.is_empty()
    });
    all.others.retain(|claim| wanted(&claim.claim.id));
    Ok(all)
}

/// Decides every claim of the built-in scenarios, and of the files `scenarios`, by `rows`.
pub(crate) fn report(rows: &[Row], scenarios: &[String]) -> Result<ClaimsReport, ScenarioError> {
    let mut report = ClaimsReport::default();
    let mut by_scenario: BTreeMap<&str, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        by_scenario.entry(&row.key.scenario).or_default().push(row);
    }
    let names = BUILT_IN.iter().map(|(name, _)| *name);
    let (mut made, mut kept) = (Vec::new(), Vec::new());
    for name in names.chain(scenarios.iter().map(String::as_str)) {
        let source = ScenarioSource::find(name)?;
        let document = source.document()?;
        let claims = read(&document)?;
        if let Some(rows) = by_scenario.remove(claims.scenario.as_str()) {
            kept.extend(current(&document, &rows, &mut report)?);
        }
        made.push(claims);
    }
    let results = ResultSet::of(kept);
    let mut judged = Vec::new();
    for made in &made {
        let claims = made.claims.iter();
        judged.extend(claims.map(|claim| judge(claim, &made.beside, &results)));
    }
    for row in PAPER_ROWS {
        let mine = judged.extract_if(.., |claim| claim.claim.row() == row.id);
        let (claims, beside): (Vec<ClaimResult>, Vec<ClaimResult>) =
            mine.partition(|claim| claim.claim.decides);
        report.rows.push(RowReport {
            row: *row,
            verdict: Verdict::of_all(claims.iter().map(|claim| claim.verdict)),
            claims,
            beside,
        });
    }
    report.others = judged;
    Ok(report)
}

/// The rows of the scenario's present version: those of full runs if there are any, otherwise those of `--quick`.
fn current<'r>(
    document: &Document<'_>,
    rows: &[&'r Row],
    report: &mut ClaimsReport,
) -> Result<Vec<&'r Row>, ScenarioError> {
    let hashes = |quick| -> Result<BTreeSet<(String, String)>, ScenarioError> {
        let changes = Changes {
            quick,
            ..Changes::default()
        };
        let cases = document.scenarios(&changes)?;
        Ok(cases.into_iter().map(|case| (case.case, case.hash)).collect())
    };
    let all = rows.len();
    let of = |hashes: &BTreeSet<(String, String)>| -> Vec<&'r Row> {
        let known = |row: &&&Row| hashes.contains(&(row.key.case.clone(), row.key.scenario_hash.clone()));
        rows.iter().filter(known).copied().collect()
    };
    let (mut kept, mut quick) = (of(&hashes(false)?), false);
    if kept.is_empty() {
        (kept, quick) = (of(&hashes(true)?), true);
    }
    if kept.len() < all {
        report.notes.push(format!(
            "{} of {all} results of {} were ignored: they are of another version of the scenario or of other settings",
            all - kept.len(),
            document.name()
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
