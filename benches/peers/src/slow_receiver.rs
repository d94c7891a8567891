//! [`TwoAtATime`]: a client's socket that takes two datagrams at a time, so that every second packet is acknowledged.
//!
//! Over loopback, a client receives everything that the server sent in one call at once, and acknowledges it with one
//! frame. Across a network, datagrams arrive one by one, and RFC 9000 §13.2.2 recommends an ACK frame for every second
//! one.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use playrate_transport::{LayeredSocket, SocketLayer};
use quinn::AsyncUdpSocket;
use quinn::udp::RecvMeta;

const AT_A_TIME: usize = 2;

#[derive(Debug)]
pub(crate) struct TwoAtATime {
    inner: Arc<dyn AsyncUdpSocket>,
    received: Mutex<Received>,
}

#[derive(Debug)]
struct Received {
    buffer: Vec<u8>,
    /// Place in the buffer of each datagram that was not handed on.
    datagrams: VecDeque<(usize, RecvMeta)>,
    /// True if the endpoint has its datagrams and it is the connection's turn.
    rests: bool,
}

impl TwoAtATime {
    pub(crate) fn new(inner: Arc<dyn AsyncUdpSocket>) -> Arc<LayeredSocket<Self>> {
        let received = Received {
            buffer: vec![0; 1 << 16],
            datagrams: VecDeque::new(),
            rests: false,
        };
        Arc::new(LayeredSocket(Self {
            inner,
            received: Mutex::new(received),
        }))
    }
}

impl SocketLayer for TwoAtATime {
    fn below(&self) -> &Arc<dyn AsyncUdpSocket> {
        &self.inner
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = &mut *self.received.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut received.rests) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if received.datagrams.is_empty() {
            let mut meta = [RecvMeta::default()];
            let buffer = IoSliceMut::new(&mut received.buffer);
            ready!(self.inner.poll_recv(cx, &mut [buffer], &mut meta))?;
            let [all] = meta;
            let mut at = 0;
            while at < all.len {
                let mut one = all;
                one.len = all.stride.min(all.len - at);
                one.stride = one.len;
                received.datagrams.push_back((at, one));
                at += one.len;
            }
        }
        let count = received.datagrams.len().min(AT_A_TIME);
        let places = buffers.iter_mut().zip(metas);
        for ((at, one), (buffer, meta)) in received.datagrams.drain(..count).zip(places) {
            buffer[..one.len].copy_from_slice(&received.buffer[at..at + one.len]);
            *meta = one;
        }
        received.rests = true;
        Poll::Ready(Ok(count))
    }
}
