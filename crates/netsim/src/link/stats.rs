//! [`LinkStats`]: what a link has done so far.

use core::time::Duration;

use playrate_units::{Bitrate, Bytes};

/// Packets, and the bytes of them with their headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tally {
    /// How many packets.
    pub packets: u64,
    /// Their bytes, headers included.
    pub bytes: Bytes,
}

impl Tally {
    pub(crate) fn add(&mut self, bytes: u64) {
        self.packets = self.packets.saturating_add(1);
        self.bytes += Bytes::new(bytes);
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(other.packets),
            bytes: self.bytes - other.bytes,
        }
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            packets: self.packets.saturating_add(other.packets),
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum DropReason {
    /// The queue had no room for it.
    QueueFull,
    /// Lost at random on the wire, after its turn in the queue.
    Loss,
    /// Larger than the link's MTU; links never fragment.
    TooBig,
    /// Dropped by queue management before the queue was full.
    Aqm,
    /// Every attempt of a Wi-Fi hop to send it failed.
    Retries,
}

/// What was dropped, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Drops {
    /// See [`DropReason::QueueFull`].
    pub queue_full: Tally,
    /// See [`DropReason::Loss`].
    pub loss: Tally,
    /// See [`DropReason::TooBig`].
    pub too_big: Tally,
    /// See [`DropReason::Aqm`].
    pub aqm: Tally,
    /// See [`DropReason::Retries`].
    pub retries: Tally,
}

impl Drops {
    pub(crate) fn add(&mut self, reason: DropReason, bytes: u64) {
        match reason {
            DropReason::QueueFull => self.queue_full.add(bytes),
            DropReason::Loss => self.loss.add(bytes),
            DropReason::TooBig => self.too_big.add(bytes),
            DropReason::Aqm => self.aqm.add(bytes),
            DropReason::Retries => self.retries.add(bytes),
        }
    }

    /// All of them.
    pub fn total(&self) -> Tally {
        [self.loss, self.too_big, self.aqm, self.retries]
            .into_iter()
            .fold(self.queue_full, Tally::plus)
    }
}

/// Cross traffic of a link so far; none of it stands in the other counts of [`LinkStats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CrossStats {
    /// What came to the link.
    pub offered: Tally,
    /// What was dropped.
    pub dropped: Tally,
}

/// What a link has done so far. At every time `offered = delivered + dropped + queued`, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LinkStats {
    /// Everything that came to the link.
    pub offered: Tally,
    /// What has left the queue towards the receiver; it arrives one propagation delay later.
    pub delivered: Tally,
    /// What will be delivered but has not left yet.
    pub queued: Tally,
    /// What never arrives.
    pub dropped: Drops,
    /// Packets that were delivered with a mark: congestion experienced (RFC 3168).
    pub marked: u64,
    /// What came from elsewhere.
    pub cross: CrossStats,
    /// The longest queue so far, the packet on the wire included.
    pub max_queue: Bytes,
    /// The longest queue so far in packets.
    pub max_queue_packets: u64,
    /// The longest wait between arrival and first bit on the wire.
    pub max_queue_delay: Duration,
    /// The mean of those waits.
    pub mean_queue_delay: Duration,
}

impl LinkStats {
    /// Whether every packet and byte is accounted for.
    pub fn is_conserved(&self) -> bool {
        self.offered == self.delivered.plus(self.dropped.total()).plus(self.queued)
    }

    /// The rate at which packets left, headers included, over a run of length `elapsed`; zero if that is zero.
    pub fn delivered_rate(&self, elapsed: Duration) -> Bitrate {
        self.delivered.bytes.per(elapsed).unwrap_or_default()
    }
}
