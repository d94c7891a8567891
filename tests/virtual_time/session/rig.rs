//! [`Rig`]: a server and a client on two simulated hosts; the server can vanish and be restarted.

use std::io::{self, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use playrate_netsim::{HostConfig, PathConfig, PathId, RunLimits, Seed, Simulation, VirtualSocket};
use playrate_transport::{
    Client, ClientOptions, Identity, LayeredSocket, Server, ServerOptions, SocketLayer, Target,
    TransportOptions, Trust,
};
use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime};
use video_client::cmcd::{CmcdMode, CmcdOptions};
use video_client::{ReconnectOptions, SessionOptions};
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

/// Number of a server that is not there.
const NOBODY: usize = usize::MAX;

/// A server and a client on two simulated hosts.
pub(crate) struct Rig {
    pub(crate) sim: Simulation,
    pub(crate) path: PathId,
    pub(crate) identity: Identity,
    pub(crate) runtime: Arc<dyn Runtime>,
    seed: Seed,
    server: Arc<VirtualSocket>,
    client: Arc<VirtualSocket>,
    started: AtomicUsize,
    /// Number of the server that owns the socket.
    present: Arc<AtomicUsize>,
}

impl Rig {
    pub(crate) fn new(seed: Seed, path: &PathConfig) -> Self {
        let sim = Simulation::new(seed);
        let path = sim.add_path(path.build(seed.child("path")).unwrap());
        let host = || sim.add_host(HostConfig::default()).unwrap();
        let (server, client) = (host(), host());
        sim.connect(server, client, &[path]);
        Self {
            path,
            identity: Identity::development(&[]).unwrap(),
            runtime: sim.runtime(),
            seed,
            server: sim.bind(server, 443).unwrap(),
            client: sim.bind(client, 0).unwrap(),
            sim,
            started: AtomicUsize::new(0),
            present: Arc::new(AtomicUsize::new(NOBODY)),
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
        let number = self.started.fetch_add(1, Relaxed);
        self.present.store(number, Relaxed);
        let mut options = ServerOptions::new(self.identity.clone());
        options.transport.seed = Some(self.seed.derive(&format!("server {number}")));
        change(&mut options);
        let socket = Arc::new(LayeredSocket(ServerSocket {
            inner: Arc::clone(&self.server) as _,
            number,
            present: Arc::clone(&self.present),
        }));
        let server = Server::new(Arc::clone(&self.runtime), socket, options).unwrap();
        VideoServer::start(server, Arc::clone(&self.runtime), library, settings)
    }

    /// The server vanishes without sending anything.
    pub(crate) fn crash(&self) {
        self.present.store(NOBODY, Relaxed);
    }

    /// A client, and the address of the server for it.
    pub(crate) fn client(&self, change: impl FnOnce(&mut TransportOptions)) -> (Client, Target) {
        let mut options = ClientOptions::new(Trust::Pin(self.identity.pin()));
        options.transport.seed = Some(self.seed.derive("client"));
        change(&mut options.transport);
        let client = Client::new(
            Arc::clone(&self.runtime),
            Arc::clone(&self.client) as Arc<_>,
            options,
        )
        .unwrap();
        (client, Target::at("localhost", self.server.address()))
    }

    /// Runs `main` for at most an hour of virtual time.
    pub(crate) fn run<F: Future>(&self, main: F) -> F::Output {
        self.sim
            .run(RunLimits::until(Duration::from_secs(3_600)), main)
            .unwrap()
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
    };
    options
}

/// The socket of one of several consecutive servers on the same address.
#[derive(Debug)]
struct ServerSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    number: usize,
    present: Arc<AtomicUsize>,
}

impl SocketLayer for ServerSocket {
    fn below(&self) -> &Arc<dyn AsyncUdpSocket> {
        &self.inner
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        if self.present.load(Relaxed) == self.number {
            self.inner.try_send(transmit)?;
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        loop {
            match self.present.load(Relaxed) {
                present if present == self.number => return self.inner.poll_recv(cx, buffers, metas),
                // Datagrams that arrive while there is no server are lost.
                NOBODY if self.inner.poll_recv(cx, buffers, metas).is_ready() => {}
                _ => return Poll::Pending,
            }
        }
    }
}
