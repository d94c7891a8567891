//! [`EndpointKeys`]: secrets of a server's endpoint that outlive its process.

use std::sync::Arc;
use std::time::Duration;

use quinn::EndpointConfig;
use quinn_proto::HashedConnectionIdGenerator;
use ring::error::Unspecified;
use ring::{hkdf, hmac};

/// Least time between two stateless resets: 1,000 in a second. quinn's 20 ms would have the clients of a busy server
/// wait for seconds. A reset is smaller than the packet that it answers, so it amplifies nothing.
const MIN_RESET_INTERVAL: Duration = Duration::from_millis(1);

/// Keys that a server derives from its private TLS key (HKDF-SHA256, RFC 5869), so that a restarted server, which has
/// lost all connections, recognizes packets of their clients and resets them (RFC 9000 §10.3), and accepts tokens that
/// it gave out before.
pub(super) struct EndpointKeys {
    /// Signs stateless reset tokens.
    reset: hmac::Key,
    /// Encrypts the tokens that prove a client's address.
    token: Arc<hkdf::Prk>,
    /// Marks connection IDs as the server's own. quinn's hash of it is not cryptographic, so peers can find it out,
    /// which tells them nothing of the other keys.
    connection_ids: u64,
}

impl EndpointKeys {
    /// Keys of the server whose private TLS key is `secret`.
    pub(super) fn derive(secret: &[u8]) -> Result<Self, Unspecified> {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"playrate QUIC endpoint").extract(secret);
        let mut connection_ids = [0; 32];
        master
            .expand(&[b"connection IDs"], hkdf::HKDF_SHA256)?
            .fill(&mut connection_ids)?;
        let [first, ..] = connection_ids.as_chunks().0 else {
            return Err(Unspecified);
        };
        Ok(Self {
            reset: master.expand(&[b"stateless reset"], hmac::HMAC_SHA256)?.into(),
            token: Arc::new(master.expand(&[b"address validation"], hkdf::HKDF_SHA256)?.into()),
            connection_ids: u64::from_le_bytes(*first),
        })
    }

    /// Uses the keys for an endpoint and its connections.
    pub(super) fn install(self, endpoint: &mut EndpointConfig, server: &mut quinn::ServerConfig) {
        let connection_ids = self.connection_ids;
        endpoint
            .reset_key(Arc::new(self.reset))
            .cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(connection_ids)))
            .min_reset_interval(MIN_RESET_INTERVAL);
        server.token_key(self.token);
    }
}
