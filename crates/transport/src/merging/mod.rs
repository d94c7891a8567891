//! [`MergingSocket`]: sends a connection's datagrams with fewer system calls.
//!
//! quinn 0.11 hands at most ten datagrams at once to its socket, and twenty per turn of a connection's task. A call
//! costs far more than copying its bytes, and Linux takes 64 datagrams of one destination and size in one call (GSO).
//! So the datagrams that a connection's task sends during a poll are gathered, and sent together at the end of the
//! poll, never later. Connections that send once per turn, like most viewers' connections, do not pay for the copying:
//! their datagrams leave as quinn hands them over.

use std::cell::RefCell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use quinn::udp::{EcnCodepoint, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use crate::self_waking::{Polled, SelfWaking};
use crate::socket_layer::{LayeredSocket, SocketLayer};

/// Maximum number of bytes in one call: the payload of the largest UDP datagram over IPv4.
const MOST_BYTES: usize = 65_507;

/// Bytes that quinn sends in one poll: twenty datagrams of the usual size.
const POLL_BYTES: usize = 20 * 1_452;

thread_local! {
    static TURN: RefCell<Turn> = RefCell::default();
}

/// Sends of the task that this thread polls, in this turn.
#[derive(Default)]
struct Turn {
    /// True while a gathering task is polled.
    gathers: bool,
    /// Number of sends so far.
    sends: u32,
    gathered: Datagrams,
}

/// Datagrams of one size for one destination; the last may be shorter.
#[derive(Debug, Default)]
struct Datagrams {
    contents: Vec<u8>,
    /// Length of all but the last.
    size: usize,
    header: Option<Header>,
}

/// Fields that datagrams of one call share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    destination: SocketAddr,
    ecn: Option<EcnCodepoint>,
    source: Option<IpAddr>,
}

impl Header {
    fn of(transmit: &Transmit<'_>) -> Self {
        Self {
            destination: transmit.destination,
            ecn: transmit.ecn,
            source: transmit.src_ip,
        }
    }
}

impl Turn {
    /// Returns true if the gathered call has room for the datagrams of another poll.
    fn has_room(&self) -> bool {
        self.gathers && !self.gathered.is_empty() && self.gathered.contents.len() <= MOST_BYTES - POLL_BYTES
    }
}

impl Datagrams {
    fn is_empty(&self) -> bool {
        self.contents.is_empty()
    }

    /// Adds the datagrams of `transmit`, or returns false if they cannot share a call with the gathered ones.
    fn add(&mut self, transmit: &Transmit<'_>, most_segments: usize) -> bool {
        let length = transmit.contents.len();
        let size = transmit.segment_size.unwrap_or(length);
        if self.is_empty() {
            self.header = Some(Header::of(transmit));
            self.size = size;
        } else {
            let total = self.contents.len() + length;
            let is_next = self.header == Some(Header::of(transmit))
                && self.contents.len().is_multiple_of(self.size)
                // A single datagram may be shorter, as the last.
                && (size == self.size || length <= size && length < self.size)
                && total <= MOST_BYTES
                && total.div_ceil(self.size) <= most_segments;
            if !is_next {
                return false;
            }
        }
        self.contents.extend_from_slice(transmit.contents);
        true
    }

    /// Sends everything in one call. On `WouldBlock` the datagrams are kept; after any other error they are lost, as on
    /// the path.
    fn send(&mut self, socket: &dyn AsyncUdpSocket) -> io::Result<()> {
        let Some(header) = self.header.filter(|_| !self.is_empty()) else {
            return Ok(());
        };
        let sent = socket.try_send(&Transmit {
            destination: header.destination,
            ecn: header.ecn,
            contents: &self.contents,
            segment_size: (self.contents.len() > self.size).then_some(self.size),
            src_ip: header.source,
        });
        if !matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            self.contents.clear();
        }
        sent
    }

    /// Sends everything at the end of a poll. Returns false if the system does not accept it yet.
    fn flush(&mut self, socket: &dyn AsyncUdpSocket) -> bool {
        match self.send(socket) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
            Err(error) => tracing::debug!(%error, "datagrams were not sent"),
            Ok(()) => {}
        }
        true
    }
}

/// A socket that gathers the datagrams of a [`MergingTask`].
pub(crate) type MergingSocket = LayeredSocket<MergingLayer>;

/// The layer of a [`MergingSocket`], with the socket below.
#[derive(Debug)]
pub(crate) struct MergingLayer(Arc<dyn AsyncUdpSocket>);

impl MergingSocket {
    pub(crate) fn new(socket: Arc<dyn AsyncUdpSocket>) -> Arc<Self> {
        Arc::new(Self(MergingLayer(socket)))
    }
}

impl SocketLayer for MergingLayer {
    fn below(&self) -> &Arc<dyn AsyncUdpSocket> {
        &self.0
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        TURN.with_borrow_mut(|turn| {
            turn.sends = turn.sends.saturating_add(1);
            let most = self.0.max_transmit_segments();
            if !turn.gathers || most == 1 {
                return self.0.try_send(transmit);
            }
            if !turn.gathered.add(transmit, most) {
                turn.gathered.send(&*self.0)?;
                turn.gathered.add(transmit, most);
            }
            Ok(())
        })
    }
}

/// The task of a connection whose datagrams leave together at the end of each poll.
pub(crate) struct MergingTask {
    /// `None` once it has ended.
    task: Option<SelfWaking>,
    /// The socket below the [`MergingSocket`].
    socket: Arc<dyn AsyncUdpSocket>,
    poller: Option<Pin<Box<dyn UdpPoller>>>,
    /// Datagrams that the system has not accepted yet. Until it does, the task is not polled.
    blocked: Datagrams,
    /// True if the last poll sent more than once.
    is_busy: bool,
}

impl MergingTask {
    pub(crate) fn new(task: Pin<Box<dyn Future<Output = ()> + Send>>, socket: &MergingSocket) -> Self {
        Self {
            task: Some(SelfWaking::new(task)),
            socket: Arc::clone(socket.0.below()),
            poller: None,
            blocked: Datagrams::default(),
            is_busy: false,
        }
    }

    /// Sends the datagrams that the system did not accept before.
    fn poll_blocked(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.blocked.is_empty() {
            let socket = &self.socket;
            let poller = self
                .poller
                .get_or_insert_with(|| Arc::clone(socket).create_io_poller());
            if let Err(error) = ready!(poller.as_mut().poll_writable(cx)) {
                tracing::debug!(%error, "datagrams were not sent");
                self.blocked.contents.clear();
            }
            self.blocked.flush(&**socket);
        }
        Poll::Ready(())
    }
}

impl Future for MergingTask {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        ready!(this.poll_blocked(cx));
        if let Some(task) = &mut this.task {
            TURN.with_borrow_mut(|turn| (turn.gathers, turn.sends) = (this.is_busy, 0));
            let mut polled = task.poll(cx);
            while polled == Polled::WokeItself && TURN.with_borrow(Turn::has_room) {
                polled = task.poll(cx);
            }
            match polled {
                Polled::Ended => this.task = None,
                Polled::WokeItself => cx.waker().wake_by_ref(),
                Polled::Waits => {}
            }
            TURN.with_borrow_mut(|turn| {
                this.is_busy = turn.sends > 1;
                turn.gathers = false;
                if !turn.gathered.flush(&*this.socket) {
                    this.blocked = std::mem::take(&mut turn.gathered);
                }
            });
            ready!(this.poll_blocked(cx));
        }
        if this.task.is_none() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

#[cfg(test)]
mod tests;
