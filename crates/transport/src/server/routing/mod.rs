//! [`DatagramRouter`]: the endpoints of a server on its UDP sockets, in one process and in successive ones.
//!
//! Each worker of a server has an endpoint and a socket, all on one port (`SO_REUSEPORT`). The system selects the
//! socket for a datagram by its addresses, so a client whose address changes may reach a worker that does not have its
//! connection. A process that takes over another one's sockets also reads the datagrams for connections of the older
//! process, which continue there.
//!
//! The router recognizes both by the connection IDs. With an [`EndpointKey`](super::EndpointKey), the first two bytes
//! of an ID's content are the numbers of the process and the worker that issued it. The HMAC at its end shows that a
//! client did not choose it. A datagram for another worker goes to that worker's endpoint. A datagram for another
//! process goes to the older process, which in turn forwards those of still older ones. Each endpoint sends on its own
//! socket. A datagram with an ID that its client chose stays with the worker that received it.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use parking_lot::Mutex;
use quinn::AsyncUdpSocket;
use quinn::udp::{EcnCodepoint, RecvMeta};
use quinn_proto::ConnectionIdGenerator as _;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::keys::{Issuer, MarkedConnectionIds};
use crate::socket_layer::{LayeredSocket, SocketLayer};

/// First bit of a packet with a long header (RFC 8999 §5.1).
const LONG_HEADER: u8 = 0x80;
/// Offset of the length of the destination connection ID in a long header, after the version (RFC 8999 §5.1).
const LONG_HEADER_ID_LENGTH: usize = 5;
/// Maximum number of datagrams from other workers that wait for an endpoint, as many as fit into a socket's buffer.
const WAITING_DATAGRAMS: usize = 4_096;

/// A UDP datagram of a client, with the system's metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::exhaustive_structs,
    reason = "one process builds it from what another one sent"
)]
pub struct Datagram {
    /// IP address and port of its sender.
    pub peer: SocketAddr,
    /// Destination IP address, if the system reports it.
    pub local: Option<IpAddr>,
    /// Bits of Explicit Congestion Notification in the IP header (RFC 3168 §5), 0 to 3; 0 is Not-ECT.
    pub ecn: u8,
    /// Payload of the UDP datagram: one or more QUIC packets.
    pub contents: Bytes,
}

impl Datagram {
    fn new(contents: &[u8], meta: &RecvMeta) -> Self {
        Self {
            peer: meta.addr,
            local: meta.dst_ip,
            ecn: meta.ecn.map_or(0, |ecn| ecn as u8),
            contents: Bytes::copy_from_slice(contents),
        }
    }

    /// Writes it to the buffers of a socket's reader. Returns false if there is no room.
    fn write(&self, buffer: &mut [u8], meta: &mut RecvMeta) -> bool {
        let length = self.contents.len();
        let Some(room) = buffer.get_mut(..length) else {
            return false;
        };
        room.copy_from_slice(&self.contents);
        *meta = RecvMeta {
            addr: self.peer,
            len: length,
            stride: length,
            ecn: EcnCodepoint::from_bits(self.ecn),
            dst_ip: self.local,
        };
        true
    }
}

/// Position of a process among those that successively have one server's sockets. Without an
/// [`EndpointKey`](super::EndpointKey) it has no effect.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Succession {
    /// Number of this process in its connection IDs. It must differ from those of older processes that still run.
    pub process: u8,
    /// Receives the datagrams for connections of older processes, until its receiver is dropped. Those that do not fit
    /// into it are lost, as in a full socket buffer.
    pub older: Option<mpsc::Sender<Datagram>>,
}

/// Totals of the datagrams that reached a worker other than their connection's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForwardedTotals {
    /// Number of datagrams forwarded to their worker.
    pub forwarded: u64,
    /// Number of datagrams that did not fit into the queue to their worker, and were lost as in a full socket buffer.
    pub lost: u64,
}

/// Routes each datagram that a server's sockets receive to the endpoint of its connection.
#[derive(Debug)]
pub struct DatagramRouter {
    workers: Box<[Arc<RoutedSocket>]>,
    siblings: Arc<Siblings>,
}

/// State that the sockets of one process share.
#[derive(Debug)]
struct Siblings {
    workers: Box<[Sibling]>,
    /// Length in bytes of the longest datagram that an endpoint accepts.
    longest: usize,
    /// True while a newer process reads the sockets instead of this one.
    paused: AtomicBool,
    forwarded: AtomicU64,
    lost: AtomicU64,
}

/// A worker, as seen by the others.
#[derive(Debug)]
struct Sibling {
    /// Takes datagrams for its connections.
    datagrams: mpsc::Sender<Datagram>,
    /// Its endpoint's task, which has to poll again when a route changes.
    reader: AtomicWaker,
}

/// Socket of one endpoint.
pub(super) type RoutedSocket = LayeredSocket<RoutingLayer>;

/// The layer of a [`RoutedSocket`], with the socket below.
#[derive(Debug)]
pub(super) struct RoutingLayer {
    socket: Arc<dyn AsyncUdpSocket>,
    connection_ids: MarkedConnectionIds,
    routes: Mutex<Routes>,
    siblings: Arc<Siblings>,
}

#[derive(Debug)]
struct Routes {
    /// Datagrams for older processes.
    older: Option<mpsc::Sender<Datagram>>,
    /// Datagrams from the other workers.
    siblings: mpsc::Receiver<Datagram>,
    /// Datagrams from a newer process, in the first worker.
    newer: Option<mpsc::Receiver<Datagram>>,
}

impl DatagramRouter {
    /// A router on `sockets`, each with the IDs that its endpoint issues; `older` takes datagrams for older processes.
    /// No endpoint accepts a datagram of more than `longest` bytes.
    pub(super) fn new(
        sockets: Vec<(Arc<dyn AsyncUdpSocket>, MarkedConnectionIds)>,
        older: Option<&mpsc::Sender<Datagram>>,
        longest: usize,
    ) -> Self {
        let (siblings, receivers): (Vec<_>, Vec<_>) = sockets
            .iter()
            .map(|_| {
                let (datagrams, receiver) = mpsc::channel(WAITING_DATAGRAMS);
                let reader = AtomicWaker::new();
                (Sibling { datagrams, reader }, receiver)
            })
            .unzip();
        let siblings = Arc::new(Siblings {
            workers: siblings.into(),
            longest,
            paused: AtomicBool::new(false),
            forwarded: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let workers = sockets.into_iter().zip(receivers);
        let workers = workers.map(|((socket, connection_ids), receiver)| {
            Arc::new(LayeredSocket(RoutingLayer {
                socket,
                connection_ids,
                routes: Mutex::new(Routes {
                    older: older.cloned(),
                    siblings: receiver,
                    newer: None,
                }),
                siblings: Arc::clone(&siblings),
            }))
        });
        Self {
            workers: workers.collect(),
            siblings,
        }
    }

    /// The sockets and the IDs that their endpoints issue, in the order of the workers.
    pub(super) fn endpoints(&self) -> impl Iterator<Item = (&Arc<RoutedSocket>, &MarkedConnectionIds)> {
        self.workers
            .iter()
            .map(|socket| (socket, &socket.0.connection_ids))
    }

    /// Stops reading the sockets, and takes datagrams from `newer` instead. Once this returns, only another process
    /// reads the sockets. This one resumes after the sender of `newer` is dropped.
    pub fn receive_from(&self, newer: mpsc::Receiver<Datagram>) {
        let mut newer = Some(newer);
        for LayeredSocket(worker) in self.workers.iter().map(Arc::as_ref) {
            // Sockets are read only under this lock, so no read is in progress after this.
            let mut routes = worker.routes.lock();
            if let Some(newer) = newer.take() {
                routes.newer = Some(newer);
                self.siblings.paused.store(true, Relaxed);
            }
        }
        self.siblings.wake();
    }

    /// Totals of the datagrams that reached a worker other than theirs.
    pub(super) fn totals(&self) -> ForwardedTotals {
        ForwardedTotals {
            forwarded: self.siblings.forwarded.load(Relaxed),
            lost: self.siblings.lost.load(Relaxed),
        }
    }
}

impl Siblings {
    /// Makes all endpoints poll their sockets.
    fn wake(&self) {
        for worker in &self.workers {
            worker.reader.wake();
        }
    }

    /// Forwards a datagram to the worker of this number. Returns false if there is none.
    fn forward(&self, worker: u8, contents: &[u8], meta: &RecvMeta) -> bool {
        let Some(worker) = self.workers.get(usize::from(worker)) else {
            return false;
        };
        // Longer datagrams must not fill the queue, because the endpoint would drop them.
        let sent = contents.len() <= self.longest
            && worker.datagrams.try_send(Datagram::new(contents, meta)).is_ok();
        let count = if sent { &self.forwarded } else { &self.lost };
        count.fetch_add(1, Relaxed);
        true
    }
}

impl Routes {
    /// Forwards a datagram to older processes. Returns false if there are none.
    fn forward_to_older(&mut self, contents: &[u8], meta: &RecvMeta) -> bool {
        let Some(older) = &self.older else {
            return false;
        };
        if let Err(TrySendError::Closed(_)) = older.try_send(Datagram::new(contents, meta)) {
            self.older = None;
            return false;
        }
        true
    }
}

/// Destination connection ID of the packet at the beginning of `datagram`, if it can have `length` bytes.
fn destination(datagram: &[u8], length: usize) -> Option<&[u8]> {
    let (first, rest) = datagram.split_first()?;
    if first & LONG_HEADER == 0 {
        return rest.get(..length);
    }
    let (said, rest) = datagram.get(LONG_HEADER_ID_LENGTH..)?.split_first()?;
    (usize::from(*said) == length).then(|| rest.get(..length))?
}

/// Moves datagrams from `queue` to the buffers from number `count` on. Returns the number of the filled buffers, and
/// false once the queue's sender is dropped.
fn receive(
    queue: &mut mpsc::Receiver<Datagram>,
    cx: &mut Context<'_>,
    (buffers, metas): (&mut [IoSliceMut<'_>], &mut [RecvMeta]),
    mut count: usize,
) -> (usize, bool) {
    while let (Some(buffer), Some(meta)) = (buffers.get_mut(count), metas.get_mut(count)) {
        match queue.poll_recv(cx) {
            // The endpoint would not accept a datagram that does not fit.
            Poll::Ready(Some(datagram)) => count += usize::from(datagram.write(buffer, meta)),
            Poll::Ready(None) => return (count, false),
            Poll::Pending => break,
        }
    }
    (count, true)
}

impl SocketLayer for RoutingLayer {
    fn below(&self) -> &Arc<dyn AsyncUdpSocket> {
        &self.socket
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        if let Some(sibling) = self.siblings.workers.get(usize::from(self.worker())) {
            sibling.reader.register(cx.waker());
        }
        // Held while the socket is read, so no read is in progress once `receive_from` has returned.
        let mut routes = self.routes.lock();
        // Half of the buffers are reserved for the socket, so that neither source waits for the other to be empty.
        let half = buffers.len().div_ceil(2);
        let (from_siblings, _) = receive(&mut routes.siblings, cx, (&mut buffers[..half], metas), 0);
        let mut count = from_siblings;
        if let Some(newer) = &mut routes.newer {
            let is_there;
            (count, is_there) = receive(newer, cx, (buffers, metas), count);
            if !is_there {
                routes.newer = None;
                self.siblings.paused.store(false, Relaxed);
                self.siblings.wake();
            }
        }
        if !self.siblings.paused.load(Relaxed) && count < buffers.len() {
            let read = self
                .socket
                .poll_recv(cx, &mut buffers[count..], &mut metas[count..]);
            match read {
                Poll::Ready(Ok(read)) => count += read,
                Poll::Ready(Err(error)) if count == 0 => return Poll::Ready(Err(error)),
                Poll::Ready(Err(_)) | Poll::Pending => {}
            }
        }
        if count == 0 {
            return Poll::Pending;
        }
        if routes.older.is_some() || self.siblings.workers.len() > 1 {
            let received = buffers.iter_mut().zip(metas.iter_mut()).take(count);
            for (buffer, meta) in received.skip(from_siblings) {
                self.keep_own(&mut routes, buffer, meta);
            }
        }
        Poll::Ready(Ok(count))
    }
}

impl RoutingLayer {
    fn worker(&self) -> u8 {
        self.connection_ids.issuer().worker
    }

    /// Forwards the datagrams in `buffer` that belong to other endpoints, and closes the gaps.
    fn keep_own(&self, routes: &mut Routes, buffer: &mut [u8], meta: &mut RecvMeta) {
        let (mut at, mut kept) = (0, 0);
        while at < meta.len {
            // All have the same length except for the last, which may be shorter.
            let end = (at + meta.stride.max(1)).min(meta.len);
            let Some(datagram) = buffer.get(at..end) else {
                break;
            };
            if !self.forward(routes, datagram, meta) {
                buffer.copy_within(at..end, kept);
                kept += end - at;
            }
            at = end;
        }
        meta.len = kept;
    }

    /// Forwards `datagram` if it belongs to a connection of another existing endpoint of this server.
    fn forward(&self, routes: &mut Routes, datagram: &[u8], meta: &RecvMeta) -> bool {
        let ids = &self.connection_ids;
        let id = destination(datagram, ids.cid_len());
        let Some(Issuer { process, worker }) = id.and_then(|id| ids.other_issuer(id)) else {
            return false;
        };
        if process == ids.issuer().process {
            self.siblings.forward(worker, datagram, meta)
        } else {
            routes.forward_to_older(datagram, meta)
        }
    }
}

#[cfg(test)]
mod tests;
