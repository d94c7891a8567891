//! [`Lingering`]: a byte stream that does not close on a peer that is still talking.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use quinn::{AsyncTimer, Runtime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream whose shutdown, after it has told the peer that nothing more comes, reads and drops what the peer still sends until
/// the peer ends its side, for `limit` at most (RFC 9112 §9.6).
///
/// A TCP socket that is closed with unread bytes in it resets its connection, and a reset makes the peer's kernel drop what the
/// peer has not read yet: the end of a response, of which HTTP/2's acknowledgements are such bytes.
pub(super) struct Lingering<S> {
    stream: S,
    runtime: Arc<dyn Runtime>,
    limit: Duration,
    /// When to wait no longer; `None` until the shutdown has been sent.
    deadline: Option<Pin<Box<dyn AsyncTimer>>>,
}

impl<S> Lingering<S> {
    pub(super) fn new(stream: S, runtime: Arc<dyn Runtime>, limit: Duration) -> Self {
        Self {
            stream,
            runtime,
            limit,
            deadline: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lingering<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Lingering<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.deadline.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let deadline = this
            .deadline
            .get_or_insert_with(|| this.runtime.new_timer(this.runtime.now() + this.limit));
        // Before the reading, so that a peer that never stops sending is not read for ever.
        if deadline.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0; 4_096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // The end, and a peer that is gone: either way nobody is left to wait for.
                Ok(()) | Err(_) => return Poll::Ready(Ok(())),
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use quinn::TokioRuntime;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    use super::*;

    async fn pair(limit: Duration) -> (Lingering<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        // Most of what is sent waits in the near socket for the peer to read.
        socket.set_recv_buffer_size(4_096).unwrap();
        let peer = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (Lingering::new(stream, Arc::new(TokioRuntime), limit), peer)
    }

    fn now() -> Instant {
        TokioRuntime.now()
    }

    #[tokio::test]
    async fn a_peer_reads_the_last_byte_though_nobody_wants_what_it_sends_meanwhile() {
        let (mut stream, mut peer) = pair(Duration::from_secs(20)).await;
        let serving = async {
            stream.write_all(&vec![7; 100_000]).await.unwrap();
            stream.shutdown().await.unwrap();
            drop(stream);
        };
        let receiving = async {
            peer.write_all(b"got some").await.unwrap();
            playrate_transport::time::sleep(&TokioRuntime, Duration::from_millis(100)).await;
            peer.write_all(b"got more").await.unwrap();
            let mut all = Vec::new();
            peer.read_to_end(&mut all).await.unwrap();
            drop(peer);
            all.len()
        };
        let ((), received) = tokio::join!(serving, receiving);
        assert_eq!(received, 100_000);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_end_is_left_behind() {
        let (mut stream, _peer) = pair(Duration::from_millis(200)).await;
        let began = now();
        stream.shutdown().await.unwrap();
        assert!(now() - began >= Duration::from_millis(200));
    }
}
