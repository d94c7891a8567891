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
use video_server::admission::Entrance;
use video_server::site::Reply;

use super::Shared;
use super::body::Outgoing;
use super::idle::Lively;
use super::linger::Lingering;

/// HTTP/2 over TLS, as ALPN names it (RFC 9113 §3.1).
pub(super) const HTTP_2: &[u8] = b"h2";
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long a client of HTTP/1.1 may take for the head of a request, which includes the pause before it. Players pause for
/// as long as their buffer lasts.
const HEAD: Duration = Duration::from_secs(75);
/// Most bytes of one request's head (or, for HTTP/2, of its fields), as over HTTP/3.
const HEAD_LIMIT: u32 = 64 << 10;
/// How long a client may take, once it has been told that nothing more comes, to end its side too.
const LINGER: Duration = Duration::from_secs(5);
/// Requests at once on one connection, as over HTTP/3.
const STREAMS: u32 = 100;

/// What a connection counts.
pub(super) struct Tally {
    pub(super) shared: Arc<Shared>,
    pub(super) entrance: Entrance,
    pub(super) requests: AtomicU64,
    pub(super) aborted: AtomicU64,
    pub(super) bytes: AtomicU64,
}

/// Serves one client until it is gone, or `graceful` has it stop after what is under way.
pub(super) async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared>, graceful: Watcher) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%peer, %error, "cannot switch Nagle's algorithm off");
    }
    let stream = match time::timeout(&*runtime, HANDSHAKE, shared.tls().accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%peer, %error, "a TLS handshake failed");
            return;
        }
        Err(time::Elapsed) => {
            tracing::debug!(%peer, "a TLS handshake took too long");
            return;
        }
    };
    let began = runtime.now();
    let newer = stream.get_ref().1.alpn_protocol() == Some(HTTP_2);
    let tally = Arc::new(Tally {
        entrance: Entrance::new(Arc::clone(&shared.admission)),
        shared: Arc::clone(&shared),
        requests: AtomicU64::new(0),
        aborted: AtomicU64::new(0),
        bytes: AtomicU64::new(0),
    });
    let answering = Arc::clone(&tally);
    let service = service_fn(move |request| {
        let response = answer(&request, &answering);
        async move { Ok::<_, Infallible>(response) }
    });
    let stream = Lively::new(stream, Arc::clone(&runtime), shared.idle);
    let stream = TokioIo::new(Lingering::new(stream, Arc::clone(&runtime), LINGER));
    let ended = if newer {
        let connection = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEAD_LIMIT)
            .serve_connection(stream, service);
        graceful.watch(connection).await
    } else {
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .max_header_size(HEAD_LIMIT as usize)
            .serve_connection(stream, service);
        graceful.watch(connection).await
    };
    let end = ended.map_or_else(|error| error.to_string(), |()| "in good order".to_owned());
    tracing::info!(
        %peer,
        protocol = if newer { "HTTP/2" } else { "HTTP/1.1" },
        seconds = runtime.now().saturating_duration_since(began).as_secs_f64(),
        requests = tally.requests.load(Relaxed),
        aborted = tally.aborted.load(Relaxed),
        bytes = tally.bytes.load(Relaxed),
        end,
        "TCP session finished"
    );
}

fn answer<B>(request: &Request<B>, tally: &Arc<Tally>) -> Response<Outgoing> {
    tally.requests.fetch_add(1, Relaxed);
    let Reply {
        mut head, content, ..
    } = tally
        .entrance
        .reply(&tally.shared.site, request, TokioRuntime.now());
    if let Some(elsewhere) = &tally.shared.alt_svc
        && request.version() >= Version::HTTP_11
    {
        head.headers_mut().insert(ALT_SVC, elsewhere.clone());
    }
    let status = head.status().as_u16();
    tracing::debug!(method = %request.method(), path = request.uri().path(), status, "answering over TCP");
    head.map(|()| Outgoing::new(content, Arc::clone(tally)))
}
