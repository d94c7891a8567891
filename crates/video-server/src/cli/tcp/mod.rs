//! The library over TCP: HTTP/2 and HTTP/1.1 on the same port number as HTTP/3. It serves players without HTTP/3, and
//! browsers, which learn of HTTP/3 from the `Alt-Svc` field of such a response (RFC 9114 §3.1.1).
//!
//! Responses come from [`Site`], as over HTTP/3. The kernel does the congestion control and receives no information
//! about the video. Both the number of connections and the memory of each are bounded: hyper's buffers, plus about 1
//! MiB that its responses read ahead. Connections that the client does not use are closed.

mod acceptor;
mod body;
mod client_stream;
mod connection;
mod plain;
mod proxies;
mod service;

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::HeaderValue;
use playrate_transport::{ACME_TLS, PlaceLimits, ServerOptions, time};
use quinn::TokioRuntime;
use tokio_rustls::TlsAcceptor;
use video_server::admission::Admission;
use video_server::serve::VideoServer;
use video_server::site::Site;

pub(super) use acceptor::{Acceptor, TcpTotals, listen};
pub(super) use plain::serve_plain;
pub(super) use proxies::Proxies;
pub(super) use service::{TcpService, TcpServices};

/// Protocols on TCP, the preferred one first (RFC 7301; RFC 9113 §3.2). An authority that validates a domain offers
/// only the last one.
const PROTOCOLS: [&[u8]; 3] = [connection::HTTP_2, b"http/1.1", ACME_TLS];
/// Time for which browsers remember that HTTP/3 is available: the default of RFC 7838 §3.1.
const ALT_SVC_AGE: Duration = Duration::from_secs(24 * 3600);

/// State shared by all connections.
struct TcpContext {
    site: Arc<Site>,
    admission: Arc<Admission>,
    tls: TlsAcceptor,
    /// Value of the `Alt-Svc` field that names HTTP/3.
    alt_svc: Option<HeaderValue>,
    /// Maximum duration of a TLS handshake, and of the arrival of a request's content.
    request_limit: Duration,
    /// Maximum time that a client may leave its connection unused.
    idle_limit: Duration,
    totals: Arc<TcpTotals>,
    proxies: Arc<Proxies>,
    /// Number of responses in progress.
    running: AtomicU64,
}

/// The library over TCP. Dropping it aborts all responses in progress.
pub(super) struct TcpServer {
    pub(super) service: Arc<TcpService>,
    context: Arc<TcpContext>,
}

impl TcpServer {
    /// Serves the site of `server` on `listener`, behind `proxies`, on the same port number as HTTP/3. Counts refusals
    /// and evictions in `totals`.
    pub(super) fn start(
        listener: TcpListener,
        server: &VideoServer,
        options: &ServerOptions,
        (totals, proxies): (Arc<TcpTotals>, Arc<Proxies>),
    ) -> anyhow::Result<Self> {
        let port = listener.local_addr().ok().map(|address| address.port());
        let alt_svc = port.map(|port| format!("h3=\":{port}\"; ma={}", ALT_SVC_AGE.as_secs()));
        let context = Arc::new(TcpContext {
            site: Arc::clone(server.site()),
            admission: Arc::clone(server.admission()),
            tls: options.certificates.tcp_config(&PROTOCOLS)?.into(),
            alt_svc: alt_svc.and_then(|value| HeaderValue::try_from(value).ok()),
            request_limit: options.request_timeout,
            idle_limit: options.stall_timeout,
            totals,
            proxies,
            running: AtomicU64::new(0),
        });
        let places = PlaceLimits {
            connections: options.max_connections,
            unused_per_address: options.max_connections_per_address,
            evict_after: options.evict_after,
        };
        let shared = Arc::clone(&context);
        let service = TcpService::start(listener, move |listener, stop| {
            let (context, stopped) = (Arc::clone(&shared), stop.clone());
            let counted = (Arc::clone(&context.totals), Arc::clone(&context.proxies));
            let acceptor = Acceptor::new(listener, "media", places, counted);
            acceptor.run(stop, move |stream, peer, activity| {
                connection::serve(stream, (peer, activity), Arc::clone(&context), stopped.clone())
            })
        })?;
        Ok(Self { service, context })
    }

    /// Stops accepting connections and requests, waits for responses, and aborts those still running after `deadline`.
    /// Returns the number of aborted responses.
    pub(super) async fn shutdown(&self, deadline: Duration) -> u64 {
        self.service.stop();
        let ended = time::timeout(&TokioRuntime, deadline, self.service.idle());
        if ended.await.is_ok() {
            return 0;
        }
        let cut = self.context.running.load(Relaxed);
        self.service.abort().await;
        cut
    }
}

#[cfg(test)]
mod tests;
