//! Files of `scenarios/worlds/`: everything that the papers on a test bed leave open, as TOML. `docs/worlds.md`
//! describes the keys.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use playrate_cc::registry::{Key, Registry};
use serde::Deserialize;
use toml::de::DeTable;
use toml::{Spanned, Table, Value};

use super::found::{Found, FoundTable};
use super::unknown::{Effect, Unknown};
use super::{BedScenario, Effort, TestBed};
use crate::claims::{self, Claim};
use crate::error::CommandError;
use crate::scenario::{Changes, Scenario, ScenarioError, ScenarioSource, SourceMap};

macro_rules! built_in {
    ($($name:literal),* $(,)?) => {
        &[$((
            $name,
            include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/worlds/", $name, ".toml")),
        )),*]
    };
}

/// Name and text of the built-in test beds. A test compares the list with the directory.
pub(super) const BUILT_IN: &[(&str, &str)] = built_in!["kyutech", "ns2", "mininet"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TestBedFile {
    about: String,
    scenarios: Spanned<Vec<Spanned<String>>>,
    #[serde(default)]
    trials: Option<NonZeroU32>,
    fit: RowsTable,
    #[serde(default)]
    judge: Option<RowsTable>,
    search: SearchTable,
    quick: SearchTable,
    unknown: Vec<UnknownTable>,
    #[serde(default)]
    found: Option<FoundTable>,
}

/// Most trials of a controller in the last stage, unless the file says otherwise.
const TRIALS: u32 = 10;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RowsTable {
    rows: Spanned<Vec<Spanned<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchTable {
    worlds: Spanned<usize>,
    judged: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnknownTable {
    name: Spanned<String>,
    why: String,
    key: Option<Spanned<String>>,
    argument: Option<Spanned<String>>,
    component: Option<Spanned<String>>,
    of: Option<Spanned<Vec<Spanned<String>>>>,
    only: Option<Vec<Spanned<String>>>,
    nominal: Option<Spanned<Value>>,
    choices: Spanned<Vec<Spanned<Value>>>,
}

/// The text of a test bed's file and where it is from.
struct BedSource {
    name: String,
    file: String,
    text: Cow<'static, str>,
    /// Directory from which the file names scenarios of its own.
    base: PathBuf,
}

impl BedSource {
    fn find(name: &str) -> Result<Self, CommandError> {
        if let Some((_, text)) = BUILT_IN.iter().find(|(known, _)| *known == name) {
            return Ok(Self {
                name: name.to_owned(),
                file: format!("scenarios/worlds/{name}.toml"),
                text: Cow::Borrowed(text),
                base: PathBuf::from("."),
            });
        }
        let path = Path::new(name);
        if !is_path(name) {
            let known: Vec<&str> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            return Err(CommandError::BadInput(format!(
                "unknown test bed `{name}`; expected one of: {}; a file of your own is named by its path, such as \
                 ./{name}.toml",
                known.join(", ")
            )));
        }
        let text = std::fs::read_to_string(path).map_err(|error| ScenarioError::Read {
            file: name.to_owned(),
            reason: error.to_string(),
        })?;
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        Ok(Self {
            name: stem.unwrap_or("test-bed").to_owned(),
            file: name.to_owned(),
            text: Cow::Owned(text),
            base: path.parent().unwrap_or(Path::new(".")).to_owned(),
        })
    }

    /// The scenario that the file calls `name`: a built-in one, or a file beside this one.
    fn scenario(&self, name: &str) -> Result<ScenarioSource, ScenarioError> {
        if is_path(name) {
            ScenarioSource::find(&self.base.join(name).display().to_string())
        } else {
            ScenarioSource::find(name)
        }
    }
}

/// Returns true if `name` is that of a file, not of something built in.
fn is_path(name: &str) -> bool {
    name.contains(['/', '\\']) || Path::new(name).extension().is_some_and(|end| end == "toml")
}

/// Reads the test bed called `name`: a built-in one, or a file if the name has a `/` in it or ends in `.toml`.
///
/// # Errors
/// If the name is unknown, the file cannot be read, or something in it is wrong.
pub(super) fn open(name: &str) -> Result<TestBed, CommandError> {
    let source = BedSource::find(name)?;
    Ok(read(&source)?)
}

fn read(source: &BedSource) -> Result<TestBed, ScenarioError> {
    let (parsed, errors) = DeTable::parse_recoverable(&source.text);
    let parsed = parsed.into_inner();
    let map = SourceMap::of_text(&source.file, &source.text, &parsed);
    if let Some(error) = errors.first() {
        return Err(map.toml(error));
    }
    let file: TestBedFile = toml::from_str(&source.text).map_err(|error| map.toml(&error))?;
    let (scenarios, claims) = scenarios(source, map, &file)?;
    let names = scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let mut rows = Rows {
        map,
        claims,
        names,
        taken: BTreeSet::new(),
    };
    let fit = rows.of(Some(&file.fit))?;
    let judged = rows.of(file.judge.as_ref())?;
    let mut unknowns: Vec<Unknown> = Vec::new();
    for table in &file.unknown {
        let unknown = unknown(map, table, &scenarios)?;
        if unknowns.iter().any(|known| known.name == unknown.name) {
            let problem = format!(
                "duplicate unknown `{}`: give each a name of its own",
                unknown.name
            );
            return Err(map.at(table.name.span(), problem));
        }
        check(map, table, &unknown, &scenarios)?;
        unknowns.push(unknown);
    }
    if unknowns.is_empty() {
        return Err(map.at(file.scenarios.span(), "a test bed has at least one [[unknown]]"));
    }
    let found = file.found.as_ref();
    let found = found
        .map(|table| Found::read(map, table, &unknowns))
        .transpose()?;
    let mut bed = TestBed {
        name: source.name.clone(),
        about: file.about.trim().to_owned(),
        scenarios,
        unknowns,
        fit,
        judged,
        found,
        trials: file.trials.map_or(TRIALS, NonZeroU32::get),
        search: effort(map, &file.search)?,
        quick: effort(map, &file.quick)?,
    };
    bed.mark_fitted();
    Ok(bed)
}

fn effort(map: SourceMap<'_>, table: &SearchTable) -> Result<Effort, ScenarioError> {
    match *table.worlds.get_ref() {
        0 => Err(map.at(table.worlds.span(), "`worlds` must be at least 1 (got 0)")),
        worlds => Ok(Effort {
            worlds,
            judged: table.judged.min(worlds),
        }),
    }
}

/// The scenarios of a test bed and all their claims.
type Scenarios = (Vec<BedScenario>, Vec<Claim>);

fn scenarios(source: &BedSource, map: SourceMap<'_>, file: &TestBedFile) -> Result<Scenarios, ScenarioError> {
    let (mut all, mut made): (Vec<BedScenario>, Vec<Claim>) = (Vec::new(), Vec::new());
    for name in file.scenarios.get_ref() {
        let at = |error: ScenarioError| map.at(name.span(), error.to_string());
        let source = source.scenario(name.get_ref()).map_err(at)?;
        let cases = source.scenarios(&Changes::default()).map_err(at)?;
        let Some(first) = cases.first() else { continue };
        let document = source.document().map_err(at)?;
        made.extend(claims::read(&document).map_err(at)?.claims);
        let figures = &document.annotations.figure;
        let series = cases
            .iter()
            .map(|case| case.case.clone())
            .filter(|case| figures.iter().any(|figure| figure.shows_series_of(case)))
            .collect();
        if all.iter().any(|known| known.name == first.name) {
            let problem = format!("duplicate scenario `{}`: name each once", first.name);
            return Err(map.at(name.span(), problem));
        }
        all.push(BedScenario {
            name: first.name.clone(),
            bulk: bulk_controller(first),
            controllers: first.controllers.clone(),
            series,
            source,
        });
    }
    if all.is_empty() {
        return Err(map.at(file.scenarios.span(), "a test bed has at least one scenario"));
    }
    Ok((all, made))
}

/// The controller that a scenario names for its downloads.
fn bulk_controller(scenario: &Scenario) -> Option<String> {
    let table: Table = toml::from_str(&scenario.text).ok()?;
    let name = table.get("bulk")?.get("controller")?.as_str()?;
    (name.trim() != "same").then(|| name.to_owned())
}

/// Finds the claims of rows, each row once.
struct Rows<'a> {
    map: SourceMap<'a>,
    claims: Vec<Claim>,
    /// Names of the test bed's scenarios.
    names: BTreeSet<String>,
    taken: BTreeSet<String>,
}

impl Rows<'_> {
    fn of(&mut self, table: Option<&RowsTable>) -> Result<Vec<Claim>, ScenarioError> {
        let mut found = Vec::new();
        for row in table.iter().flat_map(|table| table.rows.get_ref()) {
            let decides = |claim: &&Claim| claim.decides && claim.row() == row.get_ref();
            let mine = self.claims.iter().filter(decides);
            let before = found.len();
            found.extend(mine.cloned());
            let problem = if let Some(other) = found[before..].iter().find_map(|claim| self.elsewhere(claim))
            {
                format!(
                    "row `{}` reads results of {other}: add it to `scenarios`",
                    row.get_ref()
                )
            } else if found.len() == before {
                let known: BTreeSet<&str> = self.claims.iter().map(Claim::row).collect();
                format!(
                    "no scenario of this file decides row `{}`; expected one of: {}",
                    row.get_ref(),
                    known.into_iter().collect::<Vec<_>>().join(", ")
                )
            } else if self.taken.insert(row.get_ref().clone()) {
                continue;
            } else {
                format!("row `{}` is named twice: fit on it or judge it", row.get_ref())
            };
            return Err(self.map.at(row.span(), problem));
        }
        match table {
            Some(table) if found.is_empty() => Err(self
                .map
                .at(table.rows.span(), "`rows` must name at least one row of claims")),
            _ => Ok(found),
        }
    }

    /// A scenario that a claim reads and the test bed does not have.
    fn elsewhere(&self, claim: &Claim) -> Option<String> {
        let mut scenarios = claim
            .readings()
            .map(|reading| reading.of_scenario(&claim.scenario));
        scenarios
            .find(|name| !self.names.contains(*name))
            .map(str::to_owned)
    }
}

fn unknown(
    map: SourceMap<'_>,
    table: &UnknownTable,
    scenarios: &[BedScenario],
) -> Result<Unknown, ScenarioError> {
    let of = || -> Result<Vec<String>, ScenarioError> {
        let Some(of) = &table.of else {
            let problem =
                "`of` is missing: write the algorithms or aliases that it acts on, such as of = [\"reno\"]";
            return Err(map.at(table.name.span(), problem));
        };
        of.get_ref().iter().map(|name| controller(map, name)).collect()
    };
    let effect = match (&table.key, &table.argument, &table.component) {
        (Some(key), None, None) => {
            if let Some(of) = &table.of {
                let problem = "a scenario's key acts on all controllers: leave `of` out, or write `argument`";
                return Err(map.at(of.span(), problem));
            }
            Effect::Key(key.get_ref().clone())
        }
        (None, Some(name), None) => Effect::Argument {
            name: name.get_ref().clone(),
            of: of()?,
        },
        (None, None, Some(name)) => {
            let key = Key::ALL.into_iter().find(|key| key.name() == name.get_ref());
            let Some(key) = key else {
                let known = Key::ALL.map(Key::name).join(", ");
                let problem = format!("unknown component `{}`; expected one of: {known}", name.get_ref());
                return Err(map.at(name.span(), problem));
            };
            Effect::Component { key, of: of()? }
        }
        _ => {
            let problem =
                "expected exactly one of `key`, `argument` and `component`, such as key = \"path.queue\"";
            return Err(map.at(table.name.span(), problem));
        }
    };
    let mut only = None;
    for name in table.only.iter().flatten() {
        if scenarios.iter().all(|scenario| scenario.name != *name.get_ref()) {
            let known: Vec<&str> = scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
            let problem = format!(
                "`{}` is not in the list `scenarios`; expected one of: {}",
                name.get_ref(),
                known.join(", ")
            );
            return Err(map.at(name.span(), problem));
        }
        only.get_or_insert_with(BTreeSet::new)
            .insert(name.get_ref().clone());
    }
    let choices: Vec<Value> = table
        .choices
        .get_ref()
        .iter()
        .map(|choice| choice.get_ref().clone())
        .collect();
    let several = choices
        .iter()
        .skip(1)
        .any(|choice| Some(choice) != choices.first());
    let repeated = (1..choices.len()).find(|at| choices[..*at].contains(&choices[*at]));
    if let Some(repeated) = repeated.and_then(|at| table.choices.get_ref().get(at)) {
        return Err(map.at(
            repeated.span(),
            "duplicate choice: each choice is drawn equally often",
        ));
    }
    if !several {
        return Err(map.at(table.choices.span(), "an unknown has at least two choices"));
    }
    Ok(Unknown {
        name: table.name.get_ref().clone(),
        why: table.why.trim().to_owned(),
        effect,
        only,
        nominal: table.nominal.as_ref().map(|nominal| nominal.get_ref().clone()),
        choices,
        fitted: false,
    })
}

/// The name of an algorithm or an alias.
fn controller(map: SourceMap<'_>, name: &Spanned<String>) -> Result<String, ScenarioError> {
    let registry = Registry::installed();
    let algorithms = registry.controllers().map(playrate_cc::registry::Entry::name);
    let known: Vec<&str> = algorithms
        .chain(registry.aliases().map(|alias| alias.name))
        .collect();
    if known.contains(&name.get_ref().as_str()) {
        return Ok(name.get_ref().clone());
    }
    let problem = format!(
        "`{}` is neither an algorithm nor an alias; expected one of: {}",
        name.get_ref(),
        known.join(", ")
    );
    Err(map.at(name.span(), problem))
}

/// Checks that an unknown acts on something, that every choice can be made, and that the nominal value is the one that
/// the scenarios have.
fn check(
    map: SourceMap<'_>,
    table: &UnknownTable,
    unknown: &Unknown,
    scenarios: &[BedScenario],
) -> Result<(), ScenarioError> {
    let mut affected = scenarios
        .iter()
        .filter(|scenario| unknown.acts_on(scenario))
        .peekable();
    if affected.peek().is_none() {
        let problem = "acts on no controller of these scenarios: correct `of` or `only`";
        return Err(map.at(table.name.span(), problem));
    }
    for (number, scenario) in affected.enumerate() {
        if let Some(nominal) = &table.nominal
            && let Some(has) = unknown.differs_from_nominal(scenario)
        {
            let problem = format!(
                "{} has {has}: write the value that scenarios have, or leave `nominal` out",
                scenario.name
            );
            return Err(map.at(nominal.span(), problem));
        }
        // One choice shows that the key fits all scenarios, one scenario that all choices fit the key.
        let tried = if number == 0 { usize::MAX } else { 1 };
        for (choice, written) in table.choices.get_ref().iter().enumerate().take(tried) {
            if let Err(problem) = unknown.try_choice(choice, scenario) {
                return Err(map.at(written.span(), format!("in {}: {problem}", scenario.name)));
            }
        }
    }
    Ok(())
}

/// Reads a test bed from a text, for tests. Scenarios of its own are looked for from `base`.
#[cfg(test)]
pub(super) fn read_text(text: &str, base: &Path) -> Result<TestBed, ScenarioError> {
    read(&BedSource {
        name: "bed".to_owned(),
        file: "bed.toml".to_owned(),
        text: Cow::Owned(text.to_owned()),
        base: base.to_owned(),
    })
}
