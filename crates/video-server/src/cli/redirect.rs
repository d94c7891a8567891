//! The listener of `--redirect-from`: answers requests over HTTP without TLS with the same URL over HTTPS.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::anyhow;
use bytes::Bytes;
use http::header::{CONNECTION, HOST, LOCATION};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use playrate_transport::{Certificates, time};
use quinn::{Runtime, TokioRuntime};
use video_server::serve::VideoServer;

use super::Failure;
use super::tcp::{self, Proxies, TcpService, serve_plain};
use crate::serve::PendingRecord;

/// Pause between attempts to open a socket that an older process of this server still has.
const PAUSE: Duration = Duration::from_millis(200);
/// Number of attempts before a warning: after 10 s.
const WARNS_AT: u32 = 50;

/// Opens the socket, and returns the task that redirects clients, also behind `proxies`, to the names of `server`. If
/// an older process of this server `may_end`, the task opens the socket after it. `port` is that of HTTPS
/// as clients see it.
pub(super) fn start(
    address: SocketAddr,
    may_end: bool,
    server: &VideoServer,
    (port, proxies): (u16, Arc<Proxies>),
) -> Result<impl Future<Output = ()> + use<>, Failure> {
    let (runtime, server): (Arc<dyn Runtime>, _) = (Arc::new(TokioRuntime), server.clone());
    let believed = Arc::clone(&proxies);
    let logged = move |request: &Request<Incoming>, peer: SocketAddr| {
        let client = believed.client(peer, request.headers());
        let mut record = PendingRecord::begin(server.site(), &runtime, client, request);
        let response = answer(request, server.transport().certificates(), port);
        if let Some(record) = &mut record {
            record.begin_response(response.status(), 0);
            record.served.is_complete = true;
        }
        response
    };
    let mut listener = tcp::listen(address);
    if let Err(error) = &listener
        && !(may_end && error.kind() == io::ErrorKind::AddrInUse)
    {
        return Err(Failure::Input(anyhow!(
            "--redirect-from {address}: {error}; expected a free port of this machine that this user may listen on"
        )));
    }
    Ok(async move {
        for attempt in 0_u32.. {
            let (logged, proxies) = (logged.clone(), Arc::clone(&proxies));
            let started = listener.and_then(|listener| {
                TcpService::start(listener, move |listener, stop| {
                    let purpose = ("redirects", Arc::clone(&proxies));
                    serve_plain(listener, purpose, stop, logged.clone())
                })
            });
            match started {
                Ok(service) => return service.idle().await,
                Err(error) if attempt == WARNS_AT => {
                    tracing::warn!(%address, %error, "--redirect-from: cannot redirect clients yet");
                }
                Err(error) => tracing::debug!(%error, "cannot redirect clients yet"),
            }
            time::sleep(&TokioRuntime, PAUSE).await;
            listener = tcp::listen(address);
        }
    })
}

/// The redirect, unless the request names no host (400), or one that is not the server's (421): others could use the
/// server to send its users elsewhere.
fn answer<B>(request: &Request<B>, certificates: &Certificates, port: u16) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    let fields = response.headers_mut();
    // The client goes elsewhere.
    fields.insert(CONNECTION, HeaderValue::from_static("close"));
    *response.status_mut() = match host(request) {
        None => StatusCode::BAD_REQUEST,
        Some(host) if !certificates.are_for(host.host().trim_matches(['[', ']'])) => {
            StatusCode::MISDIRECTED_REQUEST
        }
        Some(host) => {
            let path = request.uri().path_and_query().map(PathAndQuery::as_str);
            // The form `*` of OPTIONS is no path.
            let path = path.filter(|path| path.starts_with('/')).unwrap_or("/");
            let port = if port == 443 {
                String::new()
            } else {
                format!(":{port}")
            };
            let location = format!("https://{}{port}{path}", host.host().to_ascii_lowercase());
            // A path of a request is a valid value.
            fields.extend(HeaderValue::try_from(location).map(|location| (LOCATION, location)));
            StatusCode::PERMANENT_REDIRECT
        }
    };
    response
}

/// The host of a request: that of its target, or else of its only `Host` (RFC 9112 §3.2).
fn host<B>(request: &Request<B>) -> Option<Authority> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host: Option<Authority> = hosts.next()?.to_str().ok()?.parse().ok();
    let host = host.filter(|host| hosts.next().is_none() && !host.as_str().contains('@'))?;
    Some(request.uri().authority().cloned().unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use playrate_transport::Identity;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("/film.mp4?a=b", &["films.example"], 443, Ok("https://films.example/film.mp4?a=b"))]
    #[case("/", &["Films.Example:80"], 4433, Ok("https://films.example:4433/"))]
    #[case("//evil.example/", &["films.example"], 443, Ok("https://films.example//evil.example/"))]
    #[case("http://evil.example/x", &["films.example"], 443, Err(421))]
    #[case("http://films.example/x", &["evil.example"], 443, Ok("https://films.example/x"))]
    #[case("*", &["films.example"], 443, Ok("https://films.example/"))]
    #[case("/", &["user@films.example"], 443, Err(400))]
    #[case("/", &["evil.example"], 443, Err(421))]
    #[case("/", &["films.example.evil.example"], 443, Err(421))]
    #[case("/", &["films.example@evil.example"], 443, Err(400))]
    #[case("/", &["127.0.0.1:80"], 443, Ok("https://127.0.0.1/"))]
    #[case("/", &["[::1]:80"], 443, Ok("https://[::1]/"))]
    #[case("/", &["192.0.2.1"], 443, Err(421))]
    #[case("/", &["films.example/evil"], 443, Err(400))]
    #[case("/", &[""], 443, Err(400))]
    #[case("/", &[], 443, Err(400))]
    #[case("/", &["films.example", "films.example"], 443, Err(400))]
    fn only_names_of_the_certificate_are_redirected(
        #[case] target: &str,
        #[case] hosts: &[&str],
        #[case] port: u16,
        #[case] expected: Result<&str, u16>,
    ) {
        let identity = Identity::development(&["films.example".to_owned()]).unwrap();
        let mut request = Request::builder().uri(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let response = answer(&request.body(()).unwrap(), &identity.into(), port);
        let location = response
            .headers()
            .get(LOCATION)
            .map(|value| value.to_str().unwrap());
        let found = location.ok_or(response.status().as_u16());
        assert_eq!(found, expected);
        assert_eq!(found.is_ok(), response.status() == StatusCode::PERMANENT_REDIRECT);
    }
}
