//! The real `video-server` under clients that mean harm, over loopback at a bounded rate, while a good client must be
//! served as ever.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot set up its attack has nothing better to do than panic"
)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use http::header::RANGE;
use playrate::transport::{Client, ClientOptions, ConnectError, Connection, Target, Trust, time};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{Runtime, TokioRuntime};
use rustls::RootCertStore;
use support::{Server, TITLE, films};

#[expect(dead_code, reason = "a server is all that these tests need of it")]
#[path = "../needs/support.rs"]
mod support;

/// Bytes of the title that a good client fetches.
const LENGTH: usize = 100_000;

/// A server with metrics, and the directory that it serves.
fn start(limits: &[&str]) -> (Server, tempfile::TempDir) {
    let films = films();
    let server = Server::start(films.path(), &[&["--metrics", "127.0.0.1:0"], limits].concat());
    (server, films)
}

async fn sleep(time: Duration) {
    time::sleep(&TokioRuntime, time).await;
}

/// Connects from `source` to `server`, with a client of its own.
async fn connect(source: Ipv4Addr, server: &Target, trust: Trust) -> Result<Connection, ConnectError> {
    let runtime = Arc::new(TokioRuntime);
    let socket = runtime
        .wrap_udp_socket(UdpSocket::bind((source, 0)).unwrap())
        .unwrap();
    let client = Client::new(runtime, socket, ClientOptions::new(trust)).unwrap();
    client.connect(server).await
}

fn target(server: &Server) -> Target {
    Target::at("localhost", server.address().parse().unwrap())
}

fn trust(server: &Server) -> Trust {
    Trust::Pin(server.said("Pin").parse().unwrap())
}

/// Has a good client connect and fetch the beginning of the title.
async fn fetch(server: &Server) -> Result<(), ConnectError> {
    let connection = connect(Ipv4Addr::LOCALHOST, &target(server), trust(server)).await?;
    let mut range = HeaderMap::new();
    range.insert(RANGE, format!("bytes=0-{}", LENGTH - 1).parse().unwrap());
    let (_, mut body) = connection.get(&format!("/{TITLE}"), range).await.unwrap();
    let mut received = 0;
    while let Some(chunk) = body.chunk().await.unwrap() {
        received += chunk.len();
    }
    assert_eq!(received, LENGTH);
    Ok(())
}

/// Value of a metric of the server.
fn metric(server: &Server, name: &str) -> u64 {
    let address = server.said("Metrics").trim_start_matches("http://");
    let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
    write!(
        stream,
        "GET /metrics HTTP/1.1\r\nHost: metrics\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let line = answer
        .lines()
        .find_map(|line| line.strip_prefix(&format!("{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {answer}"))
        .parse()
        .unwrap()
}

/// The first packets of `count` clients, which only an answer would tell from good ones.
fn first_packets(count: usize, server: SocketAddr) -> Vec<Vec<u8>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let mut endpoint = quinn_proto::Endpoint::new(Arc::default(), None, false, None);
    let mut packets = Vec::new();
    for _ in 0..count {
        let now = TokioRuntime.now();
        let (_, mut connection) = endpoint
            .connect(now, config.clone(), server, "localhost")
            .unwrap();
        let mut packet = Vec::new();
        assert!(connection.poll_transmit(now, 1, &mut packet).is_some());
        packets.push(packet);
    }
    packets
}

/// The `number`-th of the attackers' addresses, all of this machine.
fn attacker(number: usize) -> Ipv4Addr {
    let [.., high, low] = number.to_be_bytes();
    Ipv4Addr::new(127, 66, high, low)
}

/// 1,000 first packets from 1,000 addresses within some seconds, none of which is followed by a second one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_forged_first_packets_locks_no_client_out() {
    let (server, _films) = start(&["--max-connections", "32"]);
    let address = server.address().parse().unwrap();
    let packets = first_packets(1_000, address);
    let flood = tokio::spawn(async move {
        for (number, packet) in packets.iter().enumerate() {
            let socket = UdpSocket::bind((attacker(number), 0)).unwrap();
            socket.send_to(packet, address).unwrap();
            sleep(Duration::from_millis(2)).await;
        }
    });
    while !flood.is_finished() {
        fetch(&server).await.unwrap();
    }
    flood.await.unwrap();
    fetch(&server).await.unwrap();
    assert_eq!(metric(&server, "playrate_refused_connections_total"), 0);
    assert!(metric(&server, "playrate_retried_handshakes_total") > 500);
}

/// Connections from many addresses that occupy all places and request nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_from_many_addresses_lock_no_client_out() {
    let (server, _films) = start(&["--max-connections", "16"]);
    let mut idle = Vec::new();
    for number in 0..32 {
        idle.extend(
            connect(attacker(number), &target(&server), trust(&server))
                .await
                .ok(),
        );
    }
    assert!(idle.len() >= 16, "the attackers have all places");
    // Idle connections make room after 20 s.
    for _ in 0..120 {
        if fetch(&server).await.is_ok() {
            assert!(metric(&server, "playrate_evicted_connections_total") > 0);
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
    panic!("a good client never got a place");
}
