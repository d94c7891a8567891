//! [`Job`]: one run to be made. Results are written in the order of the plan. All cores work on the jobs; each job is a
//! separate simulation, and jobs share only the queue.

use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::ValueEnum;
use tokio_util::sync::CancellationToken;

use super::progress::ProgressDisplay;
use crate::controllers::Controller;
use crate::result::{IDEAL, ResultKey, Row, Store, series_files};
use crate::scenario::{Scenario, TrialValues, Vary};
use crate::sim::{self, RunHandle, SimError, Viewer};

/// Interval of progress reports.
const TICK: Duration = Duration::from_millis(100);

/// One run to be made.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) scenario: Arc<Scenario>,
    /// Controller of the viewers; `None` for the ideal sender.
    pub(crate) controller: Option<Controller>,
    pub(crate) key: ResultKey,
    /// True if the run keeps time series.
    pub(crate) series: bool,
}

impl Job {
    /// Estimate of the work, in bytes to be received.
    pub(crate) fn weight(&self) -> u64 {
        if self.controller.is_none() {
            return 0;
        }
        let scenario = &self.scenario;
        let (viewers, title) = (&scenario.viewers, scenario.viewer.title.source());
        let rate = scenario.path.forward.rate.mean();
        let carried = |time: Duration| rate.map(|rate| (rate * time).as_u64());
        let of_title = viewers.leaves_after.and_then(carried);
        let of_title = of_title.map_or(title.len(), |bytes| bytes.min(title.len()));
        let rehearsals = u64::from(scenario.remembers_ssthresh);
        let of_titles = of_title.saturating_mul(viewers.count.into());
        // Bulk flows fill the link until the last viewer has finished, at least for the title's duration.
        let of_link = scenario.bulk.as_ref().and_then(|bulk| {
            let stay = title.title().duration();
            let stay = viewers.leaves_after.map_or(stay, |after| after.min(stay));
            let length = viewers.last_joins().saturating_add(stay);
            carried(length.max(bulk.stays.unwrap_or_default()))
        });
        of_titles
            .max(of_link.unwrap_or_default())
            .saturating_add(of_title * rehearsals)
    }

    /// Number of rows of the run.
    pub(crate) fn rows(&self) -> u32 {
        if self.controller.is_none() {
            1
        } else {
            self.scenario.flows()
        }
    }

    /// The run's rows in `store`, if all exist and come from this version of the program.
    pub(crate) fn stored<'a>(&self, store: &'a Store) -> Option<&'a [Row]> {
        store.rows(&self.key, self.rows())
    }
}

/// All runs of these scenarios, ordered by scenario, case, controller, and trial. Ideal rows come first. No run keeps
/// time series.
pub(crate) fn plan(scenarios: &[Arc<Scenario>]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for scenario in scenarios {
        let mut add = |controller: Option<&Controller>, trial: u32| {
            jobs.push(Job {
                scenario: Arc::clone(scenario),
                controller: controller.cloned(),
                key: ResultKey {
                    scenario: scenario.name.clone(),
                    case: scenario.case.clone(),
                    scenario_hash: scenario.hash.clone(),
                    controller: controller.map_or_else(|| IDEAL.to_owned(), ToString::to_string),
                    trial,
                    seed: scenario.seed_of(trial),
                },
                series: false,
            });
        };
        // The ideal link carries one flow at a constant rate.
        let alone = scenario.flows() == 1
            && scenario.viewer.titles_per_connection == 1
            && scenario.path.forward.cross_traffic.is_empty();
        if scenario.ideal && alone && scenario.path.forward.rate.mean().is_some() {
            // For the ideal sender, trials that do not vary are identical.
            let trials = match scenario.vary {
                Vary::Trials => scenario.trials,
                Vary::None => 1,
            };
            for trial in 1..=trials {
                add(None, trial);
            }
        }
        for controller in &scenario.controllers {
            for trial in 1..=scenario.trials {
                add(Some(controller), trial);
            }
        }
    }
    jobs
}

/// Results of a job.
#[derive(Debug)]
pub(crate) struct JobResults {
    pub(crate) rows: Vec<Row>,
    /// Time series by file name, if kept.
    pub(crate) series: Vec<(String, String)>,
}

/// Runs with time series to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeriesOf {
    /// The first trial of each controller.
    First,
    /// All trials of each controller.
    All,
}

impl SeriesOf {
    /// Returns true if it includes the time series of trial `trial`, counted from 1.
    pub(super) const fn takes(self, trial: u32) -> bool {
        matches!(self, Self::All) || trial == 1
    }
}

/// Runs `jobs`, `threads` at a time (`None` means the number of cores), and shows progress on stderr. Calls `done` with
/// the index of each finished job and its results or an error message. When `stop` is cancelled, no more jobs start and
/// the running ones are stopped.
pub(crate) fn work(
    jobs: &[&Job],
    threads: Option<NonZeroUsize>,
    stop: &CancellationToken,
    mut done: impl FnMut(usize, Result<JobResults, String>),
) {
    let mut display = ProgressDisplay::new(jobs.len(), jobs.iter().map(|job| job.weight()).sum());
    let (mut runs, mut weight) = (0, 0);
    let threads = threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let handles: Vec<_> = (0..threads).map(|_| RunHandle::child_of(stop)).collect();
    let (sender, results) = channel();
    std::thread::scope(|scope| {
        for handle in &handles {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while !stop.is_cancelled() {
                    let index = next.fetch_add(1, Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let Some(result) = perform(job, handle) else {
                        break;
                    };
                    // A finished job's weight accounts for its bytes.
                    handle.forget_received();
                    if sender.send((index, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        loop {
            match results.recv_timeout(TICK) {
                Ok((index, result)) => {
                    runs += 1;
                    weight += jobs.get(index).map_or(0, |job| job.weight());
                    done(index, result);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let running: u64 = handles.iter().map(|handle| handle.received()).sum();
            display.show(runs, weight + running);
        }
    });
    display.finish();
}

/// Runs one job; `None` if stopped.
fn perform(job: &Job, handle: &Arc<RunHandle>) -> Option<Result<JobResults, String>> {
    match catch_unwind(AssertUnwindSafe(|| make(job, handle))) {
        Ok(Err(SimError::Stopped)) => None,
        Ok(made) => Some(made.map_err(|error| error.to_string())),
        Err(_) => Some(Err("the run panicked; see the message above".to_owned())),
    }
}

fn make(job: &Job, handle: &Arc<RunHandle>) -> Result<JobResults, SimError> {
    let scenario = &*job.scenario;
    let Some(controller) = &job.controller else {
        let TrialValues { title, path, .. } = scenario.trial_values(job.key.seed);
        let rate = match path.forward.policer {
            // The ideal sender keeps within the policer's rate.
            Some(policer) if path.forward.rate.mean().is_none_or(|mean| mean > policer.rate) => {
                policer.rate.into()
            }
            _ => path.forward.rate.clone(),
        };
        let viewer = Viewer {
            title,
            ..scenario.viewer.clone()
        };
        let ideal = sim::ideal(&viewer, &rate, path.round_trip())?;
        return Ok(JobResults {
            rows: vec![Row::of_ideal(scenario, &job.key, &ideal)],
            series: Vec::new(),
        });
    };
    let controller = scenario.rehearsed(controller, job.key.seed, handle)?;
    let mut setup = scenario.setup(&controller, job.key.seed);
    setup.taps = job.series;
    let run = sim::run_with(&setup, handle)?;
    Ok(JobResults {
        rows: Row::of_run(scenario, &job.key, &run),
        series: if job.series {
            series_files(&job.key, &run)
        } else {
            Vec::new()
        },
    })
}
