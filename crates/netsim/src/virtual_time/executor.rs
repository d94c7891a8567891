//! Runs tasks on one thread, in the order in which they were woken.

use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

pub(super) type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A lock that nobody else ever holds for long: a simulation runs on one thread at a time. A panic in a task has
/// already ended the run, so poisoning tells nothing new.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a wake-up names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The future given to the run itself.
    Main,
    /// A spawned task, by its number.
    Task(u64),
}

#[derive(Debug, Default)]
pub(super) struct ReadyQueue(Mutex<VecDeque<Arc<Wakeable>>>);

impl ReadyQueue {
    pub(super) fn pop(&self) -> Option<Arc<Wakeable>> {
        lock(&self.0).pop_front()
    }
}

/// What a waker points at.
#[derive(Debug)]
pub(super) struct Wakeable {
    pub(super) who: Who,
    queued: AtomicBool,
    ready: Arc<ReadyQueue>,
}

impl Wakeable {
    pub(super) fn new(who: Who, ready: &Arc<ReadyQueue>) -> Arc<Self> {
        Arc::new(Self {
            who,
            queued: AtomicBool::new(false),
            ready: Arc::clone(ready),
        })
    }

    /// To be called before its future is polled: wake-ups from here on count anew.
    pub(super) fn taken(&self) {
        self.queued.store(false, Ordering::Relaxed);
    }
}

impl Wake for Wakeable {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.ready.0).push_back(Arc::clone(&self));
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            lock(&self.ready.0).push_back(Arc::clone(self));
        }
    }
}

/// Spawned tasks that have not finished.
#[derive(Default)]
pub(super) struct Tasks {
    live: BTreeMap<u64, Option<(BoxedTask, Waker)>>,
    next: u64,
}

/// The tasks of one simulation and the queue of those that want to run.
#[derive(Default)]
pub(super) struct Executor {
    tasks: Mutex<Tasks>,
    pub(super) ready: Arc<ReadyQueue>,
}

impl Executor {
    pub(super) fn spawn(&self, future: BoxedTask) {
        let mut tasks = lock(&self.tasks);
        let number = tasks.next;
        tasks.next += 1;
        let wakeable = Wakeable::new(Who::Task(number), &self.ready);
        tasks
            .live
            .insert(number, Some((future, Waker::from(Arc::clone(&wakeable)))));
        drop(tasks);
        wakeable.wake();
    }

    /// How many tasks have not finished.
    pub(super) fn live(&self) -> usize {
        lock(&self.tasks).live.len()
    }

    /// Polls a task once, without holding any lock meanwhile: it may spawn and wake as it likes.
    pub(super) fn poll(&self, number: u64) {
        let Some((mut future, waker)) = lock(&self.tasks).live.get_mut(&number).and_then(Option::take) else {
            return;
        };
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        if done {
            // The task is dropped only after the lock is free: what it owns may spawn or wake.
            lock(&self.tasks).live.remove(&number);
        } else if let Some(place) = lock(&self.tasks).live.get_mut(&number) {
            *place = Some((future, waker));
        }
    }

    /// Drops every task, and those which they spawn on their way out.
    pub(super) fn clear(&self) {
        loop {
            let tasks = core::mem::take(&mut lock(&self.tasks).live);
            if tasks.is_empty() {
                break;
            }
            drop(tasks);
        }
        while self.ready.pop().is_some() {}
    }
}

impl core::fmt::Debug for Executor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Executor")
            .field("live", &self.live())
            .finish_non_exhaustive()
    }
}

/// Polls the run's own future once.
pub(super) fn poll_main<F: Future>(main: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    main.poll(&mut Context::from_waker(waker))
}
