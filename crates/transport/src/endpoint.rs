//! UDP sockets for real networks.

use std::io;
use std::net::{SocketAddr, UdpSocket};

use playrate_units::Bytes;
use socket2::{Domain, Protocol, Socket, Type};

/// Send and receive buffer requested from the kernel. With the usual 208 KiB, a receiver at full speed loses 1 to 13 %
/// of its packets even on loopback.
pub const SOCKET_BUFFER: Bytes = Bytes::new(4 << 20);

/// Reasons why a socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Another program has the port of this address.
    #[error("{0} is in use by another program; choose another port, or stop that program")]
    InUse(SocketAddr),
    /// The port of this address requires privileges that this process lacks.
    #[error("not allowed to listen on {0}; ports below 1024 need special rights")]
    Denied(SocketAddr),
    /// The address is not one of this machine's.
    #[error("{0} is not an address of this machine")]
    NotOurs(SocketAddr),
    /// Any other error of the system.
    #[error("cannot open a UDP socket on {address}: {source}")]
    Other {
        /// The requested address and port.
        address: SocketAddr,
        /// The error that the system returned.
        source: io::Error,
    },
}

/// Opens a UDP socket on `address` with a [`SOCKET_BUFFER`] in each direction. If the kernel grants less, this is
/// logged. An IPv6 socket also accepts IPv4 if the system supports it.
pub fn udp_socket(address: SocketAddr) -> Result<UdpSocket, BindError> {
    open(address, |_| Ok(())).map_err(|source| failure(address, source))
}

/// Opens `count` sockets that share the port of `first` (`SO_REUSEPORT`, socket(7)); Linux divides clients among them
/// by address and port. Only programs of the same user that also set this option can share the port.
#[cfg(target_os = "linux")]
pub fn further_sockets(first: &UdpSocket, count: usize) -> Result<Vec<UdpSocket>, BindError> {
    let address = first.local_addr();
    let address = address.map_err(|source| failure(SocketAddr::from(([0, 0, 0, 0], 0)), source))?;
    if count > 0 {
        // Not earlier: had it been set before `first` was bound, two servers could share one port unnoticed.
        let shared = socket2::SockRef::from(first).set_reuse_port(true);
        shared.map_err(|source| failure(address, source))?;
    }
    let opened = (0..count).map(|_| open(address, |socket| socket.set_reuse_port(true)));
    opened
        .collect::<io::Result<_>>()
        .map_err(|source| failure(address, source))
}

fn failure(address: SocketAddr, source: io::Error) -> BindError {
    match source.kind() {
        io::ErrorKind::AddrInUse => BindError::InUse(address),
        io::ErrorKind::PermissionDenied => BindError::Denied(address),
        io::ErrorKind::AddrNotAvailable => BindError::NotOurs(address),
        _ => BindError::Other { address, source },
    }
}

/// Opens a socket on `address`; `prepare` changes it before it is bound.
fn open(address: SocketAddr, prepare: fn(&Socket) -> io::Result<()>) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6()
        && let Err(error) = socket.set_only_v6(false)
    {
        tracing::debug!(%error, "the socket takes IPv6 only");
    }
    prepare(&socket)?;
    socket.bind(&address.into())?;
    let wanted = SOCKET_BUFFER.as_usize();
    if let Err(error) = socket
        .set_recv_buffer_size(wanted)
        .and_then(|()| socket.set_send_buffer_size(wanted))
    {
        tracing::warn!(%error, "cannot enlarge the socket's buffers");
    }
    // Linux reports twice the granted size, for its own bookkeeping.
    let factor = if cfg!(target_os = "linux") { 2 } else { 1 };
    for (direction, size, setting) in [
        ("receive", socket.recv_buffer_size()?, "net.core.rmem_max"),
        ("send", socket.send_buffer_size()?, "net.core.wmem_max"),
    ] {
        let got = size / factor;
        if got < wanted {
            tracing::warn!(
                wanted,
                got,
                "the kernel clipped the socket's {direction} buffer; raise {setting} to avoid losing packets here"
            );
        }
    }
    Ok(socket.into())
}
