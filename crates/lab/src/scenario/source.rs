//! [`ScenarioSource`]: the text of a scenario, built in (every file of `scenarios/`) or from a file.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use super::ScenarioError;
use super::generated::{self, PathSet};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/", $name, ".toml")))),*]
    };
}

/// Names and texts of the built-in scenarios, in listing order. A test compares the list with the directory.
pub(crate) const BUILT_IN: &[(&str, &str)] = built_in![
    "first-look",
    "three-controllers",
    "fairness-needy",
    "fairness-calm",
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

/// Name of the group with the scenarios of all papers.
pub(crate) const PAPERS: &str = "papers";

/// The paper at the beginning of a scenario's name: `p13` of `p13-4`.
fn paper(name: &str) -> Option<&str> {
    let (paper, _) = name.split_once('-')?;
    let number = paper.strip_prefix('p')?;
    (!number.is_empty() && number.chars().all(|c| c.is_ascii_digit())).then_some(paper)
}

/// Groups by name, each with its scenarios: all papers, then each paper.
pub(crate) fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
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

/// The scenarios of the group or set of generated paths called `name`, or `name` itself if it is neither.
pub(crate) fn named(name: &str) -> Vec<String> {
    if let Some(set) = PathSet::parse(name) {
        return set.names(None);
    }
    let group = groups().into_iter().find(|(group, _)| *group == name);
    let names = group.map_or_else(|| vec![name], |(_, names)| names);
    names.into_iter().map(str::to_owned).collect()
}

/// The text of a scenario and its origin.
#[derive(Clone, Debug)]
pub struct ScenarioSource {
    pub(super) name: String,
    /// Path of the file for error messages.
    pub(super) file: String,
    pub(super) text: Cow<'static, str>,
    /// Directory for the files that the scenario names.
    pub(super) base: PathBuf,
}

impl ScenarioSource {
    /// The scenario called `name`: a built-in one, a generated path, or a file if the name contains a `/` or ends in
    /// `.toml`.
    ///
    /// # Errors
    /// If the name is unknown or the file cannot be read.
    pub fn find(name: &str) -> Result<Self, ScenarioError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Ok(Self {
                name: name.to_owned(),
                file: format!("scenarios/{name}.toml"),
                text: Cow::Borrowed(text),
                base: PathBuf::from("scenarios"),
            });
        }
        if let Some((short, text)) = generated::find(name) {
            return Ok(Self::new(&short, name, text, Path::new("scenarios")));
        }
        let path = Path::new(name);
        let is_file = name.contains(['/', '\\']) || path.extension().is_some_and(|end| end == "toml");
        if !is_file {
            let groups = groups().into_iter().map(|(group, _)| group);
            let built_in = BUILT_IN.iter().map(|(name, _)| *name);
            let known: Vec<_> = built_in.chain(groups).chain([generated::FORM]).collect();
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
        let base = path.parent().unwrap_or(Path::new("."));
        Ok(Self::new(stem.unwrap_or("scenario"), name, text, base))
    }

    /// A scenario called `name` with this text. Error messages use `file`; the scenario's own files are relative to
    /// `base`.
    pub fn new(name: &str, file: &str, text: impl Into<Cow<'static, str>>, base: &Path) -> Self {
        Self {
            name: name.to_owned(),
            file: file.to_owned(),
            text: text.into(),
            base: base.to_owned(),
        }
    }
}
