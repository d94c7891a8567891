//! One client's TCP connection.

use std::convert::Infallible;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALT_SVC, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use playrate_transport::{ACME_TLS, Activity, Priority, Turns, time};
use quinn::{Runtime, TokioRuntime};
use tokio::net::TcpStream;
use tokio::sync::watch;
use video_server::admission::AdmissionSlot;
#[cfg(feature = "object-store")]
use video_server::site::Content;

use super::TcpContext;
use super::body::ResponseBody;
use super::client_stream::{ClientStream, UnsentResponses};
use crate::access::redacted;
use crate::serve::PendingRecord;
use crate::site::protocol;

/// ALPN name of HTTP/2 over TLS (RFC 9113 §3.1).
pub(super) const HTTP_2: &[u8] = b"h2";
/// Maximum time for the head of an HTTP/1.1 request, including the pause before it. Players pause for as long as their
/// buffer lasts.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// Maximum size in bytes of a request's head (of its fields over HTTP/2), as over HTTP/3.
const MAX_HEADER_SIZE: u32 = 64 << 10;
/// Maximum time between the end of the server's side of a connection and that of the client's.
const LINGER: Duration = Duration::from_secs(5);
/// Maximum time for a connection to end when it makes room for another client; its client is informed (GOAWAY).
const DISPLACED_LIMIT: Duration = Duration::from_secs(1);
/// Maximum number of concurrent requests on one connection, as over HTTP/3.
const MAX_STREAMS: u32 = 100;
/// Maximum number of bytes of one HTTP/2 response that wait in hyper to be sent, in addition to one chunk and to the
/// socket's buffer.
const SEND_BUFFER: usize = 16 << 10;

/// State and counters of one connection.
pub(super) struct TcpConnection {
    pub(super) context: Arc<TcpContext>,
    /// Address of the client, or of a proxy that names the client of each request.
    peer: SocketAddr,
    pub(super) admission: AdmissionSlot,
    pub(super) activity: Activity,
    pub(super) unsent: Arc<UnsentResponses>,
    /// The responses in progress over HTTP/2, by their priority.
    turns: Arc<Turns>,
    /// Objects that its player is going to request.
    #[cfg(feature = "object-store")]
    ahead: playrate_origin::ReadAhead,
    pub(super) requests: AtomicU64,
    /// Number of responses in progress.
    pub(super) open: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl TcpConnection {
    pub(super) fn new(context: Arc<TcpContext>, peer: SocketAddr, activity: Activity) -> Self {
        Self {
            admission: AdmissionSlot::new(Arc::clone(&context.admission)),
            context,
            peer,
            activity,
            unsent: Arc::default(),
            turns: Turns::new(Arc::new(TokioRuntime)),
            #[cfg(feature = "object-store")]
            ahead: playrate_origin::ReadAhead::default(),
            requests: AtomicU64::new(0),
            open: AtomicU64::new(0),
            aborted: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Drives `serving` to its end. It ends after the responses in progress once `stop` is true, after
    /// [`DISPLACED_LIMIT`] if it makes room for another client, and at once if the client no longer uses it. The error
    /// is for the log.
    async fn drive<C>(&self, serving: C, mut stop: watch::Receiver<bool>) -> Result<(), String>
    where
        C: GracefulConnection,
        C::Error: Display,
    {
        let mut serving = pin!(serving);
        let mut unused = pin!(self.unused());
        let mut displaced = pin!(async {
            self.activity.expired(None).await;
            time::sleep(&TokioRuntime, DISPLACED_LIMIT).await;
        });
        let mut stopping = false;
        loop {
            tokio::select! {
                biased;
                ended = serving.as_mut() => return ended.map_err(|error| error.to_string()),
                () = unused.as_mut() => return Err("the client made no use of it".to_owned()),
                () = displaced.as_mut() => return Err("it made room for another client".to_owned()),
                () = self.activity.expired(None), if !stopping => {
                    stopping = true;
                    serving.as_mut().graceful_shutdown();
                }
                _ = stop.wait_for(|&stop| stop), if !stopping => {
                    stopping = true;
                    serving.as_mut().graceful_shutdown();
                }
            }
        }
    }

    /// Waits until the client has not used the connection for the time allowed, or up to a quarter longer. Requests and
    /// bytes of responses count as use; other frames, such as HTTP/2's PING, do not.
    async fn unused(&self) {
        let idle = self.context.idle_limit;
        let progress = || [&self.requests, &self.bytes, &self.open].map(|count| count.load(Relaxed));
        let (mut before, mut since) = (progress(), TokioRuntime.now());
        loop {
            time::sleep(&TokioRuntime, idle / 4).await;
            let (now, at) = (progress(), TokioRuntime.now());
            if now != before {
                (before, since) = (now, at);
            } else if at.saturating_duration_since(since) >= idle {
                return;
            }
        }
    }
}

/// Serves one client until it leaves, has to make room for another, or, once `stop` is true, the responses in progress
/// have ended.
pub(super) async fn serve(
    stream: TcpStream,
    (peer, activity): (SocketAddr, Activity),
    context: Arc<TcpContext>,
    stop: watch::Receiver<bool>,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot disable Nagle's algorithm");
    }
    let accepting = context.tls.accept(stream);
    let accepting = time::timeout(&TokioRuntime, context.request_limit, accepting);
    let accepted = tokio::select! {
        biased;
        () = activity.expired(None) => {
            tracing::debug!(%peer, "a TLS handshake made room for another client");
            return;
        }
        accepted = accepting => accepted,
    };
    let stream = match accepted.unwrap_or_else(|time::Elapsed| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => stream,
        Err(error) => {
            context.totals.failed_handshakes.fetch_add(1, Relaxed);
            tracing::debug!(%peer, %error, "a TLS handshake failed");
            return;
        }
    };
    let began = TokioRuntime.now();
    let protocol = stream.get_ref().1.alpn_protocol();
    if protocol == Some(ACME_TLS) {
        tracing::debug!(%peer, "answered the validation of a domain");
        return;
    }
    let is_http2 = protocol == Some(HTTP_2);
    let connection = Arc::new(TcpConnection::new(Arc::clone(&context), peer, activity));
    let answering = Arc::clone(&connection);
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let connection = Arc::clone(&answering);
        let (head, body) = request.into_parts();
        let head = Request::from_parts(head, ());
        let most = connection.context.site.content_limit(&head);
        // Ignored content is dropped before hyper reads any, so that hyper closes the connection after the answer.
        let body = (most > 0).then_some(body);
        async move {
            let reading = beginning_of(body, most);
            let read = time::timeout(&TokioRuntime, connection.context.request_limit, reading).await;
            Ok::<_, Infallible>(answer(head, read.ok(), &connection).await)
        }
    });
    let stream = ClientStream::new(stream, LINGER, Arc::clone(&connection.unsent));
    let stream = TokioIo::new(stream);
    let ended = if is_http2 {
        let serving = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_send_buf_size(SEND_BUFFER)
            .max_header_list_size(MAX_HEADER_SIZE)
            .serve_connection(stream, service);
        connection.drive(serving, stop).await
    } else {
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_header_size(MAX_HEADER_SIZE as usize)
            .serve_connection(stream, service);
        connection.drive(serving, stop).await
    };
    let end = ended.map_or_else(|error| error, |()| "in good order".to_owned());
    tracing::info!(
        %peer,
        protocol = if is_http2 { "HTTP/2" } else { "HTTP/1.1" },
        seconds = (TokioRuntime.now().saturating_duration_since(began).as_secs_f64() * 1e3).round() / 1e3,
        requests = connection.requests.load(Relaxed),
        aborted = connection.aborted.load(Relaxed),
        bytes = connection.bytes.load(Relaxed),
        end,
        "TCP session finished"
    );
}

/// Returns true if a request over HTTP/1.1 has one valid `Host` field (RFC 9112 §3.2). It may be empty.
fn has_host(fields: &HeaderMap) -> bool {
    let mut hosts = fields.get_all(HOST).iter();
    let is_valid = |host: &HeaderValue| {
        let host = host.to_str().ok();
        host.is_some_and(|host| host.is_empty() || host.parse::<Authority>().is_ok())
    };
    hosts.next().is_some_and(is_valid) && hosts.next().is_none()
}

/// The content of a request; `most` zeros if it is longer, empty if it does not arrive.
async fn beginning_of(body: Option<hyper::body::Incoming>, most: usize) -> Bytes {
    let Some(body) = body else { return Bytes::new() };
    match Limited::new(body, most).collect().await {
        Ok(content) => content.to_bytes(),
        // It must not look complete.
        Err(error) if error.is::<LengthLimitError>() => vec![0; most].into(),
        Err(_) => Bytes::new(),
    }
}

/// Answers a request with this `content`: with 408 if that has not arrived in time, and with 503 on a connection that
/// makes room for another client.
pub(super) async fn answer(
    head: Request<()>,
    content: Option<Bytes>,
    connection: &Arc<TcpConnection>,
) -> Response<ResponseBody> {
    let has_arrived = content.is_some();
    let request = &head.map(|()| content.unwrap_or_default());
    let number = connection.requests.fetch_add(1, Relaxed);
    let site = &connection.context.site;
    let proxies = &connection.context.proxies;
    let peer = proxies.client(connection.peer, request.headers());
    let client = peer.ip();
    let exchange = connection.activity.begin();
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let mut record = PendingRecord::begin(site, &runtime, peer, request);
    let mut reply = if exchange.is_none() {
        // Refused as a whole: a response that had begun would be aborted after `DISPLACED_LIMIT`.
        site.unavailable(request, DISPLACED_LIMIT)
    } else if request.version() == Version::HTTP_11 && !has_host(request.headers()) {
        site.refuse(
            request,
            StatusCode::BAD_REQUEST,
            "an HTTP/1.1 request must have exactly one Host field, such as `Host: example.org`",
        )
    } else if !has_arrived {
        let why = "the content of the request did not arrive in time";
        site.refuse(request, StatusCode::REQUEST_TIMEOUT, why)
    } else {
        let requester = (client, &connection.admission, TokioRuntime.now());
        site.reply_to(request, requester, || protocol(request)).await
    };
    #[cfg(feature = "object-store")]
    if let Content::Resource(body) = reply.body() {
        let report = playrate_media::cmcd::Cmcd::read(request.headers(), request.uri());
        site.read_ahead(&connection.ahead, body, report.as_ref());
    }
    if let Some(elsewhere) = &connection.context.alt_svc
        && request.version() >= Version::HTTP_11
    {
        reply.headers_mut().insert(ALT_SVC, elsewhere.clone());
    }
    site.count_reply(request.version(), reply.status());
    if let Some(record) = &mut record {
        record.begin_response(reply.status(), reply.body().len());
    }
    let status = reply.status().as_u16();
    let path = redacted(request.uri().path());
    tracing::debug!(%client, method = %request.method(), %path, status, "answering over TCP");
    let turn = connection
        .turns
        .begin(number, Priority::of_request(request.headers()));
    reply.map(|content| ResponseBody::new(content, turn, Arc::clone(connection), (exchange, record)))
}
