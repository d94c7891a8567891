//! What an operator watches, over HTTP without TLS on an address of its own: `/metrics` for Prometheus, `/` a page that shows the
//! connections live, `/connections.json` what that page asks for.

mod connections;
mod counted;
mod finished;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use playrate_transport::time;
use quinn::TokioRuntime;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use video_server::serve::VideoServer;

use super::Failure;
use super::tcp::{self, ListenError};

pub(super) use counted::Metrics;

/// The page; everything that it needs is in it.
const PAGE: &str = include_str!("dashboard.html");
/// It runs its own script and asks its own server, nothing else.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";
/// What Prometheus reads (`OpenMetrics` 1.0 §7.1).
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Connections at once; a page or a scraper has one.
const CONNECTIONS: usize = 64;
/// How long one may be silent.
const SILENCE: Duration = Duration::from_secs(75);
/// How long not to accept after that has failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the operator's view until it is dropped.
pub(super) struct Dashboard {
    address: SocketAddr,
    _accepting: JoinSet<()>,
}

/// The socket for [`Dashboard::start`].
pub(super) fn listen(address: SocketAddr) -> Result<TcpListener, Failure> {
    tcp::listen(address).map_err(|error| {
        Failure::Input(match error {
            ListenError::InUse { address } => anyhow::anyhow!(
                "--metrics {address}: another program has this port: choose another one, or stop that program"
            ),
            ListenError::Other { address, source } => anyhow::anyhow!(
                "--metrics {address}: {source}; it has to be an address of this machine and a free port"
            ),
        })
    })
}

struct Shared {
    metrics: Arc<Metrics>,
    server: VideoServer,
}

impl Dashboard {
    /// Shows what `metrics` counts and what `server` does on `listener`.
    pub(super) fn start(
        listener: TcpListener,
        metrics: Arc<Metrics>,
        server: VideoServer,
    ) -> std::io::Result<Self> {
        let address = listener.local_addr()?;
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, Arc::new(Shared { metrics, server })));
        Ok(Self {
            address,
            _accepting: accepting,
        })
    }

    /// Where it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            accepted = listener.accept() => accepted,
        };
        match (accepted, Arc::clone(&places).try_acquire_owned()) {
            (Ok((stream, _)), Ok(place)) => {
                let serving = serve(stream, Arc::clone(&shared));
                connections.spawn(async move {
                    serving.await;
                    drop(place);
                });
            }
            (Ok((_, peer)), Err(_)) => tracing::warn!(%peer, "refused to show metrics: too many look"),
            (Err(error), _) => {
                tracing::warn!(%error, "cannot accept connections for metrics");
                time::sleep(&TokioRuntime, ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let service = service_fn(move |request| {
        let response = answer(&request, &shared);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(SILENCE)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        tracing::debug!(%error, "a connection for metrics ended early");
    }
}

fn answer<B>(request: &Request<B>, shared: &Shared) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = reply(
            StatusCode::METHOD_NOT_ALLOWED,
            "text/plain",
            "only GET and HEAD\n",
        );
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/" => {
            let mut response = reply(StatusCode::OK, "text/html; charset=utf-8", PAGE);
            response
                .headers_mut()
                .insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
            response
        }
        "/metrics" => match shared.metrics.encode(&shared.server) {
            Ok(text) => reply(StatusCode::OK, OPENMETRICS, text),
            Err(error) => {
                tracing::error!(%error, "cannot write metrics");
                reply(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "text/plain",
                    "cannot write metrics\n",
                )
            }
        },
        "/connections.json" => {
            let metrics = &shared.metrics;
            let state = connections::describe(&shared.server, metrics.finished(), metrics.age());
            reply(StatusCode::OK, "application/json", state.to_string())
        }
        _ => reply(
            StatusCode::NOT_FOUND,
            "text/plain",
            "there are /, /metrics and /connections.json\n",
        ),
    }
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
