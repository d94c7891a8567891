//! QUIC as `h3` requires it, on quinn.
//!
//! It replaces `h3-quinn`, which hides the streams. Here
//! - the bytes that a peer may send in one request or one control frame are bounded (`h3` buffers a frame whole);
//! - the end of a QPACK stream ends the connection;
//! - a response's body does not pass through `h3`, which would have it copied: its [`ResponseStream`] writes DATA
//!   frames itself, and waits for the client's acknowledgement of all of it;
//! - responses have the priorities that their clients state ([`Turns`]);
//! - an abandoned stream is reset (quinn alone would end it as if it were complete), and stopped with HTTP/3's codes
//!   (quinn's 0 makes curl drop the response).
//!
//! `h3` 0.0.8 passes on neither the streams nor the payload of a frame. Two things therefore bypass it: the
//! [`AcceptedResponse`] of the stream that it accepted last, and [`poll_buffered_first`] for the reader of a body.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId};
use parking_lot::Mutex;
use playrate_quinn::ConnectionController;
use quinn::ConnectionError;

use crate::server::Turns;

mod convert;
mod receive;
mod send;
mod unidirectional;

pub(crate) use convert::var_int;
use convert::{connection_error, on_stream, stream_lost};
pub(crate) use receive::{RecvStream, TooManyBytes, poll_buffered_first};
pub(crate) use send::{ResponseStream, SendStream};
use unidirectional::{PeerStreams, UniStream};

/// The sending direction of the stream that a connection accepted last, until its request takes it.
pub(crate) type AcceptedResponse = Arc<Mutex<Option<ResponseStream>>>;

type StreamHalves = (quinn::SendStream, quinn::RecvStream);
type StreamFuture<T> = Pin<Box<dyn Future<Output = Result<T, ConnectionError>> + Send + Sync>>;

/// A request to quinn for a stream, kept between polls while it is pending; a clone has none pending.
struct StreamRequest<T> {
    begin: fn(quinn::Connection) -> StreamFuture<T>,
    pending: Option<StreamFuture<T>>,
}

impl<T> StreamRequest<T> {
    fn new(begin: fn(quinn::Connection) -> StreamFuture<T>) -> Self {
        Self { begin, pending: None }
    }

    fn poll(&mut self, quinn: &quinn::Connection, cx: &mut Context<'_>) -> Poll<Result<T, ConnectionError>> {
        let pending = self.pending.get_or_insert_with(|| (self.begin)(quinn.clone()));
        let result = ready!(pending.as_mut().poll(cx));
        self.pending = None;
        Poll::Ready(result)
    }
}

impl<T> Clone for StreamRequest<T> {
    fn clone(&self) -> Self {
        Self::new(self.begin)
    }
}

/// A QUIC connection, for `h3`. Clones are the same connection.
#[derive(Clone)]
pub(crate) struct Connection {
    quinn: quinn::Connection,
    accepting_bi: StreamRequest<StreamHalves>,
    accepting_uni: StreamRequest<quinn::RecvStream>,
    opening_bi: StreamRequest<StreamHalves>,
    opening_uni: StreamRequest<quinn::SendStream>,
    shared: Arc<ConnectionState>,
}

/// State that the clones of a [`Connection`] share.
struct ConnectionState {
    control: Option<Arc<ConnectionController>>,
    /// Maximum number of bytes accepted on one stream that the peer opened.
    limit: u64,
    accepted: AcceptedResponse,
    rejecting: Arc<AtomicBool>,
    peer_streams: PeerStreams,
}

impl Connection {
    /// `limit` is the maximum number of bytes accepted on one stream that the peer opens. If the connection has a
    /// `control`, closing lifts its window so that the close is sent. A server has `turns`, which receive the
    /// priorities of the client's `PRIORITY_UPDATE` frames.
    pub(crate) fn new(
        quinn: quinn::Connection,
        limit: u64,
        control: Option<Arc<ConnectionController>>,
        turns: Option<Arc<Turns>>,
    ) -> Self {
        Self {
            quinn,
            accepting_bi: StreamRequest::new(|quinn| Box::pin(async move { quinn.accept_bi().await })),
            accepting_uni: StreamRequest::new(|quinn| Box::pin(async move { quinn.accept_uni().await })),
            opening_bi: StreamRequest::new(|quinn| Box::pin(async move { quinn.open_bi().await })),
            opening_uni: StreamRequest::new(|quinn| Box::pin(async move { quinn.open_uni().await })),
            shared: Arc::new(ConnectionState {
                control,
                limit,
                accepted: AcceptedResponse::default(),
                rejecting: Arc::default(),
                peer_streams: PeerStreams::new(turns),
            }),
        }
    }

    /// The place of the accepted stream's sending direction. `h3` returns a request in the same poll, so take it then.
    pub(crate) fn accepted(&self) -> AcceptedResponse {
        Arc::clone(&self.shared.accepted)
    }

    /// A switch: while it is true, accepted streams are dropped unused and reset with `H3_REQUEST_REJECTED`.
    pub(crate) fn rejecting(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.shared.rejecting)
    }
}

impl quic::Connection<Bytes> for Connection {
    type RecvStream = UniStream;
    type OpenStreams = Self;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        if let Poll::Ready(error) = self.shared.peer_streams.poll_error(cx) {
            quic::OpenStreams::<Bytes>::close(self, error.code(), error.to_string().as_bytes());
            return Poll::Ready(Err(ConnectionErrorIncoming::Undefined(Arc::new(error))));
        }
        let stream = ready!(self.accepting_uni.poll(&self.quinn, cx)).map_err(connection_error)?;
        Poll::Ready(UniStream::new(stream, &self.shared.peer_streams))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let (send, receive) = ready!(self.accepting_bi.poll(&self.quinn, cx)).map_err(connection_error)?;
        self.shared.peer_streams.count_request();
        let code = if self.shared.rejecting.load(Relaxed) {
            Code::H3_REQUEST_REJECTED
        } else {
            Code::H3_REQUEST_CANCELLED
        };
        let send = SendStream::new(send, code)?;
        *self.shared.accepted.lock() = Some(send.response());
        Poll::Ready(Ok(BidiStream {
            send,
            receive: RecvStream::new(
                receive,
                self.shared.limit,
                Code::H3_NO_ERROR,
                Some(&self.shared.peer_streams),
            )?,
        }))
    }

    fn opener(&self) -> Self {
        self.clone()
    }
}

impl quic::OpenStreams<Bytes> for Connection {
    type BidiStream = BidiStream;
    type SendStream = SendStream;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        let (send, receive) = ready!(self.opening_bi.poll(&self.quinn, cx)).map_err(stream_lost)?;
        // A response to this side's request may have any length.
        Poll::Ready(Ok(BidiStream {
            send: SendStream::new(send, Code::H3_REQUEST_CANCELLED).map_err(on_stream)?,
            receive: RecvStream::new(receive, u64::MAX, Code::H3_REQUEST_CANCELLED, None)
                .map_err(on_stream)?,
        }))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        let stream = ready!(self.opening_uni.poll(&self.quinn, cx)).map_err(stream_lost)?;
        Poll::Ready(SendStream::new(stream, Code::H3_REQUEST_CANCELLED).map_err(on_stream))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        if let Some(control) = &self.shared.control {
            control.lift_window();
        }
        self.quinn.close(var_int(code.value()), reason);
    }
}

/// Both directions of a stream.
pub(crate) struct BidiStream {
    send: SendStream,
    receive: RecvStream,
}

impl quic::BidiStream<Bytes> for BidiStream {
    type SendStream = SendStream;
    type RecvStream = RecvStream;

    fn split(self) -> (Self::SendStream, Self::RecvStream) {
        (self.send, self.receive)
    }
}

impl quic::RecvStream for BidiStream {
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

impl quic::SendStream<Bytes> for BidiStream {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<quic::WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
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
