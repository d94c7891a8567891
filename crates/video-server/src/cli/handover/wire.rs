//! Messages of two processes of a server over their Unix connection.

use std::io::{self, BufRead as _, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use anyhow::Context as _;
use playrate_transport::Datagram;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::sockets::Offered;

/// Version of the messages. Processes of different versions do not take over from each other.
const VERSION: u64 = 3;
/// Maximum number of sockets in a greeting; Linux passes up to 253 in one message (unix(7)).
const SOCKETS: usize = 253;
/// Maximum length of a greeting in bytes.
const GREETING: usize = 1_000;

/// First message of the older process, as one line of JSON. It carries the UDP sockets, then those for TCP and for
/// metrics, if there are any.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Greeting {
    version: u64,
    /// Process ID, as the operating system assigned it.
    pub(super) process_id: u32,
    /// Number of the process in its connection IDs.
    pub(super) process: u8,
    /// Fingerprint of its connection IDs.
    pub(super) key: u64,
    /// Address of its UDP sockets.
    pub(super) address: SocketAddr,
    /// Number of its UDP sockets.
    pub(super) udp: usize,
    #[serde(rename = "tcp")]
    pub(super) has_tcp: bool,
    #[serde(rename = "metrics")]
    pub(super) has_metrics: bool,
}

impl Greeting {
    /// Creates the greeting of this process, which offers these sockets.
    pub(super) fn new(offered: &Offered, has_tcp: bool, has_metrics: bool) -> Self {
        Self {
            version: VERSION,
            process_id: std::process::id(),
            process: offered.process,
            key: offered.key,
            address: offered.address,
            udp: offered.udp.len(),
            has_tcp,
            has_metrics,
        }
    }

    /// Sends the greeting with `sockets`.
    pub(super) fn send(&self, stream: &UnixStream, sockets: &[BorrowedFd<'_>]) -> io::Result<()> {
        let line = serde_json::to_string(self)?;
        let line = format!("{line}\n");
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(SendAncillaryMessage::ScmRights(sockets)) {
            return Err(io::Error::other("too many sockets"));
        }
        let contents = [IoSlice::new(line.as_bytes())];
        let sent = sendmsg(stream, &contents, &mut control, SendFlags::NOSIGNAL)?;
        if sent < line.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(())
    }

    /// Receives a greeting with its sockets.
    pub(super) fn receive(stream: &UnixStream) -> anyhow::Result<(Self, Vec<OwnedFd>)> {
        let mut contents = [0; GREETING];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let received = recvmsg(
            stream,
            &mut [IoSliceMut::new(&mut contents)],
            &mut control,
            RecvFlags::CMSG_CLOEXEC,
        )
        .map_err(io::Error::from)
        .context("no answer")?;
        if received.bytes == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof)).context("no answer");
        }
        let mut sockets = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(more) = message {
                sockets.extend(more);
            }
        }
        let line = contents.get(..received.bytes).unwrap_or_default();
        let greeting: Self = serde_json::from_slice(line).context("no greeting of a known version")?;
        anyhow::ensure!(greeting.version == VERSION, "it is of another version");
        Ok((greeting, sockets))
    }
}

/// Answer of the newer process, one line: it takes over, and uses these sockets in addition to the UDP ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Take {
    pub(super) tcp: bool,
    pub(super) metrics: bool,
}

impl Take {
    /// Bytes of the longest line.
    const LONGEST: u64 = 17;

    fn line(self) -> &'static str {
        match (self.tcp, self.metrics) {
            (false, false) => "take\n",
            (true, false) => "take tcp\n",
            (false, true) => "take metrics\n",
            (true, true) => "take tcp metrics\n",
        }
    }

    pub(super) fn send(self, mut stream: &UnixStream) -> io::Result<()> {
        stream.write_all(self.line().as_bytes())
    }

    /// Receives the answer; `None` if it is a different one, or if the process ends the connection without an answer.
    pub(super) fn receive(stream: &UnixStream) -> io::Result<Option<Self>> {
        let mut line = String::new();
        BufReader::new(stream.take(Self::LONGEST)).read_line(&mut line)?;
        let all = [(false, false), (true, false), (false, true), (true, true)];
        let mut all = all.into_iter().map(|(tcp, metrics)| Self { tcp, metrics });
        Ok(all.find(|take| take.line() == line))
    }
}

/// Message of the newer process after it has taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// Announces that the sender serves new clients.
    Serving,
    /// Shows that the sender is not frozen.
    Alive,
    /// Forwards a datagram for a connection of an older process.
    Datagram(Datagram),
}

/// [`Message::Serving`], in place of a datagram's length.
pub(super) const SERVING: [u8; 4] = [0xFF; 4];
/// [`Message::Alive`], in place of a datagram's length.
pub(super) const ALIVE: [u8; 4] = [0xFE; 4];

/// Bytes of an address: kind, IPv6 address.
const ADDRESS: usize = 17;
/// Bytes before a datagram's contents: their length, ECN, peer (address, port, flow, scope), local address.
const HEAD: usize = 4 + 1 + ADDRESS + 2 + 4 + 4 + ADDRESS;
/// Maximum length of a UDP datagram in bytes.
const LONGEST: usize = 1 << 16;

/// Writes a datagram, preceded by its length.
pub(super) fn write(to: &mut impl Write, datagram: &Datagram) -> io::Result<()> {
    let (flow, scope) = match datagram.peer {
        SocketAddr::V6(peer) => (peer.flowinfo(), peer.scope_id()),
        SocketAddr::V4(_) => (0, 0),
    };
    let length = u32::try_from(datagram.contents.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut head = Vec::with_capacity(HEAD);
    head.extend_from_slice(&length.to_be_bytes());
    head.push(datagram.ecn);
    put(&mut head, Some(datagram.peer.ip()));
    head.extend_from_slice(&datagram.peer.port().to_be_bytes());
    head.extend_from_slice(&flow.to_be_bytes());
    head.extend_from_slice(&scope.to_be_bytes());
    put(&mut head, datagram.local);
    to.write_all(&head)?;
    to.write_all(&datagram.contents)
}

/// Writes an address: 0 if there is none, otherwise its version and 16 bytes.
fn put(to: &mut Vec<u8>, address: Option<IpAddr>) {
    let (kind, octets) = match address {
        None => (0, Ipv6Addr::UNSPECIFIED),
        Some(IpAddr::V4(address)) => (4, address.to_ipv6_mapped()),
        Some(IpAddr::V6(address)) => (6, address),
    };
    to.push(kind);
    to.extend_from_slice(&octets.octets());
}

/// Reads [`SERVING`], [`ALIVE`], or what [`write()`] wrote.
///
/// # Errors
/// The connection has ended, or the data is not a message.
pub(super) fn read(from: &mut impl Read) -> io::Result<Message> {
    let length = match array(from)? {
        SERVING => return Ok(Message::Serving),
        ALIVE => return Ok(Message::Alive),
        length => u32::from_be_bytes(length) as usize,
    };
    if length > LONGEST {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let [ecn] = array(from)?;
    let ip = take(from)?.ok_or(io::ErrorKind::InvalidData)?;
    let port = u16::from_be_bytes(array(from)?);
    let (flow, scope) = (u32::from_be_bytes(array(from)?), u32::from_be_bytes(array(from)?));
    let local = take(from)?;
    let mut contents = vec![0; length];
    from.read_exact(&mut contents)?;
    Ok(Message::Datagram(Datagram {
        peer: match ip {
            IpAddr::V4(_) => SocketAddr::new(ip, port),
            IpAddr::V6(ip) => SocketAddrV6::new(ip, port, flow, scope).into(),
        },
        local,
        ecn,
        contents: contents.into(),
    }))
}

/// Reads an address as [`put`] writes it.
fn take(from: &mut impl Read) -> io::Result<Option<IpAddr>> {
    let [kind] = array(from)?;
    let address = Ipv6Addr::from(array::<16>(from)?);
    match (kind, address.to_ipv4_mapped()) {
        (0, _) => Ok(None),
        (4, Some(address)) => Ok(Some(Ipv4Addr::into(address))),
        (6, _) => Ok(Some(address.into())),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

fn array<const N: usize>(from: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_datagram_arrives_as_it_was_sent() {
        let datagram = |peer: &str, local: Option<&str>, contents: &'static [u8]| Datagram {
            peer: peer.parse().unwrap(),
            local: local.map(|local| local.parse().unwrap()),
            ecn: 3,
            contents: contents.into(),
        };
        let mut scoped = datagram("[fe80::1]:9", None, b"");
        scoped.peer = SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 5, 7).into();
        let sent = [
            datagram("192.0.2.1:443", Some("192.0.2.2"), b"one"),
            // An IPv6 socket reports IPv4 addresses like this, and quinn compares addresses.
            datagram("[::ffff:192.0.2.1]:443", Some("::ffff:192.0.2.2"), &[7; 1_500]),
            scoped,
        ];
        let mut bytes = Vec::new();
        for datagram in &sent {
            write(&mut bytes, datagram).unwrap();
        }
        bytes.extend(ALIVE);
        bytes.extend(SERVING);
        let mut rest = &bytes[..];
        for datagram in sent {
            assert_eq!(read(&mut rest).unwrap(), Message::Datagram(datagram));
        }
        assert_eq!(read(&mut rest).unwrap(), Message::Alive);
        assert_eq!(read(&mut rest).unwrap(), Message::Serving);
        assert_eq!(read(&mut rest).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        bytes[0] = 1;
        assert_eq!(
            read(&mut &bytes[..]).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }

    #[test]
    fn the_older_process_learns_which_sockets_are_used() {
        for (tcp, metrics) in [(false, false), (true, false), (false, true), (true, true)] {
            let (here, there) = UnixStream::pair().unwrap();
            let take = Take { tcp, metrics };
            take.send(&here).unwrap();
            assert_eq!(Take::receive(&there).unwrap(), Some(take));
        }
        for other in ["", "take", "take media\n"] {
            let (here, there) = UnixStream::pair().unwrap();
            (&here).write_all(other.as_bytes()).unwrap();
            drop(here);
            assert_eq!(Take::receive(&there).unwrap(), None, "{other}");
        }
    }

    #[test]
    fn a_greeting_brings_its_sockets() {
        let (here, there) = UnixStream::pair().unwrap();
        let sockets = [(); 130].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let greeting = Greeting {
            version: VERSION,
            process_id: 77,
            process: 255,
            key: u64::MAX,
            address: "[::]:4433".parse().unwrap(),
            udp: 129,
            has_tcp: true,
            has_metrics: false,
        };
        let given: Vec<_> = sockets.iter().map(UdpSocket::as_fd).collect();
        greeting.send(&here, &given).unwrap();
        let (received, received_sockets) = Greeting::receive(&there).unwrap();
        assert_eq!(received, greeting);
        assert_eq!(received_sockets.len(), sockets.len());
        for (socket, original) in received_sockets.into_iter().zip(sockets) {
            let socket = UdpSocket::from(socket);
            assert_eq!(socket.local_addr().unwrap(), original.local_addr().unwrap());
        }
        for line in ["{}\n", "no JSON", "{\"version\":3,\"process\":1}\n"] {
            (&here).write_all(line.as_bytes()).unwrap();
            assert!(Greeting::receive(&there).is_err(), "{line}");
        }
    }
}
