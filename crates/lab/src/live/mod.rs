//! `lab live`: a scenario over real UDP through the relay, beside the same in virtual time.
//!
//! Both are made by the same code ([`crate::sim`]); what differs is the clock, the sockets and who asks the path's model. A
//! live run agrees if its throughput is within 5 % of that of its twin, the virtual run with the same seed, and its picture
//! discards and underflows are in the range of virtual runs with many seeds. The twin and not the mean, because the paths
//! of both lose the same packets at random, and other seeds may differ by more than 5 % among themselves. A live run in
//! which the relay was too late is not believed and made again; the last is played to its end all the same, to be shown
//! without a verdict.

mod args;
mod choice;
mod compare;
mod error;
mod output;

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use playrate_transport::ControllerChoice;

pub use args::LiveArgs;
pub use compare::{Attempt, COMPARED, Comparison, Measured, Rule, TOLERANCE};
pub use error::LiveError;
pub use output::{FORMAT, LiveReport, VERSION};

use crate::run::{Display, Job, PoolOptions, Row, plan, work};
use crate::scenario::Scenario;
use crate::sim::{self, Live, LiveOptions, Watch};
use crate::words::{count, time};

/// How often a live run is made at most: once, and three times again.
const ATTEMPTS: usize = 4;
/// How often progress is shown.
const REFRESH: Duration = Duration::from_millis(100);

/// Makes the runs that `args` ask for, shows progress on stderr, writes the report and prints it to `out`. When `stop`
/// becomes true, the run that goes on is given up, and the controllers that are done are reported.
///
/// # Errors
/// See [`LiveError`]. That live and virtual disagree is no error but part of the report.
pub async fn run(
    args: &LiveArgs,
    stop: &Arc<AtomicBool>,
    out: &mut impl Write,
) -> Result<LiveReport, LiveError> {
    let scenario = choice::scenario(args)?;
    output::prepare(&args.out)?;
    announce(&scenario);
    let simulated = simulate_all(&scenario, stop).await?;
    let comparisons = compare_all(&scenario, simulated, stop).await?;
    if comparisons.is_empty() {
        return Err(LiveError::Stopped);
    }
    let left = scenario.controllers.iter().skip(comparisons.len());
    let not_run: Vec<_> = left.map(ToString::to_string).collect();
    let report = LiveReport {
        format: FORMAT.to_owned(),
        version: VERSION,
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
    printed.map_err(LiveError::Print)?;
    Ok(report)
}

/// Says on stderr what is about to happen, and how long it takes.
fn announce(scenario: &Scenario) {
    let one = choice::length(scenario);
    let number = u32::try_from(scenario.controllers.len()).unwrap_or(u32::MAX);
    let virtual_runs = u64::from(number) * u64::from(scenario.trials);
    // Nobody is left to be told if stderr is closed.
    let _ = writeln!(
        std::io::stderr(),
        "{}: {} live over UDP, up to {} each, {} in all; before that, {} in virtual time. Ctrl-C stops.",
        scenario.full_name(),
        count(number.into(), "controller", "controllers"),
        time(one),
        time(one.saturating_mul(number)),
        count(virtual_runs, "run", "runs"),
    );
}

/// The virtual runs of each controller, in the scenario's order.
async fn simulate_all(
    scenario: &Arc<Scenario>,
    stop: &Arc<AtomicBool>,
) -> Result<Vec<Vec<Vec<Row>>>, LiveError> {
    let jobs = plan(&[Arc::clone(scenario)]);
    let trials = scenario.trials.max(1) as usize;
    let asked = Arc::clone(stop);
    let rows = tokio::task::spawn_blocking(move || simulate(&jobs, &asked))
        .await
        .map_err(|error| LiveError::Virtual(error.to_string()))??;
    Ok(rows.chunks(trials).map(<[_]>::to_vec).collect())
}

/// The rows of each job, in order.
fn simulate(jobs: &[Job], stop: &AtomicBool) -> Result<Vec<Vec<Row>>, LiveError> {
    let options = PoolOptions {
        threads: std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get),
        series: None,
    };
    let todo: Vec<_> = jobs.iter().enumerate().collect();
    let mut display = Display::new(jobs.len(), jobs.iter().map(Job::weight).sum());
    let done = std::cell::Cell::new((0, 0));
    let mut all: Vec<Vec<Row>> = vec![Vec::new(); jobs.len()];
    let mut failed = Vec::new();
    work(
        &todo,
        options,
        |over| {
            let (runs, weight) = done.get();
            done.set((runs + 1, weight + jobs.get(over.index).map_or(0, Job::weight)));
            match (over.result, all.get_mut(over.index)) {
                (Ok(rows), Some(place)) => *place = rows,
                (Err(why), _) => failed.push(why),
                (Ok(_), None) => {}
            }
        },
        |running| {
            let (runs, weight) = done.get();
            display.show(runs, weight + running);
            !stop.load(Relaxed)
        },
    );
    display.finish();
    if stop.load(Relaxed) {
        return Err(LiveError::Stopped);
    }
    if failed.is_empty() {
        Ok(all)
    } else {
        Err(LiveError::Virtual(failed.join("; ")))
    }
}

/// Every controller live, one after the other, so that none takes the processor from another.
async fn compare_all(
    scenario: &Arc<Scenario>,
    simulated: Vec<Vec<Vec<Row>>>,
    stop: &AtomicBool,
) -> Result<Vec<Comparison>, LiveError> {
    let jobs = plan(&[Arc::clone(scenario)]);
    let number = scenario.controllers.len();
    let mut stage = Stage {
        scenario,
        display: Display::new(number, millis(choice::length(scenario)) * number as u64),
        done: 0,
        stop,
    };
    let mut comparisons = Vec::new();
    // The live run is that of the first trial.
    let firsts = jobs.iter().step_by(scenario.trials.max(1) as usize);
    for ((controller, virtual_runs), job) in scenario.controllers.iter().zip(simulated).zip(firsts) {
        let Some((attempts, live)) = stage.attempt(controller, job).await? else {
            break;
        };
        comparisons.push(Comparison::new(
            controller.to_string(),
            attempts,
            live,
            virtual_runs,
        ));
        stage.done += 1;
    }
    stage.display.finish();
    Ok(comparisons)
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The live runs so far.
struct Stage<'a> {
    scenario: &'a Scenario,
    display: Display,
    done: usize,
    stop: &'a AtomicBool,
}

/// What came of a controller's attempts: how each went, and the rows of the last.
type Attempted = (Vec<Attempt>, Vec<Row>);

impl Stage<'_> {
    /// Runs `controller` live until a run can be believed, or often enough; `None` if it was stopped.
    async fn attempt(
        &mut self,
        controller: &ControllerChoice,
        job: &Job,
    ) -> Result<Option<Attempted>, LiveError> {
        let mut attempts = Vec::new();
        loop {
            let last = attempts.len() + 1 == ATTEMPTS;
            let Some(live) = self.once(controller, job.key.seed, !last).await? else {
                return Ok(None);
            };
            let flaws: Vec<String> = live.flaws();
            let valid = flaws.is_empty();
            attempts.push(Attempt {
                lateness_max_s: live.relay.totals.lateness.max.as_secs_f64(),
                lateness_mean_s: live.relay.totals.lateness.mean.as_secs_f64(),
                flaws,
            });
            if !valid {
                self.display.note(&blame(controller, &attempts));
            }
            if valid || last {
                return Ok(Some((attempts, Row::of_run(self.scenario, &job.key, &live.run))));
            }
        }
    }

    /// One live run; `None` if it was stopped.
    async fn once(
        &mut self,
        controller: &ControllerChoice,
        seed: u64,
        stop_when_late: bool,
    ) -> Result<Option<Live>, LiveError> {
        let mut setup = self.scenario.setup(controller, seed);
        setup.taps = false;
        let options = LiveOptions {
            stop_when_late,
            ..LiveOptions::default()
        };
        let watch = Arc::new(Watch::default());
        let began = Instant::now();
        let before = millis(choice::length(self.scenario)) * self.done as u64;
        let mut tick = tokio::time::interval(REFRESH);
        let mut run = std::pin::pin!(sim::run_live(&setup, options, &watch));
        loop {
            tokio::select! {
                biased;
                live = &mut run => {
                    return Ok((!self.stop.load(Relaxed)).then_some(live?));
                }
                _ = tick.tick() => {
                    self.display.show(self.done, before + millis(began.elapsed()));
                    if self.stop.load(Relaxed) {
                        watch.stop();
                    }
                }
            }
        }
    }
}

/// Says why the last attempt does not count.
fn blame(controller: &ControllerChoice, attempts: &[Attempt]) -> String {
    let why = attempts.last().map(|attempt| attempt.flaws.join("; "));
    let next = if attempts.len() < ATTEMPTS {
        "once more"
    } else {
        "no more"
    };
    format!(
        "{controller}: live run {} of at most {ATTEMPTS} does not count, {next}: {}",
        attempts.len(),
        why.unwrap_or_default()
    )
}
