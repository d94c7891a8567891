//! [`Offered`] and [`Predecessor`]: the sockets that one process of a server passes to the next.

use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;

use playrate_transport::DatagramRouter;

use super::super::tcp::TcpServices;
use super::Link;

/// A process of this server that still has the port.
pub(crate) struct Predecessor {
    /// Address and port of the server.
    pub(crate) address: SocketAddr,
    /// Process ID, as the operating system assigned it.
    pub(crate) process_id: u32,
    pub(crate) udp: Vec<UdpSocket>,
    /// Its sockets for TCP.
    pub(crate) tcp: TcpServices<TcpListener>,
    /// The connection to it, over which this process takes over.
    pub(crate) link: Link,
}

/// Sockets of a process, and how it uses them.
#[derive(Debug)]
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "it is read on Linux"))]
pub(crate) struct Offered {
    /// Number of the process in its connection IDs.
    pub(crate) process: u8,
    /// Fingerprint of its connection IDs.
    pub(crate) key: u64,
    /// Address of the UDP sockets.
    pub(crate) address: SocketAddr,
    pub(crate) udp: Vec<UdpSocket>,
    pub(crate) tcp: TcpServices<TcpListener>,
    pub(crate) router: Arc<DatagramRouter>,
}
