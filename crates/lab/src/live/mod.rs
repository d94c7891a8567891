//! `lab demo scenario`: runs a scenario over real UDP through the relay and compares it with virtual time.
//!
//! The same code ([`crate::sim`]) makes both; they differ in the clock, the sockets and the program that applies the
//! path's model. A live run agrees if its throughput is within 5 % of the virtual reference run, which has the same
//! seed, and its discarded frames and underflows are in the range of virtual runs with many seeds. Throughput is
//! compared with the reference run and not with the mean: both paths lose the same packets at random, and other seeds
//! may differ by more than 5 % among themselves. If the relay's lateness may have changed the result of a live run, the
//! run is invalid and is repeated; the last attempt is shown without a verdict.

mod args;
mod choice;
mod compare;
mod output;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playrate_units::rounded::time;
use tokio_util::sync::CancellationToken;

pub use args::LiveArgs;
pub(crate) use compare::SeedsVerdict;
pub use compare::{Attempt, COMPARED, ControllerComparison, MetricComparison, Rule};
pub use output::LiveReport;

use crate::controllers::Controller;
use crate::error::CommandError;
use crate::result::Row;
use crate::run::{Job, ProgressDisplay, plan, work};
use crate::scenario::Scenario;
use crate::sim::{self, LiveRun, RunHandle, SimError};
use crate::words::count;

/// Maximum number of attempts at a valid live run.
const ATTEMPTS: usize = 4;

/// Makes the runs of `args`, shows progress on stderr, writes the report and prints it to `out`. When `stop` is
/// cancelled, the current run is abandoned and the finished controllers are reported.
///
/// # Errors
/// See [`CommandError`]. A disagreement between live and virtual runs is not an error but part of the report.
pub async fn run(
    args: &LiveArgs,
    stop: &CancellationToken,
    out: &mut impl Write,
) -> Result<LiveReport, CommandError> {
    let scenario = choice::scenario(args)?;
    output::prepare(&args.out)?;
    announce(&scenario);
    let simulated = simulate_all(&scenario, stop).await?;
    let comparisons = compare_all(&scenario, simulated, stop).await?;
    if comparisons.is_empty() {
        return Err(SimError::Stopped.into());
    }
    let left = scenario.controllers.iter().skip(comparisons.len());
    let not_run: Vec<_> = left.map(ToString::to_string).collect();
    let report = LiveReport {
        format: output::FORMAT.to_owned(),
        version: output::VERSION,
        program: env!("CARGO_PKG_VERSION").to_owned(),
        scenario: scenario.name.clone(),
        case: scenario.case.clone(),
        scenario_hash: scenario.hash.clone(),
        watching_s: scenario.viewers.leaves_after.unwrap_or_default().as_secs_f64(),
        seed: scenario.seed,
        trials: scenario.trials,
        agrees: not_run.is_empty() && comparisons.iter().all(|compared| compared.agrees == Some(true)),
        comparisons,
        not_run,
    };
    let (path, json) = output::save(&report, &args.out)?;
    let printed = if args.json {
        out.write_all(json.as_bytes())
    } else {
        writeln!(out, "{}Every run is in {}", report.text(), path.display())
    };
    printed.map_err(CommandError::Print)?;
    Ok(report)
}

/// Announces the runs and their duration on stderr.
fn announce(scenario: &Scenario) {
    let one = choice::length(scenario);
    let number = u32::try_from(scenario.controllers.len()).unwrap_or(u32::MAX);
    let virtual_runs = u64::from(number) * u64::from(scenario.trials);
    // A closed stderr is not an error.
    let _ = writeln!(
        io::stderr(),
        "{}: {} live over UDP, up to {} each, {} in all; before that, {} in virtual time. Ctrl-C stops.",
        scenario.full_name(),
        count(number.into(), "controller", "controllers"),
        time(one),
        time(one.saturating_mul(number)),
        count(virtual_runs, "run", "runs"),
    );
}

/// The virtual runs of each controller, in scenario order.
pub(crate) async fn simulate_all(
    scenario: &Arc<Scenario>,
    stop: &CancellationToken,
) -> Result<Vec<Vec<Vec<Row>>>, CommandError> {
    let jobs = plan(&[Arc::clone(scenario)]);
    let trials = scenario.trials.max(1) as usize;
    let stop = stop.clone();
    let rows = tokio::task::spawn_blocking(move || simulate(&jobs, &stop))
        .await
        .map_err(|error| SimError::setup("the virtual runs", &error))??;
    Ok(rows.chunks(trials).map(<[_]>::to_vec).collect())
}

/// The rows of each job, in order.
fn simulate(jobs: &[Job], stop: &CancellationToken) -> Result<Vec<Vec<Row>>, CommandError> {
    let mut all: Vec<Vec<Row>> = vec![Vec::new(); jobs.len()];
    let mut failed = Vec::new();
    let jobs: Vec<&Job> = jobs.iter().collect();
    work(&jobs, None, stop, |index, result| match result {
        Ok(results) => all[index] = results.rows,
        Err(why) => failed.push(why),
    });
    if stop.is_cancelled() {
        return Err(SimError::Stopped.into());
    }
    if failed.is_empty() {
        Ok(all)
    } else {
        let all = jobs.len();
        Err(CommandError::Runs { failed, all })
    }
}

/// Runs the controllers live one after another, so that they do not compete for the processor.
async fn compare_all(
    scenario: &Arc<Scenario>,
    simulated: Vec<Vec<Vec<Row>>>,
    stop: &CancellationToken,
) -> Result<Vec<ControllerComparison>, CommandError> {
    let jobs = plan(&[Arc::clone(scenario)]);
    let number = scenario.controllers.len();
    let mut runner = LiveRunner {
        scenario,
        display: ProgressDisplay::new(number, millis(choice::length(scenario)) * number as u64),
        done: 0,
        stop,
    };
    let mut comparisons = Vec::new();
    // The live run corresponds to the first trial.
    let firsts = jobs.iter().step_by(scenario.trials.max(1) as usize);
    for ((controller, virtual_runs), job) in scenario.controllers.iter().zip(simulated).zip(firsts) {
        let Some((attempts, last)) = runner.attempt(controller, job.key.seed).await? else {
            break;
        };
        let live = Row::of_run(scenario, &job.key, &last.run);
        let name = controller.to_string();
        comparisons.push(ControllerComparison::new(name, attempts, live, virtual_runs));
        runner.done += 1;
    }
    runner.display.finish();
    Ok(comparisons)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Makes live runs one after another.
struct LiveRunner<'a> {
    scenario: &'a Arc<Scenario>,
    display: ProgressDisplay,
    done: usize,
    stop: &'a CancellationToken,
}

impl LiveRunner<'_> {
    /// Runs `controller` live until a run is valid, at most [`ATTEMPTS`] times. Returns all attempts and the last run;
    /// `None` if stopped.
    async fn attempt(
        &mut self,
        controller: &Controller,
        seed: u64,
    ) -> Result<Option<(Vec<Attempt>, LiveRun)>, CommandError> {
        let rehearsal = Arc::new(RunHandle::default());
        let begins = {
            let (scenario, controller) = (Arc::clone(self.scenario), controller.clone());
            tokio::task::spawn_blocking(move || scenario.rehearsed(&controller, seed, &rehearsal))
        };
        let begins = begins
            .await
            .map_err(|error| SimError::setup("the rehearsal", &error))??;
        let setup = self.scenario.setup(&begins, seed).without_taps();
        let mut attempts = Vec::new();
        let before = millis(choice::length(self.scenario)) * self.done as u64;
        loop {
            let (handle, began) = (RunHandle::child_of(self.stop), Instant::now());
            let tick = || self.display.show(self.done, before + millis(began.elapsed()));
            let live = sim::ticking(sim::run_live(&setup, &[], &handle), tick).await?;
            if self.stop.is_cancelled() {
                return Ok(None);
            }
            let attempt = Attempt::of(&live.relay);
            let valid = attempt.flaws.is_empty();
            attempts.push(attempt);
            if !valid {
                self.display.note(&invalid(controller, &attempts));
            }
            if valid || attempts.len() == ATTEMPTS {
                return Ok(Some((attempts, live)));
            }
        }
    }
}

/// The reason why the last attempt is invalid.
fn invalid(controller: &Controller, attempts: &[Attempt]) -> String {
    let why = attempts.last().map(|attempt| attempt.flaws.join("; "));
    let next = if attempts.len() < ATTEMPTS {
        "trying again"
    } else {
        "giving up"
    };
    format!(
        "{controller}: live run {} of at most {ATTEMPTS} is invalid, {next}: {}",
        attempts.len(),
        why.unwrap_or_default()
    )
}
