//! The scenarios that come with the lab, and how one is found.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::{Changes, Scenario, ScenarioClaims, ScenarioError, parse_claims};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/", $name, ".toml")))),*]
    };
}

/// The scenarios that come with the lab: name and text, in the order in which they are listed.
pub const BUILT_IN: &[(&str, &str)] = built_in![
    "three-controllers",
    "p13-4",
    "p13-4-loss",
    "p13-6",
    "p13-7",
    "p13-8",
    "p13-9",
    "p13-10",
    "p21-dash",
];

/// The scenario called `name`, with all its cases: one that comes with the lab, or a file if it has a `/` or ends in `.toml`.
///
/// # Errors
/// If there is no such scenario, or something in it is wrong.
pub fn open(name: &str, changes: &Changes) -> Result<Vec<Scenario>, ScenarioError> {
    let found = find(name)?;
    Scenario::parse(found.name, &found.file, &found.text, &found.base, changes)
}

/// The claims of the scenario called `name` ([`open`]).
///
/// # Errors
/// If there is no such scenario, or something in its claims is wrong.
pub fn claims(name: &str) -> Result<ScenarioClaims, ScenarioError> {
    let found = find(name)?;
    parse_claims(found.name, &found.file, &found.text)
}

/// A scenario's file.
struct Found<'a> {
    /// What the scenario is called.
    name: &'a str,
    /// What the file is called.
    file: String,
    text: Cow<'static, str>,
    /// Where the files are that it names.
    base: PathBuf,
}

fn find(name: &str) -> Result<Found<'_>, ScenarioError> {
    if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        return Ok(Found {
            name,
            file: format!("scenarios/{name}.toml"),
            text: Cow::Borrowed(text),
            base: PathBuf::from("scenarios"),
        });
    }
    let path = Path::new(name);
    let is_file = name.contains(['/', '\\']) || path.extension().is_some_and(|end| end == "toml");
    if !is_file {
        let known: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
        return Err(ScenarioError::Unknown {
            name: name.to_owned(),
            known: known.join(", "),
        });
    }
    let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::Read {
        file: name.to_owned(),
        reason: error.to_string(),
    })?;
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    Ok(Found {
        name: stem.unwrap_or("scenario"),
        file: name.to_owned(),
        text: Cow::Owned(text),
        base: path.parent().unwrap_or(Path::new(".")).to_owned(),
    })
}
