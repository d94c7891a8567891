//! What a directory of results holds, by scenario, case and controller.

use std::fs;
use std::path::{Path, PathBuf};

use crate::figure::{Style, short_name, styles};
use crate::metric::Measure;
use crate::run::{IDEAL, Key, Row, SCENARIOS, read_directory};
use crate::scenario::{BUILT_IN, Changes, FigureSpec, Scenario, figures_of};

use super::ReportFailure;

/// Everything that a report shows.
#[derive(Clone, Debug)]
pub struct Results {
    /// The scenarios in the order of the results.
    pub experiments: Vec<Experiment>,
    /// Versions of the programs that made them.
    pub programs: Vec<String>,
    /// All rows as they were read.
    pub rows: Vec<Row>,
}

/// A scenario with what came of it.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Its name.
    pub name: String,
    /// What it is about.
    pub about: String,
    /// Where it comes from.
    pub source: Option<String>,
    /// The scenario in words; `None` if it could not be read.
    pub words: Option<String>,
    /// Why it could not.
    pub problem: Option<String>,
    /// The figures that it asks for.
    pub figures: Vec<FigureSpec>,
    /// Its cases; one without a name if it has none.
    pub cases: Vec<CaseResults>,
}

/// What came of one case.
#[derive(Clone, Debug)]
pub struct CaseResults {
    /// Its name; empty if the scenario has no cases.
    pub name: String,
    /// The scenario with the case's values, if it could be read.
    pub scenario: Option<Scenario>,
    /// The row of the best that any sender could do.
    pub ideal: Option<Row>,
    /// The controllers in the order of the results.
    pub controllers: Vec<ControllerResults>,
}

/// What came of one controller.
#[derive(Clone, Debug)]
pub struct ControllerResults {
    /// Its canonical spec.
    pub spec: String,
    /// What figures call it.
    pub name: String,
    /// How it is drawn.
    pub style: Style,
    /// For each trial the rows of its flows.
    pub trials: Vec<Vec<Row>>,
}

impl ControllerResults {
    /// The measure in each trial; of several flows of that role together, or all added up.
    pub fn values(&self, measure: Measure, flows: Flows<'_>, ideal: Option<&Row>) -> Vec<f64> {
        let of_trial = |rows: &Vec<Row>| {
            let rows: Vec<&Row> = rows.iter().filter(|row| flows.holds(row)).collect();
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

    /// What its first trial is.
    pub fn first(&self) -> Option<&Key> {
        Some(&self.trials.first()?.first()?.key)
    }
}

/// Which flows of a run are looked at, and how.
#[derive(Clone, Copy, Debug)]
pub struct Flows<'a> {
    /// Their role.
    pub role: &'a str,
    /// Whether they are added up instead of averaged.
    pub total: bool,
    /// In which of the scenario's measurement windows; over the whole run if `None`.
    pub window: Option<&'a str>,
}

/// The role that stands for flows of every role.
pub(super) const EVERYBODY: &str = "all";

impl Flows<'_> {
    /// Everybody who watches.
    pub const VIEWERS: Flows<'static> = Flows {
        role: "viewer",
        total: false,
        window: None,
    };

    /// Whether it is what single viewers saw of the whole run.
    pub(super) fn is_plain(self) -> bool {
        self.role == Self::VIEWERS.role && !self.total && self.window.is_none()
    }

    fn holds(self, row: &Row) -> bool {
        self.role == EVERYBODY || self.role == row.role
    }

    /// The measure of several flows of one run together.
    fn pooled(self, measure: Measure, rows: &[&Row], ideal: Option<&Row>) -> Option<f64> {
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
    /// Reads what `directory` holds.
    ///
    /// # Errors
    /// If there is nothing, or it cannot be read.
    pub fn load(directory: &Path) -> Result<Self, ReportFailure> {
        let rows = read_directory(directory).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => ReportFailure::Nothing(directory.to_owned()),
            _ => ReportFailure::Read {
                directory: directory.to_owned(),
                error,
            },
        })?;
        if rows.is_empty() {
            return Err(ReportFailure::Nothing(directory.to_owned()));
        }
        Ok(Self::of_rows(rows, &directory.join(SCENARIOS)))
    }

    /// Sorts rows by scenario, case, controller and trial; the texts of the scenarios are looked for in `scenarios`, then among those
    /// that come with the lab.
    pub fn of_rows(rows: Vec<Row>, scenarios: &Path) -> Self {
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
                experiments.push(Experiment::new(&row.key.scenario));
                experiments.len() - 1
            });
            experiments[place].take(row);
        }
        // Sorted, so that a controller looks the same whichever scenario came first.
        specs.sort();
        let looks: Vec<(String, Style)> = specs.iter().cloned().zip(styles(&specs)).collect();
        for experiment in &mut experiments {
            experiment.dress(&looks);
            experiment.explain(scenarios);
        }
        Self {
            experiments,
            programs,
            rows: all,
        }
    }
}

/// Where `name` stands among `all`; behind them if it does not.
fn place_of(name: &str, all: impl Iterator<Item = String>) -> usize {
    all.take_while(|one| one != name).count()
}

impl Experiment {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            about: String::new(),
            source: None,
            words: None,
            problem: None,
            figures: Vec::new(),
            cases: Vec::new(),
        }
    }

    fn take(&mut self, row: Row) {
        let place = self.cases.iter().position(|case| case.name == row.key.case);
        let place = place.unwrap_or_else(|| {
            self.cases.push(CaseResults {
                name: row.key.case.clone(),
                scenario: None,
                ideal: None,
                controllers: Vec::new(),
            });
            self.cases.len() - 1
        });
        let case = &mut self.cases[place];
        // Results of another version of the scenario may stand behind those of the last plan.
        if case.hash().is_some_and(|hash| hash != row.key.scenario_hash) {
            return;
        }
        if row.key.controller == IDEAL {
            case.ideal.get_or_insert(row);
            return;
        }
        let known = case
            .controllers
            .iter()
            .position(|one| one.spec == row.key.controller);
        let known = known.unwrap_or_else(|| {
            case.controllers.push(ControllerResults {
                spec: row.key.controller.clone(),
                name: short_name(&row.key.controller),
                style: crate::figure::IDEAL_STYLE,
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

    fn dress(&mut self, looks: &[(String, Style)]) {
        let controllers = self.cases.iter_mut().flat_map(|case| &mut case.controllers);
        for controller in controllers {
            if let Some((_, style)) = looks.iter().find(|(spec, _)| *spec == controller.spec) {
                controller.style = *style;
            }
        }
    }

    /// Finds the scenario's text, and what it says.
    fn explain(&mut self, scenarios: &Path) {
        let file = scenarios.join(format!("{}.toml", self.name));
        let built_in = || {
            BUILT_IN
                .iter()
                .find(|(name, _)| *name == self.name)
                .map(|(_, text)| (*text).to_owned())
        };
        let Some(text) = fs::read_to_string(&file).ok().or_else(built_in) else {
            self.problem = Some("the scenario's text is not among the results".to_owned());
            return;
        };
        self.figures = figures_of(&text);
        if self.figures.is_empty() {
            // Results may be older than what is to be drawn of them.
            self.figures = built_in().map_or_else(Vec::new, |text| figures_of(&text));
        }
        let mut found: Option<Vec<Scenario>> = None;
        for quick in [false, true] {
            let changes = Changes {
                quick,
                ..Changes::default()
            };
            let read = Scenario::parse(&self.name, &name_of(&file), &text, scenarios, &changes);
            match read {
                Ok(cases) => {
                    let fits = self.matches(&cases);
                    if fits || found.is_none() {
                        found = Some(cases);
                    }
                    if fits {
                        break;
                    }
                }
                Err(error) => {
                    self.problem = Some(error.to_string());
                    self.about_of_text(&text);
                    return;
                }
            }
        }
        let Some(mut cases) = found else { return };
        if !self.matches(&cases) {
            self.problem = Some(
                "some values were changed for these runs; what is said of the scenario is what its file says"
                    .to_owned(),
            );
        }
        cases.retain(|case| self.cases.iter().any(|mine| mine.name == case.case));
        if let Some(first) = cases.first() {
            self.about.clone_from(&first.about);
            self.source.clone_from(&first.source);
            self.words = Some(crate::scenario::explain(&cases));
        }
        // Rows that an earlier run left behind stand in another order.
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

    /// Whether all results are of these very scenarios.
    fn matches(&self, cases: &[Scenario]) -> bool {
        self.cases.iter().all(|mine| {
            let case = cases.iter().find(|case| case.case == mine.name);
            case.is_some_and(|case| mine.hash() == Some(case.hash.as_str()))
        })
    }

    /// What can be said of a scenario whose title is elsewhere.
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

fn name_of(file: &Path) -> String {
    file.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

impl CaseResults {
    fn hash(&self) -> Option<&str> {
        let first = self.controllers.first().and_then(ControllerResults::first);
        let ideal = self.ideal.as_ref().map(|row| &row.key);
        first.or(ideal).map(|key| key.scenario_hash.as_str())
    }

    /// Length of the longest session in seconds.
    pub fn length(&self) -> f64 {
        let rows = self
            .controllers
            .iter()
            .flat_map(|one| one.trials.iter().flatten());
        let ends = rows.map(|row| row.seen.ended_s.unwrap_or(row.download_s).max(row.download_s));
        ends.fold(1.0, f64::max)
    }
}

/// Where the series of a flow of this run are.
pub(super) fn series_file(directory: &Path, key: &Key, viewer: usize, kind: &str) -> PathBuf {
    let stem = crate::run::series_stem(key, viewer);
    directory.join("series").join(format!("{stem}-{kind}.csv"))
}
