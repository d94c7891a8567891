//! Runs tasks on one thread, in the order in which they were woken.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};

pub(super) type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Locks a mutex that is never contended for long: a simulation runs on one thread at a time. A panic in a
/// task has already ended the run, so poisoning carries no information.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type ReadyQueue = Mutex<VecDeque<Arc<Task>>>;

/// Something that is polled when it is woken; its wakers point here.
pub(super) struct Task {
    /// Its number among the spawned; `None` for the future of the run itself, which the run polls.
    number: Option<u64>,
    future: Mutex<Option<BoxedTask>>,
    queued: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let ready = Arc::clone(&self.ready);
            lock(&ready).push_back(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.ready).push_back(Arc::clone(self));
        }
    }
}

/// The tasks of one simulation and the queue of those that want to run.
#[derive(Default)]
pub(super) struct Executor {
    live: Mutex<LiveTasks>,
    ready: Arc<ReadyQueue>,
}

/// Spawned tasks that have not finished.
#[derive(Default)]
struct LiveTasks {
    tasks: BTreeMap<u64, Arc<Task>>,
    next: u64,
}

impl Executor {
    fn task(&self, number: Option<u64>, future: Option<BoxedTask>) -> Arc<Task> {
        let ready = Arc::clone(&self.ready);
        Arc::new(Task {
            number,
            future: Mutex::new(future),
            queued: AtomicBool::new(false),
            ready,
        })
    }

    pub(super) fn spawn(&self, future: BoxedTask) {
        let mut live = lock(&self.live);
        let number = live.next;
        live.next += 1;
        let task = self.task(Some(number), Some(future));
        live.tasks.insert(number, Arc::clone(&task));
        drop(live);
        task.wake();
    }

    /// The task that stands for a run's own future; it is ready at once.
    pub(super) fn main(&self) -> Waker {
        let task = self.task(None, None);
        task.wake_by_ref();
        Waker::from(task)
    }

    /// The task that was woken first.
    pub(super) fn next_ready(&self) -> Option<Arc<Task>> {
        let task = lock(&self.ready).pop_front()?;
        // Wake-ups from here on count anew.
        task.queued.store(false, Ordering::Relaxed);
        Some(task)
    }

    /// Polls a spawned task once; returns whether it was one. No lock of the executor is held meanwhile: the
    /// task may spawn and wake as it likes.
    pub(super) fn poll(&self, task: &Arc<Task>) -> bool {
        let Some(number) = task.number else { return false };
        let mut future = lock(&task.future);
        let Some(polled) = future.as_mut() else {
            return true;
        };
        let waker = Waker::from(Arc::clone(task));
        if polled.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
            let finished = future.take();
            drop(future);
            // What it owns may spawn or wake on its way out, so it goes while no lock is held.
            drop(finished);
            lock(&self.live).tasks.remove(&number);
        }
        true
    }

    /// Number of tasks that have not finished.
    pub(super) fn live(&self) -> usize {
        lock(&self.live).tasks.len()
    }

    /// Drops every task, and those which they spawn on their way out.
    pub(super) fn clear(&self) {
        loop {
            let tasks = core::mem::take(&mut lock(&self.live).tasks);
            if tasks.is_empty() {
                break;
            }
            for task in tasks.values() {
                let future = lock(&task.future).take();
                drop(future);
            }
        }
        let ready = core::mem::take(&mut *lock(&self.ready));
        drop(ready);
    }
}

impl core::fmt::Debug for Executor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Executor")
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}
