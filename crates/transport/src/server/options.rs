//! [`ServerOptions`]: options of a server's connections.

use std::sync::Arc;
use std::time::Duration;

use rustls::crypto::CryptoProvider;

use super::keys::EndpointKey;
use super::quic_lb::QuicLb;
use super::routing::Succession;
use crate::options::TransportOptions;
use crate::tls::{Certificates, ring_provider};

/// Options of a server's connections.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Certificates and keys, which can be replaced while the server runs.
    pub certificates: Certificates,
    /// Secret that outlives the process: a restarted server with the same secret resets the connections that it lost,
    /// and accepts the tokens that it issued. `None`: keys for this endpoint alone.
    pub endpoint_key: Option<EndpointKey>,
    /// Load balancer in front of it that reads the server's number in its connection IDs. Servers behind the same one
    /// may share the endpoint key: they accept each other's tokens, and none resets another one's connections. `None`:
    /// its connection IDs carry no information for others.
    pub quic_lb: Option<QuicLb>,
    /// Position of this process among those with the same endpoint key and socket.
    pub succession: Succession,
    /// Cryptography of its connections, ring's by default. [`Server::bind`] and [`Server::on_sockets`] refuse cipher
    /// suites that are not registered; [`Server::new`] takes any, for simulations.
    ///
    /// [`Server::bind`]: crate::Server::bind
    /// [`Server::on_sockets`]: crate::Server::on_sockets
    /// [`Server::new`]: crate::Server::new
    pub crypto_provider: Arc<CryptoProvider>,
    /// Transport parameters of its connections.
    pub transport: TransportOptions,
    /// Longest time for a handshake, and then for a request, to arrive.
    pub request_timeout: Duration,
    /// Time limit for a client to acknowledge bytes of the connection's responses; otherwise an exchange that waits for
    /// it is reset. It is checked once per interval of this length, so a stall may last twice as long. A player that
    /// reads nothing acknowledges only keep-alives, which do not count. So this is also the longest pause with an open
    /// response, and the time limit for a client to renew its windows.
    pub stall_timeout: Duration,
    /// Longest time for which a connection may have no exchange in progress; then its client receives a GOAWAY and the
    /// connection is closed without an error. `None`: no limit, because the server's own keep-alive holds it open. A
    /// player that pauses longer between requests has to connect again.
    pub idle_limit: Option<Duration>,
    /// Maximum number of connections at once, and of handshakes with clients whose addresses are validated. If all
    /// places are taken, the connection that has been without a request in progress for the longest makes room for
    /// another client; it ages ten times as fast without any request yet. It must have been idle for
    /// [`evict_after`](Self::evict_after), or 100 ms without any request. If none may, the client is refused.
    pub max_connections: usize,
    /// Maximum number of connections without any request yet of one IPv4 address or one IPv6 /64 network. Beyond that,
    /// the oldest of these makes room; if it is younger than 100 ms, the client is refused.
    pub max_connections_per_address: usize,
    /// Minimum time without a request in progress after which a connection that had one makes room for another client.
    pub evict_after: Duration,
}

impl ServerOptions {
    /// The defaults, for an [`Identity`](crate::Identity) or several certificates.
    pub fn new(certificates: impl Into<Certificates>) -> Self {
        Self {
            certificates: certificates.into(),
            endpoint_key: None,
            quic_lb: None,
            succession: Succession::default(),
            crypto_provider: ring_provider(),
            transport: TransportOptions::server(),
            request_timeout: Duration::from_secs(10),
            stall_timeout: Duration::from_secs(300),
            idle_limit: None,
            max_connections: 1_024,
            max_connections_per_address: 256,
            evict_after: Duration::from_secs(2),
        }
    }

    /// Number that two processes compare to determine if each recognizes the other's connection IDs; `None` without an
    /// endpoint key. It does not reveal the key.
    pub fn fingerprint(&self) -> Option<u64> {
        let distinction = self.quic_lb.as_ref().map(QuicLb::distinction).unwrap_or_default();
        Some(self.endpoint_key.as_ref()?.fingerprint(&distinction))
    }
}
