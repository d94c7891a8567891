//! [`Path`]: what is known of the path when a controller is built.

use playrate_units::Bytes;

/// The path that a new controller will govern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// Largest UDP payload that the path carries now. This crate uses it wherever TCP says MSS or SMSS.
    pub mtu: Bytes,
}

impl Path {
    /// A path that carries UDP payloads of `mtu`.
    pub const fn new(mtu: Bytes) -> Self {
        Self { mtu }
    }
}

impl Default for Path {
    /// The smallest path that QUIC allows: 1200 B (RFC 9000 §14).
    fn default() -> Self {
        Self::new(Bytes::new(1_200))
    }
}
