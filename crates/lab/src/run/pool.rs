//! Does jobs on all cores. Each is a simulation of its own, so they share nothing but the queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::args::SeriesOf;
use super::plan::Job;
use super::row::Row;
use super::series;
use crate::sim::{self, SimError, Watch};

/// How often the owner is asked whether to go on, and told how far the runs are.
const TICK: Duration = Duration::from_millis(100);

/// A job that is over.
#[derive(Debug)]
pub struct Done {
    /// Its place in the plan.
    pub index: usize,
    /// Its rows, or why there are none.
    pub result: Result<Vec<Row>, String>,
    /// Its time series by file name, if they were asked for.
    pub series: Vec<(String, String)>,
}

/// How a pool works.
#[derive(Clone, Copy, Debug)]
pub struct PoolOptions {
    /// How many jobs at once.
    pub threads: usize,
    /// Of which jobs time series are kept.
    pub series: Option<SeriesOf>,
}

/// Does `jobs`, and calls `done` with each that is over and `tick` ten times a second with the bytes received by those
/// that are running. When `tick` says `false`, no more are begun, and those that are running are given up.
pub fn work(
    jobs: &[(usize, &Job)],
    options: PoolOptions,
    mut done: impl FnMut(Done),
    mut tick: impl FnMut(u64) -> bool,
) {
    let next = AtomicUsize::new(0);
    let watches: Vec<Mutex<Arc<Watch>>> = (0..options.threads.max(1)).map(|_| Mutex::default()).collect();
    let (sender, results) = channel();
    std::thread::scope(|scope| {
        for watch in &watches {
            let (sender, next) = (sender.clone(), &next);
            scope.spawn(move || {
                while let Some(&(index, job)) = jobs.get(next.fetch_add(1, Relaxed)) {
                    let fresh = Arc::new(Watch::default());
                    *lock(watch) = Arc::clone(&fresh);
                    let Some(over) = perform(index, job, options, &fresh) else {
                        break;
                    };
                    // The bytes of a finished job are counted by its weight.
                    *lock(watch) = Arc::default();
                    if sender.send(over).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        attend(&results, &watches, &next, jobs.len(), &mut done, &mut tick);
    });
}

fn lock(watch: &Mutex<Arc<Watch>>) -> std::sync::MutexGuard<'_, Arc<Watch>> {
    watch.lock().unwrap_or_else(PoisonError::into_inner)
}

fn attend(
    results: &Receiver<Done>,
    watches: &[Mutex<Arc<Watch>>],
    next: &AtomicUsize,
    jobs: usize,
    done: &mut impl FnMut(Done),
    tick: &mut impl FnMut(u64) -> bool,
) {
    loop {
        match results.recv_timeout(TICK) {
            Ok(over) => done(over),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        let running = watches.iter().map(|watch| lock(watch).received()).sum();
        if !tick(running) {
            next.store(jobs, Relaxed);
            for watch in watches {
                lock(watch).stop();
            }
        }
    }
}

/// Does one job; `None` if it was given up.
fn perform(index: usize, job: &Job, options: PoolOptions, watch: &Arc<Watch>) -> Option<Done> {
    let series = options.series.is_some_and(|of| of.takes(job.key.trial));
    let made = catch_unwind(AssertUnwindSafe(|| make(job, series, watch)));
    let (result, series) = match made {
        Ok(Ok((rows, series))) => (Ok(rows), series),
        Ok(Err(SimError::Stopped)) => return None,
        Ok(Err(error)) => (Err(error.to_string()), Vec::new()),
        Err(_) => (
            Err("the run panicked; what it said is above".to_owned()),
            Vec::new(),
        ),
    };
    Some(Done {
        index,
        result,
        series,
    })
}

type Made = (Vec<Row>, Vec<(String, String)>);

fn make(job: &Job, series: bool, watch: &Arc<Watch>) -> Result<Made, SimError> {
    let scenario = &*job.scenario;
    let Some(controller) = &job.controller else {
        let rate = scenario.path.forward.rate.mean().unwrap_or_default();
        let ideal = sim::ideal(
            scenario.title.source().title(),
            rate,
            scenario.path.round_trip(),
            scenario.playout.clone(),
            scenario.viewers.leaves_after,
        )
        .map_err(|error| SimError::setup("the player", &error))?;
        return Ok((vec![Row::of_ideal(scenario, &job.key, &ideal)], Vec::new()));
    };
    let mut setup = scenario.setup(controller, job.key.seed);
    setup.taps = series;
    let run = sim::run_watched(&setup, watch)?;
    let files = if series {
        series::files(&job.key, &run)
    } else {
        Vec::new()
    };
    Ok((Row::of_run(scenario, &job.key, &run), files))
}
