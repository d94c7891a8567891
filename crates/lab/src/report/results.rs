//! The rows of a directory of results by scenario, case, controller and trial.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::error::CommandError;
use crate::figure::{Style, short_name, styles};
use crate::metric::Measure;
use crate::result::{IDEAL, ResultKey, Row, SCENARIOS, VIEWER, read_directory, series_file};
use crate::scenario::{BUILT_IN, Changes, Scenario, ScenarioSource};

use super::spec::{FigureSpec, figures_of};

/// All results of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Results {
    /// The scenarios in the order of the rows.
    pub(crate) experiments: Vec<Experiment>,
    /// Versions of the programs that made the rows.
    pub(crate) programs: Vec<String>,
    /// All rows in the order of the file.
    pub(crate) rows: Vec<Row>,
}

/// A scenario and its results.
#[derive(Clone, Debug, Default)]
pub(crate) struct Experiment {
    pub(crate) name: String,
    /// `about` of the scenario's text; empty if there is none.
    pub(crate) about: String,
    /// `source` of the scenario's text.
    pub(crate) source: Option<String>,
    /// The scenario in words; `None` if its text could not be read.
    pub(crate) words: Option<String>,
    /// A warning if the text could not be read, or is not the one that was run.
    pub(crate) problem: Option<String>,
    /// The figures that the scenario's text asks for.
    pub(crate) figures: Vec<FigureSpec>,
    /// The cases that have results; one with an empty name for a scenario without cases.
    pub(crate) cases: Vec<CaseResults>,
}

/// The results of one case.
#[derive(Clone, Debug)]
pub(crate) struct CaseResults {
    /// Empty if the scenario has no cases.
    pub(crate) name: String,
    /// The scenario with the case's values, if its text could be read.
    pub(crate) scenario: Option<Scenario>,
    /// The rows of the ideal sender.
    pub(crate) ideal: Vec<Row>,
    /// In the order of the scenario, or of the rows if the scenario's text could not be read.
    pub(crate) controllers: Vec<ControllerResults>,
}

/// The results of one controller in one case.
#[derive(Clone, Debug)]
pub(crate) struct ControllerResults {
    /// The canonical spec, as in the rows.
    pub(crate) spec: String,
    /// Name in figures and tables.
    pub(crate) name: String,
    /// World that the trials are from; empty for the results of a directory.
    pub(crate) world: String,
    pub(crate) style: Style,
    /// Directory of the results, with the time series of the trials that have some.
    pub(crate) directory: PathBuf,
    /// For each trial the rows of its flows.
    pub(crate) trials: Vec<Vec<Row>>,
}

impl ControllerResults {
    /// Name where worlds stand side by side: with the world, if there is one.
    pub(super) fn full_name(&self) -> String {
        if self.world.is_empty() {
            self.name.clone()
        } else {
            format!("{}, {}", self.name, self.world)
        }
    }

    /// File of the time series `kind` of a viewer.
    pub(super) fn series(&self, key: &ResultKey, viewer: usize, kind: &str) -> PathBuf {
        series_file(&self.directory, key, viewer, kind)
    }

    /// The measure in each trial that has it, of the flows that `flows` selects.
    pub(crate) fn values(&self, measure: Measure, flows: Flows<'_>, ideal: &[Row]) -> Vec<f64> {
        let of_trial = |rows: &Vec<Row>| {
            let rows: Vec<&Row> = rows.iter().filter(|row| row.has_role(flows.role)).collect();
            if flows.total {
                let values: Option<Vec<f64>> = rows
                    .iter()
                    .map(|row| flows.pooled(measure, &[*row], ideal))
                    .collect();
                values
                    .filter(|values| !values.is_empty())
                    .map(|values| values.iter().sum())
            } else {
                flows.pooled(measure, &rows, ideal)
            }
        };
        self.trials.iter().filter_map(of_trial).collect()
    }

    /// The key of the first trial.
    pub(crate) fn first(&self) -> Option<&ResultKey> {
        Some(&self.trials.first()?.first()?.key)
    }
}

/// A selection of the flows of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flows<'a> {
    /// Role as [`Row::has_role`] takes it.
    pub(crate) role: &'a str,
    /// Adds the flows up instead of pooling them.
    pub(crate) total: bool,
    /// The scenario's measurement window; `None` for the whole run.
    pub(crate) window: Option<&'a str>,
}

impl Flows<'_> {
    /// All viewers over the whole run.
    pub(crate) const VIEWERS: Flows<'static> = Flows {
        role: VIEWER,
        total: false,
        window: None,
    };

    /// Returns true for [`Self::VIEWERS`].
    pub(super) fn is_plain(self) -> bool {
        self.role == Self::VIEWERS.role && !self.total && self.window.is_none()
    }

    /// The measure of several flows of one run together.
    fn pooled(self, measure: Measure, rows: &[&Row], ideal: &[Row]) -> Option<f64> {
        let Some(wanted) = self.window else {
            return measure.pooled(rows.iter().copied(), ideal);
        };
        // Flows of one run have the windows of one scenario.
        let windows = &rows.first()?.windows;
        let place = windows.iter().position(|window| window.window == wanted)?;
        measure.metric.pooled_in(place, rows.iter().copied())
    }
}

impl Results {
    /// Reads the results in `directory`.
    ///
    /// # Errors
    /// If there are none, or they cannot be read.
    pub(crate) fn load(directory: &Path) -> Result<Self, CommandError> {
        let rows = match read_directory(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let directory = directory.to_owned();
                return Err(CommandError::Read { directory, error });
            }
            rows => rows.unwrap_or_default(),
        };
        if rows.is_empty() {
            let path = directory.display();
            return Err(CommandError::BadInput(format!(
                "no results in {path}: make some with `lab run SCENARIO --series --out {path}`"
            )));
        }
        Ok(Self::of_rows(rows, directory))
    }

    /// Sorts the rows of `directory` by scenario, case, controller and trial. The texts of the scenarios are read from
    /// there, else they are the built-in ones.
    pub(crate) fn of_rows(rows: Vec<Row>, directory: &Path) -> Self {
        let mut programs: Vec<String> = rows.iter().map(|row| row.program.clone()).collect();
        programs.sort();
        programs.dedup();
        let all = rows.clone();
        let mut experiments: Vec<Experiment> = Vec::new();
        let mut specs: Vec<String> = Vec::new();
        for row in rows {
            if row.key.controller != IDEAL && !specs.contains(&row.key.controller) {
                specs.push(row.key.controller.clone());
            }
            let place = experiments.iter().position(|one| one.name == row.key.scenario);
            let place = place.unwrap_or_else(|| {
                experiments.push(Experiment {
                    name: row.key.scenario.clone(),
                    ..Experiment::default()
                });
                experiments.len() - 1
            });
            let controller = row.key.controller.clone();
            experiments[place].take(&controller, row, directory);
        }
        // Sorted, so that a controller looks the same whichever scenario came first.
        specs.sort();
        let looks: Vec<(String, Style)> = specs.iter().cloned().zip(styles(&specs)).collect();
        for experiment in &mut experiments {
            experiment.set_styles(&looks);
            experiment.explain(directory);
        }
        Self {
            experiments,
            programs,
            rows: all,
        }
    }
}

/// Position of `name` among `all`; their number if it is not one of them.
fn place_of(name: &str, all: impl Iterator<Item = String>) -> usize {
    all.take_while(|one| one != name).count()
}

impl Experiment {
    /// The rows of all cases and controllers.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.cases.iter().flat_map(CaseResults::rows)
    }

    /// The worlds that the results are from, in order; none for the results of a directory.
    pub(super) fn worlds(&self) -> Vec<&str> {
        let controllers = self.cases.iter().flat_map(|case| &case.controllers);
        let mut worlds: Vec<&str> = Vec::new();
        for one in controllers.filter(|one| !one.world.is_empty()) {
            if !worlds.contains(&one.world.as_str()) {
                worlds.push(&one.world);
            }
        }
        worlds
    }

    /// The cases that `spec` names; all if it names none.
    pub(super) fn cases_of(&self, spec: &FigureSpec) -> Vec<&CaseResults> {
        let cases = self.cases.iter();
        cases
            .filter(|case| spec.cases.is_empty() || spec.cases.contains(&case.name))
            .collect()
    }

    /// Adds a row of `directory` to the results of `controller`.
    pub(super) fn take(&mut self, controller: &str, row: Row, directory: &Path) {
        let place = self.cases.iter().position(|case| case.name == row.key.case);
        let place = place.unwrap_or_else(|| {
            self.cases.push(CaseResults {
                name: row.key.case.clone(),
                scenario: None,
                ideal: Vec::new(),
                controllers: Vec::new(),
            });
            self.cases.len() - 1
        });
        let case = &mut self.cases[place];
        // Rows of another version of the scenario may follow those of the last run.
        if case.hash().is_some_and(|hash| hash != row.key.scenario_hash) {
            return;
        }
        if controller == IDEAL {
            if case.ideal.iter().all(|known| known.key != row.key) {
                case.ideal.push(row);
            }
            return;
        }
        let known = case.controllers.iter().position(|one| one.spec == controller);
        let known = known.unwrap_or_else(|| {
            case.controllers.push(ControllerResults {
                spec: controller.to_owned(),
                name: short_name(controller),
                world: String::new(),
                style: crate::figure::IDEAL_STYLE,
                directory: directory.to_owned(),
                trials: Vec::new(),
            });
            case.controllers.len() - 1
        });
        let trials = &mut case.controllers[known].trials;
        match trials
            .iter_mut()
            .find(|rows| rows.first().is_some_and(|one| one.key == row.key))
        {
            Some(rows) => rows.push(row),
            None => trials.push(vec![row]),
        }
    }

    pub(super) fn set_styles(&mut self, looks: &[(String, Style)]) {
        let controllers = self.cases.iter_mut().flat_map(|case| &mut case.controllers);
        for controller in controllers {
            if let Some((_, style)) = looks.iter().find(|(spec, _)| *spec == controller.spec) {
                controller.style = *style;
            }
        }
    }

    /// The text of the scenario `name` that `directory` has.
    pub(super) fn stored_text(name: &str, directory: &Path) -> Option<String> {
        let file = directory.join(SCENARIOS).join(format!("{name}.toml"));
        fs::read_to_string(file).ok()
    }

    /// Puts these names in place of the controllers' short ones; they are by canonical spec.
    pub(super) fn set_names(&mut self, names: &BTreeMap<String, String>) {
        for one in self.cases.iter_mut().flat_map(|case| &mut case.controllers) {
            if let Some(name) = names.get(&one.spec) {
                name.clone_into(&mut one.name);
            }
        }
    }

    /// Marks all results as those of a world.
    pub(super) fn set_world(&mut self, world: &str) {
        for one in self.cases.iter_mut().flat_map(|case| &mut case.controllers) {
            world.clone_into(&mut one.world);
        }
    }

    /// Adds the controllers of `other`, each behind the same controller of this experiment.
    pub(super) fn join(&mut self, other: Self) {
        if self.cases.is_empty() {
            *self = other;
            return;
        }
        for theirs in other.cases {
            let Some(mine) = self.cases.iter_mut().find(|case| case.name == theirs.name) else {
                self.cases.push(theirs);
                continue;
            };
            for one in theirs.controllers {
                let same = mine.controllers.iter().rposition(|known| known.spec == one.spec);
                let place = same.map_or(mine.controllers.len(), |place| place + 1);
                mine.controllers.insert(place, one);
            }
        }
    }

    /// Reads the scenario's text, from `directory` if it is there.
    pub(super) fn explain(&mut self, directory: &Path) {
        let scenarios = &directory.join(SCENARIOS);
        let file = format!("{}.toml", self.name);
        let built_in = || {
            BUILT_IN
                .iter()
                .find(|(name, _)| *name == self.name)
                .map(|(_, text)| (*text).to_owned())
        };
        let Some(text) = Self::stored_text(&self.name, directory).or_else(built_in) else {
            self.problem = Some("the scenario's text is not among the results".to_owned());
            return;
        };
        self.figures = figures_of(&text);
        if self.figures.is_empty() {
            // The stored text may be older than the figures of the built-in one.
            self.figures = built_in().map_or_else(Vec::new, |text| figures_of(&text));
        }
        let source = ScenarioSource::new(&self.name, &file, text.clone(), scenarios);
        let read = |quick| {
            source.scenarios(&Changes {
                quick,
                ..Changes::default()
            })
        };
        let cases = match read(false) {
            Ok(cases) if !self.matches(&cases) => {
                read(true).map(|quick| if self.matches(&quick) { quick } else { cases })
            }
            fitting => fitting,
        };
        let mut cases = match cases {
            Ok(cases) => cases,
            Err(error) => {
                self.problem = Some(error.to_string());
                self.about_of_text(&text);
                return;
            }
        };
        if !self.matches(&cases) {
            self.problem = Some(
                "these runs changed some values of the scenario; the description below is that of its file"
                    .to_owned(),
            );
        }
        cases.retain(|case| self.cases.iter().any(|mine| mine.name == case.case));
        if let Some(first) = cases.first() {
            self.about.clone_from(&first.about);
            self.source.clone_from(&first.source);
            self.words = Some(crate::scenario::explain(&cases));
        }
        // Rows of an earlier run may be in another order.
        self.cases
            .sort_by_key(|mine| place_of(&mine.name, cases.iter().map(|case| case.case.clone())));
        for case in &mut self.cases {
            case.scenario = cases.iter().find(|one| one.case == case.name).cloned();
            if let Some(scenario) = &case.scenario {
                let order = || scenario.controllers.iter().map(ToString::to_string);
                case.controllers.sort_by_key(|one| place_of(&one.spec, order()));
            }
        }
    }

    /// Returns true if all results were made with exactly these scenarios.
    fn matches(&self, cases: &[Scenario]) -> bool {
        self.cases.iter().all(|mine| {
            let case = cases.iter().find(|case| case.case == mine.name);
            case.is_some_and(|case| mine.hash() == Some(case.hash.as_str()))
        })
    }

    /// Reads `about` and `source` from a text that is not a valid scenario here, such as one whose title is missing.
    fn about_of_text(&mut self, text: &str) {
        let table: toml::Table = toml::from_str(text).unwrap_or_default();
        let word = |key: &str| {
            table
                .get(key)
                .and_then(toml::Value::as_str)
                .map(|word| word.trim().to_owned())
        };
        self.about = word("about").unwrap_or_default();
        self.source = word("source");
    }
}

impl CaseResults {
    /// The rows of all controllers.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.controllers
            .iter()
            .flat_map(|one| one.trials.iter().flatten())
    }

    fn hash(&self) -> Option<&str> {
        let first = self.controllers.first().and_then(ControllerResults::first);
        let ideal = self.ideal.first().map(|row| &row.key);
        first.or(ideal).map(|key| key.scenario_hash.as_str())
    }

    /// Length of the longest session in seconds.
    pub(crate) fn length(&self) -> f64 {
        let ends = self.rows().map(Row::length_s);
        ends.fold(1.0, f64::max)
    }
}
