//! [`VideoServer`]: the life of a server, from the first client to the last.
//!
//! Every connection gets a controller and a [`VideoKnowledge`](playrate_cc::VideoKnowledge) of its own and a task that
//! takes its requests; every request gets a task that reads what was asked for chunk by chunk and hands each chunk to
//! the transport, which takes the next one only when it has room. So a connection never costs more memory than
//!
//! > send window + requests at once × ([`CHUNK`] + what the transport takes of a request, 64 KiB) + receive window
//!
//! which with the transport's defaults (4 MiB, 100, 64 KiB each, 1 MiB) is at most 17.5 MiB. A chunk is read only when little of the ones
//! before waits to be sent (256 KiB), so a client behind a slow path costs less: 100 of them, each with a response of 1.9 MB open
//! behind 60 Mbit/s in all, were measured to cost 0.5 MB of resident memory each. One that keeps up costs what is under way to it.
//!
//! What a client does wrong ends its exchange or its connection, never the server. One that stops acknowledging is given up
//! after [`ServerOptions::stall_timeout`](playrate_transport::ServerOptions), one that is silent after the idle timeout.

pub mod arms;
mod connection;
mod exchange;
mod line;
mod live;
mod observe;
mod throughput;
mod ticks;
mod watching;

use core::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use playrate_transport::{ControllerChoice, EndpointError, Identity, Server, time};
use playrate_units::Bytes;
use quinn::Runtime;
use tokio::sync::{Mutex, mpsc};

pub use live::{ConnectionState, ServerTotals};
pub use observe::{ConnectionInfo, Observer, PlayerReport, SessionEnd, SessionSummary};

use arms::Arms;
use live::Connections;

use crate::admission::{Admission, Limits};
use crate::http::cors::Cors;
use crate::library::Library;
pub use crate::site::CHUNK;
use crate::site::Site;

/// How a server treats its clients.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The controller that every connection gets, as long as no arm is chosen for it.
    pub controller: ControllerChoice,
    /// Controllers that requests may choose instead; without it none.
    pub arms: Option<Arms>,
    /// Size of the players' playout buffers, where the operator knows it.
    pub playout_buffer: Option<Bytes>,
    /// Tells the date for `Date` fields; without it none is sent, as in virtual time.
    pub wall_clock: Option<fn() -> SystemTime>,
    /// Pages of which other origins may read what is served; without it none.
    pub cors: Option<Cors>,
    /// When new sessions are turned away; without limits never.
    pub limits: Limits,
    /// Tells how much time the process has used of its processors, divided by their number, for
    /// [`Limits::cpu`]; without it that limit never binds.
    pub processor_time: Option<fn() -> Duration>,
    /// Who is told of connections and may watch their congestion control.
    pub observer: Option<Arc<dyn Observer>>,
    /// Shortest time between two samples of a connection's congestion control.
    pub sample_interval: Duration,
}

impl Settings {
    /// The defaults, with `controller`: nothing known of the players, no date, nobody watching.
    pub fn new(controller: ControllerChoice) -> Self {
        Self {
            controller,
            arms: None,
            playout_buffer: None,
            wall_clock: None,
            cors: None,
            limits: Limits::default(),
            processor_time: None,
            observer: None,
            sample_interval: playrate_transport::telemetry::Monitor::DEFAULT_INTERVAL,
        }
    }
}

/// What all tasks of a server share.
struct Shared {
    runtime: Arc<dyn Runtime>,
    site: Arc<Site>,
    settings: Settings,
    admission: Arc<Admission>,
    line: line::Line,
    connections: AtomicU64,
    live: Connections,
    stopping: AtomicBool,
    counted: Counted,
}

/// Totals over the life of the server.
#[derive(Debug, Default)]
struct Counted {
    sessions: AtomicU64,
    responses: AtomicU64,
    bytes: AtomicU64,
    /// Responses that were broken off after the shutdown had begun.
    cut: AtomicU64,
}

/// A server that serves. Clones are the same server. It goes on until it is [shut down](Self::shutdown).
#[derive(Clone)]
pub struct VideoServer {
    transport: Server,
    shared: Arc<Shared>,
    /// Yields nothing, and ends when the last task has.
    tasks: Arc<Mutex<mpsc::Receiver<()>>>,
}

impl fmt::Debug for VideoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VideoServer")
            .field("transport", &self.transport)
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

/// What a shutdown came to, and what the server had done by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Whether every connection ended by itself before the deadline.
    pub drained: bool,
    /// Responses that were broken off, by the deadline or by clients leaving meanwhile.
    pub cut: u64,
    /// Connections served in the server's life.
    pub sessions: u64,
    /// Responses that arrived whole.
    pub responses: u64,
    /// Bytes of content handed to the transport.
    pub bytes: Bytes,
}

impl VideoServer {
    /// Starts serving `library` on `transport`, whose runtime is `runtime`.
    pub fn start(transport: Server, runtime: Arc<dyn Runtime>, library: Library, settings: Settings) -> Self {
        let (alive, tasks) = mpsc::channel(1);
        let site = Site::new(library)
            .with_cors(settings.cors.clone())
            .with_prefixes(settings.arms.as_ref().map(Arms::prefixes).unwrap_or_default())
            .with_wall_clock(settings.wall_clock);
        let admission = Admission::new(settings.limits);
        if admission.depends_on_load() {
            let (weak, clock) = (Arc::downgrade(&admission), settings.processor_time);
            runtime.spawn(Box::pin(ticks::observe(weak, Arc::clone(&runtime), clock)));
        }
        let shared = Arc::new(Shared {
            runtime,
            site: Arc::new(site),
            settings,
            admission,
            line: line::Line::default(),
            connections: AtomicU64::new(0),
            live: Connections::default(),
            stopping: AtomicBool::new(false),
            counted: Counted::default(),
        });
        let accepting = accept(transport.clone(), Arc::clone(&shared), alive);
        shared.runtime.spawn(Box::pin(accepting));
        Self {
            transport,
            shared,
            tasks: Arc::new(Mutex::new(tasks)),
        }
    }

    /// The address it listens on.
    ///
    /// # Errors
    /// If the socket does not know.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.transport.local_addr()
    }

    /// What it serves.
    pub fn library(&self) -> &Library {
        self.shared.site.library()
    }

    /// What it says to requests, for serving the same over other versions of HTTP.
    pub fn site(&self) -> &Arc<Site> {
        &self.shared.site
    }

    /// Who is let in, and what the server carries; for serving the same over other versions of HTTP.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.shared.admission
    }

    /// Shows `identity` to clients that connect from now on.
    ///
    /// # Errors
    /// If its certificate and key cannot be used. Nothing has changed then.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), EndpointError> {
        self.transport.set_identity(identity)
    }

    /// Connections open now, those that are being set up or taken down included.
    pub fn open_connections(&self) -> usize {
        self.transport.open_connections()
    }

    /// The connections whose handshake is done, the oldest first.
    pub fn connections(&self) -> Vec<ConnectionState> {
        let Shared {
            live,
            runtime,
            settings,
            ..
        } = &*self.shared;
        live.now(runtime.now(), settings.arms.as_ref())
    }

    /// What it has done so far.
    pub fn totals(&self) -> ServerTotals {
        let counted = &self.shared.counted;
        ServerTotals {
            sessions: counted.sessions.load(Relaxed),
            responses: counted.responses.load(Relaxed),
            bytes: Bytes::new(counted.bytes.load(Relaxed)),
        }
    }

    /// How it treats its clients.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    /// Shuts down: takes no new connections and no new requests, lets responses end, and breaks off what has not
    /// ended after `deadline`. A second call, with a shorter deadline, may overtake a first one that was given up.
    pub async fn shutdown(&self, deadline: Duration) -> ShutdownReport {
        self.shared.stopping.store(true, Relaxed);
        let drained = self.transport.shutdown(deadline).await;
        // The connections are closed, so their tasks end at once; they still have their summaries to give.
        let ended = async { self.tasks.lock().await.recv().await };
        if time::timeout(&*self.shared.runtime, Duration::from_secs(1), ended)
            .await
            .is_err()
        {
            tracing::warn!("connections are closed, but not all of their tasks have ended");
        }
        let ServerTotals {
            sessions,
            responses,
            bytes,
        } = self.totals();
        ShutdownReport {
            drained,
            cut: self.shared.counted.cut.load(Relaxed),
            sessions,
            responses,
            bytes,
        }
    }
}

async fn accept(transport: Server, shared: Arc<Shared>, alive: mpsc::Sender<()>) {
    while let Some(incoming) = transport.accept().await {
        let id = shared.connections.fetch_add(1, Relaxed);
        let task = connection::serve(incoming, id, Arc::clone(&shared), alive.clone());
        shared.runtime.spawn(Box::pin(task));
    }
}
