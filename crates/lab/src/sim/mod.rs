//! One run: the product's server and client, TLS and HTTP/3 included, over a modelled path, in virtual time ([`run`]) or
//! over real UDP ([`run_live`]).
//!
//! A run has one or more viewers behind one bottleneck, and may have flows beside them that just download. Each has a
//! server and a connection of its own, so each may be sent to by another controller. Nothing is global: runs on several
//! threads do not know of each other, and the same [`Setup`] gives the same packets at the same times on each of them ([`Simulated::wire_hash`]).
//!
//! ```
//! use lab::sim::{self, Played, Setup, Viewer};
//! use playrate_media::{FrameTrace, TraceSource};
//! use playrate_netsim::{Loss, PathConfig, QueueLimit, Seed};
//! use playrate_units::Bitrate;
//! use std::{sync::Arc, time::Duration};
//!
//! let trace: FrameTrace = "0.00,60000,K\n0.04,9000,_\n0.08,9000,_\n0.12,9000,_\n".parse()?;
//! let title = Played::trace("film", TraceSource::new(&trace.repeat_to(Duration::from_secs(2))?));
//! let rtt = Duration::from_millis(100);
//! let path = PathConfig::bottleneck(Bitrate::from_mbps(20), rtt, QueueLimit::ONE_BDP, Loss::None);
//! let setup = Setup::new(path, Seed::new(1)).with_viewer(Viewer::new("cubic".parse()?, title));
//! let first = sim::run(&setup)?;
//! assert_eq!(first.viewers[0].record.viewer.discarded, 0);
//! assert_eq!(first.wire_hash, sim::run(&setup)?.wire_hash);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bulk;
mod collect;
mod dash;
mod ends;
mod error;
mod ideal;
mod identity;
mod listen;
mod live;
mod meter;
mod restarts;
mod seat;
mod setup;
mod spread;
mod windows;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use playrate_netsim::{HostConfig, LinkSeries, LinkStats, NetworkStats, Path, RunLimits, Simulation};
use quinn::Runtime as _;
use tokio::sync::{Notify, mpsc};
use video_client::report::QualityReport;

pub use bulk::SimulatedBulk;
pub use ends::{Ended, Place, RunFacts, SERVER_NAME, Session, client, server};
pub use error::SimError;
pub use ideal::{Ideal, ideal};
pub use identity::identity;
pub use listen::{Recording, Viewing};
pub use live::{Live, LiveOptions, run_live, virtual_only};
pub use meter::{Measured, Meter, RttSpread, WindowSpread};
pub use restarts::RestartSpread;
pub use seat::{Moment, Seat, Sight};
pub use setup::{Access, Bulk, Played, Setup, Viewer};
pub use windows::{Window, WindowCounts};

use crate::record::RunRecord;
use bulk::Download;

pub use collect::{LinkTap, record};

/// UDP port of simulated servers.
const PORT: u16 = 4433;
/// Bins of the link's series; it covers a run of any length.
const LINK_BINS: usize = 2_048;
/// Width of the link's bins in a short run.
const LINK_BIN: Duration = Duration::from_millis(20);
/// How long a server may take to see that its client has left.
const FAREWELL: Duration = Duration::from_secs(30);

/// What one run leaves behind.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The viewers in the order of the setup.
    pub viewers: Vec<SimulatedViewer>,
    /// The other downloads in the order of the setup.
    pub bulk: Vec<SimulatedBulk>,
    /// The direction that carries the video.
    pub forward: LinkStats,
    /// The direction of requests and acknowledgements.
    pub backward: LinkStats,
    /// What became of datagrams beside the links; over real UDP only the relay's flaws say it.
    pub network: NetworkStats,
    /// A hash of every packet's time, size and fate; `None` of a run over real UDP.
    pub wire_hash: Option<u64>,
    /// Time from the beginning until every server and client had gone.
    pub length: Duration,
}

/// What one viewer's session leaves behind.
#[derive(Clone, Debug)]
pub struct SimulatedViewer {
    /// From the beginning of the run to that of the session.
    pub joined: Duration,
    /// What it did in the setup's windows.
    pub windows: Vec<WindowCounts>,
    /// The client's own report.
    pub report: QualityReport,
    /// The same with the server's side and the link's, for figures.
    pub record: RunRecord,
    /// What the server's transport counted; `None` if the handshake failed.
    pub totals: Option<playrate_transport::telemetry::Totals>,
    /// Smallest RTT that the server saw, from its samples.
    pub min_rtt: Option<Duration>,
    /// What the server's window and estimates did; `None` if nothing was ever acknowledged.
    pub measured: Option<Measured>,
}

/// How far a run is, for whoever looks from another thread.
#[derive(Debug, Default)]
pub struct Watch {
    stop: AtomicBool,
    stopped: Notify,
    received: AtomicU64,
}

impl Watch {
    /// Ends the run: [`run_watched`] gives [`SimError::Stopped`], [`run_live`] what there is so far.
    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
        self.stopped.notify_waiters();
    }

    /// Bytes received so far by all viewers and other downloads together.
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.received.fetch_add(bytes, Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Resolves when it is stopped.
    pub(super) async fn stopped(&self) {
        let mut told = std::pin::pin!(self.stopped.notified());
        // From here on no stop is missed.
        told.as_mut().enable();
        if !self.is_stopped() {
            told.await;
        }
    }
}

/// Makes the run that `setup` describes. It keeps its thread busy to the end: from async code call it in
/// `tokio::task::spawn_blocking`, since tokio ends the turn of a task that goes on for long, and the simulation takes that
/// for spinning.
///
/// # Errors
/// If the path cannot be, or the simulation ends before its viewers have. A session that breaks off is part of the
/// results.
pub fn run(setup: &Setup) -> Result<Simulated, SimError> {
    run_watched(setup, &Arc::new(Watch::default()))
}

/// As [`run`], and tells `watch` how far it is.
///
/// # Errors
/// As [`run`], and if `watch` stops it.
pub fn run_watched(setup: &Setup, watch: &Arc<Watch>) -> Result<Simulated, SimError> {
    let simulation = Simulation::new(setup.seed.child("simulation"));
    let mut path = setup.path.build(setup.seed.child("path"))?;
    if setup.taps {
        path = tapped(path);
    }
    let path = simulation.add_path(path);
    let (sender, mut ended) = mpsc::unbounded_channel();
    for (index, viewer) in setup.viewers.iter().enumerate() {
        let session = stage(&simulation, setup, index, viewer, path)?;
        let (sender, watch, joins) = (sender.clone(), Arc::clone(watch), viewer.joins);
        let runtime = simulation.runtime();
        runtime.clone().spawn(Box::pin(async move {
            if !joins.is_zero() {
                runtime.sleep(joins).await;
            }
            let played = session.play(&watch).await;
            // The run waits for all of them; if it is gone, nobody wants to know.
            let _ = sender.send((index, played));
        }));
    }
    drop(sender);
    let mut downloads = Vec::new();
    for (index, bulk) in setup.bulk.iter().enumerate() {
        let place = place(&simulation, bulk.access, path)?;
        let download = Download::new(setup, index, bulk, place)?;
        let run = Arc::clone(&download).run(Arc::clone(watch));
        simulation.runtime().spawn(Box::pin(run));
        downloads.push(download);
    }
    let everyone = async {
        let mut all = Vec::new();
        while let Some((index, played)) = ended.recv().await {
            all.push((index, played?));
        }
        all.sort_by_key(|(index, _)| *index);
        Ok::<_, SimError>(all)
    };
    let all = simulation.run(RunLimits::until(setup.deadline()), everyone)??;
    if watch.is_stopped() {
        return Err(SimError::Stopped);
    }
    let length = simulation.now().elapsed();
    let tap = simulation.link_series(path.forward);
    let forward = simulation.link_stats(path.forward);
    let viewers = all
        .into_iter()
        .zip(&setup.viewers)
        .map(|((_, played), viewer)| {
            let link = LinkTap {
                stats: forward,
                series: tap.as_ref(),
                lateness: Duration::ZERO,
                flaws: &[],
            };
            let run = RunFacts {
                windows: &setup.windows,
                length,
            };
            played.collect(viewer, &link, &run)
        })
        .collect();
    let bulk = downloads.iter().map(|download| download.collect(setup, length));
    Ok(Simulated {
        viewers,
        bulk: bulk.collect(),
        forward,
        backward: simulation.link_stats(path.backward),
        network: simulation.network_stats(),
        wire_hash: Some(simulation.digest()),
        length,
    })
}

fn tapped(path: Path) -> Path {
    Path {
        forward: path.forward.with_series(LinkSeries::new(LINK_BIN, LINK_BINS)),
        ..path
    }
}

/// Two hosts of their own for a flow's server and client.
fn place(simulation: &Simulation, access: Access, path: playrate_netsim::PathId) -> Result<Place, SimError> {
    let host = |delay| simulation.add_host(HostConfig::default().with_access_delay(delay));
    let (server, client) = (host(access.server)?, host(access.client)?);
    simulation.connect(server, client, &[path]);
    let server = simulation.bind(server, PORT)?;
    let runtime = simulation.runtime();
    Ok(Place {
        start: runtime.now(),
        runtime,
        address: server.address(),
        server,
        client: simulation.bind(client, 0)?,
    })
}

/// A viewer with its server.
fn stage(
    simulation: &Simulation,
    setup: &Setup,
    index: usize,
    viewer: &Viewer,
    path: playrate_netsim::PathId,
) -> Result<Session, SimError> {
    let place = place(simulation, viewer.access, path)?;
    Ok(Session::stage(setup, index, viewer, place)?.with_farewell(FAREWELL))
}
