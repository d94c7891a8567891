//! TCP sockets to listen on.

use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

/// Connections that wait to be accepted; Linux takes no more by default.
const BACKLOG: i32 = 4096;

/// A TCP port that cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ListenError {
    /// Somebody else has the port.
    #[error(
        "TCP port {} of {} is in use by another program: choose another port with --listen, stop that program, \
         or serve HTTP/3 alone with --no-tcp", .address.port(), .address.ip()
    )]
    InUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// Anything else.
    #[error("cannot listen on TCP {address}: {source}; --no-tcp serves HTTP/3 alone")]
    Other {
        /// The address asked for.
        address: SocketAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

/// Listens on `address`. An IPv6 socket takes IPv4 as well where the system can do that.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener, ListenError> {
    open(address).map_err(|source| match source.kind() {
        io::ErrorKind::AddrInUse => ListenError::InUse { address },
        _ => ListenError::Other { address, source },
    })
}

fn open(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6()
        && let Err(error) = socket.set_only_v6(false)
    {
        tracing::debug!(%error, "the TCP socket takes IPv6 only");
    }
    // A server that is started again need not wait for its old connections to be forgotten. Elsewhere than on Unix
    // this would let two programs have one port.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(StdListener::from(socket))
}
