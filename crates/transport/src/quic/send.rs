//! The sending direction of a stream: [`SendStream`] for `h3`, [`ResponseStream`] for the owner of an exchange.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf};
use parking_lot::Mutex;
use quinn::{StoppedError, VarInt, WriteError};
use quinn_proto::coding::Codec as _;

use super::convert::{stream_id, stream_lost, var_int};
use crate::error::H3_NO_ERROR;

/// A stream and the bytes still to be written to it, shared by [`SendStream`] and [`ResponseStream`].
#[derive(Debug)]
struct SharedStream {
    quinn: quinn::SendStream,
    /// Frames, or parts of them, that quinn has not accepted yet.
    unwritten: VecDeque<Bytes>,
}

impl SharedStream {
    /// Hands everything unwritten to quinn, without copying it.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        while !self.unwritten.is_empty() {
            let chunks = self.unwritten.make_contiguous();
            // Dropping the future loses nothing: bytes that it does not accept stay in `unwritten`.
            let written = ready!(pin!(self.quinn.write_chunks(chunks)).poll(cx));
            match written {
                Ok(written) => drop(self.unwritten.drain(..written.chunks)),
                Err(error) => {
                    self.unwritten.clear();
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The sending direction as `h3` uses it: for the header section and the end of a message.
pub(crate) struct SendStream {
    stream: Arc<Mutex<SharedStream>>,
    id: StreamId,
    /// Error code of the reset if this is dropped before the end.
    reset_code: Code,
    finished: bool,
}

impl SendStream {
    pub(super) fn new(quinn: quinn::SendStream, reset_code: Code) -> Result<Self, ConnectionErrorIncoming> {
        Ok(Self {
            id: stream_id(quinn.id())?,
            stream: Arc::new(Mutex::new(SharedStream {
                quinn,
                unwritten: VecDeque::new(),
            })),
            reset_code,
            finished: false,
        })
    }

    /// The same stream, for the owner of an exchange.
    pub(super) fn response(&self) -> ResponseStream {
        let stopping = self.stream.lock().quinn.stopped();
        ResponseStream {
            stream: Arc::clone(&self.stream),
            stopping: Box::pin(stopping),
            stopped: None,
        }
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        if !self.finished {
            // Fails on a stream that has already been reset.
            let _ = self.stream.lock().quinn.reset(var_int(self.reset_code.value()));
        }
    }
}

impl quic::SendStream<Bytes> for SendStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        let written = ready!(self.stream.lock().poll_write(cx));
        Poll::Ready(written.or_else(|error| match error {
            // The peer needs no more of this message; a complete response remains valid (RFC 9114 §4.1).
            WriteError::Stopped(code) if code == var_int(H3_NO_ERROR) => Ok(()),
            WriteError::Stopped(code) => Err(StreamErrorIncoming::StreamTerminated {
                error_code: code.into_inner(),
            }),
            WriteError::ConnectionLost(error) => Err(stream_lost(error)),
            other => Err(StreamErrorIncoming::Unknown(Box::new(other))),
        }))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        let mut frame = data.into();
        let frame = frame.copy_to_bytes(frame.remaining());
        self.stream.lock().unwritten.push_back(frame);
        Ok(())
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        ready!(self.poll_ready(cx))?;
        self.finished = true;
        let finished = self.stream.lock().quinn.finish();
        Poll::Ready(finished.map_err(|error| StreamErrorIncoming::Unknown(Box::new(error))))
    }

    fn reset(&mut self, reset_code: u64) {
        // An error means that the stream has already ended.
        let _ = self.stream.lock().quinn.reset(var_int(reset_code));
    }

    fn send_id(&self) -> StreamId {
        self.id
    }
}

type StoppedFuture = Pin<Box<dyn Future<Output = Result<Option<VarInt>, StoppedError>> + Send + Sync>>;

/// The sending direction as the owner of an exchange uses it: for priority, the response's body and its delivery.
pub(crate) struct ResponseStream {
    stream: Arc<Mutex<SharedStream>>,
    stopping: StoppedFuture,
    /// The result of `stopping`, which must not be polled again after it.
    stopped: Option<Result<Option<u64>, StoppedError>>,
}

impl ResponseStream {
    /// Number of the stream's request on its connection, from 0.
    pub(crate) fn number(&self) -> u64 {
        self.stream.lock().quinn.id().index()
    }

    /// Sends this stream's bytes before those of streams with a lower priority. All start at 0.
    pub(crate) fn set_priority(&self, priority: i32) {
        // Fails only on a stream that has ended; the next write reports this.
        let _ = self.stream.lock().quinn.set_priority(priority);
    }

    /// Writes `payload` as one DATA frame. Returns when quinn has accepted all of it. If the future is dropped, the
    /// next write completes the frame.
    pub(crate) async fn write(&self, payload: Bytes) -> Result<(), WriteError> {
        let header = data_frame_header(payload.len());
        self.stream.lock().unwritten.extend([header, payload]);
        poll_fn(|cx| self.stream.lock().poll_write(cx)).await
    }

    /// Waits until the peer has acknowledged everything up to the end (`None`), until it stops the stream (its error
    /// code), or until the connection is lost. Later calls return the same result immediately.
    pub(crate) async fn stopped(&mut self) -> Result<Option<u64>, StoppedError> {
        if let Some(stopped) = &self.stopped {
            return stopped.clone();
        }
        let stopped = self.stopping.as_mut().await;
        let stopped = stopped.map(|code| code.map(VarInt::into_inner));
        self.stopped = Some(stopped.clone());
        stopped
    }
}

/// Type and length of a DATA frame (RFC 9114 §7.2.1), as variable-length integers (RFC 9000 §16).
fn data_frame_header(length: usize) -> Bytes {
    const DATA: VarInt = VarInt::from_u32(0x00);
    let mut header = Vec::with_capacity(9);
    DATA.encode(&mut header);
    var_int(length as u64).encode(&mut header);
    header.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// The length's encodings at the bounds of their sizes (RFC 9000 §16, table 4).
    #[rstest]
    #[case(0, &[0x00, 0x00])]
    #[case(63, &[0x00, 0x3F])]
    #[case(64, &[0x00, 0x40, 0x40])]
    #[case(16_383, &[0x00, 0x7F, 0xFF])]
    #[case(16_384, &[0x00, 0x80, 0x00, 0x40, 0x00])]
    #[case((1 << 30) - 1, &[0x00, 0xBF, 0xFF, 0xFF, 0xFF])]
    #[case(1 << 30, &[0x00, 0xC0, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00])]
    fn a_data_frame_begins_with_its_type_and_length(#[case] length: usize, #[case] expected: &[u8]) {
        assert_eq!(data_frame_header(length), expected);
    }
}
