//! The receiving direction of a stream: [`RecvStream`] for `h3`, [`ReadGate`] for the reader of a body.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId};

use super::{StreamTable, TableEntry, poll_chunk, stream_id, var_int};

/// Makes a reader use the bytes that `h3` has buffered before it takes more from QUIC.
///
/// `h3` 0.0.8 reads once from the stream for each piece of a body that it hands out. A piece ends with a DATA frame or
/// a read, so a slow reader takes in more than it takes out. Its buffer would grow without bound, and QUIC's flow
/// control, which follows the reads from the stream, would never hold the sender back.
#[derive(Debug, Default)]
pub(crate) struct ReadGate {
    shut: AtomicBool,
    /// True if a read found the gate shut.
    tried: AtomicBool,
}

impl ReadGate {
    /// Polls `read` with the buffered bytes alone, and with the stream only if these are not enough.
    pub(crate) fn poll<T>(&self, mut read: impl FnMut() -> Poll<T>) -> Poll<T> {
        self.tried.store(false, Relaxed);
        self.shut.store(true, Relaxed);
        let buffered = read();
        self.shut.store(false, Relaxed);
        if buffered.is_pending() && self.tried.load(Relaxed) {
            return read();
        }
        buffered
    }

    /// Returns true if the stream must not be read now.
    fn is_shut(&self) -> bool {
        let shut = self.shut.load(Relaxed);
        if shut {
            self.tried.store(true, Relaxed);
        }
        shut
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
    gate: Arc<ReadGate>,
    /// Keeps the gate in its table.
    entry: Option<TableEntry<Arc<ReadGate>>>,
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
            gate: Arc::default(),
            entry: None,
        })
    }

    /// The same stream; its gate is in `gates` as long as it lives.
    pub(super) fn gated(mut self, gates: &StreamTable<Arc<ReadGate>>) -> Self {
        self.entry = Some(TableEntry::new(gates, self.id, Arc::clone(&self.gate)));
        self
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
        if self.gate.is_shut() {
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
