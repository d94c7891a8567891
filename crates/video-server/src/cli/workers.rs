//! [`Workers`]: threads with one runtime each that run the connections over HTTP/3.

use std::io;
use std::net::UdpSocket;
use std::num::{NonZeroU8, NonZeroU32};
use std::pin::Pin;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use quinn::{AsyncTimer, AsyncUdpSocket, Runtime, TokioRuntime};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Maximum number of workers: the sockets of all of them fit into one message to the process that takes over.
const MOST: u8 = 128;

/// As many workers as processors that the process may use.
pub(super) fn default_count() -> NonZeroU8 {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = if cfg!(target_os = "linux") { processors } else { 1 };
    let count = u8::try_from(count).unwrap_or(MOST).min(MOST);
    NonZeroU8::new(count).unwrap_or(NonZeroU8::MIN)
}

/// Reads a number of workers.
pub(super) fn parse_count(text: &str) -> Result<NonZeroU8, String> {
    let most = if cfg!(target_os = "linux") { MOST } else { 1 };
    let count = text.parse::<NonZeroU8>().ok();
    count
        .filter(|count| count.get() <= most)
        .ok_or_else(|| format!("expected a number from 1 to {most}"))
}

/// Threads with a runtime each. Dropping it ends them and everything that runs on them.
#[derive(Debug, Default)]
pub(super) struct Workers {
    runtimes: Vec<Arc<dyn Runtime>>,
    /// Dropping one ends its thread.
    stop: Vec<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts `count` threads, each with a runtime that waits for tasks.
    ///
    /// # Errors
    /// The system cannot create another thread or another descriptor for its events.
    pub(super) fn start(count: NonZeroU8) -> io::Result<Self> {
        let mut workers = Self::default();
        for number in 0..count.get().into() {
            workers.add(number)?;
        }
        Ok(workers)
    }

    fn add(&mut self, number: usize) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        self.runtimes
            .push(Arc::new(WorkerRuntime(runtime.handle().clone())));
        let (stop, stopped) = oneshot::channel::<()>();
        self.stop.push(stop);
        let thread = std::thread::Builder::new().name(format!("worker-{number}"));
        let thread = thread.spawn(move || {
            // An error means that the sender was dropped, which is how the thread is stopped.
            let _ = runtime.block_on(stopped);
        });
        self.threads.push(thread?);
        Ok(())
    }

    /// Number of processors that connections over HTTP/3 can use.
    pub(super) fn processors(&self) -> NonZeroU32 {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let count = u32::try_from(processors.min(self.count())).unwrap_or(u32::MAX);
        NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN)
    }

    /// Number of its threads.
    pub(super) fn count(&self) -> usize {
        self.runtimes.len()
    }

    /// Runtimes for this many endpoints, at least one for each thread. Further ones are divided among the threads.
    pub(super) fn runtimes(&self, endpoints: usize) -> impl Iterator<Item = &Arc<dyn Runtime>> {
        self.runtimes.iter().cycle().take(endpoints)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.stop.clear();
        for thread in self.threads.drain(..) {
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

/// The runtime of a worker, also for use on other threads.
#[derive(Debug)]
struct WorkerRuntime(Handle);

impl Runtime for WorkerRuntime {
    fn new_timer(&self, at: Instant) -> Pin<Box<dyn AsyncTimer>> {
        let _entered = self.0.enter();
        TokioRuntime.new_timer(at)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.0.spawn(task);
    }

    fn wrap_udp_socket(&self, socket: UdpSocket) -> io::Result<Arc<dyn AsyncUdpSocket>> {
        let _entered = self.0.enter();
        TokioRuntime.wrap_udp_socket(socket)
    }

    fn now(&self) -> Instant {
        TokioRuntime.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_run_on_the_thread_of_their_worker_and_end_with_it() {
        let workers = Workers::start(NonZeroU8::new(2).unwrap()).unwrap();
        let (sender, threads) = std::sync::mpsc::channel();
        let ended = Arc::new(());
        for runtime in workers.runtimes(3) {
            let (sender, ended) = (sender.clone(), Arc::clone(&ended));
            runtime.spawn(Box::pin(async move {
                let name = std::thread::current().name().map(str::to_owned);
                sender.send(name.unwrap()).unwrap();
                std::future::pending::<()>().await;
                drop(ended);
            }));
        }
        let mut names: Vec<_> = threads.iter().take(3).collect();
        names.sort();
        assert_eq!(names, ["worker-0", "worker-0", "worker-1"]);
        drop(workers);
        assert_eq!(Arc::strong_count(&ended), 1);
    }

    #[test]
    fn a_number_of_workers_is_at_least_one_and_fits_into_connection_ids() {
        for wrong in ["0", "129", "256", "-1", "two", ""] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
        assert_eq!(parse_count("1").unwrap().get(), 1);
        assert!((1..=MOST).contains(&default_count().get()));
    }
}
