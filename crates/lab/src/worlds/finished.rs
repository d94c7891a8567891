//! [`Finished`]: a finished search, read from its directory, with the rows and the verdicts of the last stage's worlds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::output::{FORMAT, LINES, SUMMARY, VERSION};
use super::runs::{Instances, Needs};
use super::stages::{Stage, Stages};
use super::unknown::{Unknown, World};
use super::{TestBed, file};
use crate::claims::{self, Claim, ClaimResult, Verdict};
use crate::error::CommandError;
use crate::result::{ResultKey, ResultSet, Row, read_runs};
use crate::scenario::full_name;

/// A finished search, read from its directory.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// The content of `worlds.json` that does not follow from rows.
    pub(crate) outcome: Outcome,
    /// The claims of fitted rows, then those of judged ones.
    pub(crate) parts: Vec<FinishedPart>,
    /// Evaluations with the sample's one short trial: the sample, the nominal and the fitted world; empty if the
    /// search drew no sample.
    pub(crate) short: Vec<ShortWorld>,
    pub(crate) nominal: WorldRuns,
    pub(crate) fitted: WorldRuns,
}

/// The runs of one world in the last stage.
#[derive(Clone, Debug)]
pub(crate) struct WorldRuns {
    /// Name of the world: `nominal` or `fitted`.
    pub(crate) name: String,
    /// Directory of the search, in which their time series are.
    pub(crate) directory: PathBuf,
    pub(crate) runs: Vec<LabelledRow>,
}

/// A row under the name that its controller has in the scenario's file.
#[derive(Clone, Debug)]
pub(crate) struct LabelledRow {
    /// Canonical spec of the scenario's controller, which the world may have changed in the row; [`IDEAL`] for the
    /// ideal sender.
    ///
    /// [`IDEAL`]: crate::result::IDEAL
    pub(crate) label: String,
    pub(crate) row: Row,
}

/// A claim and the verdicts on it.
#[derive(Clone, Debug)]
pub(crate) struct FinishedPart {
    pub(crate) claim: Claim,
    /// True if the search did not look at it.
    pub(crate) judged: bool,
    /// By confidence intervals; `None` if the search has no case of its checks.
    pub(crate) nominal: Option<ClaimResult>,
    pub(crate) fitted: Option<ClaimResult>,
    /// Share of the random sample in which it holds by the means; `None` if it was not run there.
    pub(crate) robustness: Option<f64>,
    /// Number of worlds of the sample in which it was run.
    pub(crate) worlds: usize,
}

/// The content of `worlds.json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) test_bed: String,
    pub(crate) quick: bool,
    pub(crate) seed: Option<u64>,
    /// `None` if the worlds were found before, so that no sample was drawn.
    pub(crate) sample: Option<IgnoredAny>,
    #[serde(default)]
    pub(crate) unknowns: Vec<UnknownOutcome>,
    pub(crate) nominal: WorldOutcome,
    pub(crate) fitted: WorldOutcome,
    pub(crate) as_good: Option<AsGood>,
    parts: Vec<PartOutcome>,
}

/// An unknown and its choices.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct UnknownOutcome {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) acts_on_fitted_rows: bool,
    #[serde(default)]
    pub(crate) choices: Vec<ChoiceOutcome>,
}

/// A choice for an unknown.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ChoiceOutcome {
    pub(crate) value: String,
}

/// A world of the last stage.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct WorldOutcome {
    /// Number of the world; `None` if it was not found by this search.
    pub(crate) world: Option<usize>,
    /// Most trials of a controller.
    pub(crate) trials: u32,
    /// Value of each unknown.
    pub(crate) choices: BTreeMap<String, String>,
}

/// Worlds that do as well as the fitted one, within one part.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct AsGood {
    pub(crate) sample: WorldCount,
    pub(crate) refined: WorldCount,
}

/// A number of worlds out of others.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct WorldCount {
    pub(crate) worlds: usize,
    pub(crate) of: usize,
}

#[derive(Clone, Debug, Deserialize)]
struct PartOutcome {
    id: String,
    #[serde(default)]
    checks: Vec<String>,
    nominal: Verdict,
    fitted: Verdict,
    robustness: Option<f64>,
    #[serde(default)]
    worlds: Option<usize>,
}

/// A world with the verdicts of the sample's one short trial, by the means.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ShortWorld {
    pub(crate) world: usize,
    pub(crate) origin: String,
    stage: String,
    pub(crate) choices: BTreeMap<String, String>,
    pub(crate) fit: FitCount,
    /// Verdict on each part that was run.
    pub(crate) parts: BTreeMap<String, Verdict>,
}

/// Fitted parts that hold.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct FitCount {
    pub(crate) holds: usize,
    pub(crate) of: usize,
}

impl ShortWorld {
    /// Returns true if the world is one of the random sample.
    pub(crate) fn is_random(&self) -> bool {
        self.origin == "sample" && self.stage == Stage::Sample.name()
    }
}

/// A test bed as its file declares it, without any search.
#[derive(Clone, Debug)]
pub(crate) struct Declared {
    /// The argument of `lab worlds` that names it.
    argument: String,
    bed: TestBed,
}

/// Names of the built-in test beds.
pub(crate) fn built_in_beds() -> impl Iterator<Item = &'static str> {
    file::BUILT_IN.iter().map(|(name, _)| *name)
}

impl Declared {
    /// Reads a test bed, named as for `lab worlds`.
    ///
    /// # Errors
    /// If there is no such test bed, or its file is wrong.
    pub(crate) fn read(argument: &str) -> Result<Self, CommandError> {
        Ok(Self {
            argument: argument.to_owned(),
            bed: file::open(argument)?,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.bed.name
    }

    pub(crate) fn about(&self) -> &str {
        &self.bed.about
    }

    /// The claims of all rows, the fitted ones first, each with true if it is judged.
    pub(crate) fn claims(&self) -> impl Iterator<Item = (&Claim, bool)> {
        all_claims(&self.bed)
    }
}

fn all_claims(bed: &TestBed) -> impl Iterator<Item = (&Claim, bool)> {
    let fit = bed.fit.iter().map(|claim| (claim, false));
    fit.chain(bed.judged.iter().map(|claim| (claim, true)))
}

/// Returns true if `directory` has the outcome of a search.
pub(crate) fn is_finished(directory: &Path) -> bool {
    directory.join(SUMMARY).exists()
}

/// The name of the test bed whose finished search is in `directory`.
///
/// # Errors
/// If its outcome cannot be read.
pub(crate) fn test_bed_of(directory: &Path) -> Result<String, CommandError> {
    Ok(outcome(directory)?.test_bed)
}

impl Finished {
    /// Reads the finished search of a test bed from its directory.
    ///
    /// # Errors
    /// If the directory holds no finished search of this test bed, one of another version of format, scenarios or
    /// claims, or not all rows of the last stage.
    pub(crate) fn read(declared: &Declared, directory: &Path) -> Result<Self, CommandError> {
        let bed = &declared.bed;
        let outcome = outcome(directory)?;
        let place = directory.join(SUMMARY);
        if outcome.test_bed != bed.name {
            return Err(CommandError::BadInput(format!(
                "{} is of the test bed `{}`; expected `{}`",
                place.display(),
                outcome.test_bed,
                bed.name
            )));
        }
        let reader = Reader::new(declared, directory, outcome.quick)?;
        let world = |name: &str, world: &WorldOutcome| -> Result<WorldRuns, CommandError> {
            let chosen = chosen(&bed.unknowns, &world.choices).map_err(|problem| {
                CommandError::BadInput(format!("{}: {name} world: {problem}", place.display()))
            })?;
            reader.world(name, &chosen)
        };
        let (nominal, fitted) = (
            world("nominal", &outcome.nominal)?,
            world("fitted", &outcome.fitted)?,
        );
        let parts = reader.parts(&outcome, [&nominal, &fitted])?;
        Ok(Self {
            short: if outcome.sample.is_some() {
                short(directory)?
            } else {
                Vec::new()
            },
            outcome,
            parts,
            nominal,
            fitted,
        })
    }
}

impl Finished {
    /// The nominal world in the sample's one short trial.
    pub(crate) fn nominal_short_trial(&self) -> Option<&ShortWorld> {
        let mut all = self.short.iter();
        all.find(|world| Some(world.world) == self.outcome.nominal.world)
    }

    /// The fitted world in the sample's one short trial.
    pub(crate) fn fitted_short_trial(&self) -> Option<&ShortWorld> {
        self.short
            .iter()
            .find(|world| world.stage == Stage::Compared.name())
    }
}

impl WorldRuns {
    /// The rows under the names that claims read.
    pub(crate) fn results(&self) -> ResultSet<'_> {
        let mut results = ResultSet::default();
        for LabelledRow { label, row } in &self.runs {
            results.add(label, row);
        }
        results
    }
}

/// The rows of a search, and what of them its claims need.
struct Reader<'a> {
    declared: &'a Declared,
    directory: &'a Path,
    stages: Stages,
    /// The claims limited to the cases that were run, each with true if it is judged.
    claims: Vec<(&'a Claim, Option<Claim>, bool)>,
    rows: BTreeMap<ResultKey, Vec<Row>>,
}

impl<'a> Reader<'a> {
    fn new(declared: &'a Declared, directory: &'a Path, quick: bool) -> Result<Self, CommandError> {
        let bed = &declared.bed;
        let stages = Stages::of(bed, quick);
        let cases = bed.cases(stages.length(Stage::Last).quick)?;
        let has = |scenario: &str, case: &str| cases.contains(&(scenario.to_owned(), case.to_owned()));
        let limited = all_claims(bed).map(|(claim, judged)| (claim, claim.limited_to(has), judged));
        Ok(Self {
            declared,
            directory,
            stages,
            claims: limited.collect(),
            rows: read_runs(directory).map_err(|error| CommandError::read(directory, error))?,
        })
    }

    /// Finds the rows of `world` in the last stage.
    fn world(&self, name: &str, world: &World) -> Result<WorldRuns, CommandError> {
        let needs = Needs::of(self.claims.iter().filter_map(|(_, limited, _)| limited.as_ref()));
        let length = self.stages.length(Stage::Last);
        let planned = Instances::default().runs(&self.declared.bed, world, &needs, length)?;
        let (mut runs, mut missing) = (Vec::new(), BTreeSet::new());
        for run in &planned {
            match self.rows.get(&run.job.key) {
                Some(rows) if rows.len() == run.job.rows() as usize => {
                    runs.extend(rows.iter().map(|row| LabelledRow {
                        label: run.label.to_string(),
                        row: row.clone(),
                    }));
                }
                _ => {
                    missing.insert(&run.job.key);
                }
            }
        }
        if let Some(first) = missing.first() {
            return Err(CommandError::BadInput(format!(
                "{} lacks {} of {} runs of the {name} world's last stage, such as {} under {} with seed {}: scenarios \
                 may have changed since; {} makes missing runs",
                self.directory.display(),
                missing.len(),
                planned
                    .iter()
                    .map(|run| &run.job.key)
                    .collect::<BTreeSet<_>>()
                    .len(),
                full_name(&first.scenario, &first.case),
                first.controller,
                first.seed,
                self.resumption(),
            )));
        }
        Ok(WorldRuns {
            name: name.to_owned(),
            directory: self.directory.to_owned(),
            runs,
        })
    }

    /// Decides all claims by the rows of the nominal and the fitted world, and checks that the search came to the same.
    fn parts(&self, outcome: &Outcome, worlds: [&WorldRuns; 2]) -> Result<Vec<FinishedPart>, CommandError> {
        let results = worlds.map(WorldRuns::results);
        let stored: BTreeMap<&str, &PartOutcome> = outcome
            .parts
            .iter()
            .map(|part| (part.id.as_str(), part))
            .collect();
        let decided = self.claims.iter().map(|(claim, limited, judged)| {
            let [nominal, fitted] = results
                .each_ref()
                .map(|results| limited.as_ref().map(|claim| claims::judge(claim, &[], results)));
            let verdict =
                |result: &Option<ClaimResult>| result.as_ref().map_or(Verdict::NotRun, |one| one.verdict);
            let stored = stored.get(claim.id.as_str());
            let is_same = stored.is_some_and(|part| {
                part.checks == claim.checks_text()
                    && (part.nominal, part.fitted) == (verdict(&nominal), verdict(&fitted))
            });
            if !is_same {
                return Err(self.of_other_claims(&claim.id));
            }
            Ok(FinishedPart {
                claim: (*claim).clone(),
                judged: *judged,
                nominal,
                fitted,
                robustness: stored.and_then(|part| part.robustness),
                worlds: stored.and_then(|part| part.worlds).unwrap_or(0),
            })
        });
        let decided = decided.collect::<Result<Vec<_>, _>>()?;
        let known: BTreeSet<&str> = decided.iter().map(|part| part.claim.id.as_str()).collect();
        match stored.keys().find(|id| !known.contains(*id)) {
            Some(id) => Err(self.of_other_claims(id)),
            None => Ok(decided),
        }
    }

    fn of_other_claims(&self, id: &str) -> CommandError {
        CommandError::BadInput(format!(
            "{}: the verdicts on `{id}` are not those of the rows under this program's claims; {} decides \
             them again",
            self.directory.join(SUMMARY).display(),
            self.resumption(),
        ))
    }

    /// The command that goes on with the search.
    fn resumption(&self) -> String {
        let quick = if self.stages.length(Stage::Last).quick {
            " --quick"
        } else {
            ""
        };
        format!(
            "`lab worlds {}{quick} --resume --out {}`",
            self.declared.argument,
            self.directory.display()
        )
    }
}

/// The world with these values of unknowns, as texts by name.
fn chosen(unknowns: &[Unknown], choices: &BTreeMap<String, String>) -> Result<World, String> {
    let mut world = World::nominal(unknowns);
    for (place, unknown) in unknowns.iter().enumerate() {
        let value = choices.get(&unknown.name).ok_or_else(|| {
            format!(
                "the unknown `{}` has no value: it was added since, so search again",
                unknown.name
            )
        })?;
        if *value == unknown.text(None) {
            continue;
        }
        let mut candidates = unknown.candidates().flatten();
        let choice = candidates.find(|choice| unknown.text(Some(*choice)) == *value);
        let choice = choice.ok_or_else(|| {
            format!(
                "`{}` is `{value}`; expected one of: {}",
                unknown.name,
                unknown.choices_text()
            )
        })?;
        world = world.with(place, Some(choice));
    }
    match choices
        .keys()
        .find(|name| unknowns.iter().all(|unknown| unknown.name != **name))
    {
        Some(name) => Err(format!("the test bed has no unknown `{name}`")),
        None => Ok(world),
    }
}

/// Format and version of a file of a search.
#[derive(Deserialize)]
struct Stamp {
    format: String,
    version: u32,
}

fn outcome(directory: &Path) -> Result<Outcome, CommandError> {
    let file = directory.join(SUMMARY);
    let text = text(&file)?;
    parsed(&text, &file.display().to_string())
}

/// The evaluations with the sample's one short trial.
fn short(directory: &Path) -> Result<Vec<ShortWorld>, CommandError> {
    let file = directory.join(LINES);
    let mut worlds = Vec::new();
    for (number, line) in (1..).zip(text(&file)?.lines()) {
        let world: ShortWorld = parsed(line, &format!("{}, line {number}", file.display()))?;
        if [Stage::Sample, Stage::Compared]
            .iter()
            .any(|stage| stage.name() == world.stage)
        {
            worlds.push(world);
        }
    }
    Ok(worlds)
}

fn text(file: &Path) -> Result<String, CommandError> {
    fs::read_to_string(file).map_err(|error| {
        CommandError::BadInput(format!(
            "cannot read {}: {error}; expected the directory of a finished `lab worlds`",
            file.display()
        ))
    })
}

/// Reads JSON of the search's format and version; `place` begins error messages.
fn parsed<T: DeserializeOwned>(text: &str, place: &str) -> Result<T, CommandError> {
    let wrong = |error: serde_json::Error| CommandError::BadInput(format!("{place} cannot be read: {error}"));
    let stamp: Stamp = serde_json::from_str(text).map_err(wrong)?;
    if (stamp.format.as_str(), stamp.version) != (FORMAT, VERSION) {
        return Err(CommandError::BadInput(format!(
            "{place} has format `{}`, version {}; expected `{FORMAT}`, version {VERSION}: search again with this \
             program's `lab worlds`",
            stamp.format, stamp.version
        )));
    }
    serde_json::from_str(text).map_err(wrong)
}

#[cfg(test)]
mod tests;
