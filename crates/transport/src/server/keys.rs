//! [`EndpointKey`]: a server's secret that outlives its process, and the keys of the endpoint that follow from it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use quinn::{ConnectionId, EndpointConfig};
use quinn_proto::{ConnectionIdGenerator, InvalidCid, RandomConnectionIdGenerator};
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};

/// Least time between two stateless resets: 1,000 in a second. quinn's 20 ms would have the clients of a busy server
/// wait for seconds. A reset is smaller than the packet that it answers, so it amplifies nothing.
const MIN_RESET_INTERVAL: Duration = Duration::from_millis(1);
/// Random bytes in a connection ID.
const ID_RANDOM: usize = 6;
/// Bytes at the beginning of a connection ID that the HMAC covers: the [`Issuer`], and random ones.
const ID_MARKED: usize = 2 + ID_RANDOM;
/// Bytes of the HMAC that follow them.
const ID_MAC: usize = 8;

/// Secret of one server, from which it derives the keys of its endpoint. Servers must not share one: each would reset
/// connections of the others.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointKey([u8; Self::LENGTH]);

impl EndpointKey {
    /// Length of the secret in bytes.
    pub const LENGTH: usize = 32;

    /// The key with these bytes, which must have been random once.
    pub const fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// A new random key, or an error if the system gives no random bytes.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; Self::LENGTH];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|Unspecified| io::Error::other("the system gives no random bytes"))?;
        Ok(Self(bytes))
    }

    /// Number that two processes compare to find out if they have the same key. It does not reveal the key.
    pub fn fingerprint(&self) -> u64 {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(&key, b"playrate endpoint key fingerprint");
        let bytes = tag.as_ref().first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(bytes)
    }

    /// The secret, to store it where only the server reads it.
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointKey").finish_non_exhaustive()
    }
}

/// Keys that a server derives from its [`EndpointKey`] (HKDF-SHA256, RFC 5869), so that a restarted server, which has
/// lost all connections, recognizes packets of their clients and resets them (RFC 9000 §10.3), and accepts tokens that
/// it gave out before.
pub(super) struct EndpointKeys {
    /// Signs stateless reset tokens.
    reset: hmac::Key,
    /// Encrypts the tokens that validate a client's address.
    token: Arc<hkdf::Prk>,
    /// Marks connection IDs as the server's own.
    connection_ids: hmac::Key,
}

impl EndpointKeys {
    pub(super) fn derive(key: &EndpointKey) -> Result<Self, Unspecified> {
        let master = hkdf::Salt::new(hkdf::HKDF_SHA256, b"playrate QUIC endpoint").extract(key.as_bytes());
        Ok(Self {
            reset: master.expand(&[b"stateless reset"], hmac::HMAC_SHA256)?.into(),
            token: Arc::new(master.expand(&[b"address validation"], hkdf::HKDF_SHA256)?.into()),
            connection_ids: master.expand(&[b"connection IDs"], hmac::HMAC_SHA256)?.into(),
        })
    }

    /// The generator of connection IDs for `issuer`.
    pub(super) fn connection_ids(&self, issuer: Issuer) -> MarkedConnectionIds {
        MarkedConnectionIds {
            issuer,
            key: self.connection_ids.clone(),
        }
    }

    /// Uses the keys for the connections of `server`: all endpoints of one server accept each other's tokens.
    pub(super) fn install_tokens(&self, server: &mut quinn::ServerConfig) {
        server.token_key(Arc::clone(&self.token) as _);
    }

    /// Uses the keys for an endpoint, the `issuer` of its connection IDs. Returns their generator.
    pub(super) fn install(&self, issuer: Issuer, endpoint: &mut EndpointConfig) -> MarkedConnectionIds {
        let connection_ids = self.connection_ids(issuer);
        let generator = connection_ids.clone();
        endpoint
            .reset_key(Arc::new(self.reset.clone()))
            .cid_generator(move || Box::new(generator.clone()))
            .min_reset_interval(MIN_RESET_INTERVAL);
        connection_ids
    }
}

/// The endpoint of a server that issued a connection ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issuer {
    /// Number of its process among those that have the server's sockets, one after the other.
    pub(super) process: u8,
    /// Number of the endpoint among those of its process.
    pub(super) worker: u8,
}

/// Content of a connection ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IdContent {
    pub(super) issuer: Issuer,
    random: [u8; ID_RANDOM],
    mac: [u8; ID_MAC],
}

impl IdContent {
    /// Length of an ID in bytes.
    pub(super) const LENGTH: usize = ID_MARKED + ID_MAC;

    fn issue(issuer: Issuer, key: &hmac::Key) -> Self {
        let mut content = Self {
            issuer,
            random: [0; ID_RANDOM],
            mac: [0; ID_MAC],
        };
        content
            .random
            .copy_from_slice(&RandomConnectionIdGenerator::new(ID_RANDOM).generate_cid());
        content.mac = content.expected_mac(key);
        content
    }

    /// The first bytes of HMAC-SHA256 over the rest.
    fn expected_mac(&self, key: &hmac::Key) -> [u8; ID_MAC] {
        let tag = hmac::sign(key, &self.marked());
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }

    /// Bytes that the HMAC covers.
    fn marked(&self) -> [u8; ID_MARKED] {
        let Issuer { process, worker } = self.issuer;
        let mut bytes = [process, worker, 0, 0, 0, 0, 0, 0];
        if let Some(random) = bytes.last_chunk_mut() {
            *random = self.random;
        }
        bytes
    }

    /// Returns true if the server with `key` issued the ID.
    fn is_valid(&self, key: &hmac::Key) -> bool {
        // As integers, which takes the same time wherever they differ.
        u64::from_ne_bytes(self.mac) == u64::from_ne_bytes(self.expected_mac(key))
    }

    fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        let (marked, mac) = bytes.split_at_mut(ID_MARKED);
        marked.copy_from_slice(&self.marked());
        mac.copy_from_slice(&self.mac);
        bytes
    }

    /// Content of the ID `bytes`, which may not be valid; `None` if it has another length.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (&[process, worker], rest) = bytes.split_first_chunk()?;
        let (&random, mac) = rest.split_first_chunk()?;
        Some(Self {
            issuer: Issuer { process, worker },
            random,
            mac: mac.try_into().ok()?,
        })
    }
}

/// Connection IDs that only the server makes: [`IdContent`] with an HMAC-SHA256, cut to eight bytes.
///
/// A packet with a valid ID of no connection is answered with that ID's reset token, so no peer may find out an ID that
/// it was not given, and none is issued twice. quinn's own generator has 24 random bits and a hash that is not
/// cryptographic, which does for keys that change with every process. These IDs are 8 bytes longer than its, which each
/// packet from a client carries.
#[derive(Clone, Debug)]
pub(super) struct MarkedConnectionIds {
    issuer: Issuer,
    key: hmac::Key,
}

impl MarkedConnectionIds {
    /// The endpoint that issues these IDs.
    pub(super) fn issuer(&self) -> Issuer {
        self.issuer
    }

    /// Returns true if this server issued the ID with `content`.
    pub(super) fn is_valid(&self, content: &IdContent) -> bool {
        content.is_valid(&self.key)
    }
}

impl ConnectionIdGenerator for MarkedConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&IdContent::issue(self.issuer, &self.key).encode())
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let content = IdContent::decode(id).filter(|content| self.is_valid(content));
        content.map(|_| ()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        IdContent::LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests;
