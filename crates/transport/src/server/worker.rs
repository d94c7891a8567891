//! [`Worker`]: one endpoint of a server, on a socket of its own; [`Incoming`]: a client that it may accept.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use playrate_quinn::ConnectionController;
use quinn::Runtime;
use tokio::sync::watch;

use super::activity::Activity;
use super::clients::{ClientPlace, Clients, Decision};
use super::exchange::SessionContext;
use super::options::ServerOptions;
use super::priority::Turns;
use super::session::Session;
use crate::error::{ConnectionLost, Refusal};
use crate::time;

/// State that a server shares with its workers.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) options: Arc<ServerOptions>,
    pub(super) clients: Arc<Clients>,
    /// Without a controller: every connection gets its own.
    pub(super) base: quinn::ServerConfig,
    /// True once the server shuts down.
    pub(super) stop: watch::Sender<bool>,
}

/// One endpoint of a [`Server`](super::Server). Its connections run on its runtime.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(super) endpoint: quinn::Endpoint,
    /// Runs the tasks of the endpoint and its connections.
    pub(super) endpoint_runtime: Arc<dyn Runtime>,
    pub(super) runtime: Option<Arc<dyn Runtime>>,
    pub(super) shared: Arc<ServerState>,
}

impl Worker {
    /// Runtime for the tasks of its connections; `None` unless the server was started with
    /// [one for each socket](super::Server::on_sockets).
    pub fn runtime(&self) -> Option<&Arc<dyn Runtime>> {
        self.runtime.as_ref()
    }

    /// Connections open now, including those that are being set up or closed.
    pub fn open_connections(&self) -> usize {
        self.endpoint.open_connections()
    }

    /// The next of its clients that requests a connection; `None` once the server is [shutting
    /// down](super::Server::shutdown).
    pub async fn accept(&self) -> Option<Incoming> {
        let mut stop = self.shared.stop.subscribe();
        loop {
            let incoming = tokio::select! {
                biased;
                _ = stop.wait_for(|&stop| stop) => return None,
                incoming = self.endpoint.accept() => incoming?,
            };
            let (peer, is_validated) = (incoming.remote_address(), incoming.remote_address_validated());
            let activity = Activity::new(Arc::clone(&self.endpoint_runtime));
            match self.shared.clients.decide(peer, is_validated, activity) {
                Decision::Accepted(place) => {
                    return Some(Incoming {
                        quinn: incoming,
                        place,
                        shared: Arc::clone(&self.shared),
                        runtime: Arc::clone(&self.endpoint_runtime),
                    });
                }
                Decision::Retry => {
                    // Fails only for a validated address, and then refuses the client.
                    let _ = incoming.retry();
                }
                Decision::Refused => incoming.refuse(),
            }
        }
    }

    /// Refuses all clients that request a connection, so that none of them waits for an answer.
    pub(super) async fn refuse_clients(&self) -> Infallible {
        while let Some(incoming) = self.endpoint.accept().await {
            tracing::debug!(peer = %incoming.remote_address(), "refused a client: the server is shutting down");
            incoming.refuse();
        }
        // The endpoint is closed, and refuses clients itself.
        std::future::pending().await
    }
}

/// A client that requests a connection.
#[derive(Debug)]
pub struct Incoming {
    quinn: quinn::Incoming,
    place: ClientPlace,
    shared: Arc<ServerState>,
    runtime: Arc<dyn Runtime>,
}

impl Incoming {
    /// IP address and port of the client; they may be forged until the handshake is complete.
    pub fn peer(&self) -> SocketAddr {
        self.quinn.remote_address()
    }

    /// Refuses the client (`CONNECTION_REFUSED`).
    pub fn refuse(self) {
        self.quinn.refuse();
    }

    /// Completes the handshake. The connection sends with the controller of `control`.
    ///
    /// # Errors
    /// The handshake failed or took too long, a connection limit was reached in the meantime, or the server shuts down
    /// ([`Server::shutdown`](super::Server::shutdown)).
    pub async fn establish(self, control: ConnectionController) -> Result<Session, ConnectionLost> {
        let (shared, runtime) = (self.shared, self.runtime);
        let mut stop = shared.stop.subscribe();
        if *stop.borrow() {
            self.quinn.refuse();
            return Err(ConnectionLost::ClosedHere);
        }
        let transport = shared.options.transport.to_quinn();
        let mut transport = transport.map_err(|error| ConnectionLost::Broken(error.to_string()))?;
        control.install(&mut transport);
        control.request_acks(&mut transport);
        let mut config = shared.base.clone();
        config.transport_config(Arc::new(transport));
        let connecting = self.quinn.accept_with(Arc::new(config))?;
        let activity = self.place.activity().clone();
        let established = time::timeout(&*runtime, shared.options.request_timeout, async {
            let context = SessionContext {
                quinn: connecting.await?,
                control: Arc::new(control),
                options: Arc::clone(&shared.options),
                turns: Turns::new(Arc::clone(&runtime)),
                runtime: Arc::clone(&runtime),
            };
            Session::new(context, self.place, shared.stop.subscribe()).await
        });
        tokio::select! {
            biased;
            // A shutdown does not wait for clients that may never answer.
            _ = stop.wait_for(|&stop| stop) => Err(ConnectionLost::ClosedHere),
            () = activity.expired(None) => Err(ConnectionLost::Refused(Refusal::Handshakes)),
            established = established => established.unwrap_or(Err(ConnectionLost::TimedOut)),
        }
    }
}
