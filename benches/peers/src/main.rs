//! Cost of a bulk response to the server, and latency of small ones, over loopback: quinn, `video-server`, s2n-quic and
//! Caddy, each once per round, in changing order.
//!
//! `cargo run --release [-- [ROUNDS] [MEGABYTES]]`; `-- viewers [COUNT] [RTT]` compares `video-server`, Caddy and nginx
//! with viewers over HTTP/3, `-- tcp [MEGABYTES]` over HTTP/2 and HTTP/1.1. Server and client each have a thread, a
//! runtime and, on Linux, a processor, and each implementation has its own client. CPU time is that of the server's
//! thread, which is little affected by other work on the machine; Caddy is a separate process.

#[expect(dead_code, reason = "memory is not measured here")]
#[path = "../../../tests/support/src/usage.rs"]
mod process;
#[path = "../../common/processor.rs"]
mod processor;
mod servers;
mod slow_receiver;
mod viewers;

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use playrate_transport::{
    AckRequest, Client, ClientOptions, Identity, Pin, Server, ServerOptions, Target, TransportOptions, Trust,
    udp_socket,
};
use process::Process;
use processor::{run, used};
use quinn::{Endpoint, Runtime, TokioRuntime};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use servers::{Caddy, Certificate};
use slow_receiver::TwoAtATime;
use video_server::library::Library;
use video_server::serve::{Settings, VideoServer};

const CHUNK: usize = 64 << 10;
/// Sizes of the responses whose latency is measured, with their names.
const SMALL: [(u64, &str); 2] = [(100, "100 B"), (200_000, "200 kB")];
const EXCHANGES: usize = 300;

/// ACK frames of the client.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Acks {
    /// One for everything found in the socket.
    PerRead,
    /// One for two packets, unless the server asks for others.
    PerTwo(Option<AckRequest>),
}

/// Spec of the controller that `video-server` uses.
const CONTROLLER: &str = "cubic";

#[derive(Clone, Copy)]
enum Subject {
    /// One copying write after another.
    Quinn,
    /// Our server as a whole, with files, over HTTP/3.
    VideoServer(Acks),
    S2n,
    /// From a file, over HTTP/3.
    Caddy,
}

const COUNT: usize = 7;
const SUBJECTS: [(Subject, &str); COUNT] = [
    (Subject::Quinn, "quinn, `write_all` from memory"),
    (Subject::S2n, "s2n-quic, from memory"),
    (Subject::VideoServer(Acks::PerRead), "`video-server`, from a file"),
    (
        Subject::VideoServer(Acks::PerTwo(None)),
        "the same, an ACK frame per 2 packets",
    ),
    (
        Subject::VideoServer(Acks::PerTwo(Some(AckRequest::new(10)))),
        "the same, asked for one per 10",
    ),
    (
        Subject::VideoServer(Acks::PerTwo(Some(AckRequest::new(32)))),
        "the same, asked for one per 32",
    ),
    // The last, so that it can be left out.
    (Subject::Caddy, "Caddy, from a file"),
];

/// Measurements of one run.
#[derive(Clone, Default)]
struct Run {
    /// CPU seconds of the server's thread per GB, and GB per second.
    cpu: f64,
    speed: f64,
    /// Time from the request to the last byte, for each of [`SMALL`].
    latencies: [Vec<f64>; SMALL.len()],
}

type Certified = rcgen::CertifiedKey<rcgen::KeyPair>;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn transport(options: &TransportOptions) -> Arc<quinn::TransportConfig> {
    Arc::new(options.to_quinn().unwrap())
}

/// Answers every stream of one connection with as many bytes as it asks for.
async fn serve_quinn(identity: &Certified, ready: mpsc::Sender<SocketAddr>) {
    let options = TransportOptions::server();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let chain = vec![identity.cert.der().clone()];
    let mut config = quinn::ServerConfig::with_single_cert(chain, key.into()).unwrap();
    config.transport_config(transport(&options));
    let socket = udp_socket(LOOPBACK).unwrap();
    let runtime = Arc::new(TokioRuntime);
    let endpoint = Endpoint::new(options.to_endpoint().unwrap(), Some(config), socket, runtime).unwrap();
    ready.send(endpoint.local_addr().unwrap()).unwrap();
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let chunk = vec![7; CHUNK];
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut asked = [0; 8];
        receive.read_exact(&mut asked).await.unwrap();
        let mut left = u64::from_be_bytes(asked) as usize;
        while left > 0 {
            let piece = &chunk[..left.min(CHUNK)];
            left -= piece.len();
            send.write_all(piece).await.unwrap();
        }
        send.finish().unwrap();
    }
    endpoint.wait_idle().await;
}

/// Name of the file of this many bytes.
fn file_name(size: u64) -> String {
    format!("{size}.bin")
}

/// Serves the files in `media` until one session has ended.
async fn serve_files(media: &Path, acks: Acks, ready: mpsc::Sender<(SocketAddr, Pin)>) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let identity = Identity::development(&[]).unwrap();
    let pin = identity.pin();
    let server = Server::bind(LOOPBACK, Arc::clone(&runtime), ServerOptions::new(identity)).unwrap();
    ready.send((server.local_addr().unwrap(), pin)).unwrap();
    let mut settings = Settings::new(CONTROLLER.parse().unwrap());
    if let Acks::PerTwo(request) = acks {
        settings.ack_request = request;
    }
    let server = VideoServer::start(server, runtime, Library::scan(media).unwrap(), settings);
    while server.totals().sessions == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn fetch_files((address, pin): (SocketAddr, Pin), acks: Acks, megabytes: u64) -> Run {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let mut socket = runtime.wrap_udp_socket(udp_socket(LOOPBACK).unwrap()).unwrap();
    if acks != Acks::PerRead {
        socket = TwoAtATime::new(socket);
    }
    let client = Client::new(runtime, socket, ClientOptions::new(Trust::Pin(pin))).unwrap();
    let connection = client.connect(&Target::at("localhost", address)).await.unwrap();
    let fetch = async |size: u64| {
        let began = Instant::now();
        let path = format!("/{}", file_name(size));
        let (_, mut body) = connection.get(&path, http::HeaderMap::new()).await.unwrap();
        let mut received = 0;
        while let Some(piece) = body.chunk().await.unwrap() {
            received += piece.len() as u64;
        }
        assert_eq!(received, size);
        began.elapsed()
    };
    let run = measure(fetch, megabytes).await;
    connection.close();
    client.wait_idle().await;
    run
}

async fn fetch_quinn(certificate: CertificateDer<'static>, server: SocketAddr, megabytes: u64) -> Run {
    let options = TransportOptions::client();
    let socket = udp_socket(LOOPBACK).unwrap();
    let endpoint = Endpoint::new(
        options.to_endpoint().unwrap(),
        None,
        socket,
        Arc::new(TokioRuntime),
    )
    .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
    config.transport_config(transport(&options));
    let connection = endpoint
        .connect_with(config, server, "localhost")
        .unwrap()
        .await
        .unwrap();
    let fetch = async |size: u64| {
        let began = Instant::now();
        let (mut send, mut receive) = connection.open_bi().await.unwrap();
        send.write_all(&size.to_be_bytes()).await.unwrap();
        let mut received = 0;
        while let Some(piece) = receive.read_chunk(CHUNK, true).await.unwrap() {
            received += piece.bytes.len() as u64;
        }
        assert_eq!(received, size);
        began.elapsed()
    };
    let run = measure(fetch, megabytes).await;
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    run
}

async fn serve_s2n(identity: &Certified, ready: mpsc::Sender<SocketAddr>) {
    let (chain, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    let mut server = s2n_quic::Server::builder()
        .with_tls((chain.as_str(), key.as_str()))
        .unwrap()
        .with_io(LOOPBACK)
        .unwrap()
        .start()
        .unwrap();
    ready.send(server.local_addr().unwrap()).unwrap();
    let mut connection = server.accept().await.unwrap();
    let chunk = Bytes::from(vec![7; CHUNK]);
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        let (mut receive, mut send) = stream.split();
        let mut asked = Vec::new();
        while asked.len() < 8 {
            asked.extend_from_slice(&receive.receive().await.unwrap().unwrap());
        }
        let mut left = u64::from_be_bytes(asked[..8].try_into().unwrap()) as usize;
        while left > 0 {
            let piece = chunk.slice(..left.min(CHUNK));
            left -= piece.len();
            send.send(piece).await.unwrap();
        }
        send.finish().unwrap();
    }
}

async fn fetch_s2n(certificate: String, server: SocketAddr, megabytes: u64) -> Run {
    let client = s2n_quic::Client::builder()
        .with_tls(certificate.as_str())
        .unwrap()
        .with_io(LOOPBACK)
        .unwrap()
        .start()
        .unwrap();
    let connect = s2n_quic::client::Connect::new(server).with_server_name("localhost");
    let connection = client.connect(connect).await.unwrap();
    let handle = connection.handle();
    let fetch = async |size: u64| {
        let began = Instant::now();
        let stream = handle.clone().open_bidirectional_stream().await.unwrap();
        let (mut receive, mut send) = stream.split();
        send.send(Bytes::copy_from_slice(&size.to_be_bytes()))
            .await
            .unwrap();
        let mut received = 0;
        while let Some(piece) = receive.receive().await.unwrap() {
            received += piece.len() as u64;
        }
        assert_eq!(received, size);
        began.elapsed()
    };
    let run = measure(fetch, megabytes).await;
    handle.close(0_u32.into());
    tokio::time::sleep(Duration::from_millis(20)).await;
    run
}

/// A bulk response, or many small ones if there are no megabytes.
async fn measure(fetch: impl AsyncFn(u64) -> Duration, megabytes: u64) -> Run {
    let mut run = Run::default();
    if megabytes > 0 {
        run.speed = megabytes as f64 / 1e3 / fetch(megabytes * 1_000_000).await.as_secs_f64();
        return run;
    }
    for (latencies, (size, _)) in run.latencies.iter_mut().zip(SMALL) {
        for _ in 0..EXCHANGES {
            latencies.push(fetch(size).await.as_secs_f64() * 1e6);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    run
}

/// Runs `server` and `client` on separate threads. The client receives the value that the server sends when it is
/// ready.
fn transfer<R: Send>(
    megabytes: u64,
    server: impl AsyncFnOnce(mpsc::Sender<R>) + Send,
    client: impl AsyncFnOnce(R, u64) -> Run + Send,
) -> Run {
    let (ready, address) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let before = used();
            run(0, server(ready));
            used() - before
        });
        let client = scope.spawn(move || {
            let address = address.recv().unwrap();
            run(1, client(address, megabytes))
        });
        let mut run = client.join().unwrap();
        run.cpu = server.join().unwrap().as_secs_f64() / (megabytes as f64 / 1e3);
        run
    })
}

/// As [`transfer`], for Caddy, whose process is measured as a whole.
fn transfer_caddy(caddy: &Caddy, megabytes: u64, media: &Path) -> Run {
    let certificate = Certificate::new();
    let server = caddy.serve(media, &certificate);
    let used = || Process::read(server.id()).unwrap().processor_time;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, server.port));
    let before = used();
    let pin = certificate.pin;
    let mut run = std::thread::scope(|scope| {
        let client = scope.spawn(|| run(1, fetch_files((address, pin), Acks::PerRead, megabytes)));
        client.join().unwrap()
    });
    run.cpu = (used() - before).as_secs_f64() / (megabytes as f64 / 1e3);
    run
}

fn measure_subject(subject: Subject, megabytes: u64, media: &Path, caddy: &Result<Caddy, String>) -> Run {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, pem) = (identity.cert.der().clone(), identity.cert.pem());
    match subject {
        Subject::Quinn => transfer(
            megabytes,
            async |ready| serve_quinn(&identity, ready).await,
            async |address, megabytes| fetch_quinn(certificate, address, megabytes).await,
        ),
        Subject::VideoServer(acks) => transfer(
            megabytes,
            async |ready| serve_files(media, acks, ready).await,
            async |ready, megabytes| fetch_files(ready, acks, megabytes).await,
        ),
        Subject::S2n => transfer(
            megabytes,
            async |ready| serve_s2n(&identity, ready).await,
            async |address, megabytes| fetch_s2n(pem, address, megabytes).await,
        ),
        Subject::Caddy => transfer_caddy(caddy.as_ref().unwrap(), megabytes, media),
    }
}

fn at(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(values.len() * percent).div_ceil(100).saturating_sub(1)]
}

fn spread(mut values: Vec<f64>) -> String {
    let mut at = |percent| at(&mut values, percent);
    format!("{:.2} [{:.2}–{:.2}]", at(50), at(10), at(90))
}

fn main() {
    let mut arguments = std::env::args().skip(1).peekable();
    if arguments.next_if_eq("viewers").is_some() {
        let viewers = arguments.next().map_or(100, |argument| argument.parse().unwrap());
        return viewers::over_udp(viewers, &arguments.next().unwrap_or_else(|| "20ms".to_owned()));
    }
    if arguments.next_if_eq("tcp").is_some() {
        return viewers::over_tcp(arguments.next().map_or(200, |argument| argument.parse().unwrap()));
    }
    let caddy = Caddy::build();
    let subjects = match &caddy {
        Ok(_) => &SUBJECTS[..],
        Err(reason) => {
            println!("without Caddy: {reason}");
            &SUBJECTS[..COUNT - 1]
        }
    };
    let mut arguments = arguments.map(|argument| argument.parse().unwrap());
    let rounds: usize = arguments.next().unwrap_or(10) as usize;
    let megabytes: u64 = arguments.next().unwrap_or(500);
    let media = tempfile::tempdir().unwrap();
    for size in [megabytes * 1_000_000, SMALL[0].0, SMALL[1].0] {
        // A hole, which the kernel reads from its cache like anything else.
        let file = File::create(media.path().join(file_name(size))).unwrap();
        file.set_len(size).unwrap();
    }
    let mut bulk: [Vec<Run>; COUNT] = Default::default();
    let mut latencies: [[Vec<f64>; SMALL.len()]; COUNT] = Default::default();
    // The first round warms everything up.
    for round in 0..=rounds {
        for turn in 0..subjects.len() {
            let which = (turn + round) % subjects.len();
            let measure = |megabytes| measure_subject(subjects[which].0, megabytes, media.path(), &caddy);
            let (large, small) = (measure(megabytes), measure(0));
            if round > 0 {
                bulk[which].push(large);
                for (all, some) in latencies[which].iter_mut().zip(small.latencies) {
                    all.extend(some);
                }
            }
        }
    }
    println!("{megabytes} MB, {rounds} rounds; latencies of {EXCHANGES} responses in each\n");
    println!(
        "| server | CPU s/GB | ÷ quinn's | ÷ s2n-quic's | GB/s | {} p50 / p99 µs | {} |",
        SMALL[0].1, SMALL[1].1
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (which, (_, name)) in subjects.iter().enumerate() {
        let runs = &bulk[which];
        let of = |what: fn(&Run) -> f64| spread(runs.iter().map(what).collect());
        let ratios = |to: usize| {
            spread(
                runs.iter()
                    .zip(&bulk[to])
                    .map(|(run, other)| run.cpu / other.cpu)
                    .collect(),
            )
        };
        let latency = |size: usize| {
            let mut all = latencies[which][size].clone();
            format!("{:.0} / {:.0}", at(&mut all, 50), at(&mut all, 99))
        };
        println!(
            "| {name} | {} | {} | {} | {} | {} | {} |",
            of(|run| run.cpu),
            ratios(0),
            ratios(1),
            of(|run| run.speed),
            latency(0),
            latency(1),
        );
    }
}
