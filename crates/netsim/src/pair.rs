//! [`Pair`]: a server and a client with a path between them, for tests of a few lines.

use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;
use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use serde::Serialize;
use thiserror::Error;

use crate::{
    ConfigError, Host, HostConfig, LinkId, LinkSeries, LinkStats, NetworkStats, PathConfig, PathId, RunError,
    Seed, Simulation, Time, VirtualSocket,
};

/// Name of the server in its certificate.
const SERVER_NAME: &str = "server";
/// Port of the server.
const SERVER_PORT: u16 = 443;
/// Initial bin width and maximum number of bins of the time series.
const BIN_WIDTH: Duration = Duration::from_millis(10);
const MAX_BINS: usize = 1_024;
/// An Ed25519 private key in PKCS #8 up to the key's 32 bytes (RFC 8410 §7).
const ED25519_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

type BoxError = Box<dyn Error + Send + Sync>;

/// Types and set-up of a QUIC stack; implemented for `Quinn` and, with the feature `noq`, for `Noq`.
///
/// It cannot be implemented outside of this crate.
pub trait Stack: Sized + sealed::Sealed {
    /// Endpoint of the stack.
    type Endpoint: Clone;
    /// Connection of the stack.
    type Connection;
    /// Transport configuration of the stack.
    type Transport: Default;

    #[doc(hidden)]
    fn listen(end: EndSetup<'_>, tls: rustls::ServerConfig, transport: Self::Transport) -> EndResult<Self>;
    #[doc(hidden)]
    fn call(end: EndSetup<'_>, tls: rustls::ClientConfig, transport: Self::Transport) -> EndResult<Self>;
    #[doc(hidden)]
    fn connect(
        endpoint: &Self::Endpoint,
        server: SocketAddr,
    ) -> impl Future<Output = Result<Self::Connection, BoxError>>;
    #[doc(hidden)]
    fn accept(endpoint: &Self::Endpoint) -> impl Future<Output = Result<Self::Connection, BoxError>>;
    #[doc(hidden)]
    fn move_to(endpoint: &Self::Endpoint, socket: &Arc<VirtualSocket>) -> io::Result<()>;
}

type EndResult<S> = Result<<S as Stack>::Endpoint, BoxError>;

mod sealed {
    /// Prevents other implementations of [`Stack`](super::Stack).
    pub trait Sealed {}
}

/// Simulation, host and socket of an endpoint that is to be made.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct EndSetup<'a> {
    simulation: &'a Simulation,
    host: Host,
    socket: &'a Arc<VirtualSocket>,
    name: &'a str,
}

macro_rules! stack {
    ($(#[$doc:meta])* $name:ident, $stack:ident, $config:ident, |$socket:ident| $wrapped:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        #[non_exhaustive]
        pub struct $name;

        impl sealed::Sealed for $name {}

        impl $name {
            fn endpoint(end: EndSetup<'_>, server: Option<$stack::ServerConfig>) -> EndResult<Self> {
                let ($socket, config) = (end.socket, end.simulation.$config(end.name));
                let runtime = end.simulation.runtime_on(end.host);
                Ok($stack::Endpoint::new_with_abstract_socket(config, server, $wrapped, runtime)?)
            }
        }

        impl Stack for $name {
            type Endpoint = $stack::Endpoint;
            type Connection = $stack::Connection;
            type Transport = $stack::TransportConfig;

            fn listen(
                end: EndSetup<'_>,
                tls: rustls::ServerConfig,
                transport: Self::Transport,
            ) -> EndResult<Self> {
                let tls = $stack::crypto::rustls::QuicServerConfig::try_from(tls)?;
                let mut config = $stack::ServerConfig::with_crypto(Arc::new(tls));
                config.transport_config(Arc::new(transport));
                Self::endpoint(end, Some(config))
            }

            fn call(
                end: EndSetup<'_>,
                tls: rustls::ClientConfig,
                transport: Self::Transport,
            ) -> EndResult<Self> {
                let tls = $stack::crypto::rustls::QuicClientConfig::try_from(tls)?;
                let mut config = $stack::ClientConfig::new(Arc::new(tls));
                config.transport_config(Arc::new(transport));
                let endpoint = &mut Self::endpoint(end, None)?;
                endpoint.set_default_client_config(config);
                Ok(endpoint.clone())
            }

            async fn connect(
                endpoint: &Self::Endpoint,
                server: SocketAddr,
            ) -> Result<Self::Connection, BoxError> {
                Ok(endpoint.connect(server, SERVER_NAME)?.await?)
            }

            async fn accept(endpoint: &Self::Endpoint) -> Result<Self::Connection, BoxError> {
                let incoming = endpoint.accept().await.ok_or("the server's endpoint was closed")?;
                Ok(incoming.await?)
            }

            fn move_to(endpoint: &Self::Endpoint, $socket: &Arc<VirtualSocket>) -> io::Result<()> {
                endpoint.rebind_abstract($wrapped)
            }
        }
    };
}

#[cfg(feature = "quinn")]
stack!(
    /// Runs a [`Pair`] of quinn endpoints.
    Quinn, quinn, endpoint_config, |socket| Arc::<VirtualSocket>::clone(socket)
);
#[cfg(feature = "noq")]
stack!(
    /// Runs a [`Pair`] of noq endpoints; noq is a fork of quinn with multipath.
    Noq, noq, noq_endpoint_config, |socket| Box::new(VirtualSocket::clone(socket))
);

/// A server and a client of one QUIC stack, and the paths between them, in virtual time.
///
/// The certificate is made from the seed, and the endpoints have the stack's default configuration unless
/// [`server_transport`](Self::server_transport) or [`client_transport`](Self::client_transport) changes it.
#[derive(Debug)]
#[must_use]
pub struct Pair<S: Stack> {
    paths: Vec<PathConfig>,
    hosts: [HostConfig; 2],
    server: S::Transport,
    client: S::Transport,
    deadline: Duration,
}

#[cfg(feature = "quinn")]
impl Pair<Quinn> {
    /// Creates a pair of quinn endpoints at the ends of `path`.
    pub fn quinn(path: PathConfig) -> Self {
        Self::new(path)
    }
}

#[cfg(feature = "noq")]
impl Pair<Noq> {
    /// Creates a pair of noq endpoints at the ends of `path`.
    pub fn noq(path: PathConfig) -> Self {
        Self::new(path)
    }
}

impl<S: Stack> Pair<S> {
    fn new(path: PathConfig) -> Self {
        Self {
            paths: vec![path],
            hosts: [HostConfig::default(); 2],
            server: S::Transport::default(),
            client: S::Transport::default(),
            deadline: Simulation::DAY,
        }
    }

    /// Adds a path between another address of the client and the server, for migration and multipath. The connection
    /// begins on the first path.
    pub fn with_path(mut self, path: PathConfig) -> Self {
        self.paths.push(path);
        self
    }

    /// The same pair with these hosts.
    pub fn with_hosts(self, server: HostConfig, client: HostConfig) -> Self {
        let hosts = [server, client];
        Self { hosts, ..self }
    }

    /// Limits the run to `deadline` of virtual time; the default is a day.
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Changes the transport configuration of the server.
    pub fn server_transport(mut self, change: impl FnOnce(&mut S::Transport)) -> Self {
        change(&mut self.server);
        self
    }

    /// Changes the transport configuration of the client.
    pub fn client_transport(mut self, change: impl FnOnce(&mut S::Transport)) -> Self {
        change(&mut self.client);
        self
    }

    /// Connects client and server, runs both programs to their ends and returns their results with what happened on the
    /// paths. The same seed gives the same packets.
    ///
    /// The programs run on the thread of the caller, so they may borrow, and their assertions may panic. A program must
    /// not wait on anything real, such as a thread or a timer of tokio; see [`PairError`].
    ///
    /// # Errors
    /// If a path cannot be built, the handshake fails, or the programs do not end.
    pub fn run<A: Future, B: Future>(
        self,
        seed: Seed,
        server: impl FnOnce(Side<S>) -> A,
        client: impl FnOnce(Side<S>) -> B,
    ) -> Result<PairOutcome<A::Output, B::Output>, PairError> {
        let simulation = Arc::new(Simulation::new(seed));
        let outcome = self.run_in(&simulation, server, client);
        // Tasks of the programs may own the simulation.
        simulation.end_tasks();
        outcome
    }

    fn run_in<A: Future, B: Future>(
        self,
        simulation: &Arc<Simulation>,
        server: impl FnOnce(Side<S>) -> A,
        client: impl FnOnce(Side<S>) -> B,
    ) -> Result<PairOutcome<A::Output, B::Output>, PairError> {
        let [server_host, client_host] = self.hosts.map(|host| simulation.add_host(host));
        let mut addresses = Vec::new();
        let mut paths = Vec::new();
        for (number, config) in self.paths.iter().enumerate() {
            let mut path = config.build(simulation.seed().child("path").child(&number.to_string()))?;
            let series = || LinkSeries::new(BIN_WIDTH, MAX_BINS);
            (path.forward, path.backward) = (
                path.forward.with_series(series()),
                path.backward.with_series(series()),
            );
            let path = simulation.add_path(path);
            let address = match number {
                0 => client_host,
                _ => simulation.add_address(client_host),
            };
            simulation.connect(server_host, address, &[path]);
            addresses.push(address);
            paths.push(path);
        }
        let bind = |host, port| simulation.bind(host, port).map_err(setup);
        let sockets = (bind(server_host, SERVER_PORT)?, bind(client_host, 0)?);
        let (server_tls, client_tls) = tls(simulation.seed(), SERVER_NAME, &simulation.crypto_provider())?;
        let end = |host, socket, name| EndSetup {
            simulation,
            host,
            socket,
            name,
        };
        let listening = S::listen(end(server_host, &sockets.0, "server"), server_tls, self.server);
        let calling = S::call(end(client_host, &sockets.1, "client"), client_tls, self.client);
        let (listening, calling) = (
            listening.map_err(PairError::Setup)?,
            calling.map_err(PairError::Setup)?,
        );
        let server_address = sockets.0.address();
        let side = |connection, endpoint, socket, addresses| Side::<S> {
            connection,
            endpoint,
            simulation: Arc::clone(simulation),
            socket,
            addresses,
            server: server_address,
        };
        let serving = async {
            let connection = S::accept(&listening).await.map_err(PairError::Handshake)?;
            Ok::<_, PairError>(
                server(side(connection, listening.clone(), sockets.0, vec![server_host])).await,
            )
        };
        let using = async {
            let connection = S::connect(&calling, server_address)
                .await
                .map_err(PairError::Handshake)?;
            Ok::<_, PairError>(client(side(connection, calling.clone(), sockets.1, addresses)).await)
        };
        let mut results = (None, None);
        let ran = simulation.run(self.deadline, join(serving, using, &mut results));
        if let wakes @ 1.. = simulation.outside_wakes() {
            return Err(PairError::NotReproducible { wakes });
        }
        let (server, client) = match (ran, results) {
            (Ok(Err(error)), _) => return Err(error),
            (Ok(Ok(())), (Some(server), Some(client))) => (server, client),
            (ran, (server, client)) => {
                let waiting = match (server.is_some(), client.is_some()) {
                    (false, true) => "the client has ended, the server has not",
                    (true, false) => "the server has ended, the client has not",
                    _ => "neither the server nor the client has ended",
                };
                let source = ran.err().unwrap_or(RunError::Deadline { at: simulation.now() });
                return Err(PairError::Run { source, waiting });
            }
        };
        Ok(PairOutcome {
            server,
            client,
            paths: paths
                .into_iter()
                .map(|path| PathOutcome::of(simulation, path))
                .collect(),
            network: simulation.network_stats(),
            ended: simulation.now(),
            digest: simulation.digest(),
        })
    }
}

/// Runs two programs until both have ended or one has failed, and keeps their results in `results`.
async fn join<A, B>(
    server: impl Future<Output = Result<A, PairError>>,
    client: impl Future<Output = Result<B, PairError>>,
    results: &mut (Option<A>, Option<B>),
) -> Result<(), PairError> {
    let (mut server, mut client) = (pin!(server), pin!(client));
    poll_fn(|cx| {
        if results.0.is_none()
            && let Poll::Ready(output) = server.as_mut().poll(cx)
        {
            results.0 = Some(output?);
        }
        if results.1.is_none()
            && let Poll::Ready(output) = client.as_mut().poll(cx)
        {
            results.1 = Some(output?);
        }
        if results.0.is_some() && results.1.is_some() {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    })
    .await
}

/// One end of a connected [`Pair`], owned by its program. When the program ends, its connection is closed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Side<S: Stack> {
    /// The connection, after its handshake.
    pub connection: S::Connection,
    /// The endpoint of this side.
    pub endpoint: S::Endpoint,
    /// The network and its time, for what is beyond the methods here, such as stopped and crashed hosts, and counters
    /// during the run.
    pub simulation: Arc<Simulation>,
    socket: Arc<VirtualSocket>,
    addresses: Vec<Host>,
    server: SocketAddr,
}

impl<S: Stack> Side<S> {
    /// Virtual time since the beginning of the run.
    pub fn now(&self) -> Time {
        self.simulation.now()
    }

    /// Waits for this much virtual time.
    pub fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + use<S> {
        self.simulation.runtime().sleep(time)
    }

    /// Address of the server.
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Address of this side on the path with this number, from 0; `None` if there is no such path. The server has the
    /// same address on all paths, which counts as its path 0.
    pub fn address(&self, path: usize) -> Option<IpAddr> {
        self.addresses.get(path).copied().map(Host::ip)
    }

    /// Moves the endpoint to a new socket at this side's address on `path`, as a program does that notices another
    /// network. Returns the new address.
    ///
    /// # Errors
    /// If there is no such path, or no free port.
    pub fn migrate(&mut self, path: usize) -> io::Result<SocketAddr> {
        let Some(host) = self.addresses.get(path) else {
            let paths = self.addresses.len();
            let message = format!("no path {path}: expected a number below {paths}, the number of paths");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        };
        let socket = self.simulation.bind(*host, 0).map_err(io::Error::other)?;
        S::move_to(&self.endpoint, &socket)?;
        let address = socket.address();
        self.socket = socket;
        Ok(address)
    }

    /// Gives the socket another public port, like a NAT that has lost its mapping; this side does not notice.
    /// Returns the new address.
    ///
    /// # Errors
    /// If there is no free port.
    pub fn rebind(&self) -> Result<SocketAddr, crate::SetupError> {
        let host = Host {
            ip: self.socket.address().ip(),
        };
        self.simulation.rebind(&self.socket, host)
    }
}

/// Results of both programs of a [`Pair`], and what happened between them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PairOutcome<A, B> {
    /// Result of the server's program.
    pub server: A,
    /// Result of the client's program.
    pub client: B,
    /// Counters of each path, in the order of their addition.
    pub paths: Vec<PathOutcome>,
    /// Counters of datagrams outside the paths.
    pub network: NetworkStats,
    /// Virtual time when the last program ended.
    pub ended: Time,
    /// A hash of every packet's time, size and fate: equal for equal runs.
    pub digest: u64,
}

/// Counters of both directions of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PathOutcome {
    /// Direction from the server to the client.
    pub forward: LinkOutcome,
    /// Direction from the client to the server.
    pub backward: LinkOutcome,
}

impl PathOutcome {
    fn of(simulation: &Simulation, path: PathId) -> Self {
        Self {
            forward: LinkOutcome::of(simulation, path.forward),
            backward: LinkOutcome::of(simulation, path.backward),
        }
    }
}

/// Counters and time series of one direction of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LinkOutcome {
    /// Packets and bytes sent, lost and delivered; the longest queue and its delay.
    pub stats: LinkStats,
    /// The same over time, in bins of 10 ms for runs of up to 10 s, and in longer bins for longer runs.
    pub series: LinkSeries,
}

impl LinkOutcome {
    fn of(simulation: &Simulation, link: LinkId) -> Self {
        let series = simulation.link_series(link);
        Self {
            stats: simulation.link_stats(link),
            series: series.unwrap_or_else(|| LinkSeries::new(BIN_WIDTH, MAX_BINS)),
        }
    }
}

/// Failure of a [`Pair`]'s run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PairError {
    /// A path cannot be built.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// The endpoints cannot be made.
    #[error("cannot set up the endpoints: {0}")]
    Setup(BoxError),
    /// The client and the server could not connect.
    #[error("handshake failed: {0}")]
    Handshake(BoxError),
    /// A program does not end.
    #[error("{source}; {waiting}")]
    Run {
        /// Reason for the end of the run.
        source: RunError,
        /// Programs that have not ended.
        waiting: &'static str,
    },
    /// A task was woken by another thread, so it waits on something real, and another run may differ.
    #[error(
        "tasks were woken {wakes} times by other threads: let programs wait only on the connection and on virtual time"
    )]
    NotReproducible {
        /// Number of such wake-ups.
        wakes: u64,
    },
}

fn setup(error: impl Into<BoxError>) -> PairError {
    PairError::Setup(error.into())
}

/// TLS configurations of a server called `name` and of a client that trusts it alone. The certificate depends on `seed`
/// alone, since Ed25519 signatures need no random numbers; so it is not secret, and fit for simulations only.
///
/// # Errors
/// If `name` cannot stand in a certificate, or `provider` lacks TLS 1.3 or Ed25519.
pub fn tls(
    seed: Seed,
    name: &str,
    provider: &Arc<rustls::crypto::CryptoProvider>,
) -> Result<(rustls::ServerConfig, rustls::ClientConfig), PairError> {
    let mut key = ED25519_PREFIX.to_vec();
    key.extend(seed.derive("certificate"));
    let key = PrivatePkcs8KeyDer::from(key);
    let pair = KeyPair::from_pkcs8_der_and_sign_algo(&key, &PKCS_ED25519).map_err(setup)?;
    let params = CertificateParams::new(vec![name.to_owned()]).map_err(setup)?;
    let certificate: CertificateDer<'static> = params.self_signed(&pair).map_err(setup)?.into();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).map_err(setup)?;
    let versions = &[&rustls::version::TLS13];
    let server = rustls::ServerConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions)
        .map_err(setup)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .map_err(setup)?;
    let client = rustls::ClientConfig::builder_with_provider(Arc::clone(provider))
        .with_protocol_versions(versions)
        .map_err(setup)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok((server, client))
}
