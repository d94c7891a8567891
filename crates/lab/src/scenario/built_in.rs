//! The scenarios that come with the lab, and how one is found.

use std::path::Path;

use super::{Changes, Scenario, ScenarioError};

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
];

/// The scenario called `name`, with all its cases: one that comes with the lab, or a file if it has a `/` or ends in `.toml`.
///
/// # Errors
/// If there is no such scenario, or something in it is wrong.
pub fn open(name: &str, changes: &Changes) -> Result<Vec<Scenario>, ScenarioError> {
    if let Some((name, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
        let file = format!("scenarios/{name}.toml");
        return Scenario::parse(name, &file, text, Path::new("scenarios"), changes);
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
    let stem = path
        .file_stem()
        .and_then(|stem| stem.to_str())
        .unwrap_or("scenario");
    let base = path.parent().unwrap_or(Path::new("."));
    Scenario::parse(stem, name, &text, base, changes)
}
