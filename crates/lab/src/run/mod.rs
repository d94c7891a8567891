//! `lab run`: scenarios × controllers × seeds, on all cores.
//!
//! Results are rows of JSON (`Row`), the same bytes for the same inputs with any number of
//! threads and after any number of interruptions.

mod job;
mod over;
mod progress;
mod rehearsal;
mod selection;
mod shard;
mod summary;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use clap::Args;

pub(crate) use job::{Job, plan, work};
pub(crate) use over::{Point, SweptKey};
pub(crate) use progress::ProgressDisplay;
pub(crate) use rehearsal::rehearsed;
pub(crate) use selection::RunSelection;
pub(crate) use shard::{PlannedRun, Shard, ShardPlan};

use crate::error::CommandError;
use crate::result::Store;
use crate::scenario::Scenario;

/// Command line of `lab run`.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) selection: RunSelection,

    /// Number of runs at once [default: number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,

    /// Make only part I of N of the runs, the others on other machines; `lab merge` combines them, and `lab jobs`
    /// writes the commands for a cluster
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-runs")]
    pub(crate) out: PathBuf,

    /// Keep the results in the directory and make only the missing runs
    #[arg(long)]
    pub(crate) resume: bool,
}

/// Makes the runs of `args`, shows progress on stderr, stores the results and prints a summary to `out`. When `stop`
/// becomes true, the finished runs are kept.
///
/// # Errors
/// If a scenario is invalid, the directory holds other results, rows cannot be stored, or runs fail or are stopped.
pub(crate) fn run(args: &RunArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<PathBuf, CommandError> {
    make(&args.selection.open()?, args, stop, out)
}

/// Makes all runs of `scenarios` with the other options of `args` ([`run`]).
///
/// # Errors
/// As [`run`], but for invalid scenarios.
pub(crate) fn make(
    scenarios: &[Arc<Scenario>],
    args: &RunArgs,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<PathBuf, CommandError> {
    let jobs = plan(scenarios);
    make_jobs(jobs, args, stop, out)
}

/// Makes `all` with the options of `args`; the scenarios that these name are ignored ([`run`]).
///
/// # Errors
/// As [`run`], but for invalid scenarios.
pub(crate) fn make_jobs(
    all: Vec<Job>,
    args: &RunArgs,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<PathBuf, CommandError> {
    let shard_plan = args.shard.map(|shard| ShardPlan::new(shard, &all));
    let scenarios: BTreeMap<String, Arc<Scenario>> = all
        .iter()
        .map(|job| (job.key.scenario.clone(), Arc::clone(&job.scenario)))
        .collect();
    let mut jobs = match args.shard {
        Some(shard) => shard.select(all),
        None => all,
    };
    for job in &mut jobs {
        job.series = args.selection.series.is_some_and(|of| of.takes(job.key.trial));
    }
    let mut store = open(args, shard_plan.as_ref())?;
    for scenario in scenarios.values() {
        store.add_scenario(scenario).map_err(stored(args))?;
    }
    let planned: Vec<&Job> = jobs.iter().collect();
    let MissingRuns {
        missing,
        made,
        failed,
    } = make_missing(&planned, &mut store, args.jobs, stop).map_err(stored(args))?;
    if stop.load(Relaxed) && made + failed.len() < missing {
        return Err(CommandError::Stopped {
            done: jobs.len() - (missing - made),
            all: jobs.len(),
            directory: args.out.clone(),
        });
    }
    let text = summary::tables(&jobs, |job| job.stored(&store));
    out.write_all(text.as_bytes()).map_err(CommandError::Print)?;
    if !failed.is_empty() {
        return Err(CommandError::Runs {
            failed,
            all: jobs.len(),
        });
    }
    let file = store
        .finish(jobs.iter().map(|job| &job.key))
        .map_err(stored(args))?;
    writeln!(out, "Every run is a line of {}", file.display()).map_err(CommandError::Print)?;
    Ok(file)
}

/// Outcome of making the runs that a store lacked.
#[derive(Debug)]
pub(crate) struct MissingRuns {
    /// Number of runs that the store lacked.
    pub(crate) missing: usize,
    /// Number of them that were made.
    pub(crate) made: usize,
    /// Name and error message of each that failed.
    pub(crate) failed: Vec<String>,
}

/// Makes those of `jobs` whose rows or time series `store` lacks, `threads` at once, shows progress on stderr and adds
/// rows and time series to `store`. When `stop` becomes true, the finished runs are kept.
///
/// # Errors
/// If the rows or series of a run cannot be stored; the other runs are made nevertheless.
pub(crate) fn make_missing(
    jobs: &[&Job],
    store: &mut Store,
    threads: Option<NonZeroUsize>,
    stop: &AtomicBool,
) -> io::Result<MissingRuns> {
    let lacks_series = |job: &Job| job.series && job.controller.is_some() && !store.has_series(&job.key);
    let missing = jobs
        .iter()
        .filter(|job| job.stored(store).is_none() || lacks_series(job));
    let missing: Vec<&Job> = missing.copied().collect();
    let (mut made, mut failed, mut unstored) = (0, Vec::new(), None);
    work(&missing, threads, stop, |index, result| match result {
        Ok(results) => {
            made += 1;
            // The rows last: a run that is interrupted in between is made again, with whole files.
            let mut series = results.series.iter();
            let kept = series
                .try_for_each(|(name, text)| store.add_series(&missing[index].key, name, text))
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

/// The error of storing results in the directory of `args`.
fn stored(args: &RunArgs) -> impl Fn(io::Error) -> CommandError {
    let advice =
        "add --resume to keep them and make the missing runs, or choose another directory with --out";
    move |error| CommandError::store(&args.out, error, advice)
}

/// Opens the directory of `args`, which must not hold another shard.
fn open(args: &RunArgs, shard_plan: Option<&ShardPlan>) -> Result<Store, CommandError> {
    if let Some(theirs) = ShardPlan::read(&args.out).map_err(stored(args))?
        && let Some(why) = conflict(&theirs, shard_plan)
    {
        return Err(CommandError::BadInput(format!(
            "{} holds shard {}: {why}; choose another directory with --out",
            args.out.display(),
            theirs.shard
        )));
    }
    let store = Store::open(&args.out, args.resume).map_err(stored(args))?;
    if let Some(shard_plan) = shard_plan {
        shard_plan.write(&args.out).map_err(stored(args))?;
    }
    Ok(store)
}

/// The reason why a run cannot continue what `theirs` began; `None` if it can.
fn conflict(theirs: &ShardPlan, requested: Option<&ShardPlan>) -> Option<String> {
    match requested {
        None => Some("it continues only with --shard".to_owned()),
        Some(requested) if requested.shard != theirs.shard => {
            Some(format!("{} was requested", requested.shard))
        }
        Some(requested) => requested
            .difference_from(theirs)
            .map(|why| format!("other runs were requested: {why}")),
    }
}
