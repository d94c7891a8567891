//! [`ServerHost`]: the product's server of a session, which may crash and be restarted.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use lab::sim::ServedTitle;
use parking_lot::Mutex;
use playrate_netsim::{Host, Simulation, VirtualRuntime};
use playrate_transport::{EndpointKey, Identity, Server, ServerOptions};
use playrate_units::Bytes;
use quinn::Runtime;
use video_server::library::Library;
use video_server::serve::{Observer, SessionSummary, Settings, VideoServer};

use crate::media::{Counters, FaultyDisk};
use crate::plan::FaultPlan;

/// UDP port of the server.
pub(crate) const PORT: u16 = 443;

/// A connection whose end a server has seen.
#[derive(Clone, Debug)]
pub(crate) struct EndedConnection {
    pub(crate) at: Duration,
    pub(crate) summary: SessionSummary,
}

/// Keeps the summaries of one server's connections.
#[derive(Debug)]
struct Summaries {
    runtime: Arc<VirtualRuntime>,
    ended: Mutex<Vec<EndedConnection>>,
}

impl Observer for Summaries {
    fn finished(&self, session: &SessionSummary) {
        let ended = EndedConnection {
            at: self.runtime.time().elapsed(),
            summary: session.clone(),
        };
        self.ended.lock().push(ended);
    }
}

/// A server while it runs.
pub(crate) struct RunningServer {
    pub(crate) server: VideoServer,
    summaries: Arc<Summaries>,
}

impl RunningServer {
    /// The connections whose end it has seen.
    pub(crate) fn ended(&self) -> Vec<EndedConnection> {
        self.summaries.ended.lock().clone()
    }

    /// Number of requests on its connections that are neither answered nor aborted.
    pub(crate) fn open_responses(&self) -> u64 {
        let states = self.server.connections();
        let open = states
            .iter()
            .map(|state| state.requests.saturating_sub(state.responses + state.aborted));
        open.sum()
    }
}

/// A host for servers that run one after another.
pub(crate) struct ServerHost<'a> {
    pub(crate) simulation: &'a Simulation,
    pub(crate) host: Host,
    pub(crate) plan: &'a FaultPlan,
    pub(crate) title: &'a ServedTitle,
    pub(crate) identity: Identity,
    pub(crate) counters: Counters,
}

impl ServerHost<'_> {
    /// Starts the `number`th server, with the endpoint key of this name.
    ///
    /// # Errors
    /// If it cannot be set up, which would be a mistake in the plan.
    pub(crate) fn start(&self, number: usize, key: &str) -> anyhow::Result<RunningServer> {
        let Self { simulation, plan, .. } = self;
        let runtime = simulation.runtime_on(self.host);
        let mut options = ServerOptions::new(self.identity.clone());
        options.endpoint_key = Some(EndpointKey::new(plan.seed_of("endpoint key").derive(key)));
        options.transport.seed = Some(plan.seed_of("server").derive(&number.to_string()));
        options.transport.send_window = plan.send_window;
        options.stall_timeout = plan.stall_timeout;
        options.idle_limit = plan.idle_limit;
        let socket = simulation.bind(self.host, PORT)?;
        let transport = Server::new(Arc::clone(&runtime) as Arc<dyn Runtime>, socket, options)
            .context("cannot set up the server")?;
        self.counters.begin_server();
        let mut library = Library::new();
        for (number, (name, source)) in self.title.resources().into_iter().enumerate() {
            let disk = FaultyDisk::new(
                (number, source),
                plan,
                Arc::clone(&runtime),
                self.counters.clone(),
            );
            library = library.with_source(&name, Arc::new(disk))?;
        }
        let summaries = Arc::new(Summaries {
            runtime: Arc::clone(&runtime),
            ended: Mutex::default(),
        });
        let mut settings = Settings::new(plan.controller.clone());
        settings.playout_buffer = Some(Bytes::from_kb(656));
        settings
            .observers
            .push(Arc::clone(&summaries) as Arc<dyn Observer>);
        Ok(RunningServer {
            server: VideoServer::start(transport, runtime, library, settings),
            summaries,
        })
    }
}
