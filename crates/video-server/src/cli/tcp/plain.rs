//! Plain HTTP/1.1 for the operator's pages and for redirects, with immediate responses.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use playrate_transport::{Activity, PlaceLimits};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{Acceptor, Proxies};

/// Limits of connections; a page or a scraper has one. A response takes no time, so a used connection always makes
/// room, and no client can hold the port, on which supervisors ask for the server's health.
const LIMITS: PlaceLimits = PlaceLimits {
    connections: 64,
    unused_per_address: 16,
    evict_after: Duration::ZERO,
};
/// Maximum time until the head of a request is complete, including the pause before it.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves connections of `listener`, which are for this `purpose` and may come from `proxies`, until `stop` is true.
pub(crate) fn serve_plain(
    listener: TcpListener,
    (purpose, proxies): (&'static str, Arc<Proxies>),
    stop: watch::Receiver<bool>,
    answer: impl Fn(&Request<Incoming>, SocketAddr) -> Response<Full<Bytes>> + Clone + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    let acceptor = Acceptor::new(listener, purpose, LIMITS, (Arc::default(), proxies));
    acceptor.run(stop.clone(), move |stream, peer, activity| {
        let answer = answer.clone();
        serve(stream, activity, stop.clone(), move |request| {
            answer(request, peer)
        })
    })
}

/// Serves one connection until it ends, has to make room for another, or `stop` is true.
async fn serve(
    stream: TcpStream,
    activity: Activity,
    mut stop: watch::Receiver<bool>,
    answer: impl Fn(&Request<Incoming>) -> Response<Full<Bytes>>,
) {
    let used = activity.clone();
    let service = service_fn(move |request| {
        drop(used.begin());
        let response = answer(&request);
        async move { Ok::<_, Infallible>(response) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        biased;
        _ = stop.wait_for(|&stop| stop) => {}
        () = activity.expired(None) => {}
        ended = served => {
            if let Err(error) = ended {
                tracing::debug!(%error, "a connection without TLS ended early");
            }
        }
    }
}
