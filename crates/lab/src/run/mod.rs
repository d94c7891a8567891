//! `lab run`: scenarios × controllers × seeds, on all cores.
//!
//! Results are rows of JSON (`Row`). The same inputs give the same bytes with any number of threads and after any
//! number of interruptions.

mod job;
mod over;
mod progress;
mod shard;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use indexmap::{IndexMap, IndexSet};
use tokio_util::sync::CancellationToken;

pub(crate) use job::{Job, plan, work};
pub(crate) use progress::{ProgressDisplay, bar_style};

use crate::controllers::{Controller, Controllers};
use crate::error::CommandError;
use crate::result::{Row, Store};
use crate::scenario::generated::{Half, PathSet};
use crate::scenario::{self, Changes, Scenario, ScenarioError, Setting, full_name};
use crate::summary;
use job::SeriesOf;
use over::{Point, SweptKey};
use shard::Shard;

/// Command line of `lab run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
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

    /// Controller with which the others are compared, trial by trial; it must be one of those that run
    #[arg(long, value_name = "SPEC")]
    pub(crate) baseline: Option<Controller>,

    /// Print the summary of every metric as one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Number of runs at once [default: number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Make only part I of N of the runs, to divide them among machines; `lab rows` and `lab report` accept the
    /// directories of all parts
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub(crate) out: PathBuf,

    /// Keep the results in the directory and make only the missing runs
    #[arg(long)]
    pub(crate) resume: bool,
}

/// A case of a scenario with one combination of the values of `--over`.
#[derive(Clone, Debug)]
struct PointCase {
    /// The scenario; its `case` includes the values.
    scenario: Scenario,
    /// Name of the case without the values.
    own: String,
}

impl RunArgs {
    /// Reads the scenarios, with each case as a separate scenario.
    ///
    /// # Errors
    /// If one is invalid, or none has a selected case.
    fn open(&self) -> Result<Vec<Arc<Scenario>>, ScenarioError> {
        let mut all: IndexMap<_, PointCase> = IndexMap::new();
        let advised = |error| over::advised(&self.over, error);
        for point in Point::all(&self.over) {
            for case in self.at(&point).map_err(advised)? {
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

/// Makes the runs of `args`, shows progress on stderr, stores the results and prints a summary to `out`. When `stop`
/// is cancelled, the finished runs are kept.
///
/// # Errors
/// If a scenario is invalid, the directory holds other results, rows cannot be stored, or runs fail or are stopped.
pub(crate) fn run(
    args: &RunArgs,
    stop: &CancellationToken,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    let all = plan(&args.open()?);
    if let Some(baseline) = &args.baseline {
        check_baseline(baseline, &all)?;
    }
    let scenarios: BTreeMap<String, Arc<Scenario>> = all
        .iter()
        .map(|job| (job.key.scenario.clone(), Arc::clone(&job.scenario)))
        .collect();
    let mut jobs = match args.shard {
        Some(shard) => shard.select(all),
        None => all,
    };
    for job in &mut jobs {
        job.series = args.series.is_some_and(|of| of.takes(job.key.trial));
    }
    let advice =
        "add --resume to keep them and make the missing runs, or choose another directory with --out";
    let failed_store = |error| CommandError::store(&args.out, error, advice);
    let mut store = Store::open(&args.out, args.resume).map_err(failed_store)?;
    if let Some(job) = jobs
        .iter()
        .find(|job| job.series && store.has_other_settings(&job.key))
    {
        return Err(CommandError::BadInput(format!(
            "{} has results of {} with other settings; time series need a directory of their own: choose it with --out",
            args.out.display(),
            job.key.full_name()
        )));
    }
    for scenario in scenarios.values() {
        store.add_scenario(scenario).map_err(failed_store)?;
    }
    let MissingRuns {
        missing,
        made,
        failed,
    } = make_missing(&jobs, &mut store, args.jobs, stop).map_err(failed_store)?;
    if stop.is_cancelled() && made + failed.len() < missing {
        return Err(CommandError::Stopped {
            done: jobs.len() - (missing - made),
            all: jobs.len(),
            directory: args.out.clone(),
        });
    }
    let rows: Vec<Row> = jobs
        .iter()
        .flat_map(|job| job.stored(&store).unwrap_or_default())
        .cloned()
        .collect();
    if failed.is_empty() {
        store
            .finish(jobs.iter().map(|job| &job.key))
            .map_err(failed_store)?;
    }
    let baseline = args.baseline.as_ref().map(ToString::to_string);
    let groups = summary::groups(&rows, baseline.as_deref());
    let mut text = if args.json {
        summary::json(&groups, &args.out)
    } else {
        summary::text(&groups)
    };
    if !args.json && failed.is_empty() {
        let file = args.out.join("runs.jsonl");
        // Writing to a String cannot fail.
        let _ = writeln!(text, "Every run is a line of {}", file.display());
    }
    out.write_all(text.as_bytes()).map_err(CommandError::Print)?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Runs {
            failed,
            all: jobs.len(),
        })
    }
}

/// Checks that every scenario runs `baseline`.
fn check_baseline(baseline: &Controller, jobs: &[Job]) -> Result<(), CommandError> {
    let name = baseline.to_string();
    let with: BTreeSet<String> = jobs
        .iter()
        .filter(|job| job.key.controller == name)
        .map(|job| job.key.full_name())
        .collect();
    match jobs.iter().find(|job| !with.contains(&job.key.full_name())) {
        None => Ok(()),
        Some(job) => {
            let known = job.scenario.controllers.iter().map(ToString::to_string);
            Err(CommandError::BadInput(format!(
                "the baseline `{name}` does not run in {}; expected one of: {}",
                job.key.full_name(),
                known.collect::<Vec<_>>().join(", ")
            )))
        }
    }
}

/// Outcome of making the missing runs of a store.
#[derive(Debug)]
struct MissingRuns {
    /// Number of missing runs.
    missing: usize,
    /// Number of missing runs that were made.
    made: usize,
    /// Name and error message of each failed run.
    failed: Vec<String>,
}

/// Makes those of `jobs` whose rows or time series are missing in `store`, `threads` at a time, shows progress on
/// stderr and adds rows and time series to `store`. When `stop` is cancelled, the finished runs are kept.
///
/// # Errors
/// If the rows or series of a run cannot be stored; the other runs are still made.
fn make_missing(
    jobs: &[Job],
    store: &mut Store,
    threads: Option<NonZeroUsize>,
    stop: &CancellationToken,
) -> io::Result<MissingRuns> {
    let lacks_series = |job: &Job| job.series && job.controller.is_some() && !store.has_series(&job.key);
    let missing = jobs
        .iter()
        .filter(|job| job.stored(store).is_none() || lacks_series(job));
    let missing: Vec<&Job> = missing.collect();
    let (mut made, mut failed, mut unstored) = (0, Vec::new(), None);
    work(&missing, threads, stop, |index, result| match result {
        Ok(results) => {
            made += 1;
            // The rows come last: a run interrupted in between is made again, with complete files.
            let mut series = results.series.iter();
            let kept = series
                .try_for_each(|(name, text)| store.add_series(name, text))
                .and_then(|()| store.add(results.rows));
            if let Err(error) = kept {
                unstored.get_or_insert(error);
            }
        }
        Err(why) => failed.push(format!("{}: {why}", missing[index].key.run_name())),
    });
    match unstored {
        Some(error) => Err(error),
        None => Ok(MissingRuns {
            missing: missing.len(),
            made,
            failed,
        }),
    }
}
