//! Broadcasts whose ends both run quinn: the types and calls that differ from those of noq.

use std::sync::Arc;

use playrate_netsim::VirtualSocket;
use playrate_transport::{OptionsError, TransportOptions};
use playrate_units::Bitrate;
use quinn as stack;
use quinn::{AsyncUdpSocket, Connection, ConnectionStats, EndpointConfig, RecvStream, TransportConfig};

#[path = "link.rs"]
mod link;

pub(super) use link::Link;
pub(super) use playrate_transport::ConnectionController;

fn transport_config(options: &TransportOptions) -> Result<TransportConfig, OptionsError> {
    options.to_quinn()
}

fn endpoint_config(options: &TransportOptions) -> Result<EndpointConfig, OptionsError> {
    options.to_endpoint()
}

fn socket(socket: &Arc<VirtualSocket>) -> Arc<dyn AsyncUdpSocket> {
    socket.clone()
}

fn statistics(connection: &Connection, _: &ConnectionController) -> ConnectionStats {
    connection.stats()
}

/// Rate of the narrowest link, as the controller estimates it.
fn capacity(_: &Connection, control: &ConnectionController) -> Option<Bitrate> {
    control.monitor().latest()?.snapshot.capacity
}

/// Reads at most `max` bytes and returns their number; `None` at the end of the stream.
async fn read(stream: &mut RecvStream, max: usize) -> Option<usize> {
    let chunk = stream.read_chunk(max, true).await.ok()??;
    Some(chunk.bytes.len())
}
