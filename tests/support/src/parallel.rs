//! Work on several threads.

use std::num::NonZeroUsize;
use std::sync::Mutex;
use std::thread;

/// Calls `run` for all `jobs` on this number of threads, by default one for each processor. Returns the results in the
/// order of the jobs.
pub fn in_parallel<J, R: Send>(
    jobs: impl IntoIterator<Item = J, IntoIter: Send>,
    threads: Option<NonZeroUsize>,
    run: impl Fn(J) -> R + Sync,
) -> Vec<R> {
    let threads = threads.or_else(|| thread::available_parallelism().ok());
    let (jobs, done) = (Mutex::new(jobs.into_iter().enumerate()), Mutex::new(Vec::new()));
    // Releases the lock before the job runs.
    let next = || jobs.lock().unwrap().next();
    thread::scope(|scope| {
        for _ in 0..threads.map_or(1, NonZeroUsize::get) {
            scope.spawn(|| {
                while let Some((index, job)) = next() {
                    let result = run(job);
                    done.lock().unwrap().push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
