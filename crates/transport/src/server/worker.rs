//! [`Worker`]: one endpoint of a server, on a socket of its own.

use std::convert::Infallible;
use std::sync::Arc;

use quinn::Runtime;

use super::clients::Decision;
use super::session::SessionSetup;
use super::{Incoming, ServerState};

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
            let now = self.endpoint_runtime.now();
            match self.shared.clients.decide(peer, is_validated, now) {
                Decision::Accepted(place) => {
                    return Some(Incoming {
                        quinn: incoming,
                        setup: SessionSetup {
                            place,
                            shared: Arc::clone(&self.shared),
                            runtime: Arc::clone(&self.endpoint_runtime),
                        },
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
