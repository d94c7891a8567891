//! Clients that hold connections without using them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use playrate_transport::{Activity, ControllerChoice, Identity, Places, Server};
use quinn::Runtime;
use rstest::rstest;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use video_server::library::Library;
use video_server::serve::Settings;

use super::*;

const SHORT: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(600);

/// A server with limits of the handshake and of idle time, its directory, its address, and its certificate.
struct TestServer {
    directory: tempfile::TempDir,
    address: std::net::SocketAddr,
    certificate: CertificateDer<'static>,
    server: TcpServer,
}

impl TestServer {
    fn start((handshake, idle): (Duration, Duration)) -> Self {
        let identity = Identity::development(&[]).unwrap();
        let certificate = CertificateDer::from_pem_slice(identity.certificate_pem().as_bytes()).unwrap();
        let mut options = ServerOptions::new(identity);
        (options.request_timeout, options.stall_timeout) = (handshake, idle);
        let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
        let any = "127.0.0.1:0".parse().unwrap();
        let transport = Server::bind(any, Arc::clone(&runtime), options.clone()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(directory.path().join("long.bin")).unwrap();
        file.set_len(64 << 20).unwrap();
        let library = Library::scan(directory.path()).unwrap();
        let mut settings = Settings::new("cubic".parse::<ControllerChoice>().unwrap());
        settings.event_path = Some("/cmcd".to_owned());
        let server = VideoServer::start(transport, runtime, library, settings);
        let listener = listen(any).unwrap();
        let address = listener.local_addr().unwrap();
        Self {
            directory,
            address,
            certificate,
            server: TcpServer::start(listener, &server, &options, Default::default()).unwrap(),
        }
    }

    /// A TLS connection for this protocol.
    async fn connect(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        let config = playrate_test_support::tls_config(&self.certificate, protocol);
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
        connecting.await.unwrap()
    }

    /// Connects over HTTP/2, sends a PING every 50 ms, and begins `responses` responses without reading them. Waits for
    /// the server to end the connection.
    async fn hold(&self, responses: usize) {
        let stream = self.connect(b"h2").await;
        let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(Duration::from_millis(50))
            .keep_alive_timeout(LONG)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(stream))
            .await
            .unwrap();
        let mut driving = JoinSet::new();
        driving.spawn(connection);
        let mut open = Vec::new();
        for _ in 0..responses {
            let uri: Uri = "https://localhost/long.bin".parse().unwrap();
            let request = Request::get(uri).body(Empty::<Bytes>::new()).unwrap();
            // On a busy machine, the connection may have ended by now.
            open.extend(sender.send_request(request).await.ok());
        }
        let ended = time::timeout(&TokioRuntime, LONG, driving.join_next()).await;
        assert!(ended.is_ok(), "the connection is still open");
        assert!(self.directory.path().exists());
    }
}

#[tokio::test]
async fn a_client_that_never_begins_tls_is_disconnected() {
    let server = TestServer::start((SHORT, LONG));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let read = time::timeout(&TokioRuntime, LONG, stream.read(&mut [0; 1])).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
}

#[rstest]
#[case::without_requests(0)]
#[case::with_responses_that_are_not_read(3)]
#[tokio::test]
async fn pings_do_not_keep_a_connection_open(#[case] responses: usize) {
    let server = TestServer::start((LONG, SHORT));
    server.hold(responses).await;
}

/// RFC 9218: of two responses of 2 MB, most of one arrives before most of the other.
#[rstest]
#[case::more_urgent("u=6, i", "u=1", true)]
#[case::less_urgent("u=2", "u=3", false)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_urgent_response_overtakes(#[case] earlier: &str, #[case] later: &str, #[case] overtakes: bool) {
    let server = TestServer::start((LONG, LONG));
    let (mut sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(50_000)
        .initial_connection_window_size(100_000)
        .handshake(TokioIo::new(server.connect(b"h2").await))
        .await
        .unwrap();
    let mut driving = JoinSet::new();
    driving.spawn(connection);
    let mut bodies = Vec::new();
    for priority in [earlier, later] {
        let request = Request::get("https://localhost/long.bin")
            .header("range", "bytes=0-1999999")
            .header("priority", priority);
        let request = request.body(Empty::<Bytes>::new()).unwrap();
        bodies.push(sender.send_request(request).await.unwrap().into_body());
    }
    let order = std::sync::Mutex::new(Vec::new());
    let read = async |number: usize, mut body: hyper::body::Incoming| {
        while let Some(frame) = body.frame().await {
            order
                .lock()
                .unwrap()
                .push((number, frame.unwrap().into_data().unwrap().len()));
        }
    };
    let [earlier, later] = bodies.try_into().unwrap();
    tokio::join!(read(0, earlier), read(1, later));
    let order = order.into_inner().unwrap();
    playrate_test_support::assert_order(&order, overtakes);
}

const REQUEST: &[u8] = b"GET /long.bin HTTP/1.1\r\nHost: localhost\r\n\r\n";

#[rstest]
#[case::without_a_request(b"")]
#[case::with_a_response_that_is_not_read(REQUEST)]
#[tokio::test]
async fn a_silent_client_is_disconnected(#[case] request: &[u8]) {
    let server = TestServer::start((LONG, SHORT));
    let mut stream = server.connect(b"http/1.1").await;
    stream.write_all(request).await.unwrap();
    let ended = async {
        while server.server.context.totals.open() > 0 {
            time::sleep(&TokioRuntime, SHORT / 20).await;
        }
    };
    let ended = time::timeout(&TokioRuntime, LONG, ended).await;
    assert!(ended.is_ok(), "the connection is still open");
}

#[tokio::test]
async fn a_report_that_does_not_arrive_in_time_is_answered_with_408() {
    let server = TestServer::start((SHORT, LONG));
    let mut stream = server.connect(b"http/1.1").await;
    let begun = "POST /cmcd HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\ne=ps";
    stream.write_all(begun.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}

#[tokio::test]
async fn a_client_that_reads_slowly_stays_connected() {
    let server = TestServer::start((LONG, 2 * SHORT));
    let mut stream = server.connect(b"http/1.1").await;
    stream.write_all(REQUEST).await.unwrap();
    // More than the buffers of both sockets hold, and longer in total than the limit.
    let mut part = vec![0; 6 << 20];
    for _ in 0..10 {
        time::sleep(&TokioRuntime, SHORT / 3).await;
        stream.read_exact(&mut part).await.unwrap();
    }
}

#[tokio::test]
async fn a_request_on_a_connection_that_makes_room_is_answered_with_503() {
    let server = TestServer::start((LONG, LONG));
    let mut places = Places::<()>::new(PlaceLimits {
        connections: 2,
        unused_per_address: 2,
        evict_after: Duration::ZERO,
    });
    let [first, second, newcomer] = [(); 3].map(|()| Activity::new(Arc::new(TokioRuntime)));
    let displaced =
        connection::TcpConnection::new(Arc::clone(&server.server.context), server.address, first.clone());
    let displaced = Arc::new(displaced);
    let request = Request::get("https://localhost/long.bin").version(http::Version::HTTP_2);
    let request = request.body(()).unwrap();
    let answer = connection::answer(request.clone(), Some(Bytes::new()), &displaced);
    assert_eq!(answer.await.status(), 200);
    // Makes the other one the longest idle.
    drop(second.begin());
    for (address, activity) in [
        ("192.0.2.1", first),
        ("192.0.2.1", second),
        ("198.51.100.1", newcomer),
    ] {
        let address: std::net::IpAddr = address.parse().unwrap();
        places.take(address, activity).unwrap();
    }
    assert_eq!(places.evicted(), 1);
    let response = connection::answer(request, Some(Bytes::new()), &displaced).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_acceptor_refuses_clients_while_a_connection_is_open() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let limits = PlaceLimits {
        connections: 2,
        unused_per_address: 2,
        evict_after: LONG,
    };
    let accepted = Arc::new(TcpTotals::default());
    let acceptor = Acceptor::new(listener, "tests", limits, (Arc::clone(&accepted), Arc::default()));
    let ((end, ended), (stop, stopped)) = (watch::channel(()), watch::channel(false));
    let client = TcpStream::connect(address).await.unwrap();
    let mut running = JoinSet::new();
    running.spawn(acceptor.run(stopped, move |_, _, _| {
        let mut ended = ended.clone();
        async move { drop(ended.changed().await) }
    }));
    playrate_test_support::until("the client is accepted", async || accepted.open() == 1).await;
    stop.send_replace(true);
    let is_refused = async || std::net::TcpStream::connect(address).is_err();
    playrate_test_support::until("others are refused", is_refused).await;
    assert_eq!(accepted.open(), 1);
    drop((client, end));
    running.join_all().await;
}
