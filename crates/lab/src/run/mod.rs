//! `lab run`: scenarios × controllers × seeds, over all cores.
//!
//! Results are rows of JSON ([`Row`]), the same bytes for the same inputs however many threads made them and however often
//! they were interrupted.

mod args;
mod control;
mod dash;
mod plan;
mod pool;
mod progress;
mod row;
mod series;
mod shard;
mod store;
mod summary;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use thiserror::Error;

pub use args::{RunArgs, SeriesOf};
pub use control::{Control, Restarted};
pub use dash::Adaptive;
pub use plan::{Job, plan};
pub use pool::{Done, PoolOptions, work};
pub use row::{BULK, FORMAT, IDEAL, Key, LinkTotals, Row, Seen, SenderCounts, VERSION, VIEWER, WindowRow};
pub use series::series_stem;
pub(crate) use series::slug;
pub use shard::{Part, Planned, Shard, ShardError};
pub use store::{SCENARIOS, SERIES, Store, read, read_directory, read_runs};
pub use summary::tables;

pub use crate::statistics::Spread;

use crate::scenario::{self, Changes, Scenario, ScenarioError};
pub(crate) use progress::Display;

/// Why runs came to no end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// A scenario is no good.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The directory holds results already.
    #[error("{} holds results already: add --resume to keep them and make what is missing, or name another directory with --out", .0.display())]
    Exists(PathBuf),
    /// The directory is for another part of the runs, or for the same part of others.
    #[error("{} is for shard {theirs}: {why}; name another directory with --out", .directory.display())]
    OtherShard {
        /// Where.
        directory: PathBuf,
        /// For which part it is.
        theirs: Shard,
        /// What differs in what is asked for.
        why: String,
    },
    /// Results cannot be kept.
    #[error("cannot keep results in {}: {error}", .directory.display())]
    Store {
        /// Where.
        directory: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The summary cannot be printed.
    #[error("cannot print the results: {0}")]
    Print(io::Error),
    /// Somebody stopped it.
    #[error("stopped after {done} of {all} runs, which are kept in {}; --resume makes the rest", .directory.display())]
    Stopped {
        /// Runs that are done.
        done: usize,
        /// Runs that there were to do.
        all: usize,
        /// Where they are kept.
        directory: PathBuf,
    },
    /// Some runs came to nothing.
    #[error("{} of {all} runs failed: {}", .failed.len(), .failed.join("; "))]
    Runs {
        /// What each says.
        failed: Vec<String>,
        /// How many runs there were.
        all: usize,
    },
}

impl RunFailure {
    /// Whether the user asked for something that cannot be.
    pub fn is_bad_input(&self) -> bool {
        matches!(
            self,
            Self::Scenario(_) | Self::Exists(_) | Self::OtherShard { .. }
        )
    }
}

/// Reads the scenarios that `args` name, each case as a scenario of its own.
///
/// # Errors
/// If one is no good, or none has a case that was asked for.
pub fn scenarios(args: &RunArgs) -> Result<Vec<Arc<Scenario>>, ScenarioError> {
    let changes = Changes {
        quick: args.quick,
        trials: args.trials.map(std::num::NonZeroU32::get),
        seed: args.seed,
        settings: Vec::new(),
    };
    let mut all: Vec<Scenario> = Vec::new();
    for name in args.scenarios.iter().flat_map(|name| scenario::named(name)) {
        for scenario in scenario::open(name, &changes)? {
            let same = |known: &Scenario| {
                (&known.name, &known.case, &known.hash) == (&scenario.name, &scenario.case, &scenario.hash)
            };
            if !all.iter().any(same) {
                all.push(scenario);
            }
        }
    }
    for name in &args.cases {
        if all.iter().all(|scenario| scenario.case != *name) {
            return Err(ScenarioError::UnknownCase {
                name: name.clone(),
                known: all.iter().map(Scenario::full_name).collect::<Vec<_>>().join(", "),
            });
        }
    }
    let wanted = |scenario: &Scenario| args.cases.is_empty() || args.cases.contains(&scenario.case);
    Ok(all.into_iter().filter(wanted).map(Arc::new).collect())
}

/// Makes the runs that `args` ask for, shows progress on stderr, keeps the results and prints a summary to `out`. When `stop`
/// becomes true, what is done is kept.
///
/// # Errors
/// See [`RunFailure`].
pub fn run(args: &RunArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<PathBuf, RunFailure> {
    make(&scenarios(args)?, args, stop, out)
}

/// Makes all runs of `scenarios`, whatever scenarios `args` name ([`run`]).
///
/// # Errors
/// See [`RunFailure`].
pub fn make(
    scenarios: &[Arc<Scenario>],
    args: &RunArgs,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<PathBuf, RunFailure> {
    let all = plan(scenarios);
    let part = args.shard.map(|shard| Part::new(shard, &all));
    let jobs = match args.shard {
        Some(shard) => shard.select(all),
        None => all,
    };
    let directory = args.out.clone();
    let kept = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => RunFailure::Exists(args.out.clone()),
        _ => RunFailure::Store {
            directory: args.out.clone(),
            error,
        },
    };
    if let Some(theirs) = Part::read(&directory).map_err(kept)?
        && let Some(why) = unlike(&theirs, part.as_ref())
    {
        return Err(RunFailure::OtherShard {
            directory,
            theirs: theirs.shard,
            why,
        });
    }
    let mut store = Store::open(&directory, args.resume).map_err(kept)?;
    if let Some(part) = &part {
        part.write(&directory).map_err(kept)?;
    }
    for scenario in scenarios {
        store.add_scenario(scenario).map_err(kept)?;
    }
    let todo: Vec<(usize, &Job)> = jobs
        .iter()
        .enumerate()
        .filter(|(_, job)| !store.has(job))
        .collect();
    let total = todo.iter().map(|(_, job)| job.weight()).sum();
    let mut display = Display::new(todo.len(), total);
    let mut tally = Tally::default();
    let options = PoolOptions {
        threads: args.threads(),
        series: args.series,
    };
    let progress = std::cell::Cell::new((0, 0));
    work(
        &todo,
        options,
        |done| {
            let weight = jobs.get(done.index).map_or(0, Job::weight);
            tally.take(done, &jobs, &mut store);
            let (runs, sum) = progress.get();
            progress.set((runs + 1, sum + weight));
        },
        |running| {
            let (runs, sum) = progress.get();
            display.show(runs, sum + running);
            !stop.load(Relaxed)
        },
    );
    display.finish();
    if let Some(error) = tally.broken {
        return Err(kept(error));
    }
    if stop.load(Relaxed) && tally.made + tally.failed.len() < todo.len() {
        return Err(RunFailure::Stopped {
            done: jobs.len() - (todo.len() - tally.made),
            all: jobs.len(),
            directory,
        });
    }
    let text = tables(&jobs, |job| store.rows(job));
    out.write_all(text.as_bytes()).map_err(RunFailure::Print)?;
    if !tally.failed.is_empty() {
        return Err(RunFailure::Runs {
            failed: tally.failed,
            all: jobs.len(),
        });
    }
    let file = store.finish(jobs.iter().map(|job| &job.key)).map_err(kept)?;
    writeln!(out, "Every run is a line of {}", file.display()).map_err(RunFailure::Print)?;
    Ok(file)
}

/// What keeps `asked` from going on with what `theirs` began; `None` if nothing does.
fn unlike(theirs: &Part, asked: Option<&Part>) -> Option<String> {
    match asked {
        None => Some("only with --shard does it go on".to_owned()),
        Some(asked) if asked.shard != theirs.shard => Some(format!("{} was asked for", asked.shard)),
        Some(asked) => asked
            .differs_from(theirs)
            .map(|why| format!("other runs were asked for, {why}")),
    }
}

/// What has come of the jobs so far.
#[derive(Debug, Default)]
struct Tally {
    made: usize,
    failed: Vec<String>,
    broken: Option<io::Error>,
}

impl Tally {
    fn take(&mut self, done: Done, jobs: &[Job], store: &mut Store) {
        match done.result {
            Ok(rows) => {
                let kept = store.add(rows).and_then(|()| {
                    done.series
                        .iter()
                        .try_for_each(|(name, text)| store.add_series(name, text))
                });
                self.made += 1;
                if let Err(error) = kept {
                    self.broken.get_or_insert(error);
                }
            }
            Err(why) => {
                let key = jobs.get(done.index).map(|job| &job.key);
                self.failed
                    .push(key.map_or_else(|| why.clone(), |key| format!("{}: {why}", key.run_name())));
            }
        }
    }
}
