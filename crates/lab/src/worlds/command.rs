//! The command line of `lab worlds`.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;

use super::cost::Plan;
use super::figures::Figures;
use super::found::Found;
use super::runs::{Instances, Ledger, Needs, Runner};
use super::search::{self, Search};
use super::stages::{Stage, Stages};
use super::unknown::World;
use super::{Effort, TestBed, file, output, text};
use crate::error::CommandError;
use crate::result::Store;
use crate::run::{self, RunArgs, Shard};
use crate::scenario::Changes;

/// Name that stands for all built-in test beds.
const ALL: &str = "all";

/// Advice on a directory that holds results.
const HOLDS_RESULTS: &str =
    "add --resume to keep them and make the missing runs, or choose another directory with --out";

/// Arguments of `lab worlds`.
#[derive(Args, Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
pub(crate) struct WorldsArgs {
    /// Test bed: kyutech (P13, P14, P15), ns2 (P12), mininet (P21), all of them one after the other, or the path of a
    /// file that declares one
    #[arg(value_name = "TESTBED")]
    test_bed: String,

    /// Describe the unknowns of the test bed in words, and run nothing
    #[arg(long, conflicts_with = "plan")]
    show: bool,

    /// Print the stages of the search and their estimated CPU time, and run nothing
    #[arg(long)]
    plan: bool,

    /// Search a smaller sample with fewer trials
    #[arg(long)]
    pub(super) quick: bool,

    /// Make no search: run the nominal world and the one that the test bed's file has under [found], with all rows
    #[arg(long, conflicts_with_all = ["worlds", "seed", "shard"])]
    pub(super) found: bool,

    /// Number of worlds of the random sample; judged rows are run for the same share of them [default: as the test
    /// bed's file says]
    #[arg(long, value_name = "N")]
    worlds: Option<NonZeroUsize>,

    /// Seed of the random sample; the trials' seeds are those of the scenarios
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// Number of runs at once [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Make only part I of N of the random sample's runs, the others on other machines; `lab merge` combines them, and
    /// --resume continues
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Directory for the results; with all test beds, each has a directory in it
    #[arg(long, value_name = "DIR", default_value = "lab-worlds")]
    pub(super) out: PathBuf,

    /// Keep the results in the directory and make only the missing runs
    #[arg(long)]
    resume: bool,
}

/// Runs `lab worlds` and prints the outcome to `out`.
///
/// # Errors
/// If a test bed's file is wrong, a directory holds other results, runs fail or are stopped, or files cannot be
/// written.
pub(crate) fn run(args: &WorldsArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CommandError> {
    let tasks = tasks(args)?;
    if args.show {
        let texts: Vec<String> = tasks.iter().map(|task| text::describe(&task.bed)).collect();
        return print(out, &texts.join("\n\n"));
    }
    if args.plan {
        return print(out, &plans(&tasks)?);
    }
    if !args.resume {
        for Task { args, .. } in &tasks {
            Store::check_empty(&args.out)
                .map_err(|error| CommandError::store(&args.out, error, HOLDS_RESULTS))?;
        }
    }
    let (mut failures, mut runs) = (Vec::new(), 0);
    for (number, task) in tasks.iter().enumerate() {
        if number > 0 {
            print(out, "\n")?;
        }
        match task.run(stop, out) {
            // The other test beds do not depend on it.
            Err(CommandError::Runs { failed, all }) => {
                failures.extend(failed);
                runs += all;
            }
            made => made?,
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Runs {
            failed: failures,
            all: runs,
        })
    }
}

/// A test bed and what is to be made of it.
struct Task {
    /// Arguments with the directory of this test bed.
    args: WorldsArgs,
    bed: TestBed,
    /// The world that is run without a search.
    found: Option<Found>,
}

/// A task for each test bed that the arguments name.
fn tasks(args: &WorldsArgs) -> Result<Vec<Task>, CommandError> {
    if args.test_bed != ALL {
        return Ok(vec![Task::new(args.clone())?]);
    }
    let names = file::BUILT_IN.iter().map(|(name, _)| *name);
    let of_one = |name: &str| WorldsArgs {
        test_bed: name.to_owned(),
        out: args.out.join(name),
        ..args.clone()
    };
    names.map(|name| Task::new(of_one(name))).collect()
}

/// The plans of all tasks, and their sum if there are several.
fn plans(tasks: &[Task]) -> Result<String, CommandError> {
    let plans = tasks.iter().map(Task::plan);
    let plans: Vec<Plan<'_>> = plans.collect::<Result<_, _>>()?;
    let mut texts: Vec<String> = plans.iter().map(Plan::text).collect();
    if plans.len() > 1 {
        let cpu: Duration = plans.iter().map(Plan::cpu).sum();
        texts.push(format!(
            "All test beds: at most {} of CPU time\n",
            Plan::in_words(cpu)
        ));
    }
    Ok(texts.join("\n"))
}

impl Task {
    fn new(args: WorldsArgs) -> Result<Self, CommandError> {
        let bed = file::open(&args.test_bed)?;
        let found = bed.found.clone().filter(|_| args.found);
        if args.found && found.is_none() {
            return Err(CommandError::BadInput(format!(
                "the file of test bed {} has no [found] table: `lab worlds {}` searches, and prints one at the end",
                bed.name, args.test_bed
            )));
        }
        Ok(Self { args, bed, found })
    }

    fn effort(&self) -> Effort {
        let effort = if self.args.quick {
            self.bed.quick
        } else {
            self.bed.search
        };
        let worlds = self.args.worlds.map_or(effort.worlds, NonZeroUsize::get);
        let judged = effort
            .judged
            .saturating_mul(worlds)
            .div_ceil(effort.worlds.max(1));
        Effort {
            worlds,
            judged: judged.min(worlds),
        }
    }

    fn stages(&self) -> Stages {
        Stages::of(&self.bed, self.args.quick)
    }

    fn sample(&self) -> Vec<World> {
        search::sample(&self.bed, self.effort(), self.args.seed)
    }

    fn plan(&self) -> Result<Plan<'_>, CommandError> {
        match &self.found {
            Some(found) => Plan::of_found(&self.bed, self.stages(), &found.world),
            None => Plan::of_search(&self.bed, self.stages(), &self.sample(), self.effort().judged),
        }
    }

    fn run(&self, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CommandError> {
        if self.args.shard.is_some() {
            self.make_shard(stop, out)
        } else {
            self.make(stop, out)
        }
    }

    /// Makes the whole search, or what the world that was found needs.
    fn make(&self, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CommandError> {
        let Self { args, bed, found } = self;
        let stored = |error| CommandError::store(&args.out, error, HOLDS_RESULTS);
        let store = Store::open(&args.out, args.resume).map_err(stored)?;
        let mut runner = Runner {
            store: store.with_series_by_hash(),
            ledger: Ledger::default(),
            failed: Vec::new(),
            made: 0,
            directory: &args.out,
            threads: args.jobs,
            stop,
        };
        let outcome = match found {
            Some(found) => {
                Search::new(bed, self.stages(), Vec::new(), &mut runner)?.judge(found.world.clone())?
            }
            None => Search::new(bed, self.stages(), self.sample(), &mut runner)?.run(self.effort().judged)?,
        };
        let figures = Figures::of(bed, &outcome);
        output::write(args, bed, &outcome, &figures)?;
        let Runner {
            store,
            ledger,
            failed,
            ..
        } = runner;
        for scenario in &bed.scenarios {
            for case in scenario.source.scenarios(&Changes::default())?.iter().take(1) {
                store.add_scenario(case).map_err(stored)?;
            }
        }
        let all = ledger.order.len();
        store.finish(ledger.order.iter()).map_err(stored)?;
        let mut text = text::summary(bed, &outcome, &figures);
        if found.is_none() {
            let found = Found {
                world: outcome.fitted_world().clone(),
                seed: args.seed,
                worlds: figures.sample.len(),
            };
            text.push_str("\nThe fitted world for the test bed's file (lab worlds --found):\n\n");
            text.push_str(&found.table(bed));
        }
        print(out, &text)?;
        let lines = args.out.join(output::LINES);
        print(out, &format!("\nEvery world is a line of {}\n", lines.display()))?;
        if failed.is_empty() {
            Ok(())
        } else {
            Err(CommandError::Runs { failed, all })
        }
    }

    /// Makes a shard of the runs of the random sample, the stage that takes longest.
    fn make_shard(&self, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CommandError> {
        let Self { args, bed, .. } = self;
        let (mut instances, mut ledger, mut jobs) = (Instances::default(), Ledger::default(), Vec::new());
        let length = self.stages().length(Stage::Sample);
        let needs = [Needs::of(&bed.fit), Needs::of(bed.claims())];
        let nominal = World::nominal(&bed.unknowns);
        let judged = self.effort().judged;
        for (number, world) in std::iter::once(nominal).chain(self.sample()).enumerate() {
            let needs = &needs[usize::from(number <= judged)];
            let runs = instances.runs(bed, &world, needs, length)?;
            jobs.extend(ledger.fresh(&runs).into_iter().cloned());
        }
        let options = RunArgs {
            jobs: args.jobs,
            shard: args.shard,
            out: args.out.clone(),
            resume: args.resume,
            ..RunArgs::default()
        };
        run::make_jobs(jobs, &options, stop, &mut std::io::sink())?;
        let text = format!(
            "Shard of the random sample of {}: merge all with `lab merge`, then add --resume and --out\n",
            bed.name
        );
        print(out, &text)
    }
}

fn print(out: &mut impl Write, text: &str) -> Result<(), CommandError> {
    out.write_all(text.as_bytes()).map_err(CommandError::Print)
}
