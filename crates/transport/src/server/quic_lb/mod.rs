//! [`QuicLb`]: connection IDs that tell a load balancer which server they belong to (`playrate_quic_lb`).
//!
//! QUIC-LB's nonce and appended bytes are the content of the server's own IDs: the number of a process, random bytes,
//! and an HMAC.

use playrate_quic_lb::{BlockCipher, QuicLbConfig, QuicLbError, QuicLbServer};
use quinn::ConnectionId;

/// Longest connection ID in bytes, without its first octet (RFC 9000 §17.2).
const MAX_LENGTH: u8 = 19;
/// Bytes of the content if there is room for them: 8 with random bytes and numbers, and 8 of the HMAC.
const CONTENT: u8 = 16;
/// Shortest nonce in bytes: it contains everything that the HMAC covers, so it does not repeat.
pub(super) const MIN_NONCE: u8 = 8;
/// Longest server ID in bytes: it leaves room for a nonce, and for 3 bytes of the HMAC.
const MAX_SERVER_ID: u8 = MAX_LENGTH - MIN_NONCE - 3;

/// A server behind a load balancer, with its server number.
///
/// Its connection IDs already satisfy the draft's nonce requirements (§9.6). They have 6 random bytes, so the first
/// repetition among one worker's IDs is expected after 2²⁴ of them. They also have an HMAC over these bytes and the
/// numbers of process and worker, which looks random. Without the balancer's key the nonce is not encrypted, so the
/// server permutes all of it with its own key, which hides these numbers.
#[derive(Clone, Debug)]
pub struct QuicLb {
    server: QuicLbServer,
    number: u64,
}

impl QuicLb {
    /// The server with this number behind load balancers with the configuration `config`.
    ///
    /// # Errors
    /// If this server's own IDs do not fit into the configuration (see [`config_of`](Self::config_of)), or the number
    /// not into its server IDs.
    pub fn new(config: QuicLbConfig, number: u64) -> Result<Self, QuicLbError> {
        let server = Self::suitable(config)?.server(number.into())?;
        Ok(Self { server, number })
    }

    /// A configuration that this server's own IDs fit into: it needs server IDs of 1 to 8 bytes, and nonces of at
    /// least 8 bytes. The arguments are those of [`QuicLbConfig::new`].
    ///
    /// # Errors
    /// The length that does not fit, with the limits of this server.
    pub fn config_of(
        config_id: u64,
        server_id_length: u64,
        nonce_length: Option<u64>,
        key: Option<[u8; QuicLbConfig::KEY_LENGTH]>,
    ) -> Result<QuicLbConfig, QuicLbError> {
        let config = QuicLbConfig::new(config_id, server_id_length, nonce_length, key);
        config.and_then(Self::suitable).map_err(|error| match error {
            QuicLbError::ServerIdLength { length, .. } => QuicLbError::ServerIdLength {
                length,
                most: MAX_SERVER_ID,
            },
            QuicLbError::NonceLength { nonce, server_id, .. } => QuicLbError::NonceLength {
                nonce,
                least: MIN_NONCE,
                server_id,
            },
            other => other,
        })
    }

    fn suitable(config: QuicLbConfig) -> Result<QuicLbConfig, QuicLbError> {
        let (server_id, nonce) = (config.server_id_length(), config.nonce_length());
        if server_id > MAX_SERVER_ID {
            return Err(QuicLbError::ServerIdLength {
                length: server_id.into(),
                most: MAX_SERVER_ID,
            });
        }
        if nonce < MIN_NONCE {
            return Err(QuicLbError::NonceLength {
                nonce: nonce.into(),
                least: MIN_NONCE,
                server_id,
            });
        }
        Ok(config)
    }

    /// The configuration shared with its load balancer.
    pub fn config(&self) -> &QuicLbConfig {
        self.server.config()
    }

    /// Its number among the servers of the configuration.
    pub fn server_id(&self) -> u64 {
        self.number
    }

    /// The fields that distinguish two servers' IDs.
    pub(super) fn distinction(&self) -> Vec<u8> {
        let config = self.config();
        let mut bytes = vec![
            config.config_id(),
            config.server_id_length(),
            config.nonce_length(),
        ];
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(config.key().into_iter().flatten());
        bytes
    }
}

/// Connection IDs of one server behind a load balancer; they enclose the server's own content.
#[derive(Debug)]
pub(super) struct RoutableIds {
    server: QuicLbServer,
    /// Permutes the content, if the balancer's configuration has no key.
    own: Option<BlockCipher>,
}

impl RoutableIds {
    /// IDs of the server `lb`. The key `own` hides their content if nothing else does.
    pub(super) fn new(lb: &QuicLb, own: &[u8; BlockCipher::KEY_LENGTH]) -> Self {
        Self {
            server: lb.server.clone(),
            own: lb.config().key().is_none().then(|| BlockCipher::new(own)),
        }
    }

    /// Length of the content in bytes, 11 to 18.
    pub(super) fn content_length(&self) -> usize {
        let config = self.server.config();
        let room = MAX_LENGTH - config.server_id_length();
        CONTENT.min(room).max(config.nonce_length()).into()
    }

    /// Length of the IDs in bytes.
    pub(super) fn length(&self) -> usize {
        1 + usize::from(self.server.config().server_id_length()) + self.content_length()
    }

    /// The ID with `content`, which has the [content's length](Self::content_length).
    pub(super) fn encode(&self, mut content: Vec<u8>) -> ConnectionId {
        if let Some(cipher) = &self.own {
            cipher.encrypt(&mut content);
        }
        // `None` only for a content of another length.
        let id = self.server.connection_id(&content).unwrap_or_default();
        ConnectionId::new(&id)
    }

    /// The content of `id`; `None` if this server did not make it.
    pub(super) fn decode(&self, id: &[u8]) -> Option<Vec<u8>> {
        let mut content = self.server.content(id)?;
        if content.len() != self.content_length() {
            return None;
        }
        if let Some(cipher) = &self.own {
            cipher.decrypt(&mut content);
        }
        Some(content)
    }
}

#[cfg(test)]
mod tests;
