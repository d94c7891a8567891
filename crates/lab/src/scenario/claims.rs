//! The claims that a scenario file makes.

use std::collections::BTreeMap;

use playrate_transport::ControllerChoice;
use serde::Deserialize;
use toml::{Spanned, Value};

use super::error::Blame;
use super::text::Text;
use super::{BUILT_IN, ScenarioError};
use crate::claims::{Claim, EVERYBODY, Scope, Substitution, expand};
use crate::run::BULK;

/// The claims of one scenario.
#[derive(Clone, Debug, Default)]
pub struct ScenarioClaims {
    /// The scenario's name.
    pub scenario: String,
    /// Its claims, in the order of the file.
    pub claims: Vec<Claim>,
    /// With which other controllers they are reported beside.
    pub beside: Vec<Substitution>,
}

/// What of a file is read here.
#[derive(Debug, Deserialize)]
struct Outline {
    /// The rows of the papers' claims that it decides.
    #[serde(default)]
    claims: Vec<String>,
    controllers: Vec<Text<ControllerChoice>>,
    ideal: Option<bool>,
    #[serde(default)]
    case: Vec<CaseName>,
    #[serde(default)]
    groups: BTreeMap<String, Spanned<Vec<String>>>,
    #[serde(default)]
    claim: Vec<Spanned<ClaimTable>>,
    #[serde(default)]
    beside: Vec<BesideTable>,
    measure: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct CaseName {
    name: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimTable {
    id: Spanned<String>,
    says: String,
    paper: Option<String>,
    why: Option<String>,
    note: Option<String>,
    cases: Option<Vec<Spanned<String>>>,
    check: Spanned<Vec<Spanned<String>>>,
    /// Whether one check has to hold, and not all.
    #[serde(default)]
    any: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BesideTable {
    name: String,
    replace: Spanned<String>,
    by: String,
}

/// Reads the claims in the text of a scenario called `name`; `file` stands in errors.
///
/// # Errors
/// If something in them is wrong.
pub fn parse_claims(name: &str, file: &str, text: &str) -> Result<ScenarioClaims, ScenarioError> {
    let blame = Blame::new(file, text);
    let outline: Outline = toml::from_str(text).map_err(|error| blame.toml(&error))?;
    let scope = scope(blame, &outline)?;
    let mut claims: Vec<Claim> = Vec::new();
    for table in &outline.claim {
        let table = table.get_ref();
        let id = table.id.get_ref();
        if claims.iter().any(|known| known.id == *id) {
            let problem =
                format!("there is a claim `{id}` already: each has an id of its own, such as {id}/more");
            return Err(blame.at(table.id.span(), problem));
        }
        let row = id.split_once('/').map_or(id.as_str(), |(row, _)| row);
        if !outline.claims.iter().any(|known| known == row) {
            let problem = format!("`{row}` is not among the `claims` of this scenario: add it there");
            return Err(blame.at(table.id.span(), problem));
        }
        claims.push(Claim {
            id: id.clone(),
            scenario: name.to_owned(),
            says: table.says.trim().to_owned(),
            paper: table.paper.clone(),
            why: table.why.clone(),
            note: table.note.clone(),
            checks: checks(blame, table, &scope)?,
            any: table.any,
        });
    }
    let beside = outline.beside.iter().map(|table| {
        let replaced = table.replace.get_ref();
        let known = |spec: &String| spec.contains(replaced.as_str());
        if !scope.controllers.iter().any(known) {
            let problem = format!(
                "`{replaced}` is part of no controller of this scenario: write it as `lab show` does"
            );
            return Err(blame.at(table.replace.span(), problem));
        }
        Ok(Substitution {
            name: table.name.clone(),
            replace: replaced.clone(),
            by: table.by.clone(),
        })
    });
    Ok(ScenarioClaims {
        scenario: name.to_owned(),
        claims,
        beside: beside.collect::<Result<_, _>>()?,
    })
}

fn checks(
    blame: Blame<'_>,
    table: &ClaimTable,
    scope: &Scope,
) -> Result<Vec<crate::claims::Check>, ScenarioError> {
    let mut cases = Vec::new();
    for case in table.cases.iter().flatten() {
        if !scope.cases.contains(case.get_ref()) {
            let known = scope.cases.join(", ");
            let problem = format!(
                "`{}` is no case of this scenario; there are {known}",
                case.get_ref()
            );
            return Err(blame.at(case.span(), problem));
        }
        cases.push(case.get_ref().clone());
    }
    let cases = if table.cases.is_some() {
        &cases
    } else {
        &scope.cases
    };
    let mut checks = Vec::new();
    for text in table.check.get_ref() {
        let more =
            expand(text.get_ref(), scope, cases).map_err(|error| blame.at(text.span(), error.to_string()))?;
        checks.extend(more);
    }
    if checks.is_empty() {
        let problem = "a claim without a check cannot be decided: write one, such as check = [\"lost_packets[cubic] > lost_packets[reno]\"]";
        return Err(blame.at(table.check.span(), problem));
    }
    Ok(checks)
}

fn scope(blame: Blame<'_>, outline: &Outline) -> Result<Scope, ScenarioError> {
    for (name, list) in &outline.groups {
        if name.parse::<ControllerChoice>().is_ok() {
            let problem = format!("`{name}` is the name of a controller: call the group otherwise");
            return Err(blame.at(list.span(), problem));
        }
    }
    let groups = outline.groups.iter();
    Ok(Scope {
        controllers: outline
            .controllers
            .iter()
            .map(|text| text.0.to_string())
            .collect(),
        ideal: outline.ideal.unwrap_or(true),
        cases: outline.case.iter().map(|case| case.name.clone()).collect(),
        groups: groups
            .map(|(name, list)| (name.clone(), list.get_ref().clone()))
            .collect(),
        roles: vec![BULK.to_owned(), EVERYBODY.to_owned()],
        windows: windows(outline.measure.as_ref()),
        scenarios: BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect(),
    })
}

/// The names of the measurement windows, which are as they are written.
fn windows(measure: Option<&Value>) -> Vec<String> {
    let list = measure.and_then(|measure| measure.get("windows")?.as_array());
    list.into_iter()
        .flatten()
        .filter_map(|window| window.as_str().map(str::to_owned))
        .collect()
}
