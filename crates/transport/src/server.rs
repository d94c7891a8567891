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
//!         // Going on accepting is what keeps the session alive while its exchanges run.
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

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use quinn::{AsyncUdpSocket, Runtime, VarInt};
use tokio::sync::watch;

use crate::adapter::ConnectionController;
use crate::endpoint::{BindError, udp_socket};
use crate::error::{ConnectionLost, EndpointError};
use crate::options::TransportOptions;
use crate::receiving::Receiving;
use crate::time;
use crate::tls::Identity;

mod exchange;
mod session;

pub use exchange::{Arrival, BodyWriter, Exchange};
pub use session::Session;

/// How a server serves.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Who the server is, until it is told [otherwise](Server::set_identity).
    pub identity: Identity,
    /// Transport parameters.
    pub transport: TransportOptions,
    /// How long a handshake, and then a request, may take to arrive.
    pub request_timeout: Duration,
    /// How long a client may go without acknowledging anything that is waiting for it before its exchange is given
    /// up. A paused player acknowledges nothing, so this is also how long it may pause with a response open.
    pub stall_timeout: Duration,
    /// How many connections at once; further ones are refused.
    pub max_connections: usize,
}

impl ServerOptions {
    /// The defaults, for `identity`.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            transport: TransportOptions::server(),
            request_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(300),
            max_connections: 1_024,
        }
    }
}

/// What the server's sessions share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) runtime: Arc<dyn Runtime>,
    pub(crate) options: ServerOptions,
    /// Without the controller, which every connection gets its own of.
    base: RwLock<quinn::ServerConfig>,
}

impl Shared {
    fn base(&self) -> quinn::ServerConfig {
        self.base.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An HTTP/3 server's endpoint. Clones are the same endpoint.
#[derive(Clone, Debug)]
pub struct Server {
    endpoint: quinn::Endpoint,
    shared: Arc<Shared>,
    stop: Arc<watch::Sender<bool>>,
}

/// HTTP/3's "no error" (RFC 9114 §8.1).
const H3_NO_ERROR: VarInt = VarInt::from_u32(0x100);

impl Server {
    /// A server on `socket`, whatever that is: a UDP socket or one in a simulation.
    pub fn new(
        runtime: Arc<dyn Runtime>,
        socket: Arc<dyn AsyncUdpSocket>,
        options: ServerOptions,
    ) -> Result<Self, EndpointError> {
        let mut base = quinn::ServerConfig::with_crypto(options.identity.server_config()?);
        base.transport_config(Arc::new(options.transport.to_quinn()?));
        let endpoint = quinn::Endpoint::new_with_abstract_socket(
            options.transport.to_endpoint()?,
            Some(base.clone()),
            socket,
            Arc::clone(&runtime),
        )?;
        Ok(Self {
            endpoint,
            shared: Arc::new(Shared {
                runtime,
                options,
                base: RwLock::new(base),
            }),
            stop: Arc::new(watch::Sender::new(false)),
        })
    }

    /// A server on a UDP socket bound to `address`.
    pub fn bind(
        address: SocketAddr,
        runtime: Arc<dyn Runtime>,
        options: ServerOptions,
    ) -> Result<Self, EndpointError> {
        let socket = runtime
            .wrap_udp_socket(udp_socket(address)?)
            .map_err(|source| BindError::Other { address, source })?;
        Self::new(Receiving::on(runtime), socket, options)
    }

    /// The address it listens on.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.endpoint.local_addr()
    }

    /// Connections open now, those that are being set up or taken down included.
    pub fn open_connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// Becomes `identity` for clients that connect from now on; connections that there are go on as they are.
    ///
    /// # Errors
    /// If its certificate and key cannot be used. Nothing has changed then.
    pub fn set_identity(&self, identity: &Identity) -> Result<(), EndpointError> {
        let crypto = identity.server_config()?;
        let mut base = self.shared.base.write().unwrap_or_else(PoisonError::into_inner);
        base.crypto = crypto;
        // One that is shutting down takes no clients at all.
        if !*self.stop.borrow() {
            self.endpoint.set_server_config(Some(base.clone()));
        }
        Ok(())
    }

    /// The next client that wants to connect; `None` once the server is [shutting down](Self::shutdown).
    pub async fn accept(&self) -> Option<Incoming> {
        let mut stop = self.stop.subscribe();
        loop {
            let incoming = tokio::select! {
                biased;
                // An error says that the server is gone, which is a stop as well.
                _ = stop.wait_for(|&stop| stop) => return None,
                incoming = self.endpoint.accept() => incoming?,
            };
            if self.endpoint.open_connections() >= self.shared.options.max_connections {
                tracing::warn!(
                    peer = %incoming.remote_address(),
                    limit = self.shared.options.max_connections,
                    "refused a connection: too many are open"
                );
                incoming.refuse();
                continue;
            }
            return Some(Incoming {
                quinn: incoming,
                shared: Arc::clone(&self.shared),
                stop: self.stop.subscribe(),
            });
        }
    }

    /// Shuts down in good order: takes no new connections, tells every client that no more requests are taken
    /// (GOAWAY, RFC 9114 §5.2), lets exchanges end, and closes what is left after `deadline`. Returns whether
    /// everything had ended by itself.
    ///
    /// Sessions take part through [`Session::accept`], so they must go on being accepted from.
    pub async fn shutdown(&self, deadline: Duration) -> bool {
        self.stop.send_replace(true);
        self.endpoint.set_server_config(None);
        let runtime = &*self.shared.runtime;
        let drained = time::timeout(runtime, deadline, self.endpoint.wait_idle())
            .await
            .is_ok();
        self.endpoint.close(H3_NO_ERROR, b"server shut down");
        if !drained {
            // Long enough for the closes to leave; a peer that is gone answers none of them.
            let _ = time::timeout(runtime, Duration::from_secs(1), self.endpoint.wait_idle()).await;
        }
        drained
    }
}

/// A client that wants to connect.
#[derive(Debug)]
pub struct Incoming {
    quinn: quinn::Incoming,
    shared: Arc<Shared>,
    stop: watch::Receiver<bool>,
}

impl Incoming {
    /// The client's address. It may be forged until the handshake is done.
    pub fn peer(&self) -> SocketAddr {
        self.quinn.remote_address()
    }

    /// Turns the client away.
    pub fn refuse(self) {
        self.quinn.refuse();
    }

    /// Does the handshake. The connection sends with `control`.
    pub async fn establish(self, control: ConnectionController) -> Result<Session, ConnectionLost> {
        let limit = self.shared.options.request_timeout;
        let runtime = Arc::clone(&self.shared.runtime);
        let broken = |error: &dyn std::fmt::Display| ConnectionLost::Broken {
            reason: error.to_string(),
        };
        let mut transport = self
            .shared
            .options
            .transport
            .to_quinn()
            .map_err(|error| broken(&error))?;
        control.install(&mut transport);
        let mut config = self.shared.base();
        config.transport_config(Arc::new(transport));
        let connecting = self.quinn.accept_with(Arc::new(config))?;
        let established = async move {
            let quinn = connecting.await?;
            Session::new(quinn, control, self.shared, self.stop).await
        };
        time::timeout(&*runtime, limit, established)
            .await
            .unwrap_or(Err(ConnectionLost::TimedOut))
    }
}
