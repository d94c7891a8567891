//! Messages of two processes of a server over their Unix connection.

use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read as _, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
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
const VERSION: u64 = 4;
/// Maximum number of sockets in a greeting; Linux passes up to 253 in one message (unix(7)).
const SOCKETS: usize = 253;
/// Maximum length of a greeting in bytes.
const GREETING: usize = 1_000;
/// Maximum length of the line of another message in bytes.
const LINE: u64 = 1_000;

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

/// Answer of the newer process, one line of JSON: it takes over, and uses these sockets in addition to the UDP ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Take {
    pub(super) tcp: bool,
    pub(super) metrics: bool,
}

impl Take {
    pub(super) fn send(self, mut stream: &UnixStream) -> io::Result<()> {
        let line = serde_json::to_string(&self)?;
        stream.write_all(format!("{line}\n").as_bytes())
    }

    /// Receives the answer; `None` if it is a different one, or if the process ends the connection without an answer.
    pub(super) fn receive(stream: &UnixStream) -> io::Result<Option<Self>> {
        Ok(serde_json::from_slice(&line(&mut BufReader::new(stream))?).ok())
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

/// A message as one line of JSON. The contents of a datagram follow it.
#[derive(Deserialize, Serialize)]
enum Head {
    Serving,
    Alive,
    /// Peer, destination address, ECN and length of a datagram.
    Datagram(SocketAddr, Option<IpAddr>, u8, u16),
}

/// Writes a message, and after it the contents of its datagram.
pub(super) fn write(to: &mut impl Write, message: &Message) -> io::Result<()> {
    let mut contents: &[u8] = &[];
    let head = match message {
        Message::Serving => Head::Serving,
        Message::Alive => Head::Alive,
        Message::Datagram(datagram) => {
            contents = &datagram.contents;
            let length = u16::try_from(contents.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
            Head::Datagram(datagram.peer, datagram.local, datagram.ecn, length)
        }
    };
    serde_json::to_writer(&mut *to, &head)?;
    to.write_all(b"\n")?;
    to.write_all(contents)
}

/// Reads what [`write()`] wrote.
///
/// # Errors
/// The connection has ended, or the data is not a message.
pub(super) fn read(from: &mut impl BufRead) -> io::Result<Message> {
    Ok(match serde_json::from_slice(&line(from)?)? {
        Head::Serving => Message::Serving,
        Head::Alive => Message::Alive,
        Head::Datagram(peer, local, ecn, length) => {
            let mut contents = vec![0; usize::from(length)];
            from.read_exact(&mut contents)?;
            let contents = contents.into();
            Message::Datagram(Datagram {
                peer,
                local,
                ecn,
                contents,
            })
        }
    })
}

/// Reads a line of limited length; an empty one at the end.
fn line(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    from.take(LINE).read_until(b'\n', &mut line)?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddrV6, UdpSocket};
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
        scoped.peer = SocketAddrV6::new("fe80::1".parse().unwrap(), 9, 0, 7).into();
        let sent = [
            datagram("192.0.2.1:443", Some("192.0.2.2"), b"one"),
            // An IPv6 socket reports IPv4 addresses like this, and quinn compares addresses.
            datagram("[::ffff:192.0.2.1]:443", Some("::ffff:192.0.2.2"), &[7; 1_500]),
            scoped,
        ];
        let mut sent: Vec<_> = sent.into_iter().map(Message::Datagram).collect();
        sent.extend([Message::Alive, Message::Serving]);
        let mut bytes = Vec::new();
        for message in &sent {
            write(&mut bytes, message).unwrap();
        }
        let mut rest = &bytes[..];
        for message in sent {
            assert_eq!(read(&mut rest).unwrap(), message);
        }
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
        for other in ["", "{\"tcp\"", "{\"tcp\":true}\n"] {
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
        for line in ["{}\n", "no JSON", "{\"version\":4,\"process\":1}\n"] {
            (&here).write_all(line.as_bytes()).unwrap();
            assert!(Greeting::receive(&there).is_err(), "{line}");
        }
    }
}
