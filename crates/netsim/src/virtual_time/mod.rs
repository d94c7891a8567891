//! Virtual time: real quinn programs over modelled paths, as fast as the machine computes.
//!
//! A [`Simulation`] is a deterministic single-threaded executor with nanosecond timers, hosts with UDP sockets and the
//! links between them. It implements quinn's `Runtime` and socket traits, and those of noq with the feature `noq`, so a
//! program written for those runs in it unchanged, including encryption. There is no global state: many simulations may
//! run at once, each on the thread that calls [`Simulation::run`].
//!
//! The same seed gives the same [`Simulation::digest`] if the program uses no other randomness:
//! - give both endpoints a seeded configuration such as [`Simulation::endpoint_config`]; the other random bytes of
//!   quinn, rustls and ring have fixed lengths and never affect times or sizes;
//! - `h3` draws its GREASE frames from the thread's `fastrand` generator: seed that, or disable GREASE;
//! - write `tokio::select!` with `biased;`, take time and timers from the runtime, do not iterate over a `HashMap`.
//!
//! Hosts compute in zero time. Timers are exact, every datagram is a separate event and a busy receiver never batches
//! acknowledgements, unless [`HostConfig`] requests it.

mod events;
mod executor;
mod host;
mod network;
#[cfg(any(feature = "quinn", feature = "noq"))]
mod null_protection;
mod runtime;
#[macro_use]
#[cfg(any(feature = "quinn", feature = "noq"))]
mod stack;
#[cfg(feature = "noq")]
mod noq_stack;
#[cfg(feature = "quinn")]
mod quinn_stack;
#[cfg(test)]
#[cfg(feature = "quinn")]
mod tests;

use core::fmt;
use core::time::Duration;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

#[cfg(any(feature = "quinn", feature = "noq"))]
use rustls::crypto::{CryptoProvider, ring};
use thiserror::Error;

pub use host::{Host, HostConfig};
pub use network::NetworkStats;
pub use runtime::{VirtualRuntime, VirtualSocket};

use crate::{Link, LinkSeries, LinkStats, Path, Seed, Time};
use executor::{Executor, lock};
use network::Network;

/// State shared by the runtime, its sockets and its timers.
pub(crate) struct SimulationCore {
    /// Origin of the `Instant`s that quinn receives; only their differences matter.
    epoch: Instant,
    /// The network's time in nanoseconds, readable without the network's lock.
    clock: AtomicU64,
    network: Mutex<Network>,
    executor: Executor,
}

impl SimulationCore {
    fn now(&self) -> Time {
        Time::from_nanos(self.clock.load(Ordering::Relaxed))
    }

    fn time_of(&self, instant: Instant) -> Time {
        Time::from(instant.saturating_duration_since(self.epoch))
    }

    fn instant_of(&self, time: Time) -> Instant {
        self.epoch.checked_add(time.elapsed()).unwrap_or(self.epoch)
    }
}

impl fmt::Debug for SimulationCore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimulationCore")
            .field("now", &self.now())
            .finish_non_exhaustive()
    }
}

/// Maximum number of datagrams per system call (generic segmentation offload): the most that quinn takes.
#[cfg(any(feature = "quinn", feature = "noq"))]
const SEGMENTS: usize = 10;

#[cfg(any(feature = "quinn", feature = "noq"))]
fn no_real_socket() -> std::io::Error {
    let message = "a real socket has no place in virtual time; use Simulation::bind";
    std::io::Error::new(std::io::ErrorKind::Unsupported, message)
}

/// Maximum number of polls without progress of time.
const POLLS_PER_INSTANT: u32 = 1_000_000;

/// Reason why a run ended before its future completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Every task waits and nothing is pending: no timer, no packet. A task that waits on another thread or a real
    /// socket never continues, since virtual time cannot advance meanwhile.
    #[error("deadlock at {at}: {tasks} tasks wait, and no timer or packet is left to wake them")]
    Deadlock {
        /// Time of the deadlock.
        at: Time,
        /// Number of waiting spawned tasks, in addition to the run's own future.
        tasks: usize,
    },
    /// Tasks wake each other or themselves endlessly, and time does not advance.
    #[error("tasks spin at {at}: {polls} polls without time passing")]
    Spinning {
        /// Time when the tasks spin.
        at: Time,
        /// Number of polls at this time.
        polls: u32,
    },
    /// The run reached its deadline.
    #[error("not done by the deadline of {at}")]
    Deadline {
        /// The deadline of the run.
        at: Time,
    },
}

/// Set-up error of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The port is taken, or none is left.
    #[error("port {port} of {ip} is taken; choose another, or 0 for any")]
    PortTaken {
        /// Address of the host.
        ip: IpAddr,
        /// Port from the request.
        port: u16,
    },
}

/// One link of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkId(usize);

/// A path of a simulation: two of its links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PathId {
    /// From the server to the client.
    pub forward: LinkId,
    /// From the client to the server.
    pub backward: LinkId,
}

/// A network of hosts and paths in virtual time, and the tasks that run on it.
///
/// Dropping it drops all its tasks.
#[derive(Debug)]
pub struct Simulation {
    shared: Arc<SimulationCore>,
    seed: Seed,
}

impl Simulation {
    /// A day, as the deadline of runs that should end long before it.
    pub const DAY: Duration = Duration::from_secs(86_400);

    /// An empty network at time zero. `seed` is the seed of the endpoints and of everything derived from
    /// [`Simulation::seed`]; paths have their own.
    pub fn new(seed: Seed) -> Self {
        let shared = Arc::new(SimulationCore {
            epoch: Instant::now(),
            clock: AtomicU64::new(0),
            network: Mutex::default(),
            executor: Executor::default(),
        });
        Self { shared, seed }
    }

    /// The seed that it was created with, for other random sequences of the run.
    pub fn seed(&self) -> Seed {
        self.seed
    }

    /// Seed of the generator of the endpoint called `name`, for configurations that a program makes itself.
    pub fn endpoint_seed(&self, name: &str) -> [u8; 32] {
        self.seed.child("endpoint").derive(name)
    }

    /// Cryptography only for the endpoints of this simulation: ring's, with a preferred cipher suite that does not
    /// encrypt QUIC packets, because encryption would take a fifth of a run's time. The handshake and the lengths,
    /// numbers and times of packets stay the same, and so does the [digest](Self::digest). Both endpoints need it; with
    /// any other peer they encrypt as usual. If a link added so far damages packets, this is ring's unchanged, because
    /// the damage would not be detected.
    #[cfg(any(feature = "quinn", feature = "noq"))]
    pub fn crypto_provider(&self) -> Arc<CryptoProvider> {
        if lock(&self.shared.network).links.iter().any(Link::damages) {
            return Arc::new(ring::default_provider());
        }
        null_protection::provider()
    }

    /// Adds a path; [`Simulation::connect`] puts hosts at its ends.
    pub fn add_path(&self, path: Path) -> PathId {
        let links = &mut lock(&self.shared.network).links;
        links.push(path.forward);
        links.push(path.backward);
        PathId {
            forward: LinkId(links.len() - 2),
            backward: LinkId(links.len() - 1),
        }
    }

    /// Adds a host; [`Simulation::connect`] adds its routes.
    pub fn add_host(&self, config: HostConfig) -> Host {
        let ip = lock(&self.shared.network).add_host(config);
        Host { ip }
    }

    /// Adds another address to `host`, such as that of a second network interface; [`Simulation::connect`] adds its
    /// routes. Sockets of the host receive datagrams for it at their port, and send from it if the stack says so, as
    /// sockets do that are bound to all addresses. A socket can also be bound to it alone.
    /// Runtimes, crashes and suspensions of the host need `host` itself, not the returned address.
    pub fn add_address(&self, host: Host) -> Host {
        let ip = lock(&self.shared.network).add_address(host.ip);
        Host { ip }
    }

    /// Routes packets between two hosts through these paths, from the server's end to the client's; without paths they
    /// are neighbours. Any number of pairs may share a path.
    pub fn connect(&self, server: Host, client: Host, paths: &[PathId]) {
        let forward: Vec<_> = paths.iter().map(|path| path.forward.0).collect();
        let backward: Vec<_> = paths.iter().rev().map(|path| path.backward.0).collect();
        let mut network = lock(&self.shared.network);
        network.add_route(server.ip, client.ip, &forward);
        network.add_route(client.ip, server.ip, &backward);
    }

    /// A socket at this port of this host; 0 selects a free one.
    pub fn bind(&self, host: Host, port: u16) -> Result<Arc<VirtualSocket>, SetupError> {
        let bound = lock(&self.shared.network).bind(host.ip, port);
        let (index, address) = bound.ok_or(SetupError::PortTaken { ip: host.ip, port })?;
        Ok(Arc::new(VirtualSocket::new(&self.shared, index, address)))
    }

    /// Time, exact timers and tasks.
    pub fn runtime(&self) -> Arc<VirtualRuntime> {
        Arc::new(VirtualRuntime {
            shared: Arc::clone(&self.shared),
            host: None,
        })
    }

    /// Gives `socket` another public address, a free port of `host`, like a NAT that has lost its mapping or has
    /// changed its own address: datagrams to the previous address are dropped. The socket does not notice. Returns the
    /// new address.
    ///
    /// # Errors
    /// If the host has no free port.
    pub fn rebind(&self, socket: &VirtualSocket, host: Host) -> Result<SocketAddr, SetupError> {
        let mut network = lock(&self.shared.network);
        let taken = SetupError::PortTaken { ip: host.ip, port: 0 };
        network.rebind(socket.index(), host.ip).ok_or(taken)
    }

    /// Ends everything on `host` without notice: tasks of its runtimes are dropped, and its sockets no longer send or
    /// receive. Their ports are free, so that a program can be restarted. Packets that have left the host are still
    /// delivered.
    pub fn crash(&self, host: Host) {
        lock(&self.shared.network).disconnect(host.ip);
        self.shared.executor.crash(host.ip);
    }

    /// Suspends the tasks of `host` for `time`; see [`VirtualRuntime::suspend`].
    pub fn suspend(&self, host: Host, time: Duration) {
        self.runtime_on(host).suspend(time);
    }

    /// Number of tasks that were spawned on `host` and have not ended.
    pub fn tasks_on(&self, host: Host) -> usize {
        self.shared.executor.live_on(host.ip)
    }

    /// Time and timers, and tasks that run on this host.
    pub fn runtime_on(&self, host: Host) -> Arc<VirtualRuntime> {
        Arc::new(VirtualRuntime {
            shared: Arc::clone(&self.shared),
            host: Some(host.ip),
        })
    }

    /// Runs `main` to its end, together with everything spawned. Tasks that are still running continue in the next run.
    /// `deadline` is a virtual time, from the beginning of the simulation.
    ///
    /// # Errors
    /// If `main` is not done by the deadline, or never will be.
    ///
    /// # Panics
    /// If a task panics.
    pub fn run<F: Future>(&self, deadline: Duration, main: F) -> Result<F::Output, RunError> {
        let executor = &self.shared.executor;
        let _running = executor.enter();
        let deadline = Time::from(deadline);
        let mut main = pin!(main);
        let own = executor.main();
        let mut polls = 0;
        loop {
            while let Some(task) = executor.next_ready() {
                if !executor.poll(&task)
                    && let Poll::Ready(output) = main.as_mut().poll(&mut Context::from_waker(&own))
                {
                    return Ok(output);
                }
                polls += 1;
                if polls >= POLLS_PER_INSTANT {
                    return Err(RunError::Spinning {
                        at: self.now(),
                        polls,
                    });
                }
            }
            let before = self.shared.now();
            self.next_wake_up(deadline)?.wake();
            if self.shared.now() > before {
                polls = 0;
            }
        }
    }

    /// Processes events up to one that wakes a task; returns its waker.
    fn next_wake_up(&self, deadline: Time) -> Result<Waker, RunError> {
        let mut network = lock(&self.shared.network);
        let woken = loop {
            match network.events.next_at() {
                None => {
                    break Err(RunError::Deadlock {
                        at: network.now,
                        tasks: self.shared.executor.live(),
                    });
                }
                Some(at) if at > deadline => {
                    network.now = network.now.max(deadline);
                    break Err(RunError::Deadline { at: deadline });
                }
                Some(_) => {}
            }
            let event = network.events.pop();
            if let Some(waker) = event.and_then(|(at, event)| network.process(at, event)) {
                break Ok(waker);
            }
        };
        self.shared.clock.store(network.now.as_nanos(), Ordering::Relaxed);
        woken
    }

    /// Virtual time since the start of the simulation.
    pub fn now(&self) -> Time {
        lock(&self.shared.network).now
    }

    /// Counters of a link so far.
    pub fn link_stats(&self, link: LinkId) -> LinkStats {
        self.with_link(link, |link| link.stats()).unwrap_or_default()
    }

    /// Time series of a link so far, if it was built with one.
    pub fn link_series(&self, link: LinkId) -> Option<LinkSeries> {
        self.with_link(link, |link| link.series().cloned()).flatten()
    }

    fn with_link<T>(&self, link: LinkId, read: impl FnOnce(&mut Link) -> T) -> Option<T> {
        let mut network = lock(&self.shared.network);
        let now = network.now;
        let link = network.links.get_mut(link.0)?;
        link.settle(now);
        Some(read(link))
    }

    /// Counters of datagrams outside the links.
    pub fn network_stats(&self) -> NetworkStats {
        lock(&self.shared.network).stats
    }

    /// Number of times that another thread than the running one woke a task during a run. If it is not zero, tasks
    /// depend on something real, and another run may differ.
    pub fn outside_wakes(&self) -> u64 {
        self.shared.executor.outside_wakes()
    }

    /// Drops all tasks, which may own this simulation.
    #[cfg(all(feature = "pair", any(feature = "quinn", feature = "noq")))]
    pub(crate) fn end_tasks(&self) {
        self.shared.executor.clear();
    }

    /// A hash of every packet's time, size and fate, on every link and at every socket: equal for equal runs.
    pub fn digest(&self) -> u64 {
        lock(&self.shared.network).digest()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        // Tasks own runtimes, and runtimes own this state: without this, the cycle would never be freed.
        self.shared.executor.clear();
    }
}
