//! [`Relay`]: a UDP relay that applies a modelled path to live traffic.
//!
//! Clients send to the relay's address as if it were the server's. Each client gets its own socket towards the server,
//! so the server can distinguish clients; all of them share the same two links. Several servers may share them too,
//! each behind its own address. The relay runs on its own thread and needs no privilege.
//!
//! Limits: it sends every datagram as ECN-capable, as quinn does, and never marks congestion. It is no more
//! punctual than the scheduler. Departures follow logical time, so lateness delays packets and never lowers the rate.
//! The relay measures its lateness and reports a run as invalid if that may have changed the result
//! ([`Lateness::matters`]). Running the whole process with real-time priority (`chrt -r 10`) makes that rare on a busy
//! machine: with four times as many runnable threads as cores, it reduced the mean lateness from 0.4 ms to 0.08 ms,
//! while `nice -20` changed nothing.

mod report;
mod socket;
mod worker;

use core::time::Duration;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use thiserror::Error;

pub use report::{Lateness, RelayDirection, RelayFlaw, RelayReport, RelaySnapshot};

use crate::{ConfigError, LinkSeries, PathConfig, Seed};
use worker::{ServerListener, Worker};

/// Initial bin width and maximum number of bins of the report's time series.
const BIN_WIDTH: Duration = Duration::from_millis(10);
const MAX_BINS: usize = 1_024;

/// Configuration of a relay.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RelayConfig {
    /// Address for clients. Port 0 selects a free one; see [`Relay::local_addr`].
    pub listen: SocketAddr,
    /// Addresses of the real servers. The relay listens at `listen` for clients of the first server, and at the same
    /// address on a free port for clients of each additional server; see [`Relay::addresses`].
    pub servers: Vec<SocketAddr>,
    /// Path between clients and servers.
    pub path: PathConfig,
    /// The seed of the path's losses.
    pub seed: Seed,
    /// Maximum number of clients. Beyond it, a client that was silent for a minute is replaced. If there is none,
    /// datagrams of additional clients are dropped and counted.
    pub max_clients: usize,
}

impl RelayConfig {
    /// Creates the configuration of a relay on a free loopback port in front of `server`.
    pub fn new(server: SocketAddr, path: PathConfig) -> Self {
        Self {
            listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0),
            servers: vec![server],
            path,
            seed: Seed::new(1),
            max_clients: 64,
        }
    }

    setters! {
        /// The same relay with this seed.
        with_seed(seed: Seed);

        /// The same relay at this address.
        with_listen(listen: SocketAddr);
    }
}

/// Failure of a relay to start or to continue.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RelayError {
    /// The path cannot be built.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// The listening address is not available.
    #[error("cannot listen on {address}: {source}; choose a free port, or 0 for any")]
    Listen {
        /// Address from the configuration.
        address: SocketAddr,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The system refused to create the thread, or the socket that wakes it.
    #[error("cannot start the relay's thread: {0}")]
    Thread(io::Error),
    /// Waiting for traffic failed while the relay ran.
    #[error("the relay cannot wait for traffic: {0}")]
    Wait(io::Error),
    /// The relay's thread panicked.
    #[error("the relay's thread panicked")]
    Panicked,
}

/// A running relay, on its own thread. Dropping it stops the relay and discards the report.
///
/// ```
/// # use std::net::UdpSocket;
/// use playrate_netsim::{PathConfig, QueueLimit, Relay, RelayConfig};
/// use playrate_units::{Bitrate, Duration, Probability};
///
/// let server = UdpSocket::bind("127.0.0.1:0")?;
/// let path = PathConfig::bottleneck(
///     Bitrate::from_mbps(20),
///     Duration::from_millis(100),
///     QueueLimit::ONE_BDP,
///     "0.01%".parse::<Probability>()?,
/// );
/// let relay = Relay::start(&RelayConfig::new(server.local_addr()?, path))?;
/// println!("talk to {} instead of the server", relay.local_addr());
/// println!("{}", relay.stop()?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Relay {
    local_addr: SocketAddr,
    addresses: Vec<SocketAddr>,
    /// Closing this end wakes the thread and stops it.
    stop: Option<UnixStream>,
    snapshot: Arc<Mutex<RelaySnapshot>>,
    thread: Option<JoinHandle<Result<RelayReport, RelayError>>>,
}

impl Relay {
    /// Binds the relay's socket and starts forwarding on its own thread.
    ///
    /// The server need not run yet: refused datagrams are counted, and the relay continues.
    pub fn start(config: &RelayConfig) -> Result<Self, RelayError> {
        let mut path = config.path.build(config.seed)?;
        path.forward = path.forward.with_series(LinkSeries::new(BIN_WIDTH, MAX_BINS));
        let any_port = SocketAddr::new(config.listen.ip(), 0);
        let listen = std::iter::once(config.listen).chain(std::iter::repeat(any_port));
        let servers = config.servers.iter().zip(listen);
        let listeners = servers
            .map(|(server, address)| {
                ServerListener::open(address, *server)
                    .map_err(|source| RelayError::Listen { address, source })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let addresses: Vec<_> = listeners.iter().map(|listener| listener.address).collect();
        let local_addr = addresses.first().copied().unwrap_or(config.listen);
        let (worker, stop) = Worker::new(config, listeners, path).map_err(RelayError::Thread)?;
        let snapshot = worker.snapshot();
        let thread = std::thread::Builder::new()
            .name("playrate-relay".into())
            .spawn(move || worker.run())
            .map_err(RelayError::Thread)?;
        Ok(Self {
            local_addr,
            addresses,
            stop: Some(stop),
            snapshot,
            thread: Some(thread),
        })
    }

    /// Address for clients of the first server.
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Addresses for clients of each server, in the order of the servers.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// State of the relay at its last wake-up: at most 2 ms old while there is traffic, otherwise at most 100 ms.
    pub fn snapshot(&self) -> RelaySnapshot {
        *self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the relay, discards pending datagrams and returns the report.
    pub fn stop(mut self) -> Result<RelayReport, RelayError> {
        self.join().unwrap_or(Err(RelayError::Panicked))
    }

    fn join(&mut self) -> Option<Result<RelayReport, RelayError>> {
        drop(self.stop.take());
        let thread = self.thread.take()?;
        Some(thread.join().unwrap_or(Err(RelayError::Panicked)))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // The report is discarded; errors were logged where they occurred.
        drop(self.join());
    }
}
