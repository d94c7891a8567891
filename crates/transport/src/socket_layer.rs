//! [`SocketLayer`]: a socket on top of another one that changes the datagrams sent or received.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use quinn::udp::{RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

/// Changes to the socket below. The default of each method calls the socket below.
pub trait SocketLayer: fmt::Debug + Send + Sync + 'static {
    /// The socket that this layer changes.
    fn below(&self) -> &Arc<dyn AsyncUdpSocket>;

    /// Sends datagrams, as [`AsyncUdpSocket::try_send`] does.
    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.below().try_send(transmit)
    }

    /// Receives datagrams, as [`AsyncUdpSocket::poll_recv`] does.
    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.below().poll_recv(cx, buffers, metas)
    }
}

/// A socket for quinn, made of the layer `L` and the socket below it.
#[derive(Debug)]
#[expect(
    clippy::exhaustive_structs,
    reason = "a layer becomes a socket by wrapping it"
)]
pub struct LayeredSocket<L>(pub L);

impl<L: SocketLayer> AsyncUdpSocket for LayeredSocket<L> {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Arc::clone(self.0.below()).create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.0.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.0.poll_recv(cx, buffers, metas)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.below().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.0.below().max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.0.below().max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.0.below().may_fragment()
    }
}
