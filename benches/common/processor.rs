//! Runs a task on one processor and measures its CPU time. Benchmarks include this file by its path.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Keeps this thread on one processor.
#[cfg(target_os = "linux")]
fn stay_on(processor: usize) {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(processor);
    // Fails on a machine with fewer processors, where tasks share them.
    let _ = sched_setaffinity(None, &set);
}

#[cfg(not(target_os = "linux"))]
fn stay_on(_: usize) {}

/// Runs `task` on this thread and `processor`.
pub(crate) fn run<T>(processor: usize, task: impl Future<Output = T>) -> T {
    stay_on(processor);
    let tokio = tokio::runtime::Builder::new_current_thread().enable_all().build();
    tokio.unwrap().block_on(task)
}

/// CPU time that this thread has used so far.
pub(crate) fn used() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ThreadCPUTime)).unwrap()
}
