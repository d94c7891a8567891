//! Events of a connection, as a transport reports them to its controller.
//!
//! For one received ACK frame a controller receives an [`AckFrame`] and then, if the frame revealed any, one
//! [`Congestion`].

use core::time::Duration;

use playrate_units::Bytes;

use crate::{Reason, Timestamp};

/// Packets left. Reported once per burst, after the burst has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sent {
    /// Departure of the burst: the send time of all its packets.
    pub now: Timestamp,
    /// Size of the whole burst: QUIC packets, without UDP and IP headers.
    pub bytes: Bytes,
}

impl Sent {
    /// A burst of `bytes` bytes that left at `now`.
    #[inline]
    pub const fn new(now: Timestamp, bytes: Bytes) -> Self {
        Self { now, bytes }
    }
}

/// One or more packets that left in the same burst were newly acknowledged by one ACK frame.
///
/// Packets with equal `sent` and `app_limited` that are adjacent in the frame may be reported as one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Acked {
    /// Send time of the packets.
    pub sent: Timestamp,
    /// Sum of the packets' sizes.
    pub bytes: Bytes,
    /// Number of packets; at least 1.
    pub packets: u32,
    /// The application or flow control, rather than the window or the pacer, limited the sender at its last attempt to
    /// send before this frame (RFC 9002 §7.8).
    pub app_limited: bool,
}

impl Acked {
    /// `packets` packets of `bytes` bytes in total that left at `sent`. The application did not limit the sender.
    #[inline]
    pub const fn new(sent: Timestamp, bytes: Bytes, packets: u32) -> Self {
        Self {
            sent,
            bytes,
            packets,
            app_limited: false,
        }
    }

    /// The same event with another value of [`app_limited`](Self::app_limited).
    #[inline]
    #[must_use]
    pub const fn with_app_limited(mut self, app_limited: bool) -> Self {
        self.app_limited = app_limited;
        self
    }
}

/// An ACK frame that acknowledged at least one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AckFrame<'a> {
    /// Arrival of the frame.
    pub now: Timestamp,
    /// The newly acknowledged packets in runs. Empty if none of the packets counted as in flight.
    pub acked: &'a [Acked],
    /// Bytes in flight without the acknowledged packets. Packets that this frame will declare lost are still included.
    pub in_flight: Bytes,
    /// The same condition as [`Acked::app_limited`].
    pub app_limited: bool,
    /// The transport's smoothed RTT without the peer's acknowledgement delay, if it has measured one. It may be one ACK
    /// frame old.
    pub smoothed_rtt: Option<Duration>,
}

impl<'a> AckFrame<'a> {
    /// A frame that arrived at `now`, acknowledged `acked` and left `in_flight` bytes in flight. The application did
    /// not limit the sender, and the transport has measured no RTT.
    #[inline]
    pub const fn new(now: Timestamp, acked: &'a [Acked], in_flight: Bytes) -> Self {
        Self {
            now,
            acked,
            in_flight,
            app_limited: false,
            smoothed_rtt: None,
        }
    }

    /// The same event with another value of [`app_limited`](Self::app_limited).
    #[inline]
    #[must_use]
    pub const fn with_app_limited(mut self, app_limited: bool) -> Self {
        self.app_limited = app_limited;
        self
    }

    /// The same event with another value of [`smoothed_rtt`](Self::smoothed_rtt).
    #[inline]
    #[must_use]
    pub const fn with_smoothed_rtt(mut self, rtt: Option<Duration>) -> Self {
        self.smoothed_rtt = rtt;
        self
    }
}

/// A congestion signal, as the transport noticed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Congestion {
    /// Time when the transport noticed it.
    pub now: Timestamp,
    /// Send time of the newest affected packet. Packets that left before the current recovery began belong to that
    /// recovery.
    pub newest_sent: Timestamp,
    /// The kind of signal.
    pub signal: Signal,
}

impl Congestion {
    /// `signal`, noticed at `now`. The newest affected packet left at `newest_sent`.
    #[inline]
    pub const fn new(now: Timestamp, newest_sent: Timestamp, signal: Signal) -> Self {
        Self {
            now,
            newest_sent,
            signal,
        }
    }

    /// Bytes that were declared lost.
    pub(crate) const fn lost(&self) -> u64 {
        match self.signal {
            Signal::Loss { bytes, .. } => bytes.as_u64(),
            Signal::EcnCe => 0,
        }
    }

    /// Returns true if the loss spans the persistent congestion period.
    pub(crate) const fn is_persistent(&self) -> bool {
        matches!(self.signal, Signal::Loss { persistent: true, .. })
    }

    /// The reason for a reduction that answers the signal.
    pub(crate) const fn reason(&self) -> Reason {
        match self.signal {
            Signal::Loss { .. } => Reason::Loss,
            Signal::EcnCe => Reason::EcnCe,
        }
    }
}

/// Kinds of congestion signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signal {
    /// Packets were declared lost.
    Loss {
        /// Sum of the lost packets' sizes.
        bytes: Bytes,
        /// True if the loss spans the persistent congestion period (RFC 9002 §7.6).
        persistent: bool,
    },
    /// The peer reported packets marked with ECN-CE.
    EcnCe,
}

impl Signal {
    /// `bytes` bytes were declared lost, in less than the persistent congestion period.
    #[inline]
    pub const fn loss(bytes: Bytes) -> Self {
        Self::Loss {
            bytes,
            persistent: false,
        }
    }
}
