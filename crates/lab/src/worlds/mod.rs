//! `lab worlds`: searches for values of the parameters that the papers on a test bed leave open, a *world*, under which
//! their claims hold, and counts in how many plausible worlds each of them does.
//!
//! A test bed's file declares unknowns and candidates ([`file`], [`unknown`]); the runs of a world are ordinary
//! ones with other settings and controllers ([`runs`]); [`search`] has the protocol, [`figures`] what is computed of
//! it.

mod cost;
mod figures;
mod file;
mod outcome;
mod output;
mod runs;
mod search;
mod stages;
mod text;
mod unknown;

use std::collections::BTreeSet;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use clap::Args;
use playrate_transport::ControllerChoice;

use figures::Figures;
use runs::{Instances, Ledger, Needs, Runner};
use search::Search;
use stages::{Stage, Stages};
use unknown::{Effect, Unknown};

use crate::claims::Claim;
use crate::error::CommandError;
use crate::result::Store;
use crate::run::{self, Job, RunArgs, Shard};
use crate::scenario::{Changes, ScenarioError, ScenarioSource};

/// Arguments of `lab worlds`.
#[derive(Args, Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a switch of its own on the command line"
)]
pub(crate) struct WorldsArgs {
    /// Test bed: kyutech (P13, P14, P15), ns2 (P12) or mininet (P21), or the path of a file that declares one
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
    quick: bool,

    /// Number of worlds of the random sample [default: as the test bed's file says]
    #[arg(long, value_name = "N")]
    worlds: Option<NonZeroUsize>,

    /// Seed of the random sample; the trials' seeds are those of the scenarios
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of runs at once [default: number of cores]
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,

    /// Make only part I of N of the random sample's runs, the others on other machines; `lab merge` combines them, and
    /// --resume continues
    #[arg(long, value_name = "I/N")]
    shard: Option<Shard>,

    /// Directory for the results
    #[arg(long, value_name = "DIR", default_value = "lab-worlds")]
    out: PathBuf,

    /// Keep the results in the directory and make only the missing runs
    #[arg(long)]
    resume: bool,
}

/// A test bed: scenarios with parameters in common that the papers do not give.
#[derive(Clone, Debug)]
struct TestBed {
    name: String,
    about: String,
    scenarios: Vec<BedScenario>,
    unknowns: Vec<Unknown>,
    /// Claims that the search looks at.
    fit: Vec<Claim>,
    /// Claims that are decided afterwards.
    judged: Vec<Claim>,
    search: Effort,
    quick: Effort,
}

/// Sizes of a random sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Effort {
    /// Number of worlds that are drawn.
    worlds: usize,
    /// Number of them, from the first, for which the judged rows are run too.
    judged: usize,
}

/// A scenario of a test bed.
#[derive(Clone, Debug)]
struct BedScenario {
    name: String,
    source: ScenarioSource,
    /// Its controllers without any choice.
    controllers: Vec<ControllerChoice>,
    /// Controller that it names for its downloads.
    bulk: Option<String>,
    /// Cases of which its figures show time series.
    series: BTreeSet<String>,
}

impl TestBed {
    /// Notes for each unknown whether it acts on a run that decides a fitted row.
    fn mark_fitted(&mut self) {
        let needs = Needs::of(&self.fit);
        let fitted = |unknown: &Unknown| {
            self.scenarios.iter().any(|scenario| {
                let whole = matches!(unknown.effect, Effect::Key(_)) || unknown.acts_on_bulk(scenario);
                let needed = |one: &ControllerChoice| needs.has(&scenario.name, &one.to_string());
                let mut mine = scenario
                    .controllers
                    .iter()
                    .filter(|one| unknown.acts_on_controller(one));
                needs.has_scenario(&scenario.name) && unknown.acts_on(scenario) && (whole || mine.any(needed))
            })
        };
        let all: Vec<bool> = self.unknowns.iter().map(fitted).collect();
        for (unknown, fitted) in self.unknowns.iter_mut().zip(all) {
            unknown.fitted = fitted;
        }
    }

    /// Scenarios and cases that are run, with `--quick` or in full.
    fn cases(&self, quick: bool) -> Result<BTreeSet<(String, String)>, ScenarioError> {
        let changes = Changes {
            quick,
            ..Changes::default()
        };
        let mut cases = BTreeSet::new();
        for scenario in &self.scenarios {
            let all = scenario.source.scenarios(&changes)?;
            cases.extend(all.into_iter().map(|case| (case.name, case.case)));
        }
        Ok(cases)
    }

    /// Returns true if figures show time series of a run: of a controller's first trial.
    fn shows_series_of(&self, job: &Job) -> bool {
        let mut mine = self.scenarios.iter().filter(|one| one.name == job.key.scenario);
        job.key.trial == 1 && mine.any(|one| one.series.contains(&job.key.case))
    }

    /// Claims of all rows, the fitted ones first.
    fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.fit.iter().chain(&self.judged)
    }
}

impl WorldsArgs {
    fn effort(&self, bed: &TestBed) -> Effort {
        let effort = if self.quick { bed.quick } else { bed.search };
        let worlds = self.worlds.map_or(effort.worlds, NonZeroUsize::get);
        Effort {
            worlds,
            judged: effort.judged.min(worlds),
        }
    }
}

/// Runs `lab worlds` and prints the outcome to `out`.
///
/// # Errors
/// If the test bed's file is wrong, the directory holds other results, runs fail or are stopped, or files cannot be
/// written.
pub(crate) fn run(args: &WorldsArgs, stop: &AtomicBool, out: &mut impl Write) -> Result<(), CommandError> {
    let bed = file::open(&args.test_bed)?;
    if args.show {
        return print(out, &text::describe(&bed));
    }
    let (effort, stages) = (args.effort(&bed), Stages::of(args.quick));
    let worlds = search::sample(&bed, effort, args.seed);
    if args.plan {
        return print(out, &cost::plan(&bed, stages, &worlds, effort.judged)?);
    }
    if args.shard.is_some() {
        return shard(args, &bed, stop, out);
    }
    let advice =
        "add --resume to keep them and make the missing runs, or choose another directory with --out";
    let store =
        Store::open(&args.out, args.resume).map_err(|error| CommandError::store(&args.out, error, advice))?;
    let mut runner = Runner {
        store: store.with_series_by_hash(),
        ledger: Ledger::default(),
        failed: Vec::new(),
        made: 0,
        directory: &args.out,
        threads: args.jobs,
        stop,
    };
    let outcome = Search::new(&bed, stages, worlds, &mut runner)?.run(effort.judged)?;
    let figures = Figures::of(&bed, &outcome);
    output::write(args, &bed, &outcome, &figures)?;
    let Runner {
        store,
        ledger,
        failed,
        ..
    } = runner;
    let stored = |error| CommandError::store(&args.out, error, advice);
    for scenario in &bed.scenarios {
        for case in scenario.source.scenarios(&Changes::default())?.iter().take(1) {
            store.add_scenario(case).map_err(stored)?;
        }
    }
    let all = ledger.order.len();
    store.finish(ledger.order.iter()).map_err(stored)?;
    print(out, &text::summary(&bed, &outcome, &figures))?;
    print(
        out,
        &format!(
            "Every world is a line of {}\n",
            args.out.join(output::LINES).display()
        ),
    )?;
    if failed.is_empty() {
        Ok(())
    } else {
        Err(CommandError::Runs { failed, all })
    }
}

/// Makes a shard of the runs of the random sample, the stage that takes longest.
fn shard(
    args: &WorldsArgs,
    bed: &TestBed,
    stop: &AtomicBool,
    out: &mut impl Write,
) -> Result<(), CommandError> {
    let effort = args.effort(bed);
    let worlds = search::sample(bed, effort, args.seed);
    let (mut instances, mut ledger, mut jobs) = (Instances::default(), Ledger::default(), Vec::new());
    let length = Stages::of(args.quick).length(Stage::Sample);
    let needs = [Needs::of(&bed.fit), Needs::of(bed.claims())];
    let nominal = unknown::World::nominal(&bed.unknowns);
    for (number, world) in std::iter::once(&nominal).chain(&worlds).enumerate() {
        let needs = &needs[usize::from(number <= effort.judged)];
        let runs = instances.runs(bed, world, needs, length)?;
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

fn print(out: &mut impl Write, text: &str) -> Result<(), CommandError> {
    out.write_all(text.as_bytes()).map_err(CommandError::Print)
}

#[cfg(test)]
mod tests;
