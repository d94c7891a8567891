//! [`EndpointKey`]: a server's secret that outlives its process, and the endpoint keys derived from it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use playrate_quic_lb::BlockCipher;
use quinn::{ConnectionId, EndpointConfig};
use quinn_proto::{ConnectionIdGenerator, InvalidCid, RandomConnectionIdGenerator};
use ring::aead::quic::AES_128;
use ring::error::Unspecified;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{hkdf, hmac};

use super::quic_lb::{self, QuicLb, RoutableIds};

/// Minimum time between two stateless resets: 1,000 per second. With quinn's 20 ms, the clients of a busy server would
/// wait for seconds. A reset is smaller than the packet that it answers, so it does not amplify.
const MIN_RESET_INTERVAL: Duration = Duration::from_millis(1);
/// Random bytes in a connection ID.
const ID_RANDOM: usize = 6;
/// Bytes at the beginning of a connection ID that the HMAC covers: the [`Issuer`], and random ones.
const ID_MARKED: usize = 2 + ID_RANDOM;
const _: () = assert!(
    quic_lb::MIN_NONCE as usize == ID_MARKED,
    "what the HMAC covers must be in the nonce"
);
/// Bytes of the HMAC after them, unless QUIC-LB needs the room.
const ID_MAC: usize = 8;

/// Secret of one server; the keys of its endpoint are derived from it. Servers must not share one, because each would
/// reset connections of the others. If their connection IDs name the server (`QuicLb`), they may.
#[derive(Clone, PartialEq, Eq)]
pub struct EndpointKey([u8; Self::LENGTH]);

impl EndpointKey {
    /// Length of the secret in bytes.
    pub const LENGTH: usize = 32;

    /// The key with these bytes, which must be random.
    pub const fn new(bytes: [u8; Self::LENGTH]) -> Self {
        Self(bytes)
    }

    /// A new random key, or an error if the system provides no random bytes.
    pub fn generate() -> io::Result<Self> {
        let mut bytes = [0; Self::LENGTH];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|Unspecified| io::Error::other("the system gives no random bytes"))?;
        Ok(Self(bytes))
    }

    /// Number that two processes compare to determine if they have the same key and the same `distinction`. It does not
    /// reveal the key.
    pub(super) fn fingerprint(&self, distinction: &[u8]) -> u64 {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.0);
        let tag = hmac::sign(
            &key,
            &[b"playrate endpoint key fingerprint", distinction].concat(),
        );
        let bytes = tag.as_ref().first_chunk().copied().unwrap_or_default();
        u64::from_be_bytes(bytes)
    }

    /// The secret, for storage where only the server can read it.
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }
}

impl fmt::Debug for EndpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointKey").finish_non_exhaustive()
    }
}

/// Keys that a server derives from its [`EndpointKey`] (HKDF-SHA256, RFC 5869). With the same keys, a restarted server,
/// which has lost all connections, recognizes packets of their clients and resets them (RFC 9000 §10.3), and accepts
/// tokens that it issued before.
pub(super) struct EndpointKeys {
    /// Signs stateless reset tokens.
    reset: hmac::Key,
    /// Encrypts the tokens that validate a client's address.
    token: Arc<hkdf::Prk>,
    /// Marks connection IDs as the server's own.
    connection_ids: hmac::Key,
    /// Form of the IDs behind a load balancer; `None` if they are only their content.
    routable: Option<Arc<RoutableIds>>,
}

impl EndpointKeys {
    /// The keys derived from `key`, for the server `lb` if it is behind a load balancer. All such servers with the same
    /// `key` accept each other's tokens. Each marks IDs differently, and the reset token of an ID depends on the
    /// configuration.
    pub(super) fn derive(key: &EndpointKey, lb: Option<&QuicLb>) -> Result<Self, Unspecified> {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"playrate QUIC endpoint");
        let master = salt.extract(key.as_bytes());
        let server = lb.map(QuicLb::distinction).unwrap_or_default();
        let expand = |purpose: &[u8]| -> Result<hmac::Key, Unspecified> {
            Ok(master.expand(&[purpose, &server], hmac::HMAC_SHA256)?.into())
        };
        let routable = |lb| -> Result<_, Unspecified> {
            let mut own = [0; BlockCipher::KEY_LENGTH];
            let info: [&[u8]; 2] = [b"content of connection IDs", &server];
            master.expand(&info, &AES_128)?.fill(&mut own)?;
            Ok(Arc::new(RoutableIds::new(lb, &own)))
        };
        Ok(Self {
            reset: expand(b"stateless reset")?,
            token: Arc::new(master.expand(&[b"address validation"], hkdf::HKDF_SHA256)?.into()),
            connection_ids: expand(b"connection IDs")?,
            routable: lb.map(routable).transpose()?,
        })
    }

    /// The generator of connection IDs for `issuer`.
    pub(super) fn connection_ids(&self, issuer: Issuer) -> MarkedConnectionIds {
        MarkedConnectionIds {
            issuer,
            key: self.connection_ids.clone(),
            routable: self.routable.clone(),
        }
    }

    /// Uses the keys for the connections of `server`: all endpoints of one server accept each other's tokens.
    pub(super) fn install_tokens(&self, server: &mut quinn::ServerConfig) {
        server.token_key(Arc::clone(&self.token) as _);
    }

    /// Uses the keys for an endpoint that issues these connection IDs.
    pub(super) fn install(&self, connection_ids: &MarkedConnectionIds, endpoint: &mut EndpointConfig) {
        let generator = connection_ids.clone();
        endpoint
            .reset_key(Arc::new(self.reset.clone()))
            .cid_generator(move || Box::new(generator.clone()))
            .min_reset_interval(MIN_RESET_INTERVAL);
    }
}

/// The endpoint of a server that issued a connection ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Issuer {
    /// Number of its process among those that successively have the server's sockets.
    pub(super) process: u8,
    /// Number of the endpoint within its process.
    pub(super) worker: u8,
}

/// Connection IDs that only the server can make: their [`Issuer`], random bytes, and an HMAC-SHA256 over these, cut to
/// the same number of bytes, or to the room in [`RoutableIds`].
///
/// If a packet has a valid ID without a connection, the server answers with that ID's reset token. So no peer must be
/// able to guess an ID that it was not given, and no ID must be issued twice. quinn's own generator has 24 random bits
/// and a non-cryptographic hash, which suffices for keys that change with every process. These IDs are 8 bytes longer,
/// in each packet from a client.
#[derive(Clone, Debug)]
pub(super) struct MarkedConnectionIds {
    issuer: Issuer,
    key: hmac::Key,
    routable: Option<Arc<RoutableIds>>,
}

impl MarkedConnectionIds {
    /// The endpoint that issues these IDs.
    pub(super) fn issuer(&self) -> Issuer {
        self.issuer
    }

    /// The endpoint of this server that issued `id`; `None` if it is this one, or if none of them did.
    pub(super) fn other_issuer(&self, id: &[u8]) -> Option<Issuer> {
        let content = self.content(id)?;
        let &[process, worker] = content.first_chunk()?;
        let issuer = Issuer { process, worker };
        (issuer != self.issuer && self.is_marked(&content)).then_some(issuer)
    }

    /// The content of `id`, if it has the form of this server's.
    fn content(&self, id: &[u8]) -> Option<Vec<u8>> {
        match &self.routable {
            Some(routable) => routable.decode(id),
            None => (id.len() == self.cid_len()).then(|| id.to_vec()),
        }
    }

    fn content_length(&self) -> usize {
        let routable = self.routable.as_ref();
        routable.map_or(ID_MARKED + ID_MAC, |routable| routable.content_length())
    }

    /// Returns true if the HMAC in `content` is that of this server.
    fn is_marked(&self, content: &[u8]) -> bool {
        let Some((marked, mac)) = content.split_at_checked(ID_MARKED) else {
            return false;
        };
        // All bytes are compared, so the time does not depend on the position of a difference.
        let own = self.mac(marked);
        let pairs = own.as_ref().iter().zip(mac);
        pairs.fold(0, |differences, (one, other)| differences | (one ^ other)) == 0
    }

    fn mac(&self, marked: &[u8]) -> hmac::Tag {
        hmac::sign(&self.key, marked)
    }
}

impl ConnectionIdGenerator for MarkedConnectionIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let Issuer { process, worker } = self.issuer;
        let random = RandomConnectionIdGenerator::new(ID_RANDOM).generate_cid();
        let mut content = [&[process, worker], &random[..]].concat();
        let mac = self.mac(&content);
        content.extend_from_slice(mac.as_ref());
        content.truncate(self.content_length());
        match &self.routable {
            Some(routable) => routable.encode(content),
            None => ConnectionId::new(&content),
        }
    }

    fn validate(&self, id: &ConnectionId) -> Result<(), InvalidCid> {
        let content = self.content(id).ok_or(InvalidCid)?;
        self.is_marked(&content).then_some(()).ok_or(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        let routable = self.routable.as_ref();
        routable.map_or(ID_MARKED + ID_MAC, |routable| routable.length())
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests;
