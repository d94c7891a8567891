//! [`Lively`]: a byte stream that fails once nothing has moved on it for long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use quinn::{AsyncTimer, Runtime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream that gives an error when for `limit` nothing could be read from or written to it. A client that has stopped reading
/// holds what was prepared for it, and one that is idle holds a place.
pub(super) struct Lively<S> {
    stream: S,
    runtime: Arc<dyn Runtime>,
    limit: Duration,
    moved: Instant,
    timer: Pin<Box<dyn AsyncTimer>>,
}

impl<S> Lively<S> {
    pub(super) fn new(stream: S, runtime: Arc<dyn Runtime>, limit: Duration) -> Self {
        let now = runtime.now();
        Self {
            stream,
            limit,
            moved: now,
            timer: runtime.new_timer(now + limit),
            runtime,
        }
    }

    /// Passes on what came of reading or writing; of having to wait, once it has been too long, the end.
    fn judge<T>(&mut self, context: &mut Context<'_>, outcome: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if outcome.is_ready() {
            self.moved = self.runtime.now();
            return outcome;
        }
        // The timer is moved only when it goes off, not with every byte.
        loop {
            ready!(self.timer.as_mut().poll(context));
            let due = self.moved + self.limit;
            if due <= self.runtime.now() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.timer.as_mut().reset(due);
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Lively<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.judge(context, outcome)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Lively<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, outcome)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // An empty flush moves nothing, so only waiting for one counts.
        match Pin::new(&mut self.stream).poll_flush(context) {
            Poll::Pending => self.judge(context, Poll::Pending),
            flushed @ Poll::Ready(_) => flushed,
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, outcome)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let outcome = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.judge(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn::TokioRuntime;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn lively(limit: Duration) -> (Lively<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = tokio::io::duplex(1_000);
        (Lively::new(near, Arc::new(TokioRuntime), limit), far)
    }

    #[tokio::test]
    async fn a_stream_on_which_nothing_moves_times_out() {
        let (mut near, mut far) = lively(Duration::from_millis(200));
        far.write_all(b"hello").await.unwrap();
        let mut buffer = [0; 5];
        near.read_exact(&mut buffer).await.unwrap();
        let error = near.read_exact(&mut buffer).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_times_out() {
        let (mut near, _far) = lively(Duration::from_millis(200));
        let error = near.write_all(&[0; 5_000]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_slow_peer_does_not() {
        let (mut near, mut far) = lively(Duration::from_secs(2));
        let reading = async {
            let mut buffer = [0; 500];
            // Longer in all than the limit, with shorter gaps.
            for _ in 0..10 {
                playrate_transport::time::sleep(&TokioRuntime, Duration::from_millis(300)).await;
                far.read_exact(&mut buffer).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[0; 5_000]), reading);
        written.unwrap();
    }
}
