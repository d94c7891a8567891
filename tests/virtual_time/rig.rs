//! [`Rig`]: a server and its clients on simulated hosts; the server can vanish and be restarted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use playrate_netsim::{Host, HostConfig, PathConfig, PathId, Seed, Simulation};
use playrate_transport::{
    Client, ClientOptions, Identity, Server, ServerOptions, Target, TransportOptions, Trust,
};
use quinn::Runtime;
use video_client::cmcd::{CmcdMode, CmcdOptions};
use video_client::{ReconnectOptions, SessionOptions};
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

/// UDP port of the server.
const PORT: u16 = 443;

/// A server, and clients that share a path to it, each on a simulated host.
pub(crate) struct Rig {
    pub(crate) sim: Simulation,
    pub(crate) path: PathId,
    pub(crate) identity: Identity,
    pub(crate) runtime: Arc<dyn Runtime>,
    seed: Seed,
    server: Host,
    /// Number of servers that were started.
    started: AtomicUsize,
}

impl Rig {
    pub(crate) fn new(seed: Seed, path: &PathConfig) -> Self {
        let sim = Simulation::new(seed);
        let path = sim.add_path(path.build(seed.child("path")).unwrap());
        Self {
            path,
            identity: Identity::development(&[]).unwrap(),
            runtime: sim.runtime(),
            seed,
            server: sim.add_host(HostConfig::default()),
            sim,
            started: AtomicUsize::new(0),
        }
    }

    /// Starts a server of `library` with `change` applied to its options. The previous server vanishes without sending
    /// anything.
    pub(crate) fn start(
        &self,
        library: Library,
        settings: Settings,
        change: impl FnOnce(&mut ServerOptions),
    ) -> VideoServer {
        self.crash();
        let number = self.started.fetch_add(1, Relaxed);
        let mut options = ServerOptions::new(self.identity.clone());
        options.transport.seed = Some(self.seed.derive(&format!("server {number}")));
        change(&mut options);
        let runtime: Arc<dyn Runtime> = self.sim.runtime_on(self.server);
        let socket = self.sim.bind(self.server, PORT).unwrap();
        let server = Server::new(Arc::clone(&runtime), socket, options).unwrap();
        VideoServer::start(server, runtime, library, settings)
    }

    /// The server vanishes without sending anything.
    pub(crate) fn crash(&self) {
        self.sim.crash(self.server);
    }

    /// A client on a host of its own, and the address of the server for it.
    pub(crate) fn client(&self, name: &str, change: impl FnOnce(&mut TransportOptions)) -> (Client, Target) {
        let host = self.sim.add_host(HostConfig::default());
        self.sim.connect(self.server, host, &[self.path]);
        let socket = self.sim.bind(host, 0).unwrap();
        let mut options = ClientOptions::new(Trust::Pin(self.identity.pin()));
        options.transport.seed = Some(self.seed.derive(name));
        change(&mut options.transport);
        let client = Client::new(Arc::clone(&self.runtime), socket, options).unwrap();
        (client, Target::at("localhost", (self.server.ip(), PORT).into()))
    }

    /// Runs `main` for at most an hour of virtual time.
    pub(crate) fn run<F: Future>(&self, main: F) -> F::Output {
        self.sim.run(Duration::from_secs(3_600), main).unwrap()
    }
}

/// Options of a session that reconnects.
pub(crate) fn reconnecting(limit: Duration) -> SessionOptions {
    let mut reconnect = ReconnectOptions::default();
    reconnect.limit = limit;
    let mut options = SessionOptions::default();
    options.reconnect = Some(reconnect);
    options.cmcd = CmcdOptions {
        mode: CmcdMode::Header,
        session: "6e2fb550".to_owned(),
        ..CmcdOptions::default()
    };
    options
}
