//! [`QuicLb`]: connection IDs that tell a load balancer which server they belong to, as QUIC-LB has them
//! (draft-ietf-quic-load-balancers-21, of August 2025, which is no RFC; sections here are the draft's).
//!
//! ```text
//! first octet: configuration (3 bits), length of the rest (5 bits)
//! server ID    1 to 8 bytes  ┐ with a key, encrypted as one block
//! nonce        8 to 18 bytes ┘
//! appended     the rest of what the server needs (§5.4)
//! ```
//!
//! Nonce and appended bytes are the content of the server's own IDs: the number of a process, random bytes, and an
//! HMAC.

use std::fmt;

use quinn::ConnectionId;

use super::keys::{ID_MARKED, IdEncoding};
use cipher::BlockCipher;

mod cipher;

/// Longest connection ID in bytes (RFC 9000 §17.2).
const ID_LENGTH: u8 = 20;
/// Highest number of a configuration; 7 is for IDs that no balancer can read (§3.2).
const MAX_CONFIG_ID: u8 = 6;
/// Longest server ID in bytes: of the 20, 11 remain for first octet and content.
const MAX_SERVER_ID: u8 = 8;
/// Bytes of the content where they find room: 8 of them random or a number, and 8 of the HMAC.
const CONTENT: u8 = 16;
/// Least length of a nonce in bytes, all that the HMAC covers.
const MIN_CONTENT: u8 = 8;
const _: () = assert!(
    MIN_CONTENT as usize == ID_MARKED,
    "what an HMAC covers must be in the nonce"
);

/// Reasons for which a [`QuicLbConfig`] or [`QuicLb`] cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuicLbError {
    /// The number does not fit into the bits for it.
    #[error("config-id must be 0 to {MAX_CONFIG_ID} (got {0})")]
    ConfigId(u64),
    /// The server ID is too short or too long.
    #[error(
        "server-id-length must be 1 to {MAX_SERVER_ID} bytes (got {0}): connection IDs have at most {ID_LENGTH} bytes, \
         of which the server itself needs 11"
    )]
    ServerIdLength(u64),
    /// The nonce is too short or too long.
    #[error(
        "nonce-length must be {MIN_CONTENT} to {most} bytes with server IDs of {server_id} (got {nonce}): shorter \
         nonces would repeat, and connection IDs have at most {ID_LENGTH} bytes",
        most = ID_LENGTH - 1 - server_id
    )]
    NonceLength {
        /// Its length in bytes.
        nonce: u64,
        /// Length of the server ID in bytes.
        server_id: u8,
    },
    /// The number does not fit into the bytes of server IDs.
    #[error(
        "server-id must be 0 to {most} with a server-id-length of {length} (got {number})",
        most = largest(*length)
    )]
    ServerId {
        /// Number that was given to it.
        number: u64,
        /// Length of server IDs in bytes.
        length: u8,
    },
}

/// Configuration that a load balancer and the servers behind it have in common (§5.3).
#[derive(Clone)]
pub struct QuicLbConfig {
    config_id: u8,
    server_id_length: u8,
    nonce_length: u8,
    key: Option<Key>,
}

#[derive(Clone)]
struct Key {
    bytes: [u8; QuicLbConfig::KEY_LENGTH],
    cipher: BlockCipher,
}

impl QuicLbConfig {
    /// Length of the key in bytes.
    pub const KEY_LENGTH: usize = 16;

    /// Configuration `config_id` (0 to 6) with server IDs of `server_id_length` bytes (1 to 8), nonces of
    /// `nonce_length` bytes (8 to 19 less the server ID), and a `key` for AES-128, without which everybody on the path
    /// can read the server IDs.
    ///
    /// By default server ID and nonce are 16 bytes together. Then encryption is one AES block, which costs a balancer
    /// the least and alone withstands distinguishing attacks (§9.7); other lengths are for pools where one was chosen
    /// before.
    ///
    /// # Errors
    /// If a number is outside of its range.
    pub fn new(
        config_id: u64,
        server_id_length: u64,
        nonce_length: Option<u64>,
        key: Option<[u8; Self::KEY_LENGTH]>,
    ) -> Result<Self, QuicLbError> {
        let id = u8::try_from(config_id).ok().filter(|&id| id <= MAX_CONFIG_ID);
        let config_id = id.ok_or(QuicLbError::ConfigId(config_id))?;
        let server_id_length = u8::try_from(server_id_length)
            .ok()
            .filter(|length| (1..=MAX_SERVER_ID).contains(length))
            .ok_or(QuicLbError::ServerIdLength(server_id_length))?;
        let nonce_length = match nonce_length {
            None => CONTENT - server_id_length,
            Some(nonce) => u8::try_from(nonce)
                .ok()
                .filter(|length| (MIN_CONTENT..ID_LENGTH - server_id_length).contains(length))
                .ok_or(QuicLbError::NonceLength {
                    nonce,
                    server_id: server_id_length,
                })?,
        };
        Ok(Self {
            config_id,
            server_id_length,
            nonce_length,
            key: key.map(|bytes| Key {
                bytes,
                cipher: BlockCipher::new(&bytes),
            }),
        })
    }

    /// Number of the server in the first bytes of a connection ID, as a load balancer reads it (§5.5): `None` for an ID
    /// of another configuration, and for one that is too short.
    ///
    /// An ID that a client has chosen, as the first packet of each has one, may have the number of any server.
    pub fn server_id(&self, connection_id: &[u8]) -> Option<u64> {
        let (first, rest) = connection_id.split_first()?;
        if first >> LENGTH_BITS != self.config_id {
            return None;
        }
        let mut block = rest.get(..self.block_length())?.to_vec();
        if let Some(key) = &self.key {
            key.cipher.decrypt(&mut block);
        }
        let (server_id, _) = block.split_at_checked(self.server_id_length.into())?;
        Some(
            server_id
                .iter()
                .fold(0, |number, &byte| number << 8 | u64::from(byte)),
        )
    }

    /// The configuration of the server with this number.
    ///
    /// # Errors
    /// If the number is longer than server IDs.
    pub fn server(self, number: u64) -> Result<QuicLb, QuicLbError> {
        if number > largest(self.server_id_length) {
            return Err(QuicLbError::ServerId {
                number,
                length: self.server_id_length,
            });
        }
        Ok(QuicLb { config: self, number })
    }

    /// Length of a server ID in bytes.
    pub fn server_id_length(&self) -> u8 {
        self.server_id_length
    }

    /// Length of a nonce in bytes.
    pub fn nonce_length(&self) -> u8 {
        self.nonce_length
    }

    /// Returns true if server IDs are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.key.is_some()
    }

    fn block_length(&self) -> usize {
        usize::from(self.server_id_length + self.nonce_length)
    }

    /// Length of what the server puts into nonce and appended bytes.
    fn content_length(&self) -> u8 {
        CONTENT
            .min(ID_LENGTH - 1 - self.server_id_length)
            .max(self.nonce_length)
    }
}

impl fmt::Debug for QuicLbConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbConfig")
            .field("config_id", &self.config_id)
            .field("server_id_length", &self.server_id_length)
            .field("nonce_length", &self.nonce_length)
            .field("is_encrypted", &self.is_encrypted())
            .finish_non_exhaustive()
    }
}

/// Number of the low bits of the first octet, which have the length of the rest (§3.3).
const LENGTH_BITS: u32 = 5;

/// Largest number in `length` bytes, 1 to 8.
fn largest(length: u8) -> u64 {
    u64::MAX >> (64 - 8 * length)
}

/// A server behind a load balancer, with its number among those servers.
///
/// Its connection IDs meet the draft's demands on a nonce (§9.6) by what they have in it anyhow: 7 random bytes, so
/// that two of the same process and configuration are to be expected among 2²⁸ IDs, and an HMAC over these and the
/// number of the process, which looks random. Without a key, where the nonce is in the open, all of it is permuted with
/// a key of the server, so that not even the number of the process shows.
#[derive(Clone, Debug)]
pub struct QuicLb {
    config: QuicLbConfig,
    number: u64,
}

impl QuicLb {
    /// The configuration that it has in common with its load balancer.
    pub fn config(&self) -> &QuicLbConfig {
        &self.config
    }

    /// Its number among the servers of the configuration.
    pub fn server_id(&self) -> u64 {
        self.number
    }

    /// Everything by which IDs of two servers differ.
    pub(super) fn distinction(&self) -> Vec<u8> {
        let QuicLbConfig {
            config_id,
            server_id_length,
            nonce_length,
            key,
        } = &self.config;
        let mut bytes = vec![*config_id, *server_id_length, *nonce_length];
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(key.iter().flat_map(|key| key.bytes));
        bytes
    }

    fn server_id_bytes(&self) -> impl Iterator<Item = u8> {
        let bytes = self.number.to_be_bytes();
        bytes
            .into_iter()
            .skip(8 - usize::from(self.config.server_id_length))
    }

    fn first_octet(&self) -> u8 {
        let length = self.config.server_id_length + self.config.content_length();
        self.config.config_id << LENGTH_BITS | length
    }
}

/// Connection IDs of one server behind a load balancer, around what the server itself has in them.
#[derive(Debug)]
pub(super) struct RoutableIds {
    lb: QuicLb,
    /// Permutes the content, if the balancer's configuration has no key.
    own: Option<BlockCipher>,
}

impl RoutableIds {
    /// IDs of the server `lb`, which hides their content with the key `own` if nothing else does.
    pub(super) fn new(lb: QuicLb, own: &[u8; QuicLbConfig::KEY_LENGTH]) -> Self {
        Self {
            own: (!lb.config.is_encrypted()).then(|| BlockCipher::new(own)),
            lb,
        }
    }
}

impl IdEncoding for RoutableIds {
    fn content_length(&self) -> usize {
        self.lb.config.content_length().into()
    }

    fn length(&self) -> usize {
        1 + usize::from(self.lb.config.server_id_length) + self.content_length()
    }

    fn encode(&self, content: &[u8]) -> ConnectionId {
        let mut id = vec![self.lb.first_octet()];
        id.extend(self.lb.server_id_bytes());
        let at = id.len();
        id.extend_from_slice(content);
        if let Some(cipher) = &self.own {
            cipher.encrypt(&mut id[at..]);
        }
        if let Some(key) = &self.lb.config.key {
            key.cipher.encrypt(&mut id[1..=self.lb.config.block_length()]);
        }
        ConnectionId::new(&id)
    }

    fn decode(&self, id: &[u8]) -> Option<ConnectionId> {
        let config = &self.lb.config;
        let (first, rest) = id.split_first()?;
        if *first != self.lb.first_octet() || id.len() != self.length() {
            return None;
        }
        let mut rest = rest.to_vec();
        if let Some(key) = &config.key {
            key.cipher.decrypt(rest.get_mut(..config.block_length())?);
        }
        let (server_id, content) = rest.split_at_mut_checked(config.server_id_length.into())?;
        if !self.lb.server_id_bytes().eq(server_id.iter().copied()) {
            return None;
        }
        if let Some(cipher) = &self.own {
            cipher.decrypt(content);
        }
        Some(ConnectionId::new(content))
    }
}

#[cfg(test)]
mod tests;
