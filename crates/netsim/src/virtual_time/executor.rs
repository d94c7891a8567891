//! Runs tasks on one thread, in the order of their wake-ups.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread::{self, ThreadId};

use crate::Time;

pub(super) type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Locks a mutex that is never contended for long: a simulation runs on one thread at a time. A panic in a
/// task has already ended the run, so poisoning carries no information.
pub(super) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tasks that were woken.
#[derive(Default)]
struct ReadyTasks {
    queue: VecDeque<Arc<Task>>,
    /// Tasks of suspended hosts, and the time until which each host is suspended.
    suspended: BTreeMap<IpAddr, (Time, Vec<Arc<Task>>)>,
    /// The thread that runs the tasks; `None` between runs.
    runner: Option<ThreadId>,
    /// Number of wake-ups by other threads during runs.
    outside_wakes: u64,
}

type ReadyQueue = Mutex<ReadyTasks>;

/// A pollable unit; its wakers point here.
pub(super) struct Task {
    /// Its number among the spawned tasks; `None` for the run's own future, which the run polls.
    number: Option<u64>,
    /// The host where it runs, if it was spawned on one.
    host: Option<IpAddr>,
    /// `None` once it has ended, and for the future of the run.
    running: Mutex<Option<RunningTask>>,
    queued: AtomicBool,
    /// True if its host crashed while it was being polled.
    is_doomed: AtomicBool,
    ready: Arc<ReadyQueue>,
}

/// The future of a task, and the task's own waker: a reference cycle, which ends with the future.
struct RunningTask {
    future: BoxedTask,
    waker: Waker,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::Relaxed) {
            let mut ready = lock(&self.ready);
            let is_outside = ready
                .runner
                .is_some_and(|runner| runner != thread::current().id());
            ready.outside_wakes += u64::from(is_outside);
            ready.queue.push_back(Arc::clone(self));
        }
    }
}

/// The tasks of one simulation and the queue of the ready ones.
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
    fn task(&self, number: Option<u64>, host: Option<IpAddr>) -> Arc<Task> {
        let ready = Arc::clone(&self.ready);
        Arc::new(Task {
            number,
            host,
            is_doomed: AtomicBool::new(false),
            running: Mutex::new(None),
            queued: AtomicBool::new(false),
            ready,
        })
    }

    /// Spawns a task, on a host if one is given.
    pub(super) fn spawn(&self, host: Option<IpAddr>, future: BoxedTask) {
        let mut live = lock(&self.live);
        let number = live.next;
        live.next += 1;
        let task = self.task(Some(number), host);
        let waker = Waker::from(Arc::clone(&task));
        *lock(&task.running) = Some(RunningTask { future, waker });
        live.tasks.insert(number, Arc::clone(&task));
        drop(live);
        task.wake();
    }

    /// The task for a run's own future; it is ready immediately.
    pub(super) fn main(&self) -> Waker {
        let task = self.task(None, None);
        task.wake_by_ref();
        Waker::from(task)
    }

    /// Marks the current thread as the one that runs the tasks, until the result is dropped.
    pub(super) fn enter(&self) -> RunningThread<'_> {
        lock(&self.ready).runner = Some(thread::current().id());
        RunningThread(self)
    }

    /// Number of wake-ups by other threads than the running one.
    pub(super) fn outside_wakes(&self) -> u64 {
        lock(&self.ready).outside_wakes
    }

    /// The task that was woken first, among those whose hosts are not suspended.
    pub(super) fn next_ready(&self) -> Option<Arc<Task>> {
        let mut ready = lock(&self.ready);
        loop {
            let task = ready.queue.pop_front()?;
            if !ready.suspended.is_empty()
                && let Some((_, waiting)) = task.host.and_then(|host| ready.suspended.get_mut(&host))
            {
                waiting.push(task);
                continue;
            }
            // From now on, wake-ups count again.
            task.queued.store(false, Ordering::Relaxed);
            return Some(task);
        }
    }

    /// Polls no task of `host` until `until`, or until an earlier suspension ends if that is later.
    pub(super) fn suspend(&self, host: IpAddr, until: Time) {
        let mut ready = lock(&self.ready);
        let suspension = ready.suspended.entry(host).or_default();
        suspension.0 = suspension.0.max(until);
    }

    /// Continues the tasks of `host`, unless it is suspended beyond `now`.
    pub(super) fn resume(&self, host: IpAddr, now: Time) {
        let mut ready = lock(&self.ready);
        if ready.suspended.get(&host).is_some_and(|(until, _)| *until <= now)
            && let Some((_, waiting)) = ready.suspended.remove(&host)
        {
            ready.queue.extend(waiting);
        }
    }

    /// Drops every task of `host`, and tasks that they spawn while being dropped. If one is being polled, it is dropped
    /// after its poll.
    pub(super) fn crash(&self, host: IpAddr) {
        let suspended = lock(&self.ready).suspended.remove(&host);
        drop(suspended);
        loop {
            let mut live = lock(&self.live);
            let (gone, left) = core::mem::take(&mut live.tasks)
                .into_iter()
                .partition::<BTreeMap<_, _>, _>(|(_, task)| task.host == Some(host));
            live.tasks = left;
            drop(live);
            if gone.is_empty() {
                break;
            }
            for task in gone.values() {
                task.is_doomed.store(true, Ordering::Relaxed);
                let running = task
                    .running
                    .try_lock()
                    .ok()
                    .and_then(|mut running| running.take());
                drop(running);
            }
        }
    }

    /// Polls a spawned task once; returns false if it is the run's own future. No lock of the executor is held
    /// meanwhile, so the task may spawn and wake others.
    pub(super) fn poll(&self, task: &Arc<Task>) -> bool {
        let Some(number) = task.number else { return false };
        let mut running = lock(&task.running);
        let Some(RunningTask { future, waker }) = running.as_mut() else {
            return true;
        };
        let is_done = future.as_mut().poll(&mut Context::from_waker(waker)).is_ready();
        if is_done || task.is_doomed.load(Ordering::Relaxed) {
            let finished = running.take();
            drop(running);
            // The task's data may spawn or wake others when dropped, so no lock is held here.
            drop(finished);
            lock(&self.live).tasks.remove(&number);
        }
        true
    }

    /// Number of tasks that have not finished.
    pub(super) fn live(&self) -> usize {
        lock(&self.live).tasks.len()
    }

    /// Number of tasks of `host` that have not finished.
    pub(super) fn live_on(&self, host: IpAddr) -> usize {
        let live = lock(&self.live);
        live.tasks.values().filter(|task| task.host == Some(host)).count()
    }

    /// Drops every task, and tasks that they spawn while being dropped.
    pub(super) fn clear(&self) {
        loop {
            let tasks = core::mem::take(&mut lock(&self.live).tasks);
            if tasks.is_empty() {
                break;
            }
            for task in tasks.values() {
                let running = lock(&task.running).take();
                drop(running);
            }
        }
        let ready = core::mem::take(&mut lock(&self.ready).queue);
        drop(ready);
        let suspended = core::mem::take(&mut lock(&self.ready).suspended);
        drop(suspended);
    }
}

/// Mark of the thread that runs the tasks.
pub(super) struct RunningThread<'a>(&'a Executor);

impl Drop for RunningThread<'_> {
    fn drop(&mut self) {
        lock(&self.0.ready).runner = None;
    }
}
