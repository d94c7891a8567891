//! [`Document`]: a scenario's file, parsed once and split into its cases.
//!
//! A case is the parsed table with [`Overlay`]s on top; later ones win: the case's `set`, `quick`, the settings of the
//! command line. Only the result is read as a [`ScenarioFile`].

use serde::Deserialize;
use toml::de::{DeTable, DeValue};
use toml::{Deserializer, Spanned, Table};

use super::error::SourceMap;
use super::file::{ScenarioFile, Text, Time};
use super::setting::{Overlay, flatten};
use super::{Changes, Scenario, ScenarioError, ScenarioSource, Setting};

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

impl ScenarioSource {
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

    /// The error for a case that the scenario does not have.
    fn unknown_case(&self, name: &Spanned<String>) -> ScenarioError {
        let names: Vec<&str> = self.case_names().collect();
        let problem = if names.is_empty() {
            format!("unknown case `{}`: this scenario has no cases", name.get_ref())
        } else {
            format!(
                "unknown case `{}`; expected one of: {}",
                name.get_ref(),
                names.join(", ")
            )
        };
        self.source_map().at(name.span(), problem)
    }

    fn check_names(&self) -> Result<(), ScenarioError> {
        let map = self.source_map();
        for (index, case) in self.cases.iter().enumerate() {
            let name = &case.head.name;
            let text = name.get_ref();
            let plain = |c: char| c.is_ascii_alphanumeric() || "-.".contains(c);
            if text.is_empty() || !text.chars().all(plain) {
                let problem = format!("invalid case name `{text}`: use letters, digits, `-` and `.` only");
                return Err(map.at(name.span(), problem));
            }
            if self.case_names().take(index).any(|known| known == text) {
                let problem = format!("duplicate case `{text}`: every case needs a name of its own");
                return Err(map.at(name.span(), problem));
            }
        }
        let quick = self.quick.iter().flat_map(|quick| &quick.head.cases).flatten();
        for name in quick {
            if self.case_names().all(|known| known != name.get_ref()) {
                return Err(self.unknown_case(name));
            }
        }
        Ok(())
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
        Setting {
            key: overlay.key.clone(),
            value: self
                .source
                .text
                .get(overlay.value.span())
                .unwrap_or_default()
                .to_owned(),
        }
    }

    /// The typed file of a case, the part of its table that affects the packets of a run, and the map for errors.
    pub(super) fn read<'c>(
        &'c self,
        case: &'c Case<'_>,
        settings: &'c [Setting],
    ) -> Result<(ScenarioFile, Table, SourceMap<'c>), ScenarioError> {
        let map = SourceMap {
            settings,
            case: &case.name,
            ..self.source_map()
        };
        let mut table = self.rest.clone();
        for overlay in &case.overlays {
            let applied = overlay.apply(table.get_mut());
            applied.map_err(|problem| map.at(overlay.value.span(), problem))?;
        }
        let file = ScenarioFile::deserialize(Deserializer::from(table.clone()));
        let file = file.map_err(|error| map.toml(&error))?;
        for key in NOT_HASHED {
            table.get_mut().remove(key);
        }
        let hashed = Table::deserialize(Deserializer::from(table)).map_err(|error| map.toml(&error))?;
        Ok((file, hashed, map))
    }
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
