//! [`FarAway`]: a client's socket that delays every received datagram, as a long path would.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use playrate_transport::{LayeredSocket, SocketLayer};
use quinn::udp::RecvMeta;
use quinn::{AsyncTimer, AsyncUdpSocket, Runtime};

/// Delays datagrams after the kernel has received them; sent datagrams leave at once.
#[derive(Debug)]
pub(super) struct FarAway {
    inner: Arc<dyn AsyncUdpSocket>,
    runtime: Arc<dyn Runtime>,
    delay: Duration,
    under_way: Mutex<UnderWay>,
}

#[derive(Debug)]
struct UnderWay {
    buffer: Vec<u8>,
    /// Datagrams with their arrival times, in order.
    datagrams: VecDeque<(Instant, Box<[u8]>, RecvMeta)>,
    timer: Pin<Box<dyn AsyncTimer>>,
}

impl FarAway {
    pub(super) fn new(
        inner: Arc<dyn AsyncUdpSocket>,
        runtime: Arc<dyn Runtime>,
        delay: Duration,
    ) -> Arc<LayeredSocket<Self>> {
        let under_way = UnderWay {
            buffer: vec![0; 1 << 16],
            datagrams: VecDeque::new(),
            timer: runtime.new_timer(runtime.now()),
        };
        Arc::new(LayeredSocket(Self {
            inner,
            runtime,
            delay,
            under_way: Mutex::new(under_way),
        }))
    }
}

impl SocketLayer for FarAway {
    fn below(&self) -> &Arc<dyn AsyncUdpSocket> {
        &self.inner
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let under_way = &mut *self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.runtime.now();
        let mut meta = [RecvMeta::default()];
        loop {
            let buffer = IoSliceMut::new(&mut under_way.buffer);
            match self.inner.poll_recv(cx, &mut [buffer], &mut meta) {
                Poll::Ready(received) => {
                    received?;
                    let [meta] = meta;
                    let datagrams = under_way.buffer[..meta.len].into();
                    under_way.datagrams.push_back((now + self.delay, datagrams, meta));
                }
                Poll::Pending => break,
            }
        }
        let first = under_way.datagrams.iter().take(buffers.len());
        let count = first.take_while(|&&(at, ..)| at <= now).count();
        let arrived = under_way.datagrams.drain(..count);
        for ((_, datagrams, meta), (buffer, place)) in arrived.zip(buffers.iter_mut().zip(metas)) {
            buffer[..datagrams.len()].copy_from_slice(&datagrams);
            *place = meta;
        }
        if count > 0 {
            return Poll::Ready(Ok(count));
        }
        if let Some(&(next, ..)) = under_way.datagrams.front() {
            under_way.timer.as_mut().reset(next);
            if under_way.timer.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    }
}
