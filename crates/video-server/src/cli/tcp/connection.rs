//! One client's TCP connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::header::ALT_SVC;
use http::{Request, Response, Version};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use playrate_transport::time;
use quinn::{Runtime, TokioRuntime};
use tokio::net::TcpStream;
use video_server::admission::AdmissionSlot;
use video_server::site::Reply;

use super::TcpContext;
use super::body::ResponseBody;
use super::client_stream::{ClientStream, StreamLimits};

/// HTTP/2 over TLS, as ALPN names it (RFC 9113 §3.1).
pub(super) const HTTP_2: &[u8] = b"h2";
/// Maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum time for the head of a request over HTTP/1.1, the pause before it included. Players pause for as
/// long as their buffer lasts.
const HEADER_TIMEOUT: Duration = Duration::from_secs(75);
/// Maximum size in bytes of a request's head (of its fields over HTTP/2), as over HTTP/3.
const MAX_HEADER_SIZE: u32 = 64 << 10;
/// Maximum time between the end of the server's side of a connection and that of the client's.
const LINGER: Duration = Duration::from_secs(5);
/// Maximum number of concurrent requests on one connection, as over HTTP/3.
const MAX_STREAMS: u32 = 100;

/// State and counters of one connection.
pub(super) struct TcpConnection {
    pub(super) context: Arc<TcpContext>,
    pub(super) admission: AdmissionSlot,
    pub(super) requests: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Serves one client until it leaves, or until `graceful` stops it after the responses in progress.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, context: Arc<TcpContext>, graceful: Watcher) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot disable Nagle's algorithm");
    }
    let stream = match time::timeout(&*runtime, HANDSHAKE_TIMEOUT, context.tls().accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "a TLS handshake failed");
            return;
        }
        Err(time::Elapsed) => {
            tracing::debug!(%peer, "a TLS handshake timed out");
            return;
        }
    };
    let began = runtime.now();
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
    let connection = Arc::new(TcpConnection {
        admission: AdmissionSlot::new(Arc::clone(&context.admission)),
        context: Arc::clone(&context),
        requests: AtomicU64::new(0),
        aborted: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let answering = Arc::clone(&connection);
    let service = service_fn(move |request| {
        let response = answer(&request, &answering);
        async move { Ok::<_, Infallible>(response) }
    });
    let limits = StreamLimits {
        idle: context.idle,
        linger: LINGER,
    };
    let stream = TokioIo::new(ClientStream::new(stream, Arc::clone(&runtime), limits));
    let ended = if is_http2 {
        let serving = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(MAX_STREAMS)
            .max_header_list_size(MAX_HEADER_SIZE)
            .serve_connection(stream, service);
        graceful.watch(serving).await
    } else {
        let serving = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT)
            .max_header_size(MAX_HEADER_SIZE as usize)
            .serve_connection(stream, service);
        graceful.watch(serving).await
    };
    let end = ended.map_or_else(|error| error.to_string(), |()| "in good order".to_owned());
    tracing::info!(
        %peer,
        protocol = if is_http2 { "HTTP/2" } else { "HTTP/1.1" },
        seconds = runtime.now().saturating_duration_since(began).as_secs_f64(),
        requests = connection.requests.load(Relaxed),
        aborted = connection.aborted.load(Relaxed),
        bytes = connection.bytes.load(Relaxed),
        end,
        "TCP session finished"
    );
}

fn answer<B>(request: &Request<B>, connection: &Arc<TcpConnection>) -> Response<ResponseBody> {
    connection.requests.fetch_add(1, Relaxed);
    let Reply {
        mut head, content, ..
    } = connection
        .admission
        .reply(&connection.context.site, request, TokioRuntime.now());
    if let Some(elsewhere) = &connection.context.alt_svc
        && request.version() >= Version::HTTP_11
    {
        head.headers_mut().insert(ALT_SVC, elsewhere.clone());
    }
    let status = head.status().as_u16();
    tracing::debug!(method = %request.method(), path = request.uri().path(), status, "answering over TCP");
    head.map(|()| ResponseBody::new(content, Arc::clone(connection)))
}
