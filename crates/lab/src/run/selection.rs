//! [`RunSelection`]: the options of `lab run` to select runs.

use std::num::NonZeroU32;
use std::sync::Arc;

use clap::Args;
use indexmap::{IndexMap, IndexSet};

use super::job::SeriesOf;
use super::over::{Point, SweptKey};
use crate::controllers::Controllers;
use crate::scenario::generated::{Half, PathSet};
use crate::scenario::{self, Changes, Scenario, ScenarioError, Setting, full_name};

/// Runs that a command line selects.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RunSelection {
    /// Scenarios to run: names or groups from `lab list` (such as `papers`), generated paths (such as
    /// `generated2:1:96`), or paths of scenario files
    #[arg(value_name = "SCENARIO", required = true)]
    pub(crate) scenarios: Vec<String>,

    /// Run only this case of the scenarios (may be repeated) [default: all cases]
    #[arg(long = "case", value_name = "NAME")]
    pub(crate) cases: Vec<String>,

    /// Controllers, separated by commas, in place of those of the scenarios
    #[arg(long, value_name = "LIST")]
    pub(crate) controllers: Option<Controllers>,

    /// Run only one half of generated paths: parameters are fitted on one and judged on the other
    #[arg(long, value_name = "HALF", value_enum)]
    pub(crate) half: Option<Half>,

    /// Number of runs of each controller [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub(crate) trials: Option<NonZeroU32>,

    /// Seed of the first trial [default: as the scenario says]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Use the fewer trials and shorter titles of the scenarios' `quick` tables
    #[arg(long)]
    pub(crate) quick: bool,

    /// Also write time series as CSV files (window, RTT, capacity estimate, playout buffer, queue, events), of each
    /// controller's first trial or of all trials
    #[arg(
        long,
        value_name = "WHICH",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "first"
    )]
    pub(crate) series: Option<SeriesOf>,

    /// Value for a key of every scenario, in place of its own, such as `path.queue=0.5bdp`; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub(crate) settings: Vec<Setting>,

    /// A key and its values, such as queue=0.5bdp,1bdp,2bdp, each a case of its own; several --over make all
    /// combinations
    #[arg(long, value_name = "KEY=V1,V2,...")]
    pub(crate) over: Vec<SweptKey>,
}

/// A case of a scenario with one combination of the values of `--over`.
#[derive(Clone, Debug)]
struct PointCase {
    /// The scenario; its `case` includes the values.
    scenario: Scenario,
    /// Name of the case without the values.
    own: String,
}

impl RunSelection {
    /// Reads the scenarios, with each case as a separate scenario.
    ///
    /// # Errors
    /// If one is invalid, or none has a selected case.
    pub(crate) fn open(&self) -> Result<Vec<Arc<Scenario>>, ScenarioError> {
        let mut all: IndexMap<_, PointCase> = IndexMap::new();
        for point in Point::all(&self.over) {
            for case in self.at(&point)? {
                let scenario = &case.scenario;
                let key = (
                    scenario.name.clone(),
                    scenario.case.clone(),
                    scenario.hash.clone(),
                );
                all.entry(key).or_insert(case);
            }
        }
        for name in &self.cases {
            if all.values().all(|case| case.own != *name) {
                let known = all.values();
                let known: IndexSet<_> = known
                    .map(|case| full_name(&case.scenario.name, &case.own))
                    .collect();
                return Err(ScenarioError::UnknownCase {
                    name: name.clone(),
                    known: known.into_iter().collect::<Vec<_>>().join(", "),
                });
            }
        }
        let selected = |case: &PointCase| self.cases.is_empty() || self.cases.contains(&case.own);
        let selected = all.into_values().filter(selected);
        Ok(selected.map(|case| Arc::new(case.scenario)).collect())
    }

    /// The cases of all scenarios with one combination of the values of `--over`.
    fn at(&self, point: &Point) -> Result<Vec<PointCase>, ScenarioError> {
        let controllers = self
            .controllers
            .iter()
            .map(|list| Setting::new("controllers", list.names()));
        let controllers: Vec<_> = controllers.collect();
        let changes = Changes {
            quick: self.quick,
            trials: self.trials.map(NonZeroU32::get),
            seed: self.seed,
            settings: [self.settings.as_slice(), &controllers, &point.settings].concat(),
        };
        let mut all = Vec::new();
        let of_half = |name: &String| match PathSet::parse(name) {
            Some(set) => set.names(self.half),
            None => scenario::named(name),
        };
        for name in self.scenarios.iter().flat_map(of_half) {
            for mut scenario in scenario::open(&name, &changes)? {
                let own = std::mem::take(&mut scenario.case);
                scenario.case = point.case(&own);
                all.push(PointCase { scenario, own });
            }
        }
        Ok(all)
    }
}
