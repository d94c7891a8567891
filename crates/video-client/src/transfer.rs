//! [`Transfer`]: times and size of a completely received body.

use std::time::Duration;

use playrate_units::Bytes;

/// A completely received body. Times are since the session began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Time of the request.
    pub requested: Duration,
    /// Arrival of the first bytes; `requested` if all bytes came at once, because browsers do not see such a response
    /// begin.
    pub first_byte: Duration,
    /// Arrival of the last byte.
    pub finished: Duration,
    /// Size of the body.
    pub bytes: Bytes,
}
