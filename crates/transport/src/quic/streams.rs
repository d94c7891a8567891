//! A stream's two directions.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};

use super::{Gate, Gates, TooMuch, Wishes, stream_id, stream_lost, var_int};

/// Most bytes read at once. quinn would hand out megabytes to a reader that was slow, and extend the sender's credit by as
/// much before any of it was used.
const PIECE: usize = 64 << 10;

/// Both directions of a stream.
pub(crate) struct BidiStream<B> {
    pub(super) send: SendStream<B>,
    pub(super) receive: RecvStream,
}

impl<B: Buf> quic::BidiStream<B> for BidiStream<B> {
    type SendStream = SendStream<B>;
    type RecvStream = RecvStream;

    fn split(self) -> (Self::SendStream, Self::RecvStream) {
        (self.send, self.receive)
    }
}

impl<B: Buf> quic::RecvStream for BidiStream<B> {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.receive.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.receive.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.receive.recv_id()
    }
}

impl<B: Buf> quic::SendStream<B> for BidiStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

/// The receiving direction.
pub(crate) struct RecvStream {
    stream: quinn::RecvStream,
    limit: u64,
    received: u64,
    /// With which code the peer is asked to stop when this is dropped before the end.
    give_up: Code,
    gate: Arc<Gate>,
    gates: Option<Gates>,
}

impl RecvStream {
    pub(super) fn new(stream: quinn::RecvStream, limit: u64, give_up: Code) -> Self {
        Self {
            stream,
            limit,
            received: 0,
            give_up,
            gate: Arc::default(),
            gates: None,
        }
    }

    /// The same stream, its gate among `gates` for as long as it lives.
    pub(super) fn gated(mut self, gates: &Gates) -> Self {
        let number = u64::from(self.stream.id());
        lock(gates).insert(number, Arc::clone(&self.gate));
        self.gates = Some(Arc::clone(gates));
        self
    }
}

fn lock(gates: &Gates) -> MutexGuard<'_, BTreeMap<u64, Arc<Gate>>> {
    gates.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        if let Some(gates) = &self.gates {
            lock(gates).remove(&u64::from(self.stream.id()));
        }
        // Fails on a stream that has been read to its end, and then there is nothing to stop.
        let _ = self.stream.stop(var_int(self.give_up.value()));
    }
}

impl quic::RecvStream for RecvStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        use quinn::ReadError;
        if self.gate.is_shut() {
            return Poll::Pending;
        }
        // Nothing is lost by dropping the future: it holds no data, and the waker stays with the connection.
        let chunk = ready!(pin!(self.stream.read_chunk(PIECE, true)).poll(cx));
        match chunk {
            Ok(None) => Poll::Ready(Ok(None)),
            Ok(Some(chunk)) => {
                self.received = self.received.saturating_add(chunk.bytes.len() as u64);
                if self.received > self.limit {
                    self.stop_sending(Code::H3_EXCESSIVE_LOAD.value());
                    return Poll::Ready(Err(StreamErrorIncoming::Unknown(Box::new(TooMuch {
                        limit: self.limit,
                    }))));
                }
                Poll::Ready(Ok(Some(chunk.bytes)))
            }
            Err(ReadError::Reset(code)) => Poll::Ready(Err(StreamErrorIncoming::StreamTerminated {
                error_code: code.into_inner(),
            })),
            Err(ReadError::ConnectionLost(error)) => Poll::Ready(Err(stream_lost(error))),
            Err(error) => Poll::Ready(Err(StreamErrorIncoming::Unknown(Box::new(error)))),
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        // An error says that the stream has ended already, which is what is wanted.
        let _ = self.stream.stop(var_int(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

/// The sending direction.
pub(crate) struct SendStream<B> {
    pub(super) stream: quinn::SendStream,
    writing: Option<WriteBuf<B>>,
    pub(super) wishes: Arc<Wishes>,
    applied_priority: i32,
    finished: bool,
}

impl<B> SendStream<B> {
    pub(super) fn new(stream: quinn::SendStream) -> Self {
        Self {
            stream,
            writing: None,
            wishes: Arc::default(),
            applied_priority: 0,
            finished: false,
        }
    }
}

impl<B> Drop for SendStream<B> {
    fn drop(&mut self) {
        if !self.finished {
            // Fails on a stream that was reset already.
            let _ = self.stream.reset(var_int(self.wishes.give_up.load(Relaxed)));
        }
    }
}

impl<B: Buf> quic::SendStream<B> for SendStream<B> {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        use quinn::WriteError;
        let Some(data) = &mut self.writing else {
            return Poll::Ready(Ok(()));
        };
        let priority = self.wishes.priority.load(Relaxed);
        if priority != self.applied_priority {
            self.applied_priority = priority;
            // Fails only on a stream that has ended, which the write below reports.
            let _ = self.stream.set_priority(priority);
        }
        while data.has_remaining() {
            let written = match self.wishes.owned(data.chunk()) {
                // Nothing is lost by dropping the future: what it does not take stays in `data`.
                Some(bytes) => {
                    ready!(pin!(self.stream.write_chunks(&mut [bytes])).poll(cx)).map(|written| written.bytes)
                }
                None => ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk())),
            };
            match written {
                Ok(written) => data.advance(written),
                Err(error) => {
                    self.writing = None;
                    return Poll::Ready(Err(match error {
                        WriteError::Stopped(code) => StreamErrorIncoming::StreamTerminated {
                            error_code: code.into_inner(),
                        },
                        WriteError::ConnectionLost(error) => stream_lost(error),
                        other => StreamErrorIncoming::Unknown(Box::new(other)),
                    }));
                }
            }
        }
        self.writing = None;
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<B>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::ConnectionErrorIncoming {
                connection_error: ConnectionErrorIncoming::InternalError(
                    "a frame was begun before the last one was written".to_owned(),
                ),
            });
        }
        self.writing = Some(data.into());
        Ok(())
    }

    fn poll_finish(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.finished = true;
        Poll::Ready(
            self.stream
                .finish()
                .map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))),
        )
    }

    fn reset(&mut self, reset_code: u64) {
        // An error says that the stream has ended already.
        let _ = self.stream.reset(var_int(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}
