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
    "p12-3",
    "p12-5",
    "p13-4",
    "p13-4-loss",
    "p13-6",
    "p13-7",
    "p13-8",
    "p13-9",
    "p13-10",
    "p13-11",
    "p14-rtt100",
    "p14-rtt3",
    "p14-rtt200",
    "p15-rtt3",
    "p15-rtt100",
    "p15-rtt200",
    "p15-pob",
    "p21-resume",
    "p21-dash",
];

/// The group of the scenarios of all papers.
pub const PAPERS: &str = "papers";

/// The paper that a scenario is of, by its name: `p13` of `p13-4`.
fn paper(name: &str) -> Option<&str> {
    let (paper, _) = name.split_once('-')?;
    let number = paper.strip_prefix('p')?;
    (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit())).then_some(paper)
}

/// Names for several scenarios at once, with the scenarios in each: those of all papers, and of one paper.
pub fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let of_papers: Vec<_> = BUILT_IN
        .iter()
        .filter_map(|(name, _)| Some((paper(name)?, *name)))
        .collect();
    let all = of_papers.iter().map(|(_, name)| *name).collect();
    let mut groups = vec![(PAPERS, all)];
    for papers in of_papers.chunk_by(|one, other| one.0 == other.0) {
        let names = papers.iter().map(|(_, name)| *name).collect();
        groups.extend(papers.first().map(|(paper, _)| (*paper, names)));
    }
    groups
}

/// The scenarios that `name` stands for: those of a group, or the one of that name.
pub fn named(name: &str) -> Vec<&str> {
    let group = groups().into_iter().find(|(group, _)| *group == name);
    group.map_or_else(|| vec![name], |(_, names)| names)
}

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
        let groups = groups().into_iter().map(|(group, _)| group);
        let known: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).chain(groups).collect();
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
