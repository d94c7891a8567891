//! The relay's sockets: large buffers, no blocking, and counts of the kernel's drops.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use rustix::net::sockopt;
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Raw loopback loses 1–13 % of a fast burst with the kernel's default of 208 KiB.
const BUFFER: usize = 4 << 20;

/// The ECN codepoint ECT(0) in the field for traffic class (RFC 3168 §5).
const ECT_0: u8 = 2;

/// A socket that communicates only with `server`.
pub(super) fn connect(server: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = bind(any)?;
    socket.connect(server)?;
    Ok(socket)
}

/// A socket at `address` for all senders.
pub(super) fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    socket.set_recv_buffer_size(BUFFER)?;
    socket.set_send_buffer_size(BUFFER)?;
    match address {
        SocketAddr::V4(_) => sockopt::set_ip_tos(&socket, ECT_0)?,
        SocketAddr::V6(_) => sockopt::set_ipv6_tclass(&socket, ECT_0.into())?,
    }
    let mut granted = socket.recv_buffer_size()?.min(socket.send_buffer_size()?);
    if cfg!(target_os = "linux") {
        // Linux reports twice the granted size, because of its own bookkeeping (socket(7)).
        granted /= 2;
    }
    if granted < BUFFER {
        tracing::warn!(
            "the kernel clips the relay's socket buffers to {granted} of {BUFFER} bytes, so bursts may be lost \
             outside the model; raise net.core.rmem_max and net.core.wmem_max"
        );
    }
    socket.bind(&SockAddr::from(address))?;
    Ok(socket.into())
}

/// Number of datagrams that the kernel dropped because `socket` was not read in time; `None` if the kernel
/// does not report it.
pub(super) fn kernel_drops(socket: &UdpSocket) -> Option<u64> {
    let inode = std::fs::metadata(format!("/proc/self/fd/{}", socket.as_raw_fd()))
        .ok()?
        .ino();
    let table = if socket.local_addr().ok()?.is_ipv4() {
        "/proc/net/udp"
    } else {
        "/proc/net/udp6"
    };
    drops_of(&std::fs::read_to_string(table).ok()?, inode)
}

/// The last (tenth) column of the row with this inode; `Documentation/networking/proc_net_tcp.rst` describes a similar
/// table.
fn drops_of(table: &str, inode: u64) -> Option<u64> {
    table.lines().skip(1).find_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        (fields.get(9)?.parse() == Ok(inode)).then(|| fields.last()?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
        uid  timeout inode \
    ref pointer drops
  412: 0100007F:CAFE 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 4711 2 0000000000000000 37
";

    #[test]
    fn drops_are_read_from_the_row_of_the_socket() {
        assert_eq!(drops_of(TABLE, 4711), Some(37));
        assert_eq!(drops_of(TABLE, 4712), None);
    }

    #[test]
    fn datagrams_are_sent_as_ecn_capable() {
        let [v4, v6] = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            (Ipv6Addr::LOCALHOST, 0).into(),
        ];
        assert_eq!(sockopt::ip_tos(bind(v4).unwrap()).unwrap(), ECT_0);
        // Not every machine has IPv6.
        if let Ok(socket) = bind(v6) {
            assert_eq!(sockopt::ipv6_tclass(socket).unwrap(), ECT_0.into());
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_unread_socket_loses_datagrams_and_the_kernel_counts_them() {
        let reader = Socket::new(Domain::IPV4, Type::DGRAM, None).unwrap();
        reader.set_recv_buffer_size(4_096).unwrap();
        reader
            .bind(&SockAddr::from(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))
            .unwrap();
        let reader = UdpSocket::from(reader);
        let writer = connect(reader.local_addr().unwrap()).unwrap();
        for _ in 0..100 {
            writer.send(&[0; 1_200]).unwrap();
        }
        let drops = kernel_drops(&reader).expect("Linux keeps the count");
        assert!((50..100).contains(&drops), "{drops} of 100 dropped");
    }
}
