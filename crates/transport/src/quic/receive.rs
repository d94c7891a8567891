//! The receiving direction of a stream: [`RecvStream`] for `h3`, [`poll_buffered_first`] for the reader of a body.

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes, BytesMut};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use quinn::ReadError;
use quinn_proto::VarInt;
use quinn_proto::coding::Codec as _;

use super::convert::{stream_id, stream_lost, var_int};
use super::unidirectional::{PeerStreamError, PeerStreams};

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
    /// Frames of a request that the peer sends.
    request: Option<RequestFrames>,
    /// Error code of the `STOP_SENDING` if this is dropped before the end.
    stop_code: Code,
}

impl RecvStream {
    pub(super) fn new(
        stream: quinn::RecvStream,
        limit: u64,
        stop_code: Code,
        request_of: Option<&PeerStreams>,
    ) -> Result<Self, ConnectionErrorIncoming> {
        Ok(Self {
            id: stream_id(stream.id())?,
            stream,
            limit,
            received: 0,
            request: request_of.map(|peer| RequestFrames {
                peer: peer.clone(),
                ..RequestFrames::default()
            }),
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
        loop {
            if let Some(request) = &mut self.request {
                match request.next() {
                    Ok(None) => {}
                    Ok(piece) => return Poll::Ready(Ok(piece)),
                    Err(error) => {
                        // The connection ends with the error's code.
                        request.peer.fail(error);
                        return Poll::Pending;
                    }
                }
            }
            if GATE.get() != ReadGate::Open {
                GATE.set(ReadGate::Tried);
                return Poll::Pending;
            }
            let chunk = ready!(poll_chunk(&mut self.stream, cx))?;
            self.received = self
                .received
                .saturating_add(chunk.as_ref().map_or(0, Bytes::len) as u64);
            if self.received > self.limit {
                if self.request.as_ref().is_some_and(RequestFrames::lacks_head) {
                    // There will be no response.
                    self.stop_code = Code::H3_EXCESSIVE_LOAD;
                }
                let error = TooManyBytes { limit: self.limit };
                return Poll::Ready(Err(StreamErrorIncoming::Unknown(Box::new(error))));
            }
            match (&mut self.request, chunk) {
                (Some(request), Some(chunk)) => request.unread.extend_from_slice(&chunk),
                // `h3` refuses an incomplete frame.
                (Some(request), None) if !request.unread.is_empty() => {
                    return Poll::Ready(Ok(Some(request.unread.split().freeze())));
                }
                // `h3` 0.0.8 panics if it has read all content that arrived.
                (Some(request), None) if request.missing > 0 => {
                    request.peer.fail(PeerStreamError::Malformed);
                    return Poll::Pending;
                }
                (_, chunk) => return Poll::Ready(Ok(chunk)),
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        // An error means that the stream has already ended.
        let _ = self.stream.stop(var_int(error_code));
    }

    fn recv_id(&self) -> StreamId {
        self.id
    }
}

/// Types of frames of a request (RFC 9114 §7.2.1, §7.2.2).
const DATA: u64 = 0x00;
const HEADERS: u64 = 0x01;
/// Trailers with a field without a name, which `h3` refuses as malformed.
const MALFORMED: &[u8] = &[0x01, 0x04, 0x00, 0x00, 0x20, 0x00];

/// Frames of a request, one by one, and their order (RFC 9114 §4.1). `h3` takes an empty DATA frame for the end of the
/// content, and does not see pseudo-header fields in trailers.
#[derive(Default)]
struct RequestFrames {
    /// Bytes that `h3` has not received.
    unread: BytesMut,
    /// Bytes of the current frame, including its header, that `h3` has not received.
    missing: usize,
    /// Type of the current frame, or of the last one.
    kind: u64,
    /// Number of HEADERS frames so far: the header section and the trailers.
    sections: u8,
    peer: PeerStreams,
}

impl RequestFrames {
    /// Returns true until `h3` has the whole header section.
    fn lacks_head(&self) -> bool {
        self.sections == 0 || self.sections == 1 && self.kind == HEADERS && self.missing > 0
    }

    /// The next piece for `h3`, of one frame; `None` if more bytes must arrive first.
    fn next(&mut self) -> Result<Option<Bytes>, PeerStreamError> {
        while self.missing == 0 {
            let mut rest = &self.unread[..];
            let header = [VarInt::decode(&mut rest), VarInt::decode(&mut rest)];
            let [Ok(kind), Ok(length)] = header.map(|it| it.map(VarInt::into_inner)) else {
                return Ok(None);
            };
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let whole = (self.unread.len() - rest.len()).saturating_add(length);
            let sections = self.sections + u8::from(kind == HEADERS);
            match (kind, sections) {
                (HEADERS, 3..) | (DATA, 2..) => return Err(PeerStreamError::AfterEnd),
                (HEADERS, 2) if rest.len() < length => return Ok(None),
                (HEADERS, 2) if has_pseudo_header(&rest[..length]).unwrap_or_default() => {
                    self.unread = MALFORMED.into();
                    self.missing = MALFORMED.len();
                }
                (DATA, 1) if length == 0 => self.unread.advance(whole),
                _ => self.missing = whole,
            }
            (self.kind, self.sections) = (kind, sections);
        }
        let length = self.missing.min(self.unread.len());
        self.missing -= length;
        Ok((length > 0).then(|| self.unread.split_to(length).freeze()))
    }
}

/// Returns true if a field section (RFC 9204 §4.5) has a pseudo-header field, `None` if it is invalid.
fn has_pseudo_header(mut section: &[u8]) -> Option<bool> {
    integer(&mut section, 8)?;
    integer(&mut section, 7)?;
    while let Some(&first) = section.first() {
        // Numbers in the static table are those of appendix A.
        let is_pseudo = match first {
            0xC0.. => matches!(integer(&mut section, 6)?, 0 | 1 | 15..=28 | 63..=71),
            0x50..0x60 | 0x70..0x80 => matches!(integer(&mut section, 4)?, 0 | 1 | 15..=28 | 63..=71),
            0x20..0x40 => {
                let length = integer(&mut section, 3)?;
                let name = section.split_off(..length)?.first()?;
                // A colon, or its Huffman code of seven bits.
                matches!((first & 0x08, name), (0, b':') | (0x08, 0xB8 | 0xB9))
            }
            _ => return None,
        };
        if is_pseudo {
            return Some(true);
        }
        if first < 0x80 {
            let length = integer(&mut section, 7)?;
            section.split_off(..length)?;
        }
    }
    Some(false)
}

/// Takes an integer with a prefix of `bits` (RFC 9204 §4.1.1) from the beginning of `bytes`.
fn integer(bytes: &mut &[u8], bits: u32) -> Option<usize> {
    let most = usize::from(u8::MAX >> (8 - bits));
    let mut value = usize::from(*bytes.split_off_first()?) & most;
    let mut shift = 0;
    while value >= most {
        let byte = *bytes.split_off_first()?;
        value = value.checked_add(usize::from(byte & 0x7F).checked_shl(shift)?)?;
        shift += 7;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value)
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
