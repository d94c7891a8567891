//! [`VideoServer`]: a video server over HTTP/3.
//!
//! Every connection has its own controller, [`VideoKnowledge`](playrate_cc::VideoKnowledge) and a task that accepts its
//! requests. Every request has a task that reads the resource chunk by chunk and hands each chunk to the transport,
//! which accepts the next one only when it has room. So the memory of a connection is at most
//!
//! > send window + concurrent requests × ([`CHUNK`] + the transport's buffer for a request, 64 KiB) + receive window
//!
//! which with the transport's defaults (4 MiB, 100, 64 KiB each, 1 MiB) is 17.5 MiB. A chunk is read only when less
//! than 256 KiB of earlier chunks wait to be sent, so a client behind a slow path costs less. Measured: 100 clients
//! behind 60 Mbit/s in all, each with an open response of 1.9 MB, cost 0.5 MB of resident memory each.
//! `docs/flow-control.md` shows all mechanisms between a file and the socket.
//!
//! A client's mistake ends its exchange or its connection, never the server. Time limits of
//! [`ServerOptions`](playrate_transport::ServerOptions): if a client acknowledges nothing of a response, the response
//! is reset after `stall_timeout`; a connection without requests is closed after `idle_limit`, a silent one after the
//! idle timeout.

pub mod arms;
mod connection;
mod exchange;
mod observe;
mod playback;
mod served;
mod session;
mod start_queue;
mod throughput;

use core::fmt;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use parking_lot::{Mutex, RwLock};
use playrate_transport::{AckRequest, ControllerChoice, Identity, Server, Worker, time};
use playrate_units::Bytes;
use quinn::Runtime;
use tokio::sync::mpsc;

pub use observe::{
    ConnectionInfo, ConnectionState, Observer, PlayerReport, SessionEnd, SessionSummary, playback_name,
};
#[cfg(all(test, feature = "cli"))]
pub(crate) use served::MAX_FIELD;
#[cfg(feature = "cli")]
pub(crate) use served::PendingRecord;
pub use served::{ResponseLog, ServedResponse};

use arms::Arms;
use connection::ActiveConnection;
use start_queue::StartQueue;

use crate::access::Access;
use crate::admission::{Admission, Limits, TICK};
use crate::http::caching::HeaderRule;
use crate::http::cors::Cors;
pub use crate::library::CHUNK;
use crate::library::Library;
use crate::pages::Pages;
use crate::site::{Encodings, EventTarget, Site};

/// Settings of a [`VideoServer`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Controller of every connection without a chosen arm.
    pub controller: ControllerChoice,
    /// Controllers that requests can choose instead.
    pub arms: Option<Arms>,
    /// Size of the players' playout buffers, if the operator knows it.
    pub playout_buffer: Option<Bytes>,
    /// Acknowledgements requested from clients, overriding the controller's choice.
    pub ack_request: Option<AckRequest>,
    /// Clock for `Date` fields; without it none is sent, as in virtual time.
    pub wall_clock: Option<fn() -> SystemTime>,
    /// Other origins whose pages may read responses.
    pub cors: Option<Cors>,
    /// Header fields for responses by their path; the last rule that matches determines a field.
    pub headers: Vec<HeaderRule>,
    /// Check of tokens; `None`: everything is public. Without a wall clock, every token has expired.
    pub access: Option<Arc<Access>>,
    /// Path that receives the event reports of players (CMCD, CTA-5004-B), if any does.
    pub event_path: Option<String>,
    /// Pages for browsers, in addition to the library; without them `/` is not found.
    pub pages: Option<Pages>,
    /// Limits beyond which new sessions are refused.
    pub limits: Limits,
    /// Processor time of the process, for [`Limits::cpu`]; without it that limit never applies.
    pub processor_time: Option<fn() -> Duration>,
    /// Number of processors that the server can use: [`Limits::cpu`] is a share of their time.
    pub processors: NonZeroU32,
    /// Observers that are notified about connections and receive samples of their congestion control.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Log that receives a record of each response, over all versions of HTTP.
    pub response_log: Option<Arc<dyn ResponseLog>>,
    /// Minimum time between two samples of a connection's congestion control.
    pub sample_interval: Duration,
}

impl Settings {
    /// Default settings with this controller: no arms, no date, no pages, no limits, no observers.
    pub fn new(controller: ControllerChoice) -> Self {
        Self {
            controller,
            arms: None,
            playout_buffer: None,
            ack_request: None,
            wall_clock: None,
            cors: None,
            headers: Vec::new(),
            access: None,
            event_path: None,
            pages: None,
            limits: Limits::default(),
            processor_time: None,
            processors: NonZeroU32::MIN,
            observers: Vec::new(),
            response_log: None,
            sample_interval: playrate_transport::telemetry::Monitor::DEFAULT_INTERVAL,
        }
    }
}

/// State shared by all tasks of a server.
struct ServerContext {
    /// For tasks that do not belong to a worker.
    runtime: Arc<dyn Runtime>,
    site: Arc<Site>,
    settings: Arc<Settings>,
    /// Shared with clients over other versions of HTTP.
    admission: Arc<Admission>,
    connections: AtomicU64,
    state: Mutex<ServerState>,
}

impl fmt::Debug for ServerContext {
    /// Writes the settings alone: there may be thousands of titles and connections.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerContext")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// Connections and responses of a server. They have one lock, so that each connection is either active or counted as
/// ended, and each response either running or counted.
#[derive(Debug, Default)]
struct ServerState {
    /// Open connections after their handshake, by number.
    active: BTreeMap<u64, Arc<ActiveConnection>>,
    /// Number of responses that have begun and not ended.
    running: u64,
    totals: ServerTotals,
    is_stopping: bool,
    /// Number of responses that were aborted after the shutdown had begun.
    aborted: u64,
}

impl ServerState {
    /// Ends a running response after `sent` bytes of content.
    fn end_response(&mut self, sent: Bytes, is_complete: bool) {
        self.running = self.running.saturating_sub(1);
        self.totals.bytes += sent;
        self.totals.responses += u64::from(is_complete);
        self.aborted += u64::from(self.is_stopping && !is_complete);
    }

    /// Number of responses that were aborted since the shutdown began or are running.
    fn not_complete(&self) -> u64 {
        self.aborted + self.running
    }
}

/// State shared by the tasks of one worker.
#[derive(Clone)]
struct WorkerContext {
    runtime: Arc<dyn Runtime>,
    admission: Arc<Admission>,
    start_queue: Arc<StartQueue>,
    server: Arc<ServerContext>,
}

/// Totals over the life of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerTotals {
    /// Number of connections that have ended.
    pub sessions: u64,
    /// Number of responses that clients received completely.
    pub responses: u64,
    /// Bytes of content of responses that have ended.
    pub bytes: Bytes,
}

/// A running server. Clones are handles to the same server. It runs until it is [shut down](Self::shutdown).
#[derive(Clone, Debug)]
pub struct VideoServer {
    transport: Server,
    context: Arc<ServerContext>,
    /// Closed once the last task has ended.
    tasks: Arc<tokio::sync::Mutex<mpsc::Receiver<()>>>,
}

/// Result of a shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// True if every connection ended by itself before the deadline.
    pub drained: bool,
    /// Number of responses aborted by the deadline, or by clients that left during the shutdown.
    pub cut: u64,
    /// Totals over the life of the server.
    pub totals: ServerTotals,
}

impl VideoServer {
    /// Starts serving `library` on `transport`. Connections run on the runtime of their socket if the transport has one
    /// per socket; everything else runs on `runtime`.
    pub fn start(transport: Server, runtime: Arc<dyn Runtime>, library: Library, settings: Settings) -> Self {
        let (alive, tasks) = mpsc::channel(1);
        let settings = Arc::new(settings);
        let site = Site {
            library: RwLock::new(Arc::new(library)),
            settings: Arc::clone(&settings),
            encodings: Encodings::default(),
            prefixes: settings.arms.as_ref().map(Arms::prefixes).unwrap_or_default(),
            pages: settings.pages.clone().map(RwLock::new),
            replied: Mutex::default(),
            events: settings.event_path.clone().map(EventTarget::new),
            failures: Mutex::default(),
        };
        let admission = Admission::new(settings.limits);
        let context = Arc::new(ServerContext {
            runtime,
            site: Arc::new(site),
            settings,
            admission,
            connections: AtomicU64::new(0),
            state: Mutex::default(),
        });
        start_workers(&transport, &context, &alive);
        Self {
            transport,
            context,
            tasks: Arc::new(tokio::sync::Mutex::new(tasks)),
        }
    }

    /// Address on which it listens.
    ///
    /// # Errors
    /// The socket does not report its address.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.transport.local_addr()
    }

    /// The library that it currently serves.
    pub fn library(&self) -> Arc<Library> {
        self.context.site.library()
    }

    /// Serves `library` from now on. Does not affect responses in progress.
    pub fn set_library(&self, library: Library) {
        self.context.site.set_library(library);
    }

    /// The site, for serving it over other versions of HTTP.
    pub fn site(&self) -> &Arc<Site> {
        &self.context.site
    }

    /// Admission and load of the server, for serving its site over other versions of HTTP.
    pub fn admission(&self) -> &Arc<Admission> {
        &self.context.admission
    }

    /// Uses `identities` for new connections, over every version of HTTP; the page shows the pin of the first. Returns
    /// false if they are those in use.
    pub fn set_identities(&self, identities: Vec<Identity>) -> bool {
        if let Some(first) = identities.first() {
            self.context.site.set_pin(first.pin());
        }
        self.transport.certificates().set(identities)
    }

    /// Its endpoints over HTTP/3: their connections, including those in handshake or closing, and their totals.
    pub fn transport(&self) -> &Server {
        &self.transport
    }

    /// States of all connections after their handshake, oldest first.
    pub fn connections(&self) -> Vec<ConnectionState> {
        self.snapshot().0
    }

    /// States of all connections after their handshake, oldest first, with totals of the same moment: each connection
    /// is either in the states or counted as ended in the totals.
    pub fn snapshot(&self) -> (Vec<ConnectionState>, ServerTotals) {
        let (now, arms) = (self.context.runtime.now(), self.context.settings.arms.as_ref());
        // The states are read outside the lock: connections need it to begin and end.
        let (connections, totals) = {
            let state = self.context.state.lock();
            (state.active.values().cloned().collect::<Vec<_>>(), state.totals)
        };
        let states = connections
            .iter()
            .map(|connection| connection.state(now, arms))
            .collect();
        (states, totals)
    }

    /// Totals up to now.
    pub fn totals(&self) -> ServerTotals {
        self.context.state.lock().totals
    }

    /// Settings with which it was started.
    pub fn settings(&self) -> &Settings {
        &self.context.settings
    }

    /// Shuts down: refuses new connections and requests, waits for responses, and aborts those still running after
    /// `deadline`. If a first call is cancelled, a second one with a shorter deadline may follow.
    pub async fn shutdown(&self, deadline: Duration) -> ShutdownReport {
        self.context.state.lock().is_stopping = true;
        let drained = self.transport.shutdown(deadline).await;
        // The connections are closed; their tasks now report their summaries and end.
        let ended = async { self.tasks.lock().await.recv().await };
        if time::timeout(&*self.context.runtime, Duration::from_secs(1), ended)
            .await
            .is_err()
        {
            tracing::warn!("connections are closed, but not all of their tasks have ended");
        }
        let state = self.context.state.lock();
        ShutdownReport {
            drained,
            // Responses in progress were aborted with their connections, although their tasks have not noticed yet.
            cut: state.not_complete(),
            totals: state.totals,
        }
    }
}

/// Starts the tasks of each runtime of a server: the load measurement and the workers of `transport`.
fn start_workers(transport: &Server, server: &Arc<ServerContext>, alive: &mpsc::Sender<()>) {
    // Workers of one runtime share its task queue, where bodies wait to start.
    let mut contexts: Vec<WorkerContext> = Vec::new();
    let mut context_of = |runtime: &Arc<dyn Runtime>| {
        let there = |context: &&WorkerContext| Arc::ptr_eq(&context.runtime, runtime);
        if let Some(context) = contexts.iter().find(there) {
            return context.clone();
        }
        let is_first = contexts.is_empty();
        let context = WorkerContext {
            runtime: Arc::clone(runtime),
            admission: if is_first {
                Arc::clone(&server.admission)
            } else {
                server.admission.of_another_thread()
            },
            start_queue: Arc::default(),
            server: Arc::clone(server),
        };
        let settings = &server.settings;
        if settings.limits.depend_on_load() {
            let weak = Arc::downgrade(&context.admission);
            let clock = settings.processor_time.filter(|_| is_first);
            let observing = observe_load(weak, Arc::clone(runtime), (clock, settings.processors));
            runtime.spawn(Box::pin(observing));
        }
        contexts.push(context.clone());
        context
    };
    context_of(&server.runtime);
    for worker in transport.workers() {
        let runtime = worker.runtime().unwrap_or(&server.runtime);
        let context = context_of(runtime);
        let accepting = accept(worker.clone(), Arc::new(context), alive.clone());
        runtime.spawn(Box::pin(accepting));
    }
}

/// Sleeps for one [`TICK`] after another and reports the lateness of the wake-ups, and the processor time if there is a
/// clock for it, until `admission` is dropped.
async fn observe_load(
    admission: Weak<Admission>,
    runtime: Arc<dyn Runtime>,
    (processor_time, processors): (Option<fn() -> Duration>, NonZeroU32),
) {
    loop {
        let due = runtime.now() + TICK;
        time::sleep(&*runtime, TICK).await;
        let Some(admission) = admission.upgrade() else {
            return;
        };
        let used = processor_time.map(|clock| clock() / processors.get());
        admission.observe(due, runtime.now(), used);
    }
}

async fn accept(worker: Worker, context: Arc<WorkerContext>, alive: mpsc::Sender<()>) {
    while let Some(incoming) = worker.accept().await {
        let id = context.server.connections.fetch_add(1, Relaxed);
        let task = session::serve(incoming, id, Arc::clone(&context), alive.clone());
        context.runtime.spawn(Box::pin(task));
    }
}
