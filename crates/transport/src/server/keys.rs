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
/// Bytes at the beginning of a connection ID that the HMAC covers: the number of the process, and random ones.
const ID_MARKED: usize = 8;
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

    /// The generator of connection IDs for the process of this number.
    pub(super) fn connection_ids(&self, process: u8) -> MarkedConnectionIds {
        MarkedConnectionIds {
            process,
            key: self.connection_ids.clone(),
        }
    }

    /// Uses the keys for an endpoint and its connections, whose IDs begin with `process`. Returns their generator.
    pub(super) fn install(
        self,
        process: u8,
        endpoint: &mut EndpointConfig,
        server: &mut quinn::ServerConfig,
    ) -> MarkedConnectionIds {
        let connection_ids = self.connection_ids(process);
        let generator = connection_ids.clone();
        endpoint
            .reset_key(Arc::new(self.reset))
            .cid_generator(move || Box::new(generator.clone()))
            .min_reset_interval(MIN_RESET_INTERVAL);
        server.token_key(self.token);
        connection_ids
    }
}

/// Connection IDs that only the server makes: the number of its process, random bytes, and an HMAC-SHA256 over these,
/// cut to as many bytes.
///
/// A packet with a valid ID of no connection is answered with that ID's reset token, so no peer may find out an ID that
/// it was not given, and none is issued twice. quinn's own generator has 24 random bits and a hash that is not
/// cryptographic, which does for keys that change with every process. These IDs are 8 bytes longer than its, which each
/// packet from a client carries.
#[derive(Clone, Debug)]
pub(super) struct MarkedConnectionIds {
    process: u8,
    key: hmac::Key,
}

impl MarkedConnectionIds {
    /// First byte of the IDs, which says which process of the server issued them.
    pub(super) fn process(&self) -> u8 {
        self.process
    }

    fn mac(&self, marked: &[u8]) -> [u8; ID_MAC] {
        let mut mac = [0; ID_MAC];
        for (to, from) in mac.iter_mut().zip(hmac::sign(&self.key, marked).as_ref()) {
            *to = *from;
        }
        mac
    }
}

impl ConnectionIdGenerator for MarkedConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let random = RandomConnectionIdGenerator::new(ID_MARKED - 1).generate_cid();
        let marked = [&[self.process], &random[..]].concat();
        let mac = self.mac(&marked);
        ConnectionId::new(&[&marked[..], &mac].concat())
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let (marked, mac) = id.split_at_checked(ID_MARKED).ok_or(InvalidCid)?;
        let mac: [u8; ID_MAC] = mac.try_into().map_err(|_| InvalidCid)?;
        // As integers, which takes the same time wherever they differ.
        (u64::from_ne_bytes(mac) == u64::from_ne_bytes(self.mac(marked)))
            .then_some(())
            .ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        ID_MARKED + ID_MAC
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests;
