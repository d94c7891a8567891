//! One run: the product's server and client, including TLS and HTTP/3, over a modelled path, in virtual time ([`run`])
//! or over real UDP ([`run_live`]).
//!
//! A run has one or more viewers behind one bottleneck, and possibly bulk flows. Each flow has its own server and
//! connection, and so possibly its own controller. There is no global state: runs on several threads are independent,
//! and the same [`Setup`] gives the same packets at the same times on each ([`Simulated::wire_hash`]).
//!
//! ```
//! use lab::sim::{self, ServedTitle, Setup, Viewer};
//! use playrate_media::{FrameTrace, TraceSource};
//! use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
//! use playrate_units::Bitrate;
//! use std::{sync::Arc, time::Duration};
//!
//! let trace: FrameTrace = "0.00,60000,K\n0.04,9000,_\n0.08,9000,_\n0.12,9000,_\n".parse()?;
//! let title = ServedTitle::trace("film", TraceSource::new(&trace.repeat_to(Duration::from_secs(2))?));
//! let rtt = Duration::from_millis(100);
//! let path = PathConfig::bottleneck(Bitrate::from_mbps(20), rtt, QueueLimit::ONE_BDP, Loss::None);
//! let setup = Setup::new(path, Seed::new(1)).with_viewer(Viewer::new("cubic".parse()?, title));
//! let first = sim::run(&setup)?;
//! assert_eq!(first.viewers[0].report.playback.frames_discarded, 0);
//! assert_eq!(first.wire_hash, sim::run(&setup)?.wire_hash);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod broadcast;
mod bulk;
mod delivery;
mod error;
mod ideal;
mod live;
mod meter;
mod recording;
mod restarts;
mod session;
mod setup;
mod spread;
mod viewing;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use playrate_netsim::{HostConfig, LinkSeries, LinkStats, NetworkStats, PathId, Simulation};
use playrate_transport::telemetry::Sample;
use playrate_transport::time;
use playrate_units::Bytes;
use quinn::{ConnectionStats, Runtime};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use video_client::report::QualityReport;

pub use broadcast::{Broadcast, BroadcastStatistics, Encoder, EncoderRate, SimulatedBroadcast};
pub use bulk::SimulatedBulk;
pub use delivery::DeliveryScore;
pub use error::SimError;
pub(crate) use ideal::{Ideal, WIRE_PER_MEDIA, ideal};
pub use live::{LiveRun, run_live};
pub(crate) use live::{join_all, ticking, virtual_only};
pub use meter::ControlStatistics;
pub use restarts::RestartStatistics;
pub use session::{SERVER_NAME, identity};
pub use setup::{Access, Bulk, ServedTitle, Setup, TransportProfile, Viewer};
pub use viewing::{LiveStatus, Span, StatusCell, ViewerSpans, ViewerState};
pub use windows::{Window, WindowCounts};

use broadcast::Transmission;
use bulk::Download;
use session::{Endpoints, Session, VirtualEndpoints};

/// The MTU without discovery: the value that quinn finds on Ethernet.
const MTU: u16 = 1_452;
/// UDP port of simulated servers.
const PORT: u16 = 4433;
/// Bins of the link's series, enough for a run of any length.
const LINK_BINS: usize = 2_048;
/// Width of the link's bins in a short run.
const LINK_BIN: Duration = Duration::from_millis(20);
/// Maximum time for a simulated server to notice that its client has left.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);

/// Results of one run.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// The viewers in the order of the setup.
    pub viewers: Vec<SimulatedViewer>,
    /// The broadcasts in the order of the setup.
    pub broadcasts: Vec<SimulatedBroadcast>,
    /// The bulk flows in the order of the setup.
    pub bulk: Vec<SimulatedBulk>,
    /// Counters of the direction of the video.
    pub forward: LinkStats,
    /// Counters of the direction of requests and acknowledgements.
    pub backward: LinkStats,
    /// Datagrams lost outside the links; zero over real UDP, where the relay's flaws report them.
    pub network: NetworkStats,
    /// A hash of every packet's time, size and fate; `None` over real UDP.
    pub wire_hash: Option<u64>,
    /// Time from the beginning until every server and client has finished.
    pub length: Duration,
}

/// Results of one viewer's session.
#[derive(Clone, Debug)]
pub struct SimulatedViewer {
    /// Time of the request, since the run began.
    pub joined: Duration,
    /// Counts in each of the setup's windows.
    pub windows: Vec<WindowCounts>,
    /// The client's own report.
    pub report: QualityReport,
    /// Stalls and discarded frames.
    pub spans: ViewerSpans,
    /// Impairment by late arrival of bytes; `None` for a title in several representations.
    pub delivery: Option<DeliveryScore>,
    /// Samples of the server's connection, since the request; empty if the setup keeps no series.
    pub transport: Vec<Sample>,
    /// Queue of the bottleneck towards the viewers, over all flows; empty if the setup keeps no series.
    pub queue: Vec<QueueSample>,
    /// Totals of the server's transport; `None` if the handshake failed.
    pub totals: Option<ConnectionStats>,
    /// Statistics of the server's window, RTT and estimates; `None` without any acknowledgement.
    pub control: Option<ControlStatistics>,
    /// Statistics of restarts after pauses of the server, if there were any.
    pub restarts: Option<RestartStatistics>,
}

/// Largest queue of the bottleneck in one bin of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// Time since the viewer's request.
    pub at: Duration,
    /// Bytes waiting in the queue.
    pub queued: Bytes,
}

/// Stops a run from another thread, and reports its progress.
#[derive(Debug, Default)]
pub struct RunHandle {
    stop: CancellationToken,
    received: AtomicU64,
}

impl RunHandle {
    /// A handle of a run that also ends early when `stop` is cancelled.
    pub(crate) fn child_of(stop: &CancellationToken) -> Arc<Self> {
        Arc::new(Self {
            stop: stop.child_token(),
            received: AtomicU64::new(0),
        })
    }

    /// Ends the run early: in virtual time it returns [`SimError::Stopped`], live it returns the results so far.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Bytes received so far, over all flows, or since the last call of [`Self::forget_received`].
    pub(crate) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Counts from zero again, before the next run with this handle.
    pub(crate) fn forget_received(&self) {
        self.received.store(0, Relaxed);
    }

    fn add_received(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    /// Returns true after a call of [`stop`](Self::stop), and after its parent was cancelled.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Waits for `time`, or without a limit, but no longer than until the run is stopped.
    async fn sleep(&self, runtime: &dyn Runtime, time: Option<Duration>) {
        let sleep = async {
            match time {
                Some(time) => time::sleep(runtime, time).await,
                None => std::future::pending().await,
            }
        };
        self.stop.run_until_cancelled(sleep).await;
    }
}

/// Makes the run described by `setup` in virtual time. It blocks its thread to the end, so async code must call it in
/// `tokio::task::spawn_blocking`: tokio ends the turn of a long-running task, which the simulation would mistake for
/// spinning.
///
/// # Errors
/// If the path cannot be built, or the simulation ends before its viewers finish. A failed session is part of the
/// results.
pub fn run(setup: &Setup) -> Result<Simulated, SimError> {
    run_with(setup, &Arc::new(RunHandle::default()))
}

/// As [`run`], with a handle to stop the run and to read its progress.
///
/// # Errors
/// As [`run`], and if `handle` stops it.
pub(crate) fn run_with(setup: &Setup, handle: &Arc<RunHandle>) -> Result<Simulated, SimError> {
    let simulation = Simulation::new(setup.seed.child("simulation"));
    let mut path = setup.path.build(setup.seed.child("path"))?;
    if setup.taps {
        path.forward = path.forward.with_series(LinkSeries::new(LINK_BIN, LINK_BINS));
    }
    let path = simulation.add_path(path);
    let (sender, mut finished) = mpsc::unbounded_channel();
    for (index, viewer) in setup.viewers.iter().enumerate() {
        let endpoints = endpoints(&simulation, viewer.access, path, setup.encrypts)?.into();
        let session = Session::new(setup, index, viewer, &endpoints)?;
        let (sender, handle, joins) = (sender.clone(), Arc::clone(handle), viewer.joins);
        let runtime = simulation.runtime();
        runtime.clone().spawn(Box::pin(async move {
            runtime.sleep(joins).await;
            let played = Box::pin(session.play(&handle)).await;
            // The run waits for all of them; if it is gone, the result is not needed.
            let _ = sender.send((index, played));
        }));
    }
    drop(sender);
    let (broadcasting, mut broadcasts_end) = mpsc::unbounded_channel::<()>();
    let mut transmissions = Vec::new();
    for (index, broadcast) in setup.broadcasts.iter().enumerate() {
        let endpoints = endpoints(&simulation, broadcast.access, path, setup.encrypts)?;
        let transmission = Transmission::new(setup, index, broadcast, &endpoints)?;
        let run = Arc::clone(&transmission).run(Arc::clone(handle));
        let broadcasting = broadcasting.clone();
        simulation.runtime().spawn(Box::pin(async move {
            run.await;
            drop(broadcasting);
        }));
        transmissions.push(transmission);
    }
    drop(broadcasting);
    let mut downloads = Vec::new();
    for (index, bulk) in setup.bulk.iter().enumerate() {
        let endpoints = endpoints(&simulation, bulk.access, path, setup.encrypts)?.into();
        let download = Download::new(setup, index, bulk, &endpoints)?;
        let run = Arc::clone(&download).run(Arc::clone(handle));
        simulation.runtime().spawn(Box::pin(run));
        downloads.push(download);
    }
    let least_length = simulation.runtime().sleep(setup.least_length);
    let sessions = async {
        let mut all = Vec::new();
        while let Some((index, played)) = finished.recv().await {
            all.push((index, played?));
        }
        // Nothing is sent on it; it ends with the last broadcast.
        let _ = broadcasts_end.recv().await;
        least_length.await;
        Ok::<_, SimError>(in_order(all))
    };
    let sessions = simulation.run(setup.deadline(), sessions)??;
    if handle.is_stopped() {
        return Err(SimError::Stopped);
    }
    let length = simulation.now().elapsed();
    let series = simulation.link_series(path.forward);
    let viewers = sessions
        .into_iter()
        .map(|session| session.collect(length, series.as_ref()));
    let broadcasts = transmissions.iter().map(|broadcast| broadcast.collect(length));
    let bulk = downloads.iter().map(|download| download.collect(length));
    Ok(Simulated {
        viewers: viewers.collect(),
        broadcasts: broadcasts.collect(),
        bulk: bulk.collect(),
        forward: simulation.link_stats(path.forward),
        backward: simulation.link_stats(path.backward),
        network: simulation.network_stats(),
        wire_hash: Some(simulation.digest()),
        length,
    })
}

/// Sorts finished sessions by their numbers.
fn in_order<T>(mut sessions: Vec<(usize, T)>) -> Vec<T> {
    sessions.sort_by_key(|(index, _)| *index);
    sessions.into_iter().map(|(_, session)| session).collect()
}

/// Two hosts for the server and the client of one flow, connected by `path`.
fn endpoints(
    simulation: &Simulation,
    access: Access,
    path: PathId,
    encrypts: bool,
) -> Result<VirtualEndpoints, SimError> {
    let host = |delay| simulation.add_host(HostConfig::default().with_access_delay(delay));
    let (server, client) = (host(access.server), host(access.client));
    simulation.connect(server, client, &[path]);
    let server = simulation.bind(server, PORT)?;
    let runtime = simulation.runtime();
    Ok(Endpoints {
        start: runtime.now(),
        runtime,
        address: server.address(),
        server,
        client: simulation.bind(client, 0)?,
        shutdown_timeout: SHUTDOWN_TIMEOUT,
        crypto_provider: (!encrypts).then(|| simulation.crypto_provider()),
    })
}
