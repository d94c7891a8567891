//! [`Exchange`]: one request and its response.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use h3::error::{Code, StreamError};
use http::{Method, Request, Response};
use playrate_quinn::ConnectionController;
use quinn::{Runtime, StoppedError, WriteError};

use super::activity::CountedExchange;
use super::options::ServerOptions;
use super::priority::{Priority, Turn, Turns};
use crate::error::{ConnectionLost, ExchangeError};
use crate::quic::{self, ResponseStream, TooManyBytes};
use crate::time;

type Resolver = h3::server::RequestResolver<quic::Connection, Bytes>;
type RequestStream = h3::server::RequestStream<quic::BidiStream, Bytes>;

/// Maximum size in bytes of a packet with only a PING and an ACK of 64 ranges.
const KEEP_ALIVE: u64 = 512;

/// State shared by a session and its exchanges.
#[derive(Clone)]
pub(super) struct SessionContext {
    pub(super) quinn: quinn::Connection,
    pub(super) control: Arc<ConnectionController>,
    pub(super) options: Arc<ServerOptions>,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) turns: Arc<Turns>,
}

impl SessionContext {
    fn failed(&self, error: StreamError) -> ExchangeError {
        ExchangeError::of(&self.quinn, error)
    }

    /// The error of an exchange whose stream stopped, with the result `stopped`, before the client had all of it.
    fn undelivered(&self, stopped: Result<Option<u64>, StoppedError>) -> ExchangeError {
        match (stopped, self.quinn.close_reason()) {
            (Ok(Some(code)), _) => ExchangeError::Cancelled(code),
            (_, Some(reason)) => ExchangeError::Connection(reason.into()),
            (_, None) => ExchangeError::Connection(ConnectionLost::ClosedHere),
        }
    }

    /// Bytes that the client has acknowledged on this connection, without keep-alives: a client that reads nothing
    /// acknowledges those, too.
    fn delivered(&self) -> u64 {
        let latest = self.control.monitor().latest();
        let bytes = latest.map_or(0, |sample| sample.delivered.as_u64());
        bytes.saturating_sub(self.quinn.stats().frame_tx.ping.saturating_mul(KEEP_ALIVE))
    }

    /// Waits for `future` as long as the client acknowledges more than keep-alives.
    async fn unless_stalled<F: Future>(&self, future: F) -> Result<F::Output, ExchangeError> {
        let limit = self.options.stall_timeout;
        let mut future = pin!(future);
        let mut before = self.delivered();
        loop {
            if let Ok(output) = time::timeout(&*self.runtime, limit, future.as_mut()).await {
                return Ok(output);
            }
            let delivered = self.delivered();
            if delivered <= before {
                return Err(ExchangeError::Stalled(limit));
            }
            before = delivered;
        }
    }
}

/// The beginning of a request; the rest may still arrive.
pub struct Arrival {
    pub(super) resolver: Resolver,
    pub(super) response: ResponseStream,
    pub(super) context: SessionContext,
    pub(super) count: CountedExchange,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival").finish_non_exhaustive()
    }
}

impl Arrival {
    /// Receives the whole request. A request for media has no body. If there is one, it is read and dropped, because
    /// some clients reject a response to a half-read request. A body that is longer than allowed is not read further,
    /// and stopped after the response (`H3_NO_ERROR`, RFC 9114 §4.1). If the connection has made room for another
    /// client in the meantime, the request is rejected, and the client may send it again.
    pub async fn receive(self) -> Result<Exchange, ExchangeError> {
        self.receive_content(|_| 0).await
    }

    /// As [`receive`](Self::receive), but keeps the beginning of the body, up to the number of bytes that `most`
    /// returns for the head. A body that is not read to its end has this number of bytes, zeros after what was read.
    pub async fn receive_content(
        self,
        most: impl FnOnce(&Request<()>) -> usize,
    ) -> Result<Exchange, ExchangeError> {
        let (context, mut count) = (self.context, self.count);
        let limit = context.options.request_timeout;
        let whole = async {
            let (request, mut stream) = self.resolver.resolve_request().await?;
            let (most, mut body) = (most(&request), BytesMut::new());
            let read = async {
                while let Some(data) = stream.recv_data().await? {
                    body.put(data.take(most.saturating_sub(body.len())));
                }
                stream.recv_trailers().await
            };
            match read.await {
                Err(StreamError::Undefined { 0: error, .. }) if error.is::<TooManyBytes>() => {
                    // It must not look complete.
                    body.resize(most, 0);
                }
                Err(error) => {
                    if let StreamError::StreamError { code, .. } = error {
                        stream.stop_stream(code);
                    }
                    return Err(error);
                }
                Ok(_) => {}
            }
            Ok((request.map(|()| body.freeze()), stream))
        };
        let received = time::timeout(&*context.runtime, limit, whole).await;
        let (request, mut stream) = match received {
            Ok(Ok(whole)) => whole,
            Ok(Err(error)) => return Err(context.failed(error)),
            Err(time::Elapsed) => return Err(ExchangeError::Stalled(limit)),
        };
        if !count.requested() {
            stream.stop_stream(Code::H3_REQUEST_REJECTED);
            return Err(ConnectionLost::ClosedHere.into());
        }
        Ok(Exchange {
            request,
            stream,
            response: self.response,
            context,
            count,
        })
    }
}

/// A request that waits for its response. Dropping it without a response resets the stream.
pub struct Exchange {
    request: Request<Bytes>,
    stream: RequestStream,
    response: ResponseStream,
    context: SessionContext,
    count: CountedExchange,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("method", self.request.method())
            .field("uri", self.request.uri())
            .finish_non_exhaustive()
    }
}

impl Exchange {
    /// Method, URI and header fields of the request, and the beginning of its content if that was kept.
    pub fn request(&self) -> &Request<Bytes> {
        &self.request
    }

    /// IP address and port of the client.
    pub fn peer(&self) -> SocketAddr {
        self.context.quinn.remote_address()
    }

    /// The connection's congestion control, to inform it of the video.
    pub fn control(&self) -> &ConnectionController {
        &self.context.control
    }

    /// The QUIC connection underneath.
    pub fn quinn(&self) -> &quinn::Connection {
        &self.context.quinn
    }

    /// Sends a whole response, and waits until the client has acknowledged it. The response to a HEAD has no body.
    pub async fn respond(self, response: Response<()>, body: Bytes) -> Result<(), ExchangeError> {
        let mut writer = self.start(response).await?;
        writer.write(body).await?;
        writer.finish().await
    }

    /// Sends the header section of a response; the body follows through the writer.
    pub async fn start(mut self, response: Response<()>) -> Result<BodyWriter, ExchangeError> {
        let (context, count) = (self.context, self.count);
        let sent = context
            .unless_stalled(self.stream.send_response(response))
            .await?;
        sent.map_err(|error| context.failed(error))?;
        if let Some(overhead) = context.control.overhead() {
            overhead.begin();
        }
        let stated = Priority::of_request(self.request.headers());
        Ok(BodyWriter {
            mute: self.request.method() == Method::HEAD,
            stream: self.stream,
            turn: Some(context.turns.begin(self.response.number(), stated)),
            stream_priority: None,
            body: self.response,
            context,
            is_ready: false,
            delivered: false,
            _count: count,
        })
    }
}

/// Sends a response's body chunk by chunk. Dropping it before [`finish`](Self::finish) resets the stream, so that the
/// client does not mistake a part for the whole.
pub struct BodyWriter {
    stream: RequestStream,
    body: ResponseStream,
    context: SessionContext,
    /// True for the response to a HEAD, which has no body (RFC 9110 §9.3.2).
    mute: bool,
    /// `None` once everything has been written.
    turn: Option<Turn>,
    /// Priority of the stream in quinn; `None` until the first chunk.
    stream_priority: Option<i32>,
    /// True if a chunk may be written immediately.
    is_ready: bool,
    /// True once the client has acknowledged the whole body.
    delivered: bool,
    _count: CountedExchange,
}

impl fmt::Debug for BodyWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BodyWriter").finish_non_exhaustive()
    }
}

impl Drop for BodyWriter {
    fn drop(&mut self) {
        if let Some(overhead) = self.context.control.overhead() {
            overhead.end();
        }
        if !self.delivered {
            self.context.control.unsent().discarded();
        }
    }
}

impl BodyWriter {
    /// Waits until no response that precedes this one is being written (RFC 9218), and until few bytes written on this
    /// connection are unsent; the first chunk does not wait for the latter. A caller that reads the next chunk only
    /// afterwards saves the memory for it in the meantime.
    pub async fn ready(&mut self) -> Result<(), ExchangeError> {
        if self.mute || self.is_ready {
            return Ok(());
        }
        let mut priority = self.stream_priority;
        let is_first = priority.is_none();
        let Self {
            body, context, turn, ..
        } = self;
        let may_write = async {
            if let Some(turn) = turn {
                priority = Some(poll_fn(|cx| turn.poll(cx)).await);
            }
            if !is_first {
                context.control.wait_for_room(&context.quinn).await;
            }
        };
        let waited = async {
            tokio::select! {
                biased;
                () = may_write => None,
                stopped = body.stopped() => Some(stopped),
            }
        };
        if let Some(Ok(Some(code))) = context.unless_stalled(waited).await? {
            return Err(ExchangeError::Cancelled(code));
        }
        if priority != self.stream_priority
            && let Some(changed) = priority
        {
            self.body.set_priority(changed);
        }
        // Even if the connection is lost: the next write returns the reason.
        (self.stream_priority, self.is_ready) = (priority, true);
        Ok(())
    }

    /// Sends `chunk` once the connection is [ready](Self::ready) for it. Returns when quinn has accepted it: then at
    /// most a send window of the written bytes is unacknowledged. This backpressure bounds memory.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), ExchangeError> {
        if self.mute || chunk.is_empty() {
            return Ok(());
        }
        self.ready().await?;
        self.is_ready = false;
        let Self { body, context, .. } = self;
        let length = chunk.len();
        if let Some(overhead) = context.control.overhead() {
            overhead.wrote(length);
        }
        if let Err(error) = context.unless_stalled(body.write(chunk)).await? {
            return Err(self.write_failed(error).await);
        }
        self.context.control.unsent().wrote(length as u64);
        Ok(())
    }

    /// The error of a failed write. It comes from another write through `h3`, which fails in the same way: `h3` keeps
    /// the first reason why a connection was lost, while quinn forgets the peer's reason when this side closes as well.
    async fn write_failed(&mut self, error: WriteError) -> ExchangeError {
        // The peer's own code for this stream. Another write might first wait for the connection's flow control.
        if let WriteError::Stopped(code) = error {
            return ExchangeError::Cancelled(code.into_inner());
        }
        match self.stream.send_data(Bytes::new()).await {
            Err(error) => self.context.failed(error),
            Ok(()) => ExchangeError::Malformed(error.to_string()),
        }
    }

    /// Ends the body and waits until the client has acknowledged all of it.
    pub async fn finish(mut self) -> Result<(), ExchangeError> {
        self.turn = None;
        let finished = self.stream.finish().await;
        finished.map_err(|error| self.context.failed(error))?;
        let Self { body, context, .. } = &mut self;
        let stopped = context.unless_stalled(body.stopped()).await?;
        if !matches!(stopped, Ok(None)) {
            return Err(context.undelivered(stopped));
        }
        if let Some(overhead) = context.control.overhead() {
            let stats = context.quinn.stats();
            let [sent, lost] = [stats.udp_tx.bytes, stats.path.lost_bytes].map(playrate_units::Bytes::new);
            overhead.measure(sent, lost, context.control.knowledge());
        }
        self.delivered = true;
        Ok(())
    }
}
