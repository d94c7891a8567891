//! [`Exchange`]: one request and its response.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use bytes::Bytes;
use http::{Method, Request, Response};
use tokio::sync::watch;

use super::Shared;
use crate::adapter::ConnectionController;
use crate::error::ExchangeError;
use crate::quic::{self, StreamControl};
use crate::time;

type Resolver = h3::server::RequestResolver<quic::Connection, Bytes>;
type Stream = h3::server::RequestStream<quic::BidiStream<Bytes>, Bytes>;

/// Counts a session's exchanges.
#[derive(Debug, Default)]
pub(super) struct Live(Arc<watch::Sender<usize>>);

impl Live {
    pub(super) fn begin(&self) -> Alive {
        self.0.send_modify(|count| *count += 1);
        Alive(Arc::clone(&self.0))
    }

    /// Waits until there is none.
    pub(super) async fn none(&self) {
        // The sender is `self`, so it cannot be gone.
        let _ = self.0.subscribe().wait_for(|&count| count == 0).await;
    }
}

/// Counts as one exchange until it is dropped.
#[derive(Debug)]
pub(super) struct Alive(Arc<watch::Sender<usize>>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count = count.saturating_sub(1));
    }
}

/// What every stage of an exchange needs.
struct Context {
    quinn: quinn::Connection,
    control: Arc<ConnectionController>,
    shared: Arc<Shared>,
    stream: StreamControl,
    _alive: Alive,
}

impl Context {
    fn failed(&self, error: h3::error::StreamError) -> ExchangeError {
        ExchangeError::of(&self.quinn, error)
    }

    /// Why the client has not got, or not wanted, all of a stream.
    fn gone(&self, how: Result<Option<u64>, ()>) -> ExchangeError {
        use crate::error::ConnectionLost;
        match (how, self.quinn.close_reason()) {
            (Ok(Some(code)), _) => ExchangeError::Cancelled { code },
            (_, Some(reason)) => ExchangeError::Connection(reason.into()),
            (_, None) => ExchangeError::Connection(ConnectionLost::ClosedHere),
        }
    }

    /// Bytes the client has acknowledged on this connection.
    fn delivered(control: &ConnectionController) -> u64 {
        control
            .monitor()
            .latest()
            .map_or(0, |sample| sample.delivered.as_u64())
    }
}

/// Waits for `future` for as long as the client acknowledges anything at all.
async fn unless_stalled<F: Future>(
    shared: &Shared,
    control: &ConnectionController,
    future: F,
) -> Result<F::Output, ExchangeError> {
    let limit = shared.options.stall_timeout;
    let mut future = pin!(future);
    let mut before = Context::delivered(control);
    loop {
        if let Ok(output) = time::timeout(&*shared.runtime, limit, future.as_mut()).await {
            return Ok(output);
        }
        let delivered = Context::delivered(control);
        if delivered == before {
            return Err(ExchangeError::Stalled { waited: limit });
        }
        before = delivered;
    }
}

/// A request on its way in.
pub struct Arrival {
    resolver: Resolver,
    context: Context,
}

impl fmt::Debug for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Arrival").finish_non_exhaustive()
    }
}

impl Arrival {
    pub(super) fn new(
        resolver: Resolver,
        stream: StreamControl,
        quinn: quinn::Connection,
        control: Arc<ConnectionController>,
        shared: Arc<Shared>,
        alive: Alive,
    ) -> Self {
        Self {
            resolver,
            context: Context {
                quinn,
                control,
                shared,
                stream,
                _alive: alive,
            },
        }
    }

    /// Receives the whole request. A body, which no request for media has, is read and dropped: some clients take
    /// a response to a half-read request for a broken one.
    pub async fn receive(self) -> Result<Exchange, ExchangeError> {
        let Self { resolver, context } = self;
        let limit = context.shared.options.request_timeout;
        let whole = async {
            let (request, mut stream) = resolver.resolve_request().await?;
            while stream.recv_data().await?.is_some() {}
            Ok((request, stream))
        };
        let received = time::timeout(&*context.shared.runtime, limit, whole).await;
        match received {
            Ok(Ok((request, stream))) => Ok(Exchange {
                request,
                stream,
                context,
            }),
            Ok(Err(error)) => Err(context.failed(error)),
            Err(time::Elapsed) => Err(ExchangeError::Stalled { waited: limit }),
        }
    }
}

/// A request that waits for its response. Dropping it unanswered resets the stream.
pub struct Exchange {
    request: Request<()>,
    stream: Stream,
    context: Context,
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
    /// What the client wants.
    pub fn request(&self) -> &Request<()> {
        &self.request
    }

    /// The client's address.
    pub fn peer(&self) -> SocketAddr {
        self.context.quinn.remote_address()
    }

    /// The connection's congestion control, for telling it of the video.
    pub fn control(&self) -> &ConnectionController {
        &self.context.control
    }

    /// The QUIC connection underneath.
    pub fn quinn(&self) -> &quinn::Connection {
        &self.context.quinn
    }

    /// Sends this response before those of lower priority on the same connection. All start at 0.
    pub fn set_priority(&self, priority: i32) {
        self.context.stream.wishes.priority.store(priority, Relaxed);
    }

    /// Sends a whole response at once, and waits until the client has acknowledged it. The body is left out if the
    /// request is a HEAD.
    pub async fn respond(self, response: Response<()>, body: Bytes) -> Result<(), ExchangeError> {
        let mut writer = self.start(response).await?;
        writer.write(body).await?;
        writer.finish().await
    }

    /// Sends the header of a response; the body follows through the writer.
    pub async fn start(self, response: Response<()>) -> Result<BodyWriter, ExchangeError> {
        let Self {
            request,
            mut stream,
            context,
        } = self;
        let sent = unless_stalled(&context.shared, &context.control, stream.send_response(response)).await?;
        sent.map_err(|error| context.failed(error))?;
        if let Some(overhead) = context.control.overhead() {
            overhead.begin();
        }
        Ok(BodyWriter {
            stream,
            context,
            mute: request.method() == Method::HEAD,
            is_ready: true,
            delivered: false,
        })
    }
}

/// Sends a response's body chunk by chunk. Dropping it before [`finish`](Self::finish) resets the stream, so that
/// the client does not take a part for the whole.
pub struct BodyWriter {
    stream: Stream,
    context: Context,
    /// The response to a HEAD has no body (RFC 9110 §9.3.2).
    mute: bool,
    /// A chunk may be written at once.
    is_ready: bool,
    /// The client has all of the body.
    delivered: bool,
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
            self.context.control.backlog().gave_up();
        }
    }
}

impl BodyWriter {
    /// Waits until the transport has a use for a chunk: until little of what was written waits to be sent. What is read only then
    /// takes no memory meanwhile. The first chunk of a body never waits here.
    pub async fn ready(&mut self) -> Result<(), ExchangeError> {
        if self.mute || self.is_ready {
            return Ok(());
        }
        let Context {
            quinn,
            control,
            shared,
            stream,
            ..
        } = &mut self.context;
        let room = control.backlog().room(|| {
            let _ = quinn.rtt();
        });
        let waited = async {
            tokio::select! {
                biased;
                () = room => None,
                gone = stream.delivered.as_mut() => Some(gone),
            }
        };
        if let Some(Ok(Some(code))) = unless_stalled(shared, control, waited).await? {
            return Err(ExchangeError::Cancelled { code });
        }
        // Also if the connection is gone: the next write says why, since `h3` keeps the first reason, and quinn only the last.
        self.is_ready = true;
        Ok(())
    }

    /// Sends `chunk` once there is [a use for it](Self::ready). Returns when the transport has taken it over, which is when all but
    /// a send window of what was written so far has been acknowledged. This is the backpressure that bounds memory.
    pub async fn write(&mut self, chunk: Bytes) -> Result<(), ExchangeError> {
        if self.mute || chunk.is_empty() {
            return Ok(());
        }
        self.ready().await?;
        self.is_ready = false;
        let Self { stream, context, .. } = self;
        let length = chunk.len() as u64;
        if let Some(overhead) = context.control.overhead() {
            overhead.wrote(chunk.len());
        }
        context.stream.wishes.write(chunk.clone());
        unless_stalled(&context.shared, &context.control, stream.send_data(chunk))
            .await?
            .map_err(|error| context.failed(error))?;
        context.control.backlog().wrote(length);
        Ok(())
    }

    /// Ends the body and waits until the client has acknowledged all of it.
    pub async fn finish(mut self) -> Result<(), ExchangeError> {
        self.stream
            .finish()
            .await
            .map_err(|error| self.context.failed(error))?;
        let Context {
            quinn,
            control,
            shared,
            stream,
            ..
        } = &mut self.context;
        match unless_stalled(shared, control, stream.delivered.as_mut()).await? {
            Ok(None) => {
                self.delivered = true;
                if let Some(overhead) = control.overhead() {
                    let stats = quinn.stats();
                    overhead.measure(stats.udp_tx.bytes, stats.path.lost_bytes, control.knowledge());
                }
                Ok(())
            }
            gone => Err(self.context.gone(gone)),
        }
    }
}
