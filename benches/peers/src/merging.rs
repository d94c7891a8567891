//! [`Merging`]: a UDP socket that merges quinn's sends into fewer and larger ones.
//!
//! quinn hands at most ten datagrams to the kernel in one system call (UDP_SEGMENT); the kernel accepts 64
//! KiB. A full transmit is held until more datagrams for the same client follow, or until all ready tasks
//! have run, at most for [`LONGEST_HOLD`]. A partial transmit ends a connection's present burst and is sent
//! at once.

use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, Runtime, UdpPoller};

/// Datagrams in a full transmit of quinn's.
const FULL: usize = 10;
/// Most bytes of one send: what UDP over IPv4 takes (65,507), rounded down.
const MOST_BYTES: usize = 65_000;
/// Nothing is held for longer.
const LONGEST_HOLD: Duration = Duration::from_micros(100);

/// A socket that merges consecutive sends to one client.
#[derive(Debug)]
pub(crate) struct Merging {
    inner: Arc<dyn AsyncUdpSocket>,
    runtime: Arc<dyn Runtime>,
    held: Mutex<Held>,
    most_segments: usize,
}

/// Destination and options of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way {
    destination: SocketAddr,
    source: Option<IpAddr>,
    ecn: Option<EcnCodepoint>,
    segment: usize,
}

#[derive(Debug, Default)]
struct Held {
    bytes: Vec<u8>,
    way: Option<Way>,
    since: Option<Instant>,
    /// Something was added since the flusher looked.
    fresh: bool,
    flusher: Option<Waker>,
    sends: u64,
}

impl Held {
    fn wake_flusher(&mut self) {
        if let Some(flusher) = self.flusher.take() {
            flusher.wake();
        }
    }
}

impl Merging {
    /// Merges what is sent on `inner`.
    pub(crate) fn new(inner: Arc<dyn AsyncUdpSocket>, runtime: &Arc<dyn Runtime>) -> Arc<Self> {
        let merging = Arc::new(Self {
            most_segments: inner.max_transmit_segments(),
            inner,
            runtime: Arc::clone(runtime),
            held: Mutex::default(),
        });
        runtime.spawn(Box::pin(flush(Arc::downgrade(&merging))));
        merging
    }

    /// System calls so far.
    pub(crate) fn sends(&self) -> u64 {
        self.held().sends
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, held: &mut Held, transmit: &Transmit<'_>) -> io::Result<()> {
        self.inner.try_send(transmit)?;
        held.sends += 1;
        Ok(())
    }

    /// Sends what is held. What the kernel has no room for stays.
    fn release(&self, held: &mut Held) -> io::Result<()> {
        let Some(way) = held.way else { return Ok(()) };
        let bytes = std::mem::take(&mut held.bytes);
        let sent = self.send(
            held,
            &Transmit {
                destination: way.destination,
                ecn: way.ecn,
                contents: &bytes,
                segment_size: Some(way.segment),
                src_ip: way.source,
            },
        );
        held.bytes = bytes;
        if !matches!(&sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
            held.bytes.clear();
            held.way = None;
            held.since = None;
        }
        sent
    }
}

impl AsyncUdpSocket for Merging {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(&self.inner).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len());
        let way = Way {
            destination: transmit.destination,
            source: transmit.src_ip,
            ecn: transmit.ecn,
            segment,
        };
        let full = transmit.contents.len() == FULL * segment;
        let held = &mut *self.held();
        let together = held.bytes.len() + transmit.contents.len();
        let fits = held.way == Some(way)
            && together <= MOST_BYTES
            && together.div_ceil(segment.max(1)) <= self.most_segments;
        if held.way.is_some() && !fits {
            self.release(held)?;
        }
        if held.way.is_none() && !full {
            return self.send(held, transmit);
        }
        held.bytes.extend_from_slice(transmit.contents);
        held.way = Some(way);
        held.fresh = true;
        let first = held.since.is_none();
        held.since.get_or_insert_with(|| self.runtime.now());
        let more = held.bytes.len() + FULL * segment;
        if !full || more > MOST_BYTES || more / segment.max(1) > self.most_segments {
            match self.release(held) {
                // What is left because there is no room is the flusher's.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => held.wake_flusher(),
                done => return done,
            }
        } else if first {
            held.wake_flusher();
        }
        Ok(())
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(cx, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.most_segments
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// Sends what is held once nothing more has come for it while the other tasks ran.
async fn flush(socket: Weak<Merging>) {
    let mut poller: Option<Pin<Box<dyn UdpPoller>>> = None;
    poll_fn(|cx| {
        let Some(socket) = socket.upgrade() else {
            return Poll::Ready(());
        };
        loop {
            let held = &mut *socket.held();
            let Some(since) = held.since else {
                held.flusher = Some(cx.waker().clone());
                return Poll::Pending;
            };
            if std::mem::take(&mut held.fresh) && socket.runtime.now() < since + LONGEST_HOLD {
                // Behind the tasks that are ready now, of which the connection's may be one.
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match socket.release(held) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let inner = &socket.inner;
                    let poller = poller.get_or_insert_with(|| Arc::clone(inner).create_io_poller());
                    if poller.as_mut().poll_writable(cx).is_pending() {
                        return Poll::Pending;
                    }
                }
                // As if lost on the way.
                _ => {}
            }
        }
    })
    .await;
}
