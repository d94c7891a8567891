//! The library over TCP: HTTP/1.1 and HTTP/2, as clients of other implementations use them.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use playrate_transport::time;
use quinn::TokioRuntime;
use rstest::rstest;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::cli::process::{refused, start};
use crate::http3::common::headers;
use playrate_test_support::{Media, PATIENCE, ServerProcess, assert_contains, certify, tls_config, until};

/// Media, and a certificate that TCP clients can trust.
pub(crate) struct Site {
    pub(crate) directory: Media,
    certificate: CertificateDer<'static>,
}

impl Site {
    pub(crate) fn new() -> Self {
        let directory = Media::new();
        directory.copy("progressive-moov-first.mp4", "media/film.mp4");
        directory.put("media/long.bin", vec![7; 64 << 20]);
        directory.put("media/manifest.mpd", "<MPD/>");
        Self {
            certificate: certify(directory.root()),
            directory,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path(name)
    }

    pub(crate) fn text(&self, name: &str) -> String {
        self.directory.text(name)
    }

    pub(crate) fn serve(&self, arguments: &[&str]) -> ServerProcess {
        self.serve_by(start, arguments)
    }

    /// Serves the media with the certificate; `start` starts the program.
    pub(crate) fn serve_by(
        &self,
        start: impl FnOnce(&Path, &[&str]) -> ServerProcess,
        arguments: &[&str],
    ) -> ServerProcess {
        let (certificate, key) = (self.text("cert.pem"), self.text("key.pem"));
        let identity = ["--cert", &certificate, "--key", &key];
        start(&self.path("media"), &[&identity, arguments].concat())
    }

    /// A TLS connection for this protocol.
    pub(crate) async fn open(&self, address: SocketAddr, protocol: &[u8]) -> TlsStream<TcpStream> {
        let config = tls_config(&self.certificate, protocol);
        let name = ServerName::try_from("localhost").unwrap();
        let connecting = async {
            let stream = TcpStream::connect(address).await.unwrap();
            let connector = TlsConnector::from(Arc::new(config));
            connector.connect(name, stream).await.unwrap()
        };
        // The kernel accepts connections even when no process serves them.
        let connected = time::timeout(&TokioRuntime, PATIENCE, connecting).await;
        let stream = connected.expect("the server answers over TCP in time");
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
        stream
    }

    pub(crate) async fn connect(&self, address: SocketAddr, version: Version) -> Sender {
        let newer = version == Version::HTTP_2;
        let protocol: &[u8] = if newer { b"h2" } else { b"http/1.1" };
        let stream = self.open(address, protocol).await;
        let mut driving = JoinSet::new();
        let sending = if newer {
            let executor = TokioExecutor::new();
            let (sender, connection) = http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
            driving.spawn(async move { connection.await.is_ok() });
            Sending::Two(sender)
        } else {
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
            driving.spawn(async move { connection.await.is_ok() });
            Sending::One(sender)
        };
        Sender { sending, driving }
    }
}

/// Names and values of a request's header fields.
type Fields<'a> = &'a [(&'a str, &'a str)];

/// Status, header fields and body of a response.
type Answer = (StatusCode, HeaderMap, Bytes);

enum Sending {
    One(http1::SendRequest<Full<Bytes>>),
    Two(http2::SendRequest<Full<Bytes>>),
}

/// A connection of one version.
pub(crate) struct Sender {
    sending: Sending,
    driving: JoinSet<bool>,
}

impl Sender {
    pub(crate) async fn start(
        &mut self,
        method: Method,
        path: &str,
        fields: Fields<'_>,
    ) -> Response<Incoming> {
        self.start_with((method, path), fields, Bytes::new()).await
    }

    async fn start_with(
        &mut self,
        (method, path): (Method, &str),
        fields: Fields<'_>,
        content: Bytes,
    ) -> Response<Incoming> {
        let authority = "localhost";
        let mut request = Request::builder().method(method);
        request = match &self.sending {
            Sending::One(_) => request.uri(path).header("host", authority),
            Sending::Two(_) => request.uri(format!("https://{authority}{path}")),
        };
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(content)).unwrap();
        match &mut self.sending {
            Sending::One(sender) => sender.send_request(request).await.unwrap(),
            Sending::Two(sender) => sender.send_request(request).await.unwrap(),
        }
    }

    pub(crate) async fn request(&mut self, method: Method, path: &str, fields: Fields<'_>) -> Answer {
        let (head, body) = self.start(method, path, fields).await.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        (head.status, head.headers, body)
    }

    pub(crate) async fn get(&mut self, path: &str, fields: Fields<'_>) -> Answer {
        self.request(Method::GET, path, fields).await
    }
}

pub(crate) fn field<'a>(fields: &'a HeaderMap, name: &str) -> &'a str {
    fields.get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn sessions_over_tcp_count_with_the_others() {
    let site = Site::new();
    let serving = site.serve(&["--max-sessions", "1", "--cors", "*"]);
    let mut first = site.connect(serving.address(), Version::HTTP_11).await;
    let mut second = site.connect(serving.address(), Version::HTTP_2).await;
    assert_eq!(first.get("/film.mp4", &[]).await.0, StatusCode::OK);
    let origin = [("origin", "https://player.test")];
    let (status, fields, _) = second.get("/film.mp4", &origin).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(field(&fields, "retry-after"), "10");
    // Without it the page would see a network failure instead of a full server.
    assert_eq!(field(&fields, "access-control-allow-origin"), "*");
    assert_eq!(second.get("/manifest.mpd", &[]).await.0, StatusCode::OK);
    assert_eq!(first.get("/film.mp4", &[]).await.0, StatusCode::OK);
}

#[rstest]
#[case(Version::HTTP_11)]
#[case(Version::HTTP_2)]
#[tokio::test]
async fn a_page_of_another_origin_may_report_events(#[case] version: Version) {
    let site = Site::new();
    let serving = site.serve(&["--cmcd-events", "/cmcd", "--cors", "*"]);
    let mut client = site.connect(serving.address(), version).await;
    let preflight = [
        ("origin", "https://player.test"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    let (status, fields, _) = client.request(Method::OPTIONS, "/cmcd", &preflight).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(
        field(&fields, "access-control-allow-methods"),
        "GET, HEAD, POST, OPTIONS"
    );
    assert_contains(field(&fields, "access-control-allow-headers"), &["Content-Type"]);
    let sent = [
        ("origin", "https://player.test"),
        ("content-type", "application/cmcd"),
    ];
    for (content, expected) in [
        (b"e=ps,sta=p,ts=1".to_vec(), StatusCode::NO_CONTENT),
        (b"e=t\n".repeat(100_000), StatusCode::PAYLOAD_TOO_LARGE),
        (Vec::new(), StatusCode::BAD_REQUEST),
    ] {
        // HTTP/1.1 ends a connection on which a request was not read to its end.
        let mut client = site.connect(serving.address(), version).await;
        let answer = client
            .start_with((Method::POST, "/cmcd"), &sent, content.into())
            .await;
        assert_eq!(answer.status(), expected);
        assert_eq!(field(answer.headers(), "access-control-allow-origin"), "*");
    }
    assert_eq!(client.get("/cmcd", &[]).await.0, StatusCode::NOT_FOUND);
}

#[rstest]
#[case(Version::HTTP_11)]
#[case(Version::HTTP_2)]
#[tokio::test]
async fn every_version_says_the_same_and_where_http_3_is(#[case] version: Version) {
    let site = Site::new();
    let serving = site.serve(&[]);
    let address = serving.address();
    let mut client = site.connect(address, version).await;
    let film = fs::read(site.path("media/film.mp4")).unwrap();

    let (status, fields, body) = client.get("/film.mp4", &[]).await;
    assert_eq!((status, body == film), (StatusCode::OK, true));
    assert_eq!(field(&fields, "content-type"), "video/mp4");
    assert_eq!(field(&fields, "content-length"), film.len().to_string());
    let alt_svc = format!("h3=\":{}\"; ma=86400", address.port());
    assert_eq!(field(&fields, "alt-svc"), alt_svc);
    assert_eq!(fields.get_all("date").iter().count(), 1);

    let (status, fields, body) = client.get("/film.mp4", &[("range", "bytes=1000-1999")]).await;
    assert_eq!(status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(&body[..], &film[1_000..2_000]);
    let range = format!("bytes 1000-1999/{}", film.len());
    assert_eq!(field(&fields, "content-range"), range);

    let etag = field(&fields, "etag").to_owned();
    let (status, _, body) = client.get("/film.mp4", &[("if-none-match", &etag)]).await;
    assert_eq!((status, body.len()), (StatusCode::NOT_MODIFIED, 0));

    let (status, fields, body) = client.request(Method::HEAD, "/film.mp4", &[]).await;
    assert_eq!((status, body.len()), (StatusCode::OK, 0));
    assert_eq!(field(&fields, "content-length"), film.len().to_string());

    let (_, fields, _) = client.get("/manifest.mpd", &[]).await;
    assert_eq!(field(&fields, "content-type"), "application/dash+xml");
    for (method, path, fields, expected) in [
        (Method::GET, "/none", &[][..], 404),
        (Method::GET, "/%2e%2e/cert.pem", &[], 404),
        (Method::GET, "/film.mp4", &[("range", "bytes=99999999-")], 416),
        (Method::DELETE, "/film.mp4", &[], 405),
    ] {
        assert_eq!(client.request(method, path, fields).await.0, expected, "{path}");
    }

    // HTTP/3 on the same port gives the same answer.
    let connection = serving.connect().await;
    let over_http_3 = connection.head("/film.mp4", HeaderMap::new()).await.unwrap();
    assert_eq!(over_http_3.headers()["etag"], etag);
    assert!(!over_http_3.headers().contains_key("alt-svc"));
}

#[rstest]
#[case(Version::HTTP_11)]
#[case(Version::HTTP_2)]
#[tokio::test]
async fn pages_of_other_origins_may_read_what_the_operator_lets_them(#[case] version: Version) {
    let site = Site::new();
    let serving = site.serve(&["--cors", "https://player.example"]);
    let mut client = site.connect(serving.address(), version).await;
    let preflight = [
        ("origin", "https://player.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "cmcd-request,range"),
    ];
    let (status, fields, _) = client.request(Method::OPTIONS, "/film.mp4", &preflight).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert!(field(&fields, "access-control-allow-headers").contains("CMCD-Request"));
    let (_, fields, _) = client.get("/film.mp4", &preflight[..1]).await;
    let allowed = "access-control-allow-origin";
    assert_eq!(field(&fields, allowed), "https://player.example");
    assert!(field(&fields, "access-control-expose-headers").contains("CMSD-Dynamic"));
    let other = [("origin", "https://other.example")];
    let (_, fields, _) = client.get("/film.mp4", &other).await;
    assert!(!fields.contains_key(allowed));
    assert_eq!(field(&fields, "vary"), "Origin");
    // The same over HTTP/3.
    let connection = serving.connect().await;
    let over_http_3 = connection
        .head("/film.mp4", headers(&preflight[..1]))
        .await
        .unwrap();
    assert_eq!(field(over_http_3.headers(), allowed), "https://player.example");
}

#[rstest]
#[case(Version::HTTP_11)]
#[case(Version::HTTP_2)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_under_way_ends_before_the_server_does(#[case] version: Version) {
    let site = Site::new();
    let serving = site.serve(&["--drain-timeout", "1min"]);
    let mut client = site.connect(serving.address(), version).await;
    let mut response = client.start(Method::GET, "/long.bin", &[]).await;
    let first = response.frame().await.unwrap().unwrap();
    serving.signal("TERM");
    let rest = response.collect().await.unwrap().to_bytes();
    assert_eq!(first.into_data().unwrap().len() + rest.len(), 64 << 20);
    assert_eq!(client.driving.join_next().await.unwrap().ok(), Some(true));
    serving.exits(0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_nobody_reads_is_cut_at_the_deadline_and_counted() {
    let site = Site::new();
    let serving = site.serve(&["--drain-timeout", "300ms"]);
    let mut client = site.connect(serving.address(), Version::HTTP_11).await;
    let _response = client.start(Method::GET, "/long.bin", &[]).await;
    serving.signal("TERM");
    assert_contains(&serving.exits(1), &["aborted 1 response"]);
}

#[tokio::test]
async fn what_is_no_tls_ends_its_connection_and_nothing_else() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let site = Site::new();
    let serving = site.serve(&[]);
    let mut plain = TcpStream::connect(serving.address()).await.unwrap();
    plain
        .write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = Vec::new();
    // A TLS alert or a reset.
    let read = time::timeout(&TokioRuntime, PATIENCE, plain.read_to_end(&mut answer)).await;
    assert!(read.is_ok() && answer.len() < 100);
    let mut client = site.connect(serving.address(), Version::HTTP_11).await;
    assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
}

#[rstest]
#[case::in_all("--max-connections", "too many connections are open")]
#[case::from_an_address(
    "--max-connections-per-address",
    "too many connections without a request are open from its address"
)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_names_the_limit_that_refused_a_connection(#[case] option: &str, #[case] reason: &str) {
    let site = Site::new();
    let serving = site.serve(&[option, "2"]);
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(TcpStream::connect(serving.address()).await.unwrap());
    }
    serving.logs(reason, 1).await;
    drop(clients);
    let log = serving.stop();
    let line = log.lines().find(|line| line.contains(reason)).unwrap();
    assert_contains(line, &["limit=2"]);
}

#[tokio::test]
async fn connections_beyond_the_limit_are_refused_and_places_are_given_back() {
    let site = Site::new();
    let serving = site.serve(&["--max-connections", "1"]);
    let mut first = site.connect(serving.address(), Version::HTTP_11).await;
    assert_eq!(first.get("/film.mp4", &[]).await.0, StatusCode::OK);
    let mut second = TcpStream::connect(serving.address()).await.unwrap();
    let mut nothing = [0; 1];
    let read = tokio::io::AsyncReadExt::read(&mut second, &mut nothing).await;
    assert!(!matches!(read, Ok(1..)), "{read:?}");
    drop(first);
    until("the place is given back", async || {
        let stream = TcpStream::connect(serving.address()).await.unwrap();
        let mut ready = [0; 1];
        // A server with room waits for the client to speak first.
        let peek = stream.peek(&mut ready);
        time::timeout(&TokioRuntime, Duration::from_millis(300), peek)
            .await
            .is_err()
    })
    .await;
}

#[tokio::test]
async fn a_renewed_certificate_shows_after_a_hang_up() {
    let mut site = Site::new();
    let serving = site.serve(&[]);
    let mut old = site.connect(serving.address(), Version::HTTP_2).await;
    site.certificate = certify(site.directory.root());
    serving.signal("HUP");
    serving.logs("new connections get the new certificate", 1).await;
    // It trusts only the new one.
    let mut new = site.connect(serving.address(), Version::HTTP_2).await;
    for sender in [&mut old, &mut new] {
        let (status, _, body) = sender.get("/manifest.mpd", &[]).await;
        assert_eq!((status, body.len()), (StatusCode::OK, 6));
    }
}

#[test]
fn without_tcp_nothing_listens_there() {
    let site = Site::new();
    let serving = site.serve(&["--no-tcp"]);
    assert!(serving.announced("Listening on").ends_with("(UDP)"));
    assert!(std::net::TcpStream::connect(serving.address()).is_err());
}

#[test]
fn a_taken_tcp_port_is_reported_with_a_correction() {
    let site = Site::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let errors = refused(&["serve", "--media", &site.text("media"), "--listen", &address]);
    let port = taken.local_addr().unwrap().port().to_string();
    assert_contains(&errors, &[&port, "TCP", "in use", "--no-tcp"]);
}
