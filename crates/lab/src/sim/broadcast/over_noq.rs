//! Broadcasts whose ends both run noq: the types and calls that differ from those of quinn.

use std::sync::Arc;

use noq as stack;
use noq::{
    AsyncUdpSocket, Connection, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, PathId, RecvStream,
    TransportConfig, VarInt,
};
use playrate_netsim::VirtualSocket;
use playrate_transport::TransportOptions;
use playrate_units::Bitrate;
use quinn::ConnectionStats;

#[path = "link.rs"]
#[expect(clippy::duplicate_mod, reason = "it is compiled with the types of each stack")]
mod link;

pub(super) use link::Link;
pub(super) use playrate_noq::ConnectionController;

/// The parameters that [`TransportOptions::to_quinn`] sets, for noq: all but the congestion controller.
/// All others, such as those of multipath, keep noq's defaults.
fn transport_config(options: &TransportOptions) -> Result<TransportConfig, noq::VarIntBoundsExceeded> {
    let mut config = TransportConfig::default();
    let discovery = options.mtu_discovery.map(|bound| {
        let mut discovery = MtuDiscoveryConfig::default();
        discovery.upper_bound(bound);
        discovery
    });
    config
        .stream_receive_window(VarInt::from_u64(options.stream_receive_window.as_u64())?)
        .receive_window(VarInt::from_u64(options.receive_window.as_u64())?)
        .send_window(options.send_window.as_u64())
        .max_concurrent_bidi_streams(100_u32.into())
        .max_concurrent_uni_streams(8_u32.into())
        .max_idle_timeout(Some(IdleTimeout::try_from(options.idle_timeout)?))
        .keep_alive_interval(options.keep_alive)
        .packet_threshold(options.loss_detection.packet_threshold)
        .time_threshold(options.loss_detection.time_threshold)
        .datagram_receive_buffer_size(None)
        .initial_mtu(options.initial_mtu)
        .mtu_discovery_config(discovery)
        .enable_segmentation_offload(largest_mtu(options) <= 6_500);
    Ok(config)
}

fn endpoint_config(options: &TransportOptions) -> Result<EndpointConfig, noq::ConfigError> {
    let mut config = EndpointConfig::default();
    config.rng_seed(options.seed);
    config.max_udp_payload_size(largest_mtu(options).max(1_472))?;
    Ok(config)
}

fn largest_mtu(options: &TransportOptions) -> u16 {
    options.mtu_discovery.unwrap_or(0).max(options.initial_mtu)
}

fn socket(socket: &Arc<VirtualSocket>) -> Box<dyn AsyncUdpSocket> {
    Box::new(VirtualSocket::clone(socket))
}

/// The connection's counters as quinn counts them: without lost MTU probes, and with the smallest RTT, which is not in
/// noq's own statistics.
fn statistics(connection: &Connection, control: &ConnectionController) -> ConnectionStats {
    let path = connection.path_stats(PathId::ZERO).unwrap_or_default();
    let sample = control.monitor().latest().unwrap_or_default();
    let mut statistics = ConnectionStats::default();
    statistics.udp_tx.bytes = path.udp_tx.bytes;
    statistics.path.rtt = path.rtt;
    statistics.path.min_rtt = sample.snapshot.min_rtt.unwrap_or_default();
    statistics.path.cwnd = path.cwnd;
    statistics.path.congestion_events = path.congestion_events;
    statistics.path.sent_packets = path.sent_packets;
    statistics.path.lost_packets = path.lost_packets.saturating_sub(path.lost_plpmtud_probes);
    statistics.path.lost_bytes = sample.lost.as_u64();
    statistics
}

/// Rate of the narrowest link, as the controller estimates it.
fn capacity(connection: &Connection, _: &ConnectionController) -> Option<Bitrate> {
    let path = connection.path_stats(PathId::ZERO)?;
    path.bandwidth_estimate.map(Bitrate::from_bits_per_second)
}

/// Reads at most `max` bytes and returns their number; `None` at the end of the stream.
async fn read(stream: &mut RecvStream, max: usize) -> Option<usize> {
    let chunk = stream.read_chunk(max).await.ok()??;
    Some(chunk.len())
}
