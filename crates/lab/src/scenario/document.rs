//! [`ScenarioSource`]: the text of a scenario, built in (every file of `scenarios/`) or from a file; [`Document`]: that
//! text, parsed once and split into its cases.
//!
//! A case is the parsed table with [`Overlay`]s on top; later ones win: the case's `set`, `quick`, the settings of the
//! command line. Only the result is read as a [`ScenarioFile`].

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Deserializer, Spanned, Table};

use super::error::SourceMap;
use super::file::{ScenarioFile, Text, Time};
use super::generated::{self, PathSet};
use super::setting::{Overlay, flatten};
use super::{Changes, Scenario, ScenarioError, Setting};

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
    "live-moq2432",
    "live-bbr",
    "live-paths",
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
    name: String,
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

    /// The scenarios of the file, one per case in file order; one without a case name if it has no cases.
    ///
    /// # Errors
    /// If the file is invalid.
    pub fn scenarios(&self, changes: &Changes) -> Result<Vec<Scenario>, ScenarioError> {
        let document = Document::parse(self)?;
        let cases = document.cases_with(changes)?;
        cases
            .iter()
            .map(|case| Scenario::of_case(&document, case, changes))
            .collect()
    }
}

/// Keys of the file that do not affect the packets of a run, and `vary`, which is hashed separately.
const NOT_HASHED: [&str; 7] = [
    "about",
    "source",
    "controllers",
    "trials",
    "seed",
    "ideal",
    "vary",
];

/// A parsed scenario file.
#[derive(Debug)]
pub(super) struct Document<'a> {
    pub(super) source: &'a ScenarioSource,
    whole: DeTable<'a>,
    /// The file without cases and `quick`.
    rest: Spanned<DeTable<'a>>,
    cases: Vec<WithSet<'a, CaseHead>>,
    quick: Option<WithSet<'a, QuickHead>>,
}

/// A table of the file, its `set` read as overlays and the rest typed.
#[derive(Debug)]
struct WithSet<'a, T> {
    head: T,
    set: Vec<Overlay<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseHead {
    name: Spanned<String>,
    about: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuickHead {
    trials: Option<u32>,
    duration: Option<Spanned<Text<Time>>>,
    /// The only cases run by `--quick`.
    cases: Option<Vec<Spanned<String>>>,
}

/// One case of a document with everything that it changes; the default stands for a scenario without cases.
#[derive(Default)]
pub(super) struct Case<'a> {
    /// Empty if the scenario has no cases.
    pub(super) name: String,
    pub(super) about: Option<String>,
    pub(super) sets: Vec<Setting>,
    /// Number of trials set by `quick`.
    pub(super) quick_trials: Option<u32>,
    overlays: Vec<Overlay<'a>>,
}

impl<'a> Document<'a> {
    /// Parses the text of `source`.
    ///
    /// # Errors
    /// If it is not TOML, or if its cases have unknown keys or values of the wrong type.
    fn parse(source: &'a ScenarioSource) -> Result<Self, ScenarioError> {
        let (parsed, errors) = DeTable::parse_recoverable(&source.text);
        let span = parsed.span();
        let whole = parsed.into_inner();
        let map = SourceMap::new(&source.file, &source.text, &whole);
        if let Some(error) = errors.first() {
            return Err(map.toml(error));
        }
        let mut rest = whole.clone();
        let (cases, quick) = (rest.remove("case"), rest.remove("quick"));
        let cases = cases.map(|cases| case_tables(map, cases)).transpose()?;
        let quick = quick.map(|quick| WithSet::read(map, quick)).transpose()?;
        let rest = Spanned::new(span, rest);
        let document = Self {
            source,
            whole,
            rest,
            cases: cases.unwrap_or_default(),
            quick,
        };
        document.check_names()?;
        Ok(document)
    }

    /// Maps positions in the file for error messages.
    fn source_map(&self) -> SourceMap<'_> {
        SourceMap::new(&self.source.file, &self.source.text, &self.whole)
    }

    pub(super) fn name(&self) -> &str {
        &self.source.name
    }

    /// Names of the cases in the order of the file.
    fn case_names(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|case| case.head.name.get_ref().as_str())
    }

    fn check_names(&self) -> Result<(), ScenarioError> {
        let map = self.source_map();
        for (index, case) in self.cases.iter().enumerate() {
            let name = &case.head.name;
            let text = name.get_ref();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            let problem = if text.is_empty() || !text.chars().all(plain) {
                format!("invalid case name `{text}`: use letters, digits, `-` and `.` only")
            } else if self.case_names().take(index).any(|known| known == text) {
                format!("duplicate case `{text}`: every case needs a name of its own")
            } else {
                continue;
            };
            return Err(map.at(name.span(), problem));
        }
        let mut quick = self.quick.iter().flat_map(|quick| &quick.head.cases).flatten();
        let names: Vec<&str> = self.case_names().collect();
        let Some(name) = quick.find(|name| !names.contains(&name.get_ref().as_str())) else {
            return Ok(());
        };
        let known = if names.is_empty() {
            ": this scenario has no cases".to_owned()
        } else {
            format!("; expected one of: {}", names.join(", "))
        };
        Err(map.at(name.span(), format!("unknown case `{}`{known}", name.get_ref())))
    }

    fn cases_with<'c>(&'c self, changes: &'c Changes) -> Result<Vec<Case<'c>>, ScenarioError> {
        let quick = self.quick.as_ref().filter(|_| changes.quick);
        let only = quick.and_then(|quick| quick.head.cases.as_ref());
        let chosen = |name: &str| only.is_none_or(|only| only.iter().any(|one| one.get_ref() == name));
        let mut all: Vec<Case<'c>> = self
            .cases
            .iter()
            .filter(|case| chosen(case.head.name.get_ref()))
            .map(|case| Case {
                name: case.head.name.get_ref().clone(),
                about: case.head.about.clone(),
                sets: case.set.iter().map(|overlay| self.setting(overlay)).collect(),
                quick_trials: None,
                overlays: case.set.clone(),
            })
            .collect();
        if self.cases.is_empty() {
            all.push(Case::default());
        }
        let map = self.source_map();
        for case in &mut all {
            if let Some(quick) = quick {
                case.quick_trials = quick.head.trials;
                case.overlays.extend(quick.duration());
                case.overlays.extend(quick.set.iter().cloned());
            }
            for (index, setting) in changes.settings.iter().enumerate() {
                let span = SourceMap::of_setting(self.source.text.len(), index);
                let map = SourceMap {
                    settings: &changes.settings,
                    ..map
                };
                let overlay = Overlay::of_setting(setting, span.clone());
                case.overlays
                    .push(overlay.map_err(|problem| map.at(span, problem))?);
            }
        }
        Ok(all)
    }

    /// An overlay in the form of the file.
    fn setting(&self, overlay: &Overlay<'_>) -> Setting {
        let value = self.source.text.get(overlay.value.span());
        Setting {
            key: overlay.key.clone(),
            value: value.unwrap_or_default().to_owned(),
        }
    }

    /// Maps positions in the file for error messages about a case.
    pub(super) fn case_map<'c>(&'c self, case: &'c Case<'_>, settings: &'c [Setting]) -> SourceMap<'c> {
        SourceMap {
            settings,
            case: &case.name,
            ..self.source_map()
        }
    }

    /// The values of a case: those of the file with its overlays applied.
    pub(super) fn values<'c>(
        &'c self,
        case: &'c Case<'_>,
        map: SourceMap<'_>,
    ) -> Result<Spanned<DeTable<'c>>, ScenarioError> {
        let mut values = self.rest.clone();
        for overlay in &case.overlays {
            let applied = overlay.apply(values.get_mut());
            applied.map_err(|problem| map.at(overlay.value.span(), problem))?;
        }
        Ok(values)
    }
}

/// The typed file with these values, and the part of the values that affects the packets of a run.
pub(super) fn read(
    map: SourceMap<'_>,
    values: &Spanned<DeTable<'_>>,
) -> Result<(ScenarioFile, Table), ScenarioError> {
    let file = ScenarioFile::deserialize(Deserializer::from(values.clone()));
    let file = file.map_err(|error| map.toml(&error))?;
    let mut hashed = values.clone();
    for key in NOT_HASHED {
        hashed.get_mut().remove(key);
    }
    let hashed = Table::deserialize(Deserializer::from(hashed)).map_err(|error| map.toml(&error))?;
    Ok((file, hashed))
}

impl<'a> WithSet<'a, QuickHead> {
    /// `quick.duration` as an overlay of `title.duration`.
    fn duration(&self) -> Option<Overlay<'a>> {
        let duration = self.head.duration.as_ref()?;
        let text = playrate_units::duration::display(duration.get_ref().0.0).to_string();
        Some(Overlay {
            key: "title.duration".to_owned(),
            value: Spanned::new(duration.span(), DeValue::String(text.into())),
        })
    }
}

fn case_tables<'a>(
    map: SourceMap<'_>,
    cases: Spanned<DeValue<'a>>,
) -> Result<Vec<WithSet<'a, CaseHead>>, ScenarioError> {
    let span = cases.span();
    let DeValue::Array(list) = cases.into_inner() else {
        return Err(map.at(span, "expected a list of cases: begin each with [[case]]"));
    };
    list.into_iter().map(|case| WithSet::read(map, case)).collect()
}

impl<'a, T: for<'de> Deserialize<'de>> WithSet<'a, T> {
    fn read(map: SourceMap<'_>, table: Spanned<DeValue<'a>>) -> Result<Self, ScenarioError> {
        let span = table.span();
        let DeValue::Table(mut table) = table.into_inner() else {
            return Err(map.at(span, "expected a table"));
        };
        let mut set = Vec::new();
        if let Some(settings) = table.remove("set") {
            let DeValue::Table(settings) = settings.get_ref() else {
                let problem =
                    "expected a table of keys and values, such as set = { \"path.rtt\" = \"10ms\" }";
                return Err(map.at(settings.span(), problem));
            };
            flatten("", settings, &mut set);
        }
        let head = T::deserialize(Deserializer::from(Spanned::new(span, table)));
        Ok(Self {
            head: head.map_err(|error| map.toml(&error))?,
            set,
        })
    }
}
