//! [`ClientStream`]: a byte stream whose end loses no response.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use parking_lot::Mutex;
use playrate_transport::CountedExchange;
use quinn::{AsyncTimer, Runtime, TokioRuntime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Responses whose end hyper has taken but not yet written to the socket. They are still in progress: hyper may hold a
/// few hundred kilobytes.
#[derive(Debug, Default)]
pub(super) struct UnsentResponses(Mutex<Vec<CountedExchange>>);

impl UnsentResponses {
    /// Keeps `exchange` in progress until the stream has been flushed.
    pub(super) fn add(&self, exchange: CountedExchange) {
        self.0.lock().push(exchange);
    }

    fn flushed(&self) {
        // Dropped outside the lock.
        drop(std::mem::take(&mut *self.0.lock()));
    }
}

/// A stream that, at shutdown, sends the end of its own side and then reads and discards until the client ends its
/// side.
///
/// If a TCP socket is closed with unread bytes in it, the kernel resets the connection. The reset makes the client's
/// kernel drop data that the client has not read yet: the end of a response. HTTP/2's acknowledgements are such unread
/// bytes.
pub(super) struct ClientStream<S> {
    stream: S,
    /// Time for the client to end its side after the server has ended its own (RFC 9112 §9.6).
    linger: Duration,
    /// `None` until the end of this side has been sent.
    linger_timer: Option<Pin<Box<dyn AsyncTimer>>>,
    unsent: Arc<UnsentResponses>,
}

impl<S> ClientStream<S> {
    /// Creates a stream that ends the responses in `unsent` with each flush, which hyper requests once it has written
    /// everything.
    pub(super) fn new(stream: S, linger: Duration, unsent: Arc<UnsentResponses>) -> Self {
        Self {
            stream,
            linger,
            linger_timer: None,
            unsent,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ClientStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for ClientStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = ready!(Pin::new(&mut self.stream).poll_flush(context));
        self.unsent.flushed();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.linger_timer.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(context))?;
        }
        let timer = this
            .linger_timer
            .get_or_insert_with(|| TokioRuntime.new_timer(TokioRuntime.now() + this.linger));
        // Checked before reading, so that a client that sends without end is not read for ever.
        if timer.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut scratch = [0; 4_096];
        loop {
            let mut buffer = ReadBuf::new(&mut scratch);
            match ready!(Pin::new(&mut this.stream).poll_read(context, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                // The client has ended its side or is gone.
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
    use super::*;
    use playrate_transport::Activity;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpSocket, TcpStream};

    const SHORT: Duration = Duration::from_millis(200);
    const LONG: Duration = Duration::from_secs(20);

    async fn tcp(linger: Duration) -> (ClientStream<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        // Most of the sent bytes wait in the near socket for the peer to read them.
        socket.set_recv_buffer_size(4_096).unwrap();
        let peer = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (ClientStream::new(stream, linger, Arc::default()), peer)
    }

    #[tokio::test]
    async fn a_response_is_in_progress_until_the_stream_is_flushed() {
        let activity = Activity::new(Arc::new(TokioRuntime));
        let unsent = Arc::new(UnsentResponses::default());
        let (near, mut far) = tokio::io::duplex(1_000);
        let mut near = ClientStream::new(near, LONG, Arc::clone(&unsent));
        unsent.add(activity.begin().unwrap());
        let is_idle = async || {
            let expired = activity.expired(Some(Duration::ZERO));
            playrate_transport::time::timeout(&TokioRuntime, SHORT, expired)
                .await
                .is_ok()
        };
        let mut buffer = [0; 2_000];
        // More than the peer takes at once.
        let (written, read) = tokio::join!(near.write_all(&[0; 2_000]), far.read_exact(&mut buffer));
        assert!(written.is_ok() && read.is_ok() && !is_idle().await);
        near.flush().await.unwrap();
        assert!(is_idle().await);
    }

    #[tokio::test]
    async fn a_peer_reads_the_last_byte_although_it_still_sends() {
        let (mut stream, mut peer) = tcp(LONG).await;
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
    async fn a_peer_that_does_not_end_its_side_is_closed_after_the_limit() {
        let (mut stream, _peer) = tcp(SHORT).await;
        let began = TokioRuntime.now();
        stream.shutdown().await.unwrap();
        assert!(TokioRuntime.now() - began >= SHORT);
    }
}
