//! [`DatagramRouter`]: successive processes of a server on one UDP socket.
//!
//! A process that takes over the socket of another one reads all datagrams, also those for connections of the older
//! process, which go on there. They are told apart by their connection IDs: with an
//! [`EndpointKey`](super::EndpointKey), the first byte of each is the number of the process that issued it, and the
//! HMAC at its end shows that a client did not choose it. Datagrams of others are forwarded to the older process, which
//! passes on those of a still older one in the same way. Each process sends on the socket itself.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, ConnectionId, UdpPoller};
use quinn_proto::ConnectionIdGenerator as _;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::keys::MarkedConnectionIds;

/// First bit of a packet with a long header (RFC 8999 §5.1).
const LONG_HEADER: u8 = 0x80;
/// Offset of the length of the destination connection ID in a long header, after the version (RFC 8999 §5.1).
const LONG_HEADER_ID_LENGTH: usize = 5;

/// A UDP datagram of a client, with what the system says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "one process builds it from what another one sent"
)]
pub struct Datagram {
    /// IP address and port that it came from.
    pub peer: SocketAddr,
    /// IP address that it was sent to, if the system reports it.
    pub local: Option<IpAddr>,
    /// Bits of Explicit Congestion Notification in the IP header (RFC 3168 §5), 0 to 3; 0 is Not-ECT.
    pub ecn: u8,
    /// Payload of the UDP datagram: one or more QUIC packets.
    pub contents: Bytes,
}

/// Place of a process among those of one server that have one socket, one after the other. Without an
/// [`EndpointKey`](super::EndpointKey) it has no effect.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Succession {
    /// Number of this process, the first byte of its connection IDs: another one than those of older processes that are
    /// still there.
    pub process: u8,
    /// Takes the datagrams for connections of older processes, until its receiver is dropped. Those that do not fit
    /// into it are lost, as in a full buffer of a socket.
    pub older: Option<mpsc::Sender<Datagram>>,
}

/// Socket of a server that leaves each datagram to the process whose connection it is for.
pub struct DatagramRouter {
    socket: Arc<dyn AsyncUdpSocket>,
    connection_ids: MarkedConnectionIds,
    routes: Mutex<Routes>,
    /// The endpoint's task, which has to poll again when a route changes.
    reader: AtomicWaker,
}

#[derive(Debug)]
struct Routes {
    /// Datagrams for older processes.
    older: Option<mpsc::Sender<Datagram>>,
    /// Datagrams from a newer process, which reads the socket instead of this one.
    newer: Option<mpsc::Receiver<Datagram>>,
}

impl fmt::Debug for DatagramRouter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DatagramRouter")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}

impl DatagramRouter {
    /// A router on `socket` for the process that issues `connection_ids`; `older` takes what is for older ones.
    pub(super) fn new(
        socket: Arc<dyn AsyncUdpSocket>,
        connection_ids: MarkedConnectionIds,
        older: Option<mpsc::Sender<Datagram>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            socket,
            connection_ids,
            routes: Mutex::new(Routes { older, newer: None }),
            reader: AtomicWaker::new(),
        })
    }

    /// Stops reading the socket, and takes what arrives from `newer` instead: another process reads the socket from
    /// when this returns on. Reads the socket again once the sender of `newer` is dropped.
    pub fn receive_from(&self, newer: mpsc::Receiver<Datagram>) {
        self.routes().newer = Some(newer);
        self.reader.wake();
    }

    fn routes(&self) -> MutexGuard<'_, Routes> {
        self.routes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if `datagram` is for a connection of another process of this server.
    fn is_of_another(&self, datagram: &[u8]) -> bool {
        destination(datagram, self.connection_ids.cid_len())
            .filter(|id| id.first() != Some(&self.connection_ids.process()))
            .is_some_and(|id| self.connection_ids.validate(&ConnectionId::new(id)).is_ok())
    }
}

impl Routes {
    /// Forwards the datagram `contents`, which `meta` describes, to older processes. Returns false if there are none.
    fn forward(&mut self, contents: &[u8], meta: &RecvMeta) -> bool {
        let Some(older) = &self.older else {
            return false;
        };
        let sent = older.try_send(Datagram {
            peer: meta.addr,
            local: meta.dst_ip,
            ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
            contents: Bytes::copy_from_slice(contents),
        });
        if matches!(sent, Err(TrySendError::Closed(_))) {
            self.older = None;
            return false;
        }
        true
    }
}

/// Destination connection ID of the packet that `datagram` begins with, if it can be one of `length` bytes.
fn destination(datagram: &[u8], length: usize) -> Option<&[u8]> {
    let (first, rest) = datagram.split_first()?;
    if first & LONG_HEADER == 0 {
        return rest.get(..length);
    }
    let (said, rest) = datagram.get(LONG_HEADER_ID_LENGTH..)?.split_first()?;
    (usize::from(*said) == length).then(|| rest.get(..length))?
}

impl AsyncUdpSocket for DatagramRouter {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.socket).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.reader.register(cx.waker());
        // Held while the socket is read, so that nothing is read any more once `receive_from` has returned.
        let mut routes = self.routes();
        let mut count = 0;
        while let Some(newer) = &mut routes.newer
            && let (Some(buffer), Some(meta)) = (buffers.get_mut(count), metas.get_mut(count))
        {
            match newer.poll_recv(cx) {
                Poll::Ready(Some(datagram)) => {
                    let length = datagram.contents.len();
                    // One that does not fit is none that this endpoint accepts.
                    if let Some(room) = buffer.get_mut(..length) {
                        room.copy_from_slice(&datagram.contents);
                        *meta = RecvMeta {
                            addr: datagram.peer,
                            len: length,
                            stride: length,
                            ecn: EcnCodepoint::from_bits(datagram.ecn),
                            dst_ip: datagram.local,
                        };
                        count += 1;
                    }
                }
                Poll::Ready(None) => routes.newer = None,
                Poll::Pending if count == 0 => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if count == 0 {
            count = ready!(self.socket.poll_recv(cx, buffers, metas))?;
        }
        if routes.older.is_some() {
            for (buffer, meta) in buffers.iter_mut().zip(metas.iter_mut()).take(count) {
                self.keep_own(&mut routes, buffer, meta);
            }
        }
        Poll::Ready(Ok(count))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

impl DatagramRouter {
    /// Forwards those of the datagrams in `buffer` that are for other processes, and closes the gaps.
    fn keep_own(&self, routes: &mut Routes, buffer: &mut [u8], meta: &mut RecvMeta) {
        let (mut at, mut kept) = (0, 0);
        while at < meta.len {
            // All have the same length but the last, which may be shorter.
            let end = (at + meta.stride.max(1)).min(meta.len);
            let Some(datagram) = buffer.get(at..end) else {
                break;
            };
            if !(self.is_of_another(datagram) && routes.forward(datagram, meta)) {
                buffer.copy_within(at..end, kept);
                kept += end - at;
            }
            at = end;
        }
        meta.len = kept;
    }
}

#[cfg(test)]
mod tests;
