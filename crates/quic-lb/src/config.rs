//! [`QuicLbConfig`] for load balancers, and [`QuicLbServer`] for the servers behind them.

use std::fmt;

use crate::cipher::BlockCipher;

/// Longest connection ID in bytes, without its first octet (RFC 9000 §17.2).
const MAX_LENGTH: u8 = 19;
/// Number of low bits in the first octet that encode the length of the rest (§3.3).
const LENGTH_BITS: u32 = 5;
/// Highest number of a configuration; 7 is for IDs that no balancer can read (§3.2).
const MAX_CONFIG_ID: u8 = 6;
/// Shortest nonce in bytes (§5.3).
const MIN_NONCE: u8 = 4;
/// Longest server ID in bytes: the shortest nonce needs the rest.
const MAX_SERVER_ID: u8 = MAX_LENGTH - MIN_NONCE;
/// Bytes of a server ID and a nonce that are encrypted as one block of AES (§5.4.1).
const SINGLE_PASS: u8 = 16;

/// Reasons why a [`QuicLbConfig`] or a [`QuicLbServer`] is invalid. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuicLbError {
    /// The number of the configuration does not fit into its bits.
    #[error("config-id must be 0 to {MAX_CONFIG_ID} (got {0})")]
    ConfigId(u64),
    /// The server ID is too short or too long.
    #[error(
        "server-id-length must be 1 to {most} bytes (got {length}): connection IDs have at most 20 bytes, and the rest \
         of one needs {}",
        MAX_LENGTH.saturating_sub(*most)
    )]
    ServerIdLength {
        /// The length that was given.
        length: u64,
        /// The largest length that works.
        most: u8,
    },
    /// The nonce is too short or too long.
    #[error(
        "nonce-length must be {least} to {} bytes with server IDs of {server_id} (got {nonce}): shorter nonces would \
         repeat, and connection IDs have at most 20 bytes",
        MAX_LENGTH.saturating_sub(*server_id)
    )]
    NonceLength {
        /// The length that was given.
        nonce: u64,
        /// The smallest length that works.
        least: u8,
        /// Length of the server ID.
        server_id: u8,
    },
    /// The number of the server does not fit into the server ID.
    #[error("server-id must be 0 to {} with a server-id-length of {length} (got {number})", largest(*length))]
    ServerId {
        /// The number that was given.
        number: u128,
        /// Length of the server ID.
        length: u8,
    },
}

/// Configuration shared by a load balancer and the servers behind it (§5.3).
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
    pub const KEY_LENGTH: usize = BlockCipher::KEY_LENGTH;

    /// Configuration `config_id` (0 to 6) with server IDs of `server_id_length` bytes (1 to 15), nonces of
    /// `nonce_length` bytes (4 to 19 less the server ID), and a `key` for AES-128. Without a key, any observer on the
    /// path can read the server IDs.
    ///
    /// By default a server ID and a nonce have 16 bytes together. Then encryption is one AES block, which is cheapest
    /// for a balancer and the only form that withstands distinguishing attacks (§9.7). A server ID of more than 12
    /// bytes leaves no room for that, and its nonce has 4 bytes by default.
    ///
    /// # Errors
    /// If a number is outside its range.
    pub fn new(
        config_id: u64,
        server_id_length: u64,
        nonce_length: Option<u64>,
        key: Option<[u8; Self::KEY_LENGTH]>,
    ) -> Result<Self, QuicLbError> {
        let within = |number: u64, least: u8, most: u8| {
            let number = u8::try_from(number).ok();
            number.filter(|number| (least..=most).contains(number))
        };
        let config_id = within(config_id, 0, MAX_CONFIG_ID).ok_or(QuicLbError::ConfigId(config_id))?;
        let server_id = within(server_id_length, 1, MAX_SERVER_ID).ok_or(QuicLbError::ServerIdLength {
            length: server_id_length,
            most: MAX_SERVER_ID,
        })?;
        let nonce =
            nonce_length.unwrap_or_else(|| SINGLE_PASS.saturating_sub(server_id).max(MIN_NONCE).into());
        let nonce_length =
            within(nonce, MIN_NONCE, MAX_LENGTH - server_id).ok_or(QuicLbError::NonceLength {
                nonce,
                least: MIN_NONCE,
                server_id,
            })?;
        Ok(Self {
            config_id,
            server_id_length: server_id,
            nonce_length,
            key: key.map(|bytes| Key {
                bytes,
                cipher: BlockCipher::new(&bytes),
            }),
        })
    }

    /// Number of the server in the first bytes of `connection_id`, as a load balancer reads it (§5.5), big-endian.
    /// `None` for an ID of another configuration, and for one that is too short.
    ///
    /// Bytes after the ID are ignored, so the rest of a packet with a short header may follow it. An ID chosen by a
    /// client, as in each client's first packet, may name any server.
    pub fn server_id(&self, connection_id: &[u8]) -> Option<u128> {
        self.read(connection_id).map(|(number, _)| number)
    }

    /// Number of the server in `connection_id`, and the bytes after it.
    fn read(&self, connection_id: &[u8]) -> Option<(u128, Vec<u8>)> {
        let (first, rest) = connection_id.split_first()?;
        if first >> LENGTH_BITS != self.config_id {
            return None;
        }
        let mut server_id = rest[..rest.len().min(MAX_LENGTH.into())].to_vec();
        self.crypt(&mut server_id, BlockCipher::decrypt)?;
        let content = server_id.split_off(self.server_id_length.into());
        let number = server_id
            .into_iter()
            .fold(0, |number, byte| number << 8 | u128::from(byte));
        Some((number, content))
    }

    /// Applies `direction` of the cipher, if there is a key, to the server ID and nonce at the beginning of `rest`, the
    /// bytes after a first octet. `None` if `rest` is shorter than these.
    fn crypt(&self, rest: &mut [u8], direction: fn(&BlockCipher, &mut [u8])) -> Option<()> {
        let length = usize::from(self.server_id_length + self.nonce_length);
        let block = rest.get_mut(..length)?;
        if let Some(key) = &self.key {
            direction(&key.cipher, block);
        }
        Some(())
    }

    /// The configuration of the server with this number.
    ///
    /// # Errors
    /// If the number does not fit into a server ID.
    pub fn server(self, number: u128) -> Result<QuicLbServer, QuicLbError> {
        let length = self.server_id_length;
        if number > largest(length) {
            return Err(QuicLbError::ServerId { number, length });
        }
        Ok(QuicLbServer { config: self, number })
    }

    /// Number of the configuration, 0 to 6.
    pub fn config_id(&self) -> u8 {
        self.config_id
    }

    /// Length of a server ID in bytes.
    pub fn server_id_length(&self) -> u8 {
        self.server_id_length
    }

    /// Length of a nonce in bytes.
    pub fn nonce_length(&self) -> u8 {
        self.nonce_length
    }

    /// Key that encrypts server IDs; `None` if they are not encrypted.
    pub fn key(&self) -> Option<&[u8; Self::KEY_LENGTH]> {
        self.key.as_ref().map(|key| &key.bytes)
    }
}

impl fmt::Debug for QuicLbConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicLbConfig")
            .field("config_id", &self.config_id)
            .field("server_id_length", &self.server_id_length)
            .field("nonce_length", &self.nonce_length)
            .field("is_encrypted", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

/// Largest number in `length` bytes, 1 to 15.
fn largest(length: u8) -> u128 {
    let unused = u128::BITS.saturating_sub(8 * u32::from(length));
    u128::MAX.checked_shr(unused).unwrap_or(0)
}

/// A server behind a load balancer, with its number in the configuration.
#[derive(Clone, Debug)]
pub struct QuicLbServer {
    config: QuicLbConfig,
    number: u128,
}

impl QuicLbServer {
    /// The configuration shared with its load balancer.
    pub fn config(&self) -> &QuicLbConfig {
        &self.config
    }

    /// Its number among the servers of the configuration.
    pub fn server_id(&self) -> u128 {
        self.number
    }

    /// The connection ID with `content`: a nonce, and bytes for the server alone, which are never encrypted. The first
    /// octet contains its length (§3.3). `None` if the content is shorter than a nonce, or if the ID would exceed 20
    /// bytes.
    ///
    /// §5.4: all IDs of a configuration must have the same length. Without a key, an observer must not be able to
    /// relate a content to an earlier one. With a key, the nonce must not repeat (§9.6).
    pub fn connection_id(&self, content: &[u8]) -> Option<Vec<u8>> {
        let content_length = u8::try_from(content.len()).ok()?;
        let length = content_length.checked_add(self.config.server_id_length)?;
        if length > MAX_LENGTH {
            return None;
        }
        let mut id = vec![self.config.config_id << LENGTH_BITS | length];
        let number = self.number.to_be_bytes();
        id.extend_from_slice(&number[number.len() - usize::from(self.config.server_id_length)..]);
        id.extend_from_slice(content);
        self.config.crypt(&mut id[1..], BlockCipher::encrypt)?;
        Some(id)
    }

    /// The content of `connection_id`, a whole ID. `None` if it belongs to another server, or if the length in its
    /// first octet is wrong. An ID chosen by a client may be mistaken for this server's.
    pub fn content(&self, connection_id: &[u8]) -> Option<Vec<u8>> {
        let (first, rest) = connection_id.split_first()?;
        let length = first & ((1 << LENGTH_BITS) - 1);
        if length > MAX_LENGTH || usize::from(length) != rest.len() {
            return None;
        }
        let (number, content) = self.config.read(connection_id)?;
        (number == self.number).then_some(content)
    }
}
