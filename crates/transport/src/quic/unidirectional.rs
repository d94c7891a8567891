//! Unidirectional streams of the peer: [`UniStream`] for `h3`, [`PeerStreams`] for those that `h3` ignores.
//!
//! `h3` 0.0.8 reads once from a control stream for each frame that it takes out, so many small frames would accumulate
//! in its memory. It also keeps a frame of unknown type there until it is complete. So it gets one frame at a time, of
//! bounded length. It never reads QPACK's streams (RFC 9204 §4.2) once it knows their type: they are read here, to
//! detect their end. It ignores `PRIORITY_UPDATE` frames (RFC 9218 §7.2), which are read here, too.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Bytes, BytesMut};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use parking_lot::Mutex;
use quinn_proto::VarInt;
use quinn_proto::coding::Codec as _;

use super::convert::{stream_id, var_int};
use super::receive::poll_chunk;
use crate::options::CONCURRENT_REQUESTS;
use crate::server::{Priority, Turns};

/// Maximum number of bytes accepted in one frame of a control stream. The frames that `h3` knows have tens of bytes.
const FRAME_LIMIT: usize = 64 << 10;
/// Types of a control stream and of a push stream (RFC 9114 §6.2.1, §6.2.2).
const CONTROL: u64 = 0x00;
const PUSH: u64 = 0x01;
/// Types of frames that consist of one ID (RFC 9114 §7.2.3, §7.2.6, §7.2.7).
const CANCEL_PUSH: u64 = 0x03;
const GOAWAY: u64 = 0x07;
const MAX_PUSH_ID: u64 = 0x0D;
/// Types of `PRIORITY_UPDATE` frames, for a request and for a push (RFC 9218 §7.2).
const PRIORITY_UPDATE: u64 = 0xF0700;
const PRIORITY_UPDATE_OF_PUSH: u64 = 0xF0701;
/// Types of the streams of QPACK (RFC 9204 §4.2).
const QPACK_ENCODER: u64 = 0x02;
const QPACK_DECODER: u64 = 0x03;
/// Maximum number of bytes of an integer of 62 bits after its prefix (RFC 9204 §4.1.1).
const INTEGER_BYTES: u8 = 9;

/// An error of the peer in its frames or streams, which ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PeerStreamError {
    /// A stream that must stay open has ended (RFC 9204 §4.2).
    #[error("the peer closed a stream of QPACK")]
    Closed,
    /// A frame is longer than [`FRAME_LIMIT`].
    #[error("a control frame of {length} bytes, at most {FRAME_LIMIT} bytes")]
    TooLong { length: u64 },
    /// A frame ends within one of its fields, or a request within a frame (RFC 9114 §7.1).
    #[error("a frame is incomplete")]
    Malformed,
    /// An ID of a stream that is not a request's or is beyond the limit of streams (RFC 9218 §7.2), of a push, which no
    /// side ever promises or allows (RFC 9114 §4.6, §7.2.3), or a maximum that shrinks (§7.2.7).
    #[error("an ID that no request or push can have")]
    NoSuchId,
    /// A frame that may not occur there (RFC 9114 §4.1).
    #[error("a frame after the end of a request")]
    AfterEnd,
    /// A push by a client (RFC 9114 §6.2.2).
    #[error("a push by a client")]
    ClientPush,
    /// An instruction that is invalid without a dynamic table (RFC 9204 §4.3).
    #[error("an invalid instruction of a QPACK encoder")]
    Encoder,
    /// An instruction on field sections that refer to no dynamic table (RFC 9204 §4.4).
    #[error("an invalid instruction of a QPACK decoder")]
    Decoder,
    /// A priority update sent by a server (RFC 9218 §7).
    #[error("a priority update sent by a server")]
    FromServer,
}

impl PeerStreamError {
    pub(super) fn code(self) -> Code {
        match self {
            Self::Closed => Code::H3_CLOSED_CRITICAL_STREAM,
            Self::TooLong { .. } => Code::H3_EXCESSIVE_LOAD,
            Self::Malformed => Code::H3_FRAME_ERROR,
            Self::NoSuchId => Code::H3_ID_ERROR,
            Self::FromServer | Self::AfterEnd => Code::H3_FRAME_UNEXPECTED,
            Self::ClientPush => Code::H3_STREAM_CREATION_ERROR,
            Self::Encoder => Code::QPACK_ENCODER_STREAM_ERROR,
            Self::Decoder => Code::QPACK_DECODER_STREAM_ERROR,
        }
    }
}

/// The streams of a connection that `h3` ignores, and the peer's first error. Clones are the same.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerStreams {
    state: Arc<Mutex<PeerStreamsState>>,
    /// Responses of this side, if it is the server.
    turns: Option<Arc<Turns>>,
}

#[derive(Debug, Default)]
struct PeerStreamsState {
    qpack: Vec<QpackStream>,
    max_push_id: Option<u64>,
    /// Number of the peer's requests so far.
    requests: u64,
    error: Option<PeerStreamError>,
    waker: Option<Waker>,
}

impl PeerStreams {
    pub(super) fn new(turns: Option<Arc<Turns>>) -> Self {
        Self {
            turns,
            ..Self::default()
        }
    }

    /// Reads a frame of a control stream, as far as `h3` ignores it.
    fn read_frame(&self, mut frame: &[u8]) -> Result<(), PeerStreamError> {
        let kind = VarInt::decode(&mut frame).map(VarInt::into_inner);
        let (_, id) = (VarInt::decode(&mut frame), VarInt::decode(&mut frame));
        match (kind, id, &self.turns) {
            (Ok(PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH), _, None) => Err(PeerStreamError::FromServer),
            (Ok(PRIORITY_UPDATE), Ok(id), Some(turns)) => {
                let id = quinn::StreamId::from(id);
                // Each accepted stream extends the limit by at most one, when it ends.
                let requests = self.state.lock().requests;
                let limit = requests.saturating_add(CONCURRENT_REQUESTS.into());
                if id.initiator() != quinn::Side::Client || id.dir() != quinn::Dir::Bi || id.index() >= limit
                {
                    return Err(PeerStreamError::NoSuchId);
                }
                // A malformed priority has no effect.
                if let Some(priority) = Priority::parse(frame) {
                    turns.update(id.index(), priority);
                }
                Ok(())
            }
            (Ok(PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH), Err(_), _) => Err(PeerStreamError::Malformed),
            (Ok(CANCEL_PUSH | GOAWAY | MAX_PUSH_ID), id, _) if id.is_err() || !frame.is_empty() => {
                Err(PeerStreamError::Malformed)
            }
            (Ok(PRIORITY_UPDATE_OF_PUSH | CANCEL_PUSH), ..) => Err(PeerStreamError::NoSuchId),
            (Ok(MAX_PUSH_ID), Ok(id), _) => {
                let before = self.state.lock().max_push_id.replace(id.into_inner());
                if before > Some(id.into_inner()) {
                    return Err(PeerStreamError::NoSuchId);
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Counts a request that the peer has sent.
    pub(super) fn count_request(&self) {
        let mut state = self.state.lock();
        state.requests = state.requests.saturating_add(1);
    }

    /// Watches `stream` from now on, after its first bytes `read`.
    fn add(&self, mut stream: QpackStream, read: &[u8]) {
        let mut state = self.state.lock();
        state.error = state.error.or(stream.check(read).err());
        state.qpack.push(stream);
        state.wake();
    }

    pub(super) fn fail(&self, error: PeerStreamError) {
        let mut state = self.state.lock();
        state.error.get_or_insert(error);
        state.wake();
    }

    /// Waits for an error.
    pub(super) fn poll_error(&self, cx: &mut Context<'_>) -> Poll<PeerStreamError> {
        let mut state = self.state.lock();
        state.waker = Some(cx.waker().clone());
        let mut found = state.error;
        state.qpack.retain_mut(|qpack| {
            loop {
                let checked = match poll_chunk(&mut qpack.stream, cx) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(Some(chunk))) => qpack.check(&chunk),
                    // The caller learns of the connection's end elsewhere.
                    Poll::Ready(Err(StreamErrorIncoming::ConnectionErrorIncoming { .. })) => return false,
                    Poll::Ready(Ok(None) | Err(_)) => Err(PeerStreamError::Closed),
                };
                if let Err(error) = checked {
                    found.get_or_insert(error);
                    return false;
                }
            }
        });
        state.error = found;
        found.map_or(Poll::Pending, Poll::Ready)
    }
}

impl PeerStreamsState {
    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

/// A stream of QPACK instructions. Few are valid, because no side offers a dynamic table.
#[derive(Debug)]
struct QpackStream {
    stream: quinn::RecvStream,
    instructions: Instructions,
}

impl QpackStream {
    fn check(&mut self, bytes: &[u8]) -> Result<(), PeerStreamError> {
        bytes.iter().try_for_each(|&byte| self.instructions.check(byte))
    }
}

/// State of a stream of QPACK instructions before its next byte.
#[derive(Clone, Copy, Debug)]
enum Instructions {
    Encoder,
    /// The decoder's. The integer of the present instruction may have this many further bytes.
    Decoder(u8),
}

impl Instructions {
    fn check(&mut self, byte: u8) -> Result<(), PeerStreamError> {
        match self {
            // Set Dynamic Table Capacity 0.
            Self::Encoder if byte == 0x20 => {}
            Self::Encoder => return Err(PeerStreamError::Encoder),
            Self::Decoder(left) => {
                *left = match (*left, byte) {
                    // Stream Cancellation, whose number fits into the first byte or does not.
                    (0, 0x40..0x7F) | (1.., ..0x80) => 0,
                    (0, 0x7F) => INTEGER_BYTES,
                    (2.., _) => *left - 1,
                    _ => return Err(PeerStreamError::Decoder),
                }
            }
        }
        Ok(())
    }
}

/// A unidirectional stream of the peer as `h3` uses it.
pub(crate) struct UniStream {
    /// `None` once it has moved to the [`PeerStreams`].
    stream: Option<quinn::RecvStream>,
    id: StreamId,
    part: Part,
    /// Bytes that `h3` has not received: of later frames, or of an incomplete header.
    unread: BytesMut,
    others: PeerStreams,
}

impl UniStream {
    pub(super) fn new(
        stream: quinn::RecvStream,
        others: &PeerStreams,
    ) -> Result<Self, ConnectionErrorIncoming> {
        Ok(Self {
            id: stream_id(stream.id())?,
            stream: Some(stream),
            part: Part::Kind,
            unread: BytesMut::new(),
            others: others.clone(),
        })
    }
}

impl Drop for UniStream {
    fn drop(&mut self) {
        quic::RecvStream::stop_sending(self, Code::H3_NO_ERROR.value());
    }
}

impl quic::RecvStream for UniStream {
    type Buf = Bytes;

    fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let Some(stream) = &mut self.stream else {
            return Poll::Pending;
        };
        loop {
            let begins = matches!(self.part, Part::Frame(0));
            match self.part.next(&self.unread, self.others.turns.is_some()) {
                Ok(0) => {}
                Ok(length) => {
                    if begins && let Err(error) = self.others.read_frame(&self.unread[..length]) {
                        self.others.fail(error);
                        return Poll::Pending;
                    }
                    let kind = self.unread.split_to(length).freeze();
                    if let Part::Qpack(instructions) = self.part
                        && let Some(stream) = self.stream.take()
                    {
                        let qpack = QpackStream { stream, instructions };
                        self.others.add(qpack, &self.unread);
                    }
                    return Poll::Ready(Ok(Some(kind)));
                }
                Err(error) => {
                    // `h3` polls the connection, which ends with the error's code.
                    self.others.fail(error);
                    return Poll::Pending;
                }
            }
            match ready!(poll_chunk(stream, cx))? {
                Some(chunk) => self.unread.extend_from_slice(&chunk),
                None if self.unread.is_empty() => return Poll::Ready(Ok(None)),
                // `h3` refuses an incomplete header.
                None => return Poll::Ready(Ok(Some(self.unread.split().freeze()))),
            }
        }
    }

    fn stop_sending(&mut self, error_code: u64) {
        if let Some(stream) = &mut self.stream {
            // An error means that the stream has already ended.
            let _ = stream.stop(var_int(error_code));
        }
    }

    fn recv_id(&self) -> StreamId {
        self.id
    }
}

/// The part of a unidirectional stream that contains its next byte.
#[derive(Debug)]
enum Part {
    /// The type of the stream, at its beginning.
    Kind,
    /// A frame that lacks this many bytes; at zero, the header of the next frame.
    Frame(usize),
    /// QPACK instructions, which `h3` does not read.
    Qpack(Instructions),
    /// Anything else: `h3` reads only enough to refuse it.
    Other,
}

impl Part {
    /// Number of bytes at the beginning of `bytes` that `h3` may receive at once: the stream's type, or the bytes of
    /// one frame. Zero if more bytes must arrive first: the rest of a header, or of a frame that is read here. The peer
    /// `is_client` or a server.
    ///
    /// # Errors
    /// The frame is too long, or the stream is a push.
    fn next(&mut self, bytes: &[u8], is_client: bool) -> Result<usize, PeerStreamError> {
        let mut rest = bytes;
        match self {
            Self::Kind => {
                let Ok(kind) = VarInt::decode(&mut rest) else {
                    return Ok(0);
                };
                *self = match kind.into_inner() {
                    CONTROL => Self::Frame(0),
                    PUSH if is_client => return Err(PeerStreamError::ClientPush),
                    // This side allows none (RFC 9114 §4.6).
                    PUSH => return Err(PeerStreamError::NoSuchId),
                    QPACK_ENCODER => Self::Qpack(Instructions::Encoder),
                    QPACK_DECODER => Self::Qpack(Instructions::Decoder(0)),
                    _ => Self::Other,
                };
                Ok(bytes.len() - rest.len())
            }
            Self::Frame(missing) => {
                if *missing == 0 {
                    let header = [VarInt::decode(&mut rest), VarInt::decode(&mut rest)];
                    let [Ok(kind), Ok(length)] = header.map(|it| it.map(VarInt::into_inner)) else {
                        return Ok(0);
                    };
                    let whole = usize::try_from(length)
                        .ok()
                        .filter(|&length| length <= FRAME_LIMIT)
                        .ok_or(PeerStreamError::TooLong { length })?;
                    let is_read_here = matches!(
                        kind,
                        CANCEL_PUSH | GOAWAY | MAX_PUSH_ID | PRIORITY_UPDATE | PRIORITY_UPDATE_OF_PUSH
                    );
                    if is_read_here && rest.len() < whole {
                        return Ok(0);
                    }
                    *missing = whole;
                }
                let payload = rest.len().min(*missing);
                *missing -= payload;
                Ok(bytes.len() - rest.len() + payload)
            }
            Self::Qpack(_) | Self::Other => Ok(bytes.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Bytes of the longest header of a frame: two variable-length integers (RFC 9114 §7.1, RFC 9000 §16).
    const LONGEST_HEADER: usize = 16;

    /// The pieces of `bytes` that `h3` gets, if they arrive in chunks of `chunk` bytes.
    fn pieces(bytes: &[u8], chunk: usize) -> Result<Vec<Vec<u8>>, PeerStreamError> {
        let (mut part, mut unread, mut pieces) = (Part::Kind, Vec::new(), Vec::new());
        for chunk in bytes.chunks(chunk) {
            unread.extend_from_slice(chunk);
            while let length @ 1.. = part.next(&unread, true)? {
                pieces.push(unread.drain(..length).collect());
            }
            assert!(
                unread.len() < LONGEST_HEADER || unread.starts_with(&UPDATE[..4]),
                "only an incomplete header or priority update is held back"
            );
        }
        Ok(pieces)
    }

    #[test]
    fn a_control_stream_is_divided_into_its_frames() {
        let long = [&[0x80, 0x0F, 0x07, 0x02, 0x40, 0x50][..], &[7; 80]].concat();
        let frames: [&[u8]; 5] = [
            &[0x00],
            &[0x04, 0x00],
            &[0x21, 0x02, 1, 2],
            &long,
            &[0x0D, 0x01, 0],
        ];
        let all = frames.concat();
        assert_eq!(pieces(&all, all.len()).unwrap(), frames);
        for chunk in 1..all.len() {
            assert_eq!(pieces(&all, chunk).unwrap().concat(), all, "{chunk}");
        }
    }

    /// `PRIORITY_UPDATE` of stream 4 with `u=1`.
    const UPDATE: [u8; 9] = [0x80, 0x0F, 0x07, 0x00, 0x04, 0x04, b'u', b'=', b'1'];

    #[test]
    fn a_priority_update_is_passed_on_in_one_piece() {
        let long = [&[0x80, 0x0F, 0x07, 0x00, 0x40, 0x64, 0x04][..], &[b' '; 99]].concat();
        let all = [&[0x00][..], &UPDATE, &long, &[0x0D, 0x01, 0]].concat();
        for chunk in 1..all.len() {
            assert_eq!(
                pieces(&all, chunk).unwrap()[1..3],
                [&UPDATE[..], &long],
                "{chunk}"
            );
        }
    }

    #[rstest]
    #[case::of_a_request(&UPDATE, Ok(()))]
    #[case::malformed_has_no_effect(&[0x80, 0x0F, 0x07, 0x00, 0x02, 0x04, b'='], Ok(()))]
    #[case::of_a_unidirectional_stream(&[0x80, 0x0F, 0x07, 0x00, 0x01, 0x02], Err(PeerStreamError::NoSuchId))]
    #[case::of_the_last_possible_stream(&[0x80, 0x0F, 0x07, 0x00, 0x02, 0x41, 0x8C], Ok(()))]
    #[case::beyond_the_limit(&[0x80, 0x0F, 0x07, 0x00, 0x02, 0x41, 0x90], Err(PeerStreamError::NoSuchId))]
    #[case::of_no_stream(&[0x80, 0x0F, 0x07, 0x00, 0x00], Err(PeerStreamError::Malformed))]
    #[case::of_a_push(&[0x80, 0x0F, 0x07, 0x01, 0x01, 0x00], Err(PeerStreamError::NoSuchId))]
    #[case::another_frame(&[0x0D, 0x01, 0x00], Ok(()))]
    fn a_priority_is_one_of_a_request(#[case] frame: &[u8], #[case] expected: Result<(), PeerStreamError>) {
        let turns = Turns::new(Arc::new(quinn::TokioRuntime));
        assert_eq!(PeerStreams::new(Some(turns)).read_frame(frame), expected);
        let from_server = PeerStreams::new(None).read_frame(frame);
        let is_update = frame[..3] == UPDATE[..3];
        assert_eq!(
            from_server.err(),
            is_update.then_some(PeerStreamError::FromServer)
        );
    }

    #[test]
    fn only_frames_of_control_streams_are_limited() {
        let length = FRAME_LIMIT as u64 + 1;
        let mut long = vec![0x00, 0x21];
        long.extend_from_slice(&(length | 0b11 << 62).to_be_bytes());
        for chunk in [1, 3, 10] {
            assert_eq!(pieces(&long, chunk), Err(PeerStreamError::TooLong { length }));
        }
        for kind in [0x02, 0x03, 0x21] {
            long[0] = kind;
            assert_eq!(pieces(&long, 10).unwrap(), [&long[..1], &long[1..]]);
        }
    }
}
