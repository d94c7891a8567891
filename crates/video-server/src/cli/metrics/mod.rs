//! The operator's view, over HTTP without TLS at its own address: `/metrics` for Prometheus, `/` for a page that shows
//! the connections live, `/connections.json` and `/history.json` for that page's data, `/healthz` and `/readyz` for
//! supervisors and load balancers.

mod arm_totals;
mod counters;
mod exposition;
mod history;
#[cfg(feature = "object-store")]
mod origin;
#[cfg(target_os = "linux")]
mod process;

use std::io;
use std::net::{self, IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use video_server::serve::{ConnectionState, VideoServer};

use super::Failure;
use super::tcp::{self, TcpService, serve_plain};

pub(super) use counters::Metrics;
use exposition::text_format;
use history::History;

/// The page, including everything that it needs.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let curves = include_str!("../../pages/curves.js");
    include_str!("dashboard.html").replace("%%curves%%", curves)
});
/// The page runs only its own script and connects only to its own server.
const POLICY: &str =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'";
/// Media type of Prometheus' text format, which all scrapers and `promtool` read.
const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Serves the operator's view until it is dropped.
pub(super) struct Dashboard {
    address: SocketAddr,
    context: Arc<DashboardContext>,
    pub(super) service: Arc<TcpService>,
    /// Keeps the history until this is dropped.
    _sampling: JoinSet<()>,
}

/// Opens the socket for [`Dashboard::start`]. A port in use is invalid input, unless its owner `may_end`.
pub(super) fn listen(address: SocketAddr, may_end: bool) -> Result<net::TcpListener, Failure> {
    tcp::listen(address).map_err(|error| {
        let is_in_use = error.kind() == io::ErrorKind::AddrInUse;
        let error = anyhow::anyhow!(
            "--metrics {address}: {error}; expected an address of this machine and a free port"
        );
        if is_in_use && may_end {
            Failure::Run(error)
        } else {
            Failure::Input(error)
        }
    })
}

struct DashboardContext {
    metrics: Arc<Metrics>,
    registry: Registry,
    server: VideoServer,
    history: Arc<History>,
    /// True once the server no longer accepts clients.
    draining: AtomicBool,
    /// Host names of this address, besides localhost.
    names: Vec<String>,
}

impl Dashboard {
    /// Serves `metrics` and the state of `server` on `listener`. Clients must name it by an IP address, as localhost,
    /// or by one of `names`.
    pub(super) fn start(
        listener: net::TcpListener,
        metrics: Arc<Metrics>,
        server: VideoServer,
        names: Vec<String>,
    ) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let history = Arc::new(History::default());
        let mut sampling = JoinSet::new();
        sampling.spawn(history::keep(
            Arc::clone(&history),
            Arc::clone(&metrics),
            server.clone(),
        ));
        let context = Arc::new(DashboardContext {
            history,
            registry: metrics.registry(server.clone()),
            draining: AtomicBool::new(false),
            names,
            metrics,
            server,
        });
        let shared = Arc::clone(&context);
        let service = TcpService::start(listener, move |listener, stop| {
            let context = Arc::clone(&shared);
            serve_plain(listener, ("metrics", Arc::default()), stop, move |request, _| {
                answer(request, &context)
            })
        })?;
        Ok(Self {
            address,
            context,
            service,
            _sampling: sampling,
        })
    }

    /// Answers `/readyz` with 503 from now on.
    pub(super) fn drain(&self) {
        self.context.draining.store(true, Relaxed);
    }

    /// Address on which it listens.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn answer<B>(request: &Request<B>, context: &DashboardContext) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut response = reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "use GET or HEAD\n");
        let fields = response.headers_mut();
        fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match request.uri().path() {
        "/healthz" => reply(StatusCode::OK, "text/plain", "alive\n"),
        "/readyz" if context.draining.load(Relaxed) => {
            reply(StatusCode::SERVICE_UNAVAILABLE, "text/plain", "draining\n")
        }
        "/readyz" => reply(StatusCode::OK, "text/plain", "ready\n"),
        _ if !names_this(request.headers(), &context.names) => reply(
            StatusCode::MISDIRECTED_REQUEST,
            "text/plain",
            "unknown host name; use localhost, an IP address, or a name of --metrics-host\n",
        ),
        "/" => {
            let mut response = reply(StatusCode::OK, "text/html; charset=utf-8", PAGE.as_str());
            let fields = response.headers_mut();
            fields.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
            response
        }
        "/metrics" => {
            let mut written = String::new();
            match text::encode(&mut written, &context.registry) {
                Ok(()) => reply(StatusCode::OK, TEXT_FORMAT, text_format(&written)),
                Err(error) => {
                    tracing::error!(%error, "cannot write metrics");
                    let status = StatusCode::INTERNAL_SERVER_ERROR;
                    reply(status, "text/plain", "cannot write metrics\n")
                }
            }
        }
        "/connections.json" => {
            let state = connections(&context.server, &context.metrics);
            reply(StatusCode::OK, "application/json", state.to_string())
        }
        "/history.json" => reply(StatusCode::OK, "application/json", context.history.describe()),
        _ => reply(
            StatusCode::NOT_FOUND,
            "text/plain",
            "unknown path; expected one of: /, /metrics, /connections.json, /history.json, /healthz, /readyz\n",
        ),
    }
}

/// Returns true unless the `Host` field has a name that may be another site's: its pages could otherwise read this
/// one's data with a name that resolves to this address (DNS rebinding). Browsers always send the field.
fn names_this(fields: &HeaderMap, names: &[String]) -> bool {
    let is_known = |host: &HeaderValue| {
        let host = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        host.is_some_and(|authority| {
            let host = authority.host();
            let address = host.trim_start_matches('[').trim_end_matches(']');
            let mut names = names.iter().map(String::as_str).chain(["localhost"]);
            address.parse::<IpAddr>().is_ok() || names.any(|name| name.eq_ignore_ascii_case(host))
        })
    };
    fields.get_all(HOST).iter().all(is_known)
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let fields = response.headers_mut();
    fields.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `/connections.json`: the server, its arms, and the present state of every connection over HTTP/3. Rates are in
/// bit/s, sizes in bytes; unknown values are null.
fn connections(server: &VideoServer, metrics: &Metrics) -> Value {
    let (states, totals) = server.snapshot();
    let settings = server.settings();
    let controller = settings.controller.to_string();
    let arms = settings.arms.as_ref();
    let arms = arms.map_or_else(Vec::new, |arms| metrics.arm_totals().rows(arms, &controller));
    let connections: Vec<_> = states.iter().map(connection).collect();
    json!({
        "at_s": metrics.age().as_secs_f64(),
        "controller": controller,
        "arms": arms,
        "sessions": totals.sessions,
        "responses": totals.responses,
        "bytes": totals.bytes.as_u64(),
        "refused": server.admission().load().refused,
        "connections": connections,
        "tcp_connections": metrics.tcp().open(),
    })
}

fn connection(state: &ConnectionState) -> Value {
    let mut described = state.to_json();
    described["id"] = state.id.into();
    described["peer"] = state.peer.to_string().into();
    described
}
