//! Connection IDs that tell a load balancer the server of a packet: QUIC-LB, as defined in
//! draft-ietf-quic-load-balancers-21 of August 2025. It is not an RFC; sections here are the draft's.
//!
//! A load balancer that selects servers by address loses a QUIC connection when the client's address changes. With
//! QUIC-LB, each server writes its number, the server ID, into the connection IDs that it issues, and every later
//! packet of the connection has one of them.
//!
//! ```text
//! first octet: configuration (3 bits), length of the rest in bytes (5 bits)
//! server ID    1 to 15 bytes ┐ at most 19 bytes together;
//! nonce        4 to 18 bytes ┘ with a key, encrypted as one block
//! appended     bytes for the server alone (§5.4)
//! ```
//!
//! Belongs here: the format and its encryption. Does not belong here: sockets, packets, random numbers, QUIC stacks. A
//! server gives its IDs to its stack (with quinn, through a `ConnectionIdGenerator`); a balancer reads them from
//! packets (RFC 8999 §5).
//!
//! ```
//! use playrate_quic_lb::QuicLbConfig;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The same configuration in the load balancer and in all servers behind it.
//! let config = QuicLbConfig::new(0, 2, None, Some(*b"a secret of ours"))?;
//!
//! // Server 12 issues an ID. Its nonce is random, so that no two IDs share one.
//! let server = config.clone().server(12)?;
//! let nonce: [u8; 14] = [0x5A; 14]; // use a generator of random numbers here
//! let id = server.connection_id(&nonce).ok_or("the nonce has another length")?;
//!
//! // The load balancer finds the server, and the server recognizes its nonce.
//! assert_eq!(config.server_id(&id), Some(12));
//! assert_eq!(server.content(&id).as_deref(), Some(&nonce[..]));
//!
//! // A client chooses its first ID itself, so the balancer selects the server.
//! assert_eq!(config.server_id(&[0xE0; 8]), None);
//! # Ok(())
//! # }
//! ```

#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]
#![forbid(unsafe_code)]

mod cipher;
mod config;
#[cfg(test)]
mod tests;

pub use cipher::BlockCipher;
pub use config::{QuicLbConfig, QuicLbError, QuicLbServer};
