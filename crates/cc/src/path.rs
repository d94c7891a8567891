//! [`Path`]: what is known of the path when a controller is built.

use playrate_units::Bytes;

use crate::CoupledPaths;

/// The path that a new controller will govern.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Path {
    /// Largest UDP payload that the path carries now. This crate uses it wherever TCP says MSS or SMSS.
    pub mtu: Bytes,
    /// The transport sends only while `in_flight + mtu < window`, as quinn does, so up to a packet of the window goes
    /// unused. A window derived from a rate is then one MTU larger.
    pub strict: bool,
    /// The transport paces by [`CongestionController::pacing_rate`](crate::CongestionController::pacing_rate). A window
    /// then only bounds the flight, and does not stand for a rate.
    pub paced: bool,
    /// The paths of the connection, for algorithms that couple their growth; `None` if this one is not coupled.
    pub coupled: Option<CoupledPaths>,
}

impl Path {
    /// A path that carries UDP payloads of `mtu` bytes.
    pub const fn new(mtu: Bytes) -> Self {
        Self {
            mtu,
            strict: false,
            paced: false,
            coupled: None,
        }
    }

    /// The same path under a transport that sends only while `in_flight + mtu < window`.
    #[must_use]
    pub const fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    /// The same path under a transport that paces by the controller's rate.
    #[must_use]
    pub const fn paced(mut self) -> Self {
        self.paced = true;
        self
    }

    /// The same path as one of the connection's `paths`.
    #[must_use]
    pub fn coupled(mut self, paths: CoupledPaths) -> Self {
        self.coupled = Some(paths);
        self
    }
}

impl Default for Path {
    /// The smallest path that QUIC allows: 1200 B (RFC 9000 §14).
    fn default() -> Self {
        Self::new(Bytes::new(1_200))
    }
}
