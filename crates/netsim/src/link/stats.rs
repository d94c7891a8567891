//! [`LinkStats`]: counters of a link.

use core::time::Duration;

use playrate_units::{Bitrate, Bytes};
use serde::{Deserialize, Serialize};

/// Number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PacketCount {
    /// Number of packets counted.
    pub packets: u64,
    /// Bytes of these packets, headers included.
    pub bytes: Bytes,
}

impl PacketCount {
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

/// Reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum DropReason {
    /// No room in the queue.
    QueueFull,
    /// Random loss on the wire, after the packet's turn in the queue.
    Loss,
    /// Larger than the link's MTU; links never fragment.
    TooBig,
    /// Dropped by queue management before the queue was full.
    Aqm,
    /// Failure of all attempts to send it over a Wi-Fi hop.
    Retries,
    /// Above the policer's rate.
    Policer,
}

/// Dropped packets by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Drops {
    /// Counts [`DropReason::QueueFull`], in packets and bytes.
    pub queue_full: PacketCount,
    /// Counts [`DropReason::Loss`], in packets and bytes.
    pub loss: PacketCount,
    /// Counts [`DropReason::TooBig`], in packets and bytes.
    pub too_big: PacketCount,
    /// Counts [`DropReason::Aqm`], in packets and bytes.
    pub aqm: PacketCount,
    /// Counts [`DropReason::Retries`], in packets and bytes.
    pub retries: PacketCount,
    /// Counts [`DropReason::Policer`], in packets and bytes.
    #[serde(default)]
    pub policer: PacketCount,
}

impl Drops {
    pub(crate) fn add(&mut self, reason: DropReason, bytes: u64) {
        match reason {
            DropReason::QueueFull => self.queue_full.add(bytes),
            DropReason::Loss => self.loss.add(bytes),
            DropReason::TooBig => self.too_big.add(bytes),
            DropReason::Aqm => self.aqm.add(bytes),
            DropReason::Retries => self.retries.add(bytes),
            DropReason::Policer => self.policer.add(bytes),
        }
    }

    /// Sum over all reasons.
    pub fn total(&self) -> PacketCount {
        [self.loss, self.too_big, self.aqm, self.retries, self.policer]
            .into_iter()
            .fold(self.queue_full, PacketCount::plus)
    }
}

/// Cross traffic of a link so far; it is not part of the other counters of [`LinkStats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CrossStats {
    /// Packets that arrived at the link.
    pub offered: PacketCount,
    /// Packets that the link dropped.
    pub dropped: PacketCount,
}

/// Counters of a link. At every time `offered = delivered + dropped + queued`, in packets and in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LinkStats {
    /// Packets that arrived at the link.
    pub offered: PacketCount,
    /// Packets that have left the queue towards the receiver; they arrive one propagation delay later.
    pub delivered: PacketCount,
    /// Packets that will be delivered and have not left yet.
    pub queued: PacketCount,
    /// Packets that never arrive, by reason.
    pub dropped: Drops,
    /// Packets delivered with the congestion-experienced mark (RFC 3168).
    pub marked: u64,
    /// Packets of cross traffic.
    pub cross: CrossStats,
    /// Longest queue so far, the packet on the wire included.
    pub max_queue: Bytes,
    /// Longest wait between arrival and first bit on the wire.
    pub max_queue_delay: Duration,
    /// Mean of those waits.
    pub mean_queue_delay: Duration,
}

impl LinkStats {
    /// Returns true if every packet and byte is accounted for.
    pub fn is_conserved(&self) -> bool {
        self.offered == self.delivered.plus(self.dropped.total()).plus(self.queued)
    }

    /// Rate at which packets left over a run of length `elapsed`, headers included; zero if `elapsed` is
    /// zero.
    pub fn delivered_rate(&self, elapsed: Duration) -> Bitrate {
        self.delivered.bytes.per(elapsed).unwrap_or_default()
    }
}
