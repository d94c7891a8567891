//! What a controller is told, as named-field structs of our own.
//!
//! For one received ACK frame a controller sees, in this order: an [`Acked`] for every run of newly acknowledged
//! packets, one [`AckBatch`], and then, if the frame revealed any, one [`Congestion`].

use core::time::Duration;

use playrate_units::Bytes;

use crate::Timestamp;

/// Packets left. Reported once per burst, after the burst has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When the burst left. All its packets carry this send time.
    pub now: Timestamp,
    /// Size of the whole burst: QUIC packets, without UDP and IP headers.
    pub bytes: Bytes,
}

/// One or more packets that left in the same burst were newly acknowledged by one ACK frame.
///
/// Packets with equal `sent` and `app_limited` that are adjacent in the frame may be reported as one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// When the ACK frame arrived.
    pub now: Timestamp,
    /// When the packets left.
    pub sent: Timestamp,
    /// Sum of the packets' sizes.
    pub bytes: Bytes,
    /// How many packets; at least 1.
    pub packets: u32,
    /// Whether the sender was limited by the application or by flow control rather than by the window or the
    /// pacer, as of the last attempt to send before this frame (RFC 9002 §7.8).
    pub app_limited: bool,
}

/// An ACK frame that acknowledged at least one packet has been read to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AckBatch {
    /// When the ACK frame arrived.
    pub now: Timestamp,
    /// Bytes in flight after the acknowledged packets have been taken out, before those that this frame will
    /// declare lost are.
    pub in_flight: Bytes,
    /// As [`Acked::app_limited`].
    pub app_limited: bool,
    /// The transport's smoothed RTT without the peer's acknowledgement delay, when it has measured one. It may be
    /// one ACK frame old.
    pub smoothed_rtt: Option<Duration>,
}

/// The path said that it is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Congestion {
    /// When it was noticed.
    pub now: Timestamp,
    /// When the newest of the packets that it happened to left. Packets that left before the current recovery
    /// began belong to that recovery.
    pub newest_sent: Timestamp,
    /// How the path said so.
    pub signal: Signal,
}

/// How a path says that it is congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Packets were declared lost.
    Loss {
        /// Sum of the lost packets' sizes.
        bytes: Bytes,
        /// Whether the loss spans the persistent congestion period (RFC 9002 §7.6).
        persistent: bool,
    },
    /// The peer reported packets marked with ECN-CE.
    EcnCe,
}

/// The largest QUIC packet the path carries has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MtuChange {
    /// Largest UDP payload from now on. This crate uses it wherever TCP says MSS or SMSS.
    pub mtu: Bytes,
}
