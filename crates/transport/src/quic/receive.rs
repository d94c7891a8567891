//! The receiving direction of a stream: [`RecvStream`] for `h3`, [`poll_buffered_first`] for the reader of a body.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use quinn::ReadError;

use super::convert::{stream_id, stream_lost, var_int};

thread_local! {
    static GATE: Cell<ReadGate> = const { Cell::new(ReadGate::Open) };
}

/// Tells [`RecvStream`], below `h3`, if the read in progress on this thread may take bytes from QUIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadGate {
    Open,
    Shut,
    /// Shut, and a read needed more than the buffered bytes.
    Tried,
}

/// Polls `read` with the bytes that `h3` has buffered, and with its stream only if these are not enough.
///
/// `h3` 0.0.8 reads once from the stream for each piece of a body that it hands out. A piece ends with a DATA frame or
/// a read, so a slow reader takes in more than it takes out. Its buffer would grow without bound, and QUIC's flow
/// control, which follows the reads from the stream, would never hold the sender back.
pub(crate) fn poll_buffered_first<T>(mut read: impl FnMut() -> Poll<T>) -> Poll<T> {
    /// Opens the gate, even if a read panics.
    struct OpenOnDrop;
    impl Drop for OpenOnDrop {
        fn drop(&mut self) {
            GATE.set(ReadGate::Open);
        }
    }
    let shut = OpenOnDrop;
    GATE.set(ReadGate::Shut);
    let buffered = read();
    let tried = GATE.get() == ReadGate::Tried;
    drop(shut);
    if buffered.is_pending() && tried {
        read()
    } else {
        buffered
    }
}

/// The error of a stream with more bytes than are accepted.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than {limit} bytes on one stream")]
pub(crate) struct TooManyBytes {
    limit: u64,
}

/// The receiving direction as `h3` uses it.
pub(crate) struct RecvStream {
    stream: quinn::RecvStream,
    id: StreamId,
    limit: u64,
    received: u64,
    /// Error code of the `STOP_SENDING` if this is dropped before the end.
    stop_code: Code,
}

impl RecvStream {
    pub(super) fn new(
        stream: quinn::RecvStream,
        limit: u64,
        stop_code: Code,
    ) -> Result<Self, ConnectionErrorIncoming> {
        Ok(Self {
            id: stream_id(stream.id())?,
            stream,
            limit,
            received: 0,
            stop_code,
        })
    }
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Fails if the stream has been read to its end; then there is nothing to stop.
        let _ = self.stream.stop(var_int(self.stop_code.value()));
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        if GATE.get() != ReadGate::Open {
            GATE.set(ReadGate::Tried);
            return Poll::Pending;
        }
        let chunk = ready!(poll_chunk(&mut self.stream, cx))?;
        self.received = self
            .received
            .saturating_add(chunk.as_ref().map_or(0, Bytes::len) as u64);
        if self.received > self.limit {
            self.stop_sending(Code::H3_EXCESSIVE_LOAD.value());
            let error = TooManyBytes { limit: self.limit };
            return Poll::Ready(Err(StreamErrorIncoming::Unknown(Box::new(error))));
        }
        Poll::Ready(Ok(chunk))
    }

    fn stop_sending(&mut self, error_code: u64) {
        // An error means that the stream has already ended.
        let _ = self.stream.stop(var_int(error_code));
    }

    fn recv_id(&self) -> StreamId {
        self.id
    }
}

/// Maximum number of bytes read at once. Otherwise quinn would hand megabytes to a slow reader, and extend the sender's
/// flow control limit by as much before any of it was used.
const CHUNK: usize = 64 << 10;

/// The next bytes of `stream`, in order; `None` at its end.
pub(super) fn poll_chunk(
    stream: &mut quinn::RecvStream,
    cx: &mut Context<'_>,
) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
    // Dropping the future loses nothing: it holds no data, and the waker stays with the connection.
    let chunk = ready!(pin!(stream.read_chunk(CHUNK, true)).poll(cx));
    Poll::Ready(match chunk {
        Ok(chunk) => Ok(chunk.map(|chunk| chunk.bytes)),
        Err(ReadError::Reset(code)) => Err(StreamErrorIncoming::StreamTerminated {
            error_code: code.into_inner(),
        }),
        Err(ReadError::ConnectionLost(error)) => Err(stream_lost(error)),
        Err(error) => Err(StreamErrorIncoming::Unknown(Box::new(error))),
    })
}
