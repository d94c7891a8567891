//! QUIC as `h3` wants it, on quinn.
//!
//! In place of `h3-quinn`, which hides the streams: here what a peer may send in one request is bounded (`h3`
//! buffers a frame whole), a response knows when it has been delivered and is not copied on its way, a stream can be
//! given a priority, and one that is given up is reset (quinn alone would end it as if it were complete) and stopped with HTTP/3's own codes
//! (quinn's 0 makes curl drop the response).

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use quinn::{ConnectionError, VarInt};

mod streams;

pub(crate) use streams::{BidiStream, RecvStream, SendStream};

/// Lets a reader have what `h3` has buffered before more is taken from QUIC.
///
/// `h3` reads once from the stream for each piece of a body that it hands out, and a piece ends where a DATA frame or a read
/// ends, so a slow reader takes in more than it takes out. Its buffer would grow without bound, and QUIC's flow control,
/// which follows what is read from the stream, would never hold the sender back.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    shut: AtomicBool,
    /// A read found it shut.
    tried: AtomicBool,
}

impl Gate {
    /// Polls `read` with what is buffered alone, and only if that is not enough with the stream.
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

    /// Whether the stream is not to be read now.
    fn is_shut(&self) -> bool {
        let shut = self.shut.load(Relaxed);
        if shut {
            self.tried.store(true, Relaxed);
        }
        shut
    }
}

/// The gates of streams that this side opened, by the streams' numbers, until their readers take them.
pub(crate) type Gates = Arc<Mutex<BTreeMap<u64, Arc<Gate>>>>;

type Pending<T> = Option<Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>>;
type Halves = (quinn::SendStream, quinn::RecvStream);

/// A peer sent more on a stream than is taken.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("more than {limit} bytes on one stream")]
pub(crate) struct TooMuch {
    limit: u64,
}

/// What the owner of an exchange may know and say about its stream.
pub(crate) struct StreamControl {
    /// Resolves when the peer has acknowledged everything up to the end, with the peer's code if it wanted no
    /// more, or with an error if the connection went first.
    pub(crate) delivered: Pin<Box<dyn Future<Output = Result<Option<u64>, ()>> + Send + Sync>>,
    pub(crate) wishes: Arc<Wishes>,
}

/// What the owner of an exchange wishes for the sending direction of its stream.
#[derive(Debug)]
pub(crate) struct Wishes {
    /// Stream priority: higher goes first.
    pub(crate) priority: AtomicI32,
    /// With which code the stream is reset when it is given up before its end.
    pub(crate) give_up: AtomicU64,
    /// The piece of a body that is being written, for quinn to take over instead of copying what `h3` shows of it.
    writing: Mutex<Bytes>,
}

impl Wishes {
    /// `piece` is written next.
    pub(crate) fn write(&self, piece: Bytes) {
        *self.writing.lock().unwrap_or_else(PoisonError::into_inner) = piece;
    }

    /// `shown` as a part of what is [being written](Self::writing), if it is one.
    fn owned(&self, shown: &[u8]) -> Option<Bytes> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (all, part) = (writing.as_ptr_range(), shown.as_ptr_range());
        (all.start <= part.start && part.end <= all.end).then(|| writing.slice_ref(shown))
    }
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            priority: AtomicI32::new(0),
            give_up: AtomicU64::new(Code::H3_REQUEST_CANCELLED.value()),
            writing: Mutex::default(),
        }
    }
}

/// Most bytes taken in the life of a stream that carries control frames. They are tens of bytes each.
const CONTROL_LIMIT: u64 = 1 << 20;

/// The control of the stream accepted last; the session takes it at once.
pub(crate) type Accepted = Arc<Mutex<Option<StreamControl>>>;

pub(crate) struct Connection {
    opener: Opener,
    accepting_bi: Pending<Halves>,
    accepting_uni: Pending<quinn::RecvStream>,
    /// Most bytes taken on one stream that the peer opened.
    limit: u64,
    accepted: Accepted,
}

impl Connection {
    /// `limit` is the most bytes that are taken on one stream that the peer opens.
    pub(crate) fn new(quinn: quinn::Connection, limit: u64) -> Self {
        Self {
            opener: Opener::new(quinn),
            accepting_bi: None,
            accepting_uni: None,
            limit,
            accepted: Accepted::default(),
        }
    }

    pub(crate) fn accepted(&self) -> Accepted {
        Arc::clone(&self.accepted)
    }

    pub(crate) fn gates(&self) -> Gates {
        Arc::clone(&self.opener.gates)
    }
}

/// Polls a kept future, made anew by `make` when there is none.
fn poll_pending<T>(
    slot: &mut Pending<T>,
    cx: &mut Context<'_>,
    make: impl FnOnce() -> Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>,
) -> Poll<Result<T, ConnectionError>> {
    let result = ready!(slot.get_or_insert_with(make).as_mut().poll(cx));
    *slot = None;
    Poll::Ready(result)
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let quinn = &self.opener.quinn;
        let stream = ready!(poll_pending(&mut self.accepting_uni, cx, || {
            let quinn = quinn.clone();
            Box::pin(async move { quinn.accept_uni().await })
        }))
        .map_err(connection_error)?;
        Poll::Ready(Ok(RecvStream::new(stream, CONTROL_LIMIT, Code::H3_NO_ERROR)))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let quinn = &self.opener.quinn;
        let (send, receive) = ready!(poll_pending(&mut self.accepting_bi, cx, || {
            let quinn = quinn.clone();
            Box::pin(async move { quinn.accept_bi().await })
        }))
        .map_err(connection_error)?;
        let send = SendStream::new(send);
        let stopped = send.stream.stopped();
        *self.accepted.lock().unwrap_or_else(PoisonError::into_inner) = Some(StreamControl {
            delivered: Box::pin(async move {
                stopped
                    .await
                    .map(|code| code.map(VarInt::into_inner))
                    .map_err(|_| ())
            }),
            wishes: Arc::clone(&send.wishes),
        });
        Poll::Ready(Ok(BidiStream {
            send,
            receive: RecvStream::new(receive, self.limit, Code::H3_NO_ERROR),
        }))
    }

    fn opener(&self) -> Self::OpenStreams {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams.
pub(crate) struct Opener {
    quinn: quinn::Connection,
    opening_bi: Pending<Halves>,
    opening_uni: Pending<quinn::SendStream>,
    gates: Gates,
}

impl Opener {
    fn new(quinn: quinn::Connection) -> Self {
        Self {
            quinn,
            opening_bi: None,
            opening_uni: None,
            gates: Gates::default(),
        }
    }
}

impl Clone for Opener {
    fn clone(&self) -> Self {
        Self {
            gates: Arc::clone(&self.gates),
            ..Self::new(self.quinn.clone())
        }
    }
}

impl<B: Buf> quic::OpenStreams<B> for Opener {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        let quinn = &self.quinn;
        let (send, receive) = ready!(poll_pending(&mut self.opening_bi, cx, || {
            let quinn = quinn.clone();
            Box::pin(async move { quinn.open_bi().await })
        }))
        .map_err(stream_lost)?;
        Poll::Ready(Ok(BidiStream {
            send: SendStream::new(send),
            // What this side asked for may be as long as it likes.
            receive: RecvStream::new(receive, u64::MAX, Code::H3_REQUEST_CANCELLED).gated(&self.gates),
        }))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        let quinn = &self.quinn;
        let stream = ready!(poll_pending(&mut self.opening_uni, cx, || {
            let quinn = quinn.clone();
            Box::pin(async move { quinn.open_uni().await })
        }))
        .map_err(stream_lost)?;
        Poll::Ready(Ok(SendStream::new(stream)))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.quinn.close(var_int(code.value()), reason);
    }
}

fn var_int(code: u64) -> VarInt {
    VarInt::from_u64(code).unwrap_or(VarInt::MAX)
}

fn stream_id(id: quinn::StreamId) -> StreamId {
    StreamId::try_from(u64::from(id)).expect("both are the 62-bit integer of RFC 9000 §2.1")
}

fn stream_lost(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming {
        connection_error: connection_error(error),
    }
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => ConnectionErrorIncoming::ApplicationClose {
            error_code: close.error_code.into_inner(),
        },
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_being_written_is_taken_over_and_everything_else_is_not() {
        let (wishes, piece) = (Wishes::default(), Bytes::from(vec![7; 1_000]));
        assert_eq!(wishes.owned(&piece), None, "nothing is being written");
        wishes.write(piece.clone());
        let rest = wishes.owned(&piece[300..]).unwrap();
        assert_eq!(rest.as_ptr(), piece[300..].as_ptr());
        assert_eq!(rest.len(), 700);
        assert_eq!(wishes.owned(&[7; 10]), None, "the same bytes in another place");
    }
}
