//! `lab demo`: one title over one path under several controllers, side by side over real UDP.
//!
//! Every controller has its own `video-server`, relay (as its path) and `video-client`. They all run in this process at
//! the same time and communicate over loopback sockets. The results are an ordinary directory of results with one trial
//! of the scenario `demo`: rows, time series, the scenario's text, the page of `lab report` and the explanation. The
//! same sessions in virtual time, with many seeds, show whether this machine was too busy for a valid result.

mod args;
mod explain;
mod output;
mod progress;
mod scenario;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use playrate_units::Bytes;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use args::DemoArgs;

use crate::controllers::short_name;
use crate::error::CommandError;
use crate::live::{Attempt, ControllerComparison, MetricComparison, Rule, simulate_all};
use crate::report::{self, EXPLANATION, ReportArgs};
use crate::result::{BULK, Row, SessionOutcome, Store, series_files};
use crate::run::{Job, plan};
use crate::scenario::Scenario;
use crate::sim::{self, RunHandle, SimError, Simulated, StatusCell};
use explain::Explanation;
use progress::SessionsDisplay;

/// Advice about a directory with results of other runs.
const ADVICE: &str = "choose another directory with --out";

/// Maximum duration of a session. On a slow path the title might take for ever.
const LONGEST: Duration = Duration::from_secs(120);

/// Number of seeds in virtual time. The first is the demo's own. All together take a second or two.
const SEEDS: u32 = 10;

/// Results of the demo.
#[derive(Debug)]
pub struct DemoReport {
    args: DemoArgs,
    scenario: Arc<Scenario>,
    /// Size of the queue before the bottleneck.
    queue: Bytes,
    /// One run per controller, in the order of the arguments.
    runs: Vec<DemoRun>,
    /// Each run compared with its virtual runs; empty if these failed or the demo was stopped before their end.
    comparisons: Vec<ControllerComparison>,
    /// Throughput of a download that shares a link with the viewer, for each run, in virtual time only; empty as above.
    downloads: Vec<Option<MetricComparison>>,
}

/// Results of one controller.
#[derive(Debug)]
struct DemoRun {
    row: Row,
    run: Simulated,
    /// Lateness of the relay, and reasons why the path was not as requested.
    attempt: Attempt,
}

impl DemoRun {
    /// The outcome of the session in one word.
    fn outcome(&self) -> &'static str {
        match self.row.outcome {
            SessionOutcome::Complete => "complete",
            SessionOutcome::Stopped => "stopped",
            SessionOutcome::Failed => "FAILED",
        }
    }
}

impl DemoReport {
    /// Returns true if every session ran to its end or was stopped on purpose.
    pub fn succeeded(&self) -> bool {
        self.runs
            .iter()
            .all(|run| run.row.outcome != SessionOutcome::Failed)
    }
}

/// Plays the embedded title according to `args`, shows progress on stderr, writes the results and prints them to `out`
/// as a table or as JSON. Cancelling `stop` ends the sessions early, or their comparison with virtual time; the results
/// so far are still reported.
///
/// # Errors
/// If the path cannot be built, a component cannot be set up, or the results cannot be written. A failed session is
/// part of the results.
pub async fn run(
    args: &DemoArgs,
    stop: &CancellationToken,
    out: &mut impl Write,
) -> Result<DemoReport, CommandError> {
    let (scenario, shared) = (Arc::new(scenario::scenario(args)?), scenario::shared(args)?);
    let queue = scenario::queue(&scenario);
    // Checked before any run, so that no results are lost.
    let save_error = |error: io::Error| match error.kind() {
        io::ErrorKind::AlreadyExists => CommandError::store(&args.out, error, ADVICE),
        _ => CommandError::cannot_write(&args.out, &error),
    };
    Store::check_replaceable(&args.out, &scenario.name).map_err(save_error)?;
    if !args.json {
        output::announce(&scenario, args, queue);
    }
    let runs = play_all(&scenario, args.json, stop).await?;
    let own = Scenario::clone(&scenario);
    let comparisons = compare(&runs, simulate("the comparison", own, stop).await);
    let downloads = downloads(simulate("the shared links", shared, stop).await);
    let store = Store::replace(&args.out, &scenario.name).map_err(save_error)?;
    let demo = DemoReport {
        args: args.clone(),
        scenario,
        queue,
        runs,
        comparisons,
        downloads,
    };
    let explanation = Explanation::of(&demo);
    save(&demo, &explanation, store).map_err(save_error)?;
    let page = report::write(&ReportArgs {
        directories: vec![args.out.clone()],
        baseline: None,
        out: None,
    })?;
    let printed = if args.json {
        output::print_json(&demo, &explanation, &page, out)
    } else {
        output::print(&demo, &explanation, out)
            .and_then(|()| writeln!(out, "\nThe full report, with curves: {}", page.display()))
    };
    printed.map_err(CommandError::Print)?;
    Ok(demo)
}

/// Writes rows, time series, scenario and explanation.
fn save(demo: &DemoReport, explanation: &Explanation, mut store: Store) -> io::Result<()> {
    store.add_scenario(&demo.scenario)?;
    store.add_text(EXPLANATION, &explanation.text(usize::MAX))?;
    for run in &demo.runs {
        store.add(vec![run.row.clone()])?;
        for (name, text) in series_files(&run.row.key, &run.run) {
            store.add_series(&name, &text)?;
        }
    }
    store.finish(demo.runs.iter().map(|run| &run.row.key))
}

/// Plays the title under all controllers at once, until `stop` is cancelled; `quiet` hides progress.
async fn play_all(
    scenario: &Arc<Scenario>,
    quiet: bool,
    stop: &CancellationToken,
) -> Result<Vec<DemoRun>, CommandError> {
    let jobs = plan(&[Arc::clone(scenario)]);
    let statuses: Vec<StatusCell> = jobs.iter().map(|_| StatusCell::default()).collect();
    let specs: Vec<String> = jobs.iter().map(|job| short_name(&job.key.controller)).collect();
    let handle = RunHandle::child_of(stop);
    let mut sessions = JoinSet::new();
    for (index, (job, status)) in jobs.into_iter().zip(&statuses).enumerate() {
        let (status, handle) = (status.clone(), Arc::clone(&handle));
        sessions.spawn(async move { (index, play(job, status, &handle).await) });
    }
    let mut display = SessionsDisplay::new(specs.into_iter().zip(statuses).collect(), quiet);
    let runs = sim::ticking(sim::join_all(&mut sessions), || display.refresh()).await;
    display.finish();
    Ok(runs?)
}

/// Plays the title under the controller of `job`.
async fn play(job: Job, status: StatusCell, handle: &Arc<RunHandle>) -> Result<DemoRun, SimError> {
    let controller = job.controller.as_ref();
    let controller = controller.ok_or_else(|| SimError::setup("a session", &"it has no controller"))?;
    let setup = job.scenario.setup(controller, job.key.seed);
    let live = sim::run_live(&setup, &[status], handle).await?;
    let row = Row::of_run(&job.scenario, &job.key, &live.run).into_iter().next();
    let row = row.ok_or_else(|| SimError::setup("a session", &"it has no viewer"))?;
    Ok(DemoRun {
        row,
        attempt: Attempt::of(&live.relay),
        run: live.run,
    })
}

/// The rows of `scenario` in virtual time with [`SEEDS`] seeds, for each controller. If a run fails or is stopped,
/// there are none, and stderr says that `purpose` is left out.
async fn simulate(purpose: &str, mut scenario: Scenario, stop: &CancellationToken) -> Vec<Vec<Vec<Row>>> {
    if stop.is_cancelled() {
        return Vec::new();
    }
    // A closed stderr is not an error.
    let _ = writeln!(
        io::stderr(),
        "{SEEDS} seeds in virtual time for {purpose}. Ctrl-C leaves it out."
    );
    scenario.trials = SEEDS;
    simulate_all(&Arc::new(scenario), stop)
        .await
        .unwrap_or_else(|error| {
            let _ = writeln!(io::stderr(), "without {purpose}: {error}");
            Vec::new()
        })
}

/// Each of `runs` compared with its controller's virtual runs, if there are any.
fn compare(runs: &[DemoRun], virtual_runs: Vec<Vec<Vec<Row>>>) -> Vec<ControllerComparison> {
    let compared = runs.iter().zip(virtual_runs).map(|(run, virtual_runs)| {
        let attempts = vec![run.attempt.clone()];
        let controller = run.row.key.controller.clone();
        ControllerComparison::new(controller, attempts, vec![run.row.clone()], virtual_runs)
    });
    compared.collect()
}

/// Throughput of the downloads in the runs of each controller.
fn downloads(mut shared_runs: Vec<Vec<Vec<Row>>>) -> Vec<Option<MetricComparison>> {
    for rows in shared_runs.iter_mut().flatten() {
        rows.retain(|row| row.role == BULK);
    }
    let each = shared_runs.iter();
    each.map(|runs| MetricComparison::of("throughput_bps", Rule::Shown, &[], runs))
        .collect()
}
