//! The HTTP/3 server side: an endpoint, its sessions, and the exchanges on them.
//!
//! ```no_run
//! # async fn example(runtime: std::sync::Arc<dyn quinn::Runtime>) -> Result<(), Box<dyn std::error::Error>> {
//! use playrate_transport::{ConnectionController, ControllerChoice, Identity, Server, ServerOptions};
//!
//! let options = ServerOptions::new(Identity::development(&[])?);
//! let server = Server::bind("127.0.0.1:4433".parse()?, runtime.clone(), options)?;
//! let choice: ControllerChoice = "quinn-cubic".parse()?;
//! while let Some(incoming) = server.accept().await {
//!     let control = ConnectionController::new(choice.clone());
//!     let task_runtime = runtime.clone();
//!     runtime.spawn(Box::pin(async move {
//!         let Ok(mut session) = incoming.establish(control).await else { return };
//!         // Continuing to accept keeps the session alive while its exchanges run.
//!         while let Ok(Some(arrival)) = session.accept().await {
//!             task_runtime.spawn(Box::pin(async move {
//!                 let Ok(exchange) = arrival.receive().await else { return };
//!                 let _ = exchange.respond(http::Response::new(()), "hello".into()).await;
//!             }));
//!         }
//!     }));
//! }
//! # Ok(())
//! # }
//! ```

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use quinn::{AsyncUdpSocket, Runtime};
use tokio::sync::watch;

use crate::endpoint::udp_socket;
use crate::error::{EndpointError, H3_NO_ERROR};
use crate::merging::MergingSocket;
use crate::quic::var_int;
use crate::receiving::ReceivingRuntime;
use crate::time;
use crate::tls::{Certificates, require_registered_suites};
use clients::Clients;
use keys::{EndpointKeys, Issuer};
use worker::ServerState;

mod activity;
mod clients;
mod exchange;
mod keys;
mod options;
mod places;
mod priority;
mod quic_lb;
mod routing;
mod session;
mod worker;

pub use activity::{Activity, CountedExchange};
pub use clients::ClientTotals;
pub use exchange::{Arrival, BodyWriter, Exchange};
pub use keys::EndpointKey;
pub use options::ServerOptions;
pub use places::{PlaceLimits, Places};
pub use priority::{Priority, Turn, Turns};
pub use quic_lb::QuicLb;
pub use routing::{Datagram, DatagramRouter, ForwardedTotals, Succession};
pub use session::Session;
pub use worker::{Incoming, Worker};

/// An HTTP/3 server: one worker or several. Clones are the same server.
#[derive(Clone, Debug)]
pub struct Server {
    /// At least one, in the order of their numbers.
    workers: Arc<[Worker]>,
    router: Option<Arc<DatagramRouter>>,
    shared: Arc<ServerState>,
}

/// Socket of an endpoint, and the runtimes of its tasks.
struct EndpointSetup {
    socket: Arc<dyn AsyncUdpSocket>,
    /// Runs the tasks of the endpoint and its connections.
    runtime: Arc<dyn Runtime>,
    /// Runtime of the [`Worker`], for the server's user; `None` if it does not have its own.
    worker_runtime: Option<Arc<dyn Runtime>>,
}

impl EndpointSetup {
    fn on_socket(socket: UdpSocket, runtime: Arc<dyn Runtime>) -> Result<Self, EndpointError> {
        let socket = MergingSocket::new(runtime.wrap_udp_socket(socket)?);
        Ok(Self {
            runtime: ReceivingRuntime::wrap(runtime, Arc::clone(&socket)),
            socket,
            worker_runtime: None,
        })
    }
}

impl Server {
    /// A server on `socket`: a UDP socket, or one in a simulation.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        socket: Arc<dyn AsyncUdpSocket>,
        options: ServerOptions,
    ) -> Result<Self, EndpointError> {
        let setup = EndpointSetup {
            socket,
            runtime,
            worker_runtime: None,
        };
        Self::start(vec![setup], options)
    }

    /// A server on a UDP socket bound to `address`.
    pub fn bind(
        address: SocketAddr,
        runtime: Arc<dyn Runtime>,
        options: ServerOptions,
    ) -> Result<Self, EndpointError> {
        let socket = udp_socket(address)?;
        require_registered_suites(&options.crypto_provider)?;
        Self::start(vec![EndpointSetup::on_socket(socket, runtime)?], options)
    }

    /// A server with a [`Worker`] for each of `sockets`, all bound to one address and port, and its runtime. Limits of
    /// the options apply to all workers together. With several workers and without an
    /// [`endpoint_key`](ServerOptions::endpoint_key), a new key is used, which is lost with the server.
    pub fn on_sockets(
        sockets: Vec<(UdpSocket, Arc<dyn Runtime>)>,
        options: ServerOptions,
    ) -> Result<Self, EndpointError> {
        require_registered_suites(&options.crypto_provider)?;
        let setups = sockets.into_iter().map(|(socket, runtime)| {
            let mut setup = EndpointSetup::on_socket(socket, Arc::clone(&runtime))?;
            setup.worker_runtime = Some(runtime);
            Ok::<_, EndpointError>(setup)
        });
        Self::start(setups.collect::<Result<_, _>>()?, options)
    }

    fn start(setups: Vec<EndpointSetup>, mut options: ServerOptions) -> Result<Self, EndpointError> {
        let count = setups.len();
        if !(1..=256).contains(&count) {
            return Err(EndpointError::Workers(count));
        }
        // Otherwise quinn's own keys suffice.
        if options.endpoint_key.is_none() && (count > 1 || options.quic_lb.is_some()) {
            options.endpoint_key = Some(EndpointKey::generate()?);
        }
        let crypto = options
            .certificates
            .quic_config(Arc::clone(&options.crypto_provider))?;
        let mut base = quinn::ServerConfig::with_crypto(crypto);
        base.transport_config(Arc::new(options.transport.to_quinn()?));
        let config = options.transport.to_endpoint()?;
        let keys = options.endpoint_key.as_ref();
        let keys = keys.map(|key| EndpointKeys::derive(key, options.quic_lb.as_ref()));
        let keys = keys.transpose().map_err(|_| EndpointError::Key)?;
        let router = keys.as_ref().map(|keys| {
            keys.install_tokens(&mut base);
            let process = options.succession.process;
            let issuers = setups.iter().zip(0..=u8::MAX).map(|(setup, worker)| {
                let connection_ids = keys.connection_ids(Issuer { process, worker });
                (Arc::clone(&setup.socket), connection_ids)
            });
            let longest = usize::try_from(config.get_max_udp_payload_size()).unwrap_or(usize::MAX);
            let older = options.succession.older.as_ref();
            Arc::new(DatagramRouter::new(issuers.collect(), older, longest))
        });
        let shared = Arc::new(ServerState {
            clients: Clients::new(&options),
            options: Arc::new(options),
            base: base.clone(),
            stop: watch::Sender::new(false),
        });
        let mut workers = Vec::with_capacity(count);
        for (number, setup) in setups.into_iter().enumerate() {
            let (mut config, mut socket) = (config.clone(), setup.socket);
            let own = router.as_ref().and_then(|router| router.endpoints().nth(number));
            if let (Some(keys), Some((layered, connection_ids))) = (&keys, own) {
                keys.install(connection_ids, &mut config);
                socket = Arc::clone(layered) as _;
            }
            let endpoint = quinn::Endpoint::new_with_abstract_socket(
                config,
                Some(base.clone()),
                socket,
                Arc::clone(&setup.runtime),
            )?;
            workers.push(Worker {
                endpoint,
                endpoint_runtime: setup.runtime,
                runtime: setup.worker_runtime,
                shared: Arc::clone(&shared),
            });
        }
        Ok(Self {
            workers: workers.into(),
            router,
            shared,
        })
    }

    /// Routes of its datagrams among its workers, and to and from other processes on the same sockets; `None` without
    /// an endpoint key.
    pub fn router(&self) -> Option<&Arc<DatagramRouter>> {
        self.router.as_ref()
    }

    /// Its workers, in the order of their sockets.
    pub fn workers(&self) -> &[Worker] {
        &self.workers
    }

    /// Totals of the datagrams that reached a worker other than their connection's.
    pub fn forwarded(&self) -> ForwardedTotals {
        let router = self.router.as_ref();
        router.map(|router| router.totals()).unwrap_or_default()
    }

    /// Address and port that it listens on.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        let first = self.workers.first().ok_or(std::io::ErrorKind::NotConnected)?;
        first.endpoint.local_addr()
    }

    /// Connections open now, including those that are being set up or closed.
    pub fn open_connections(&self) -> usize {
        self.workers.iter().map(Worker::open_connections).sum()
    }

    /// Waits until no connection is open.
    pub async fn idle(&self) {
        // While this waited for one worker, another may have accepted a connection.
        while self.open_connections() > 0 {
            for worker in &*self.workers {
                worker.endpoint.wait_idle().await;
            }
        }
    }

    /// Totals of the decisions on clients so far.
    pub fn clients(&self) -> ClientTotals {
        self.shared.clients.totals()
    }

    /// Its certificates, to replace them.
    pub fn certificates(&self) -> &Certificates {
        &self.shared.options.certificates
    }

    /// The next client of any worker that requests a connection; `None` once the server is [shutting
    /// down](Self::shutdown).
    pub async fn accept(&self) -> Option<Incoming> {
        let accepting = self.workers.iter().map(|worker| Box::pin(worker.accept()));
        select_all(accepting).await.0
    }

    /// Shuts down in order: refuses new clients (`CONNECTION_REFUSED`), abandons handshakes, sends every client a
    /// GOAWAY (RFC 9114 §5.2), lets exchanges end, and closes the remaining connections after `deadline`. Returns true
    /// if none remained.
    ///
    /// Sessions take part through [`Session::accept`], so the caller must continue calling it.
    pub async fn shutdown(&self, deadline: Duration) -> bool {
        self.shared.stop.send_replace(true);
        let Some(first) = self.workers.first() else {
            return true;
        };
        let runtime = &*first.endpoint_runtime;
        let refusing = join_all(self.workers.iter().map(Worker::refuse_clients));
        let drained = tokio::select! {
            biased;
            drained = time::timeout(runtime, deadline, self.idle()) => drained.is_ok(),
            // `refusing` never ends.
            _ = refusing => false,
        };
        self.shared.clients.lift_windows();
        for worker in &*self.workers {
            worker.endpoint.close(var_int(H3_NO_ERROR), b"server shut down");
        }
        if !drained {
            // Long enough for the closes to leave; absent peers do not answer them.
            let _ = time::timeout(runtime, Duration::from_secs(1), self.idle()).await;
        }
        drained
    }
}
