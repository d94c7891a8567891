//! [`Totals`]: what quinn counts.

use std::time::Duration;

use playrate_units::Bytes;

/// A connection's totals as the transport counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// UDP payload bytes sent, retransmissions and acknowledgements included.
    pub sent_bytes: Bytes,
    /// UDP datagrams sent, those of handshake and MTU discovery included.
    pub sent_datagrams: u64,
    /// UDP payload bytes received.
    pub received_bytes: Bytes,
    /// UDP datagrams received, undecryptable ones included.
    pub received_datagrams: u64,
    /// QUIC packets sent on the current path.
    pub sent_packets: u64,
    /// QUIC packets declared lost, except for MTU probes.
    pub lost_packets: u64,
    /// Bytes of those packets.
    pub lost_bytes: Bytes,
    /// Number of congestion signals from the path.
    pub congestion_events: u64,
    /// Smoothed RTT; before the first sample the initial guess.
    pub smoothed_rtt: Duration,
    /// Smallest RTT; before the first sample the initial guess.
    pub min_rtt: Duration,
    /// Congestion window of the current path.
    pub window: Bytes,
    /// Largest UDP payload the path carries.
    pub mtu: Bytes,
    /// Number of times that MTU black hole detection fell back to the smallest MTU.
    pub black_holes: u64,
}

impl From<quinn::ConnectionStats> for Totals {
    fn from(stats: quinn::ConnectionStats) -> Self {
        Self {
            sent_bytes: Bytes::new(stats.udp_tx.bytes),
            sent_datagrams: stats.udp_tx.datagrams,
            received_bytes: Bytes::new(stats.udp_rx.bytes),
            received_datagrams: stats.udp_rx.datagrams,
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            lost_bytes: Bytes::new(stats.path.lost_bytes),
            congestion_events: stats.path.congestion_events,
            smoothed_rtt: stats.path.rtt,
            min_rtt: stats.path.min_rtt,
            window: Bytes::new(stats.path.cwnd),
            mtu: Bytes::new(stats.path.current_mtu.into()),
            black_holes: stats.path.black_holes_detected,
        }
    }
}
