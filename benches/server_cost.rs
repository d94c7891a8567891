//! Cost of a response to the server in CPU seconds per GB: this workspace's layers compared with a bare quinn stream.
//!
//! `cargo bench --bench server_cost [-- [--rounds N] [--megabytes N] [--check]]` measures one response over loopback to
//! one client. Each subject runs once per round, in changing order, and is compared within the round. Server and client
//! each have a thread, a runtime and, on Linux, a processor. The result is the CPU time of the server's thread, which
//! is little affected by other work on the machine. `--check` fails if one of ours costs more than 1.05 times the bare
//! stream with the same bytes.
#![expect(clippy::unwrap_used, reason = "a missing resource ends the measurement")]

#[path = "common/arguments.rs"]
mod arguments;
#[path = "common/processor.rs"]
mod processor;
#[path = "common/spread.rs"]
mod spread;

use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use arguments::value;
use bytes::Bytes;
use http::HeaderMap;
use playrate::transport::{
    Client, ClientOptions, ConnectionController, Identity, Pin, Server, ServerOptions, Target,
    TransportOptions, Trust, udp_socket,
};
use processor::{run, used};
use quinn::{Endpoint, Runtime, TokioRuntime};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use spread::spread;
use video_server::library::Library;
use video_server::serve::{CHUNK, Settings, VideoServer};

/// Maximum cost relative to the bare stream.
const MOST: f64 = 1.05;
const NAME: &str = "large.bin";
const CONTROLLER: &str = "cubic";

/// Implementation that serves the response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// quinn's stream with its own Cubic, which copies what is written.
    Copied,
    /// The same, handed chunks that it need not copy.
    Chunks,
    /// quinn's stream again, which copies what is read from a file.
    File,
    /// Our HTTP/3 server with our controller and telemetry, and bytes that are in memory.
    Transport,
    /// `video-server` as a whole, with a file.
    Whole,
}

use Subject::{Chunks, Copied, File, Transport, Whole};

const SUBJECTS: [(Subject, &str); 5] = [
    (Copied, "quinn's stream, `write_all`, from memory"),
    (Chunks, "quinn's stream, `write_chunk`, from memory"),
    (Transport, "`playrate-transport`, from memory"),
    (File, "quinn's stream, `write_all`, from a file"),
    (Whole, "`video-server`, from a file"),
];

/// Cost of one response.
#[derive(Clone, Copy)]
struct Cost {
    /// CPU seconds per GB.
    cpu: f64,
    /// Throughput in GB per second.
    speed: f64,
}

/// Identity of a server.
enum Known {
    By(CertificateDer<'static>),
    ByKey(Pin),
}

/// Address and identity of a server, for the client.
type Ready = mpsc::Sender<(SocketAddr, Known)>;

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn endpoint(options: &TransportOptions, server: Option<quinn::ServerConfig>) -> Endpoint {
    let socket = udp_socket(LOOPBACK).unwrap();
    Endpoint::new(
        options.to_endpoint().unwrap(),
        server,
        socket,
        Arc::new(TokioRuntime),
    )
    .unwrap()
}

/// Sends `bytes` on a stream that the client opens, and waits until they are acknowledged.
async fn serve_bare(subject: Subject, bytes: usize, media: &Path, ready: Ready) {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let certificate = identity.cert.der().clone();
    let options = TransportOptions::server();
    let mut config = quinn::ServerConfig::with_single_cert(vec![certificate.clone()], key.into()).unwrap();
    config.transport_config(Arc::new(options.to_quinn().unwrap()));
    let endpoint = endpoint(&options, Some(config));
    ready
        .send((endpoint.local_addr().unwrap(), Known::By(certificate)))
        .unwrap();
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let (mut stream, _) = connection.accept_bi().await.unwrap();
    let chunk = Bytes::from(vec![7; CHUNK.as_usize()]);
    let mut file = std::fs::File::open(media.join(NAME)).unwrap();
    let mut read = chunk.to_vec();
    for _ in 0..bytes / chunk.len() {
        match subject {
            Copied => stream.write_all(&chunk).await.unwrap(),
            File => {
                file.read_exact(&mut read).unwrap();
                stream.write_all(&read).await.unwrap();
            }
            _ => stream.write_chunk(chunk.clone()).await.unwrap(),
        }
    }
    stream.finish().unwrap();
    stream.stopped().await.unwrap();
    connection.closed().await;
}

/// The same with HTTP/3 and our controller, from memory.
async fn serve_from_memory(bytes: usize, ready: Ready) {
    let (server, _) = start(&ready);
    let incoming = server.accept().await.unwrap();
    let control = ConnectionController::new(CONTROLLER.parse().unwrap());
    let mut session = incoming.establish(control).await.unwrap();
    let exchange = session.accept().await.unwrap().unwrap().receive();
    let answer = async {
        let mut writer = exchange
            .await
            .unwrap()
            .start(http::Response::new(()))
            .await
            .unwrap();
        let chunk = Bytes::from(vec![7; CHUNK.as_usize()]);
        for _ in 0..bytes / chunk.len() {
            writer.write(chunk.clone()).await.unwrap();
        }
        writer.finish().await.unwrap();
    };
    // Continuing to accept keeps the session alive until the client leaves.
    tokio::join!(answer, session.accept()).1.unwrap();
}

/// The whole server, from a file.
async fn serve_from_file(media: &Path, ready: Ready) {
    let (server, runtime) = start(&ready);
    let settings = Settings::new(CONTROLLER.parse().unwrap());
    let server = VideoServer::start(server, runtime, Library::scan(media).unwrap(), settings);
    while server.totals().sessions == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn start(ready: &Ready) -> (Server, Arc<dyn Runtime>) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let identity = Identity::development(&[]).unwrap();
    let pin = identity.pin();
    let server = Server::bind(LOOPBACK, Arc::clone(&runtime), ServerOptions::new(identity)).unwrap();
    ready
        .send((server.local_addr().unwrap(), Known::ByKey(pin)))
        .unwrap();
    (server, runtime)
}

/// Fetches everything; returns how much that was and how long it took.
async fn fetch(address: SocketAddr, known: Known) -> (u64, Duration) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let began = runtime.now();
    let mut received = 0;
    match known {
        Known::ByKey(pin) => {
            let options = ClientOptions::new(Trust::Pin(pin));
            let client = Client::bind(Arc::clone(&runtime), options).unwrap();
            let connection = client.connect(&Target::at("localhost", address)).await.unwrap();
            let (_, mut body) = connection
                .get(&format!("/{NAME}"), HeaderMap::new())
                .await
                .unwrap();
            while let Some(piece) = body.chunk().await.unwrap() {
                received += piece.len() as u64;
            }
            drop(body);
            connection.close();
            client.wait_idle().await;
        }
        Known::By(certificate) => {
            let options = TransportOptions::client();
            let mut roots = RootCertStore::empty();
            roots.add(certificate).unwrap();
            let mut config = quinn::ClientConfig::with_root_certificates(Arc::new(roots)).unwrap();
            config.transport_config(Arc::new(options.to_quinn().unwrap()));
            let endpoint = endpoint(&options, None);
            let connecting = endpoint.connect_with(config, address, "localhost").unwrap();
            let connection = connecting.await.unwrap();
            let (mut asking, mut stream) = connection.open_bi().await.unwrap();
            asking.write_all(b"?").await.unwrap();
            while let Some(piece) = stream.read_chunk(CHUNK.as_usize(), true).await.unwrap() {
                received += piece.bytes.len() as u64;
            }
            connection.close(0_u32.into(), b"");
            endpoint.wait_idle().await;
        }
    }
    (received, runtime.now().saturating_duration_since(began))
}

fn measure(subject: Subject, bytes: usize, media: &Path) -> Cost {
    let (ready, known) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let before = used();
            run(0, async {
                match subject {
                    Copied | Chunks | File => serve_bare(subject, bytes, media, ready).await,
                    Transport => Box::pin(serve_from_memory(bytes, ready)).await,
                    Whole => Box::pin(serve_from_file(media, ready)).await,
                }
            });
            used().saturating_sub(before)
        });
        let client = scope.spawn(move || {
            let (address, known) = known.recv().unwrap();
            run(1, fetch(address, known))
        });
        let (received, time) = client.join().unwrap();
        assert!(received > 0);
        let gigabytes = received as f64 / 1e9;
        Cost {
            cpu: server.join().unwrap().as_secs_f64() / gigabytes,
            speed: gigabytes / time.as_secs_f64(),
        }
    })
}

fn main() -> anyhow::Result<ExitCode> {
    let rounds: usize = value("--rounds")?.unwrap_or(12);
    let bytes = value::<usize>("--megabytes")?.unwrap_or(1_000) * 1_000_000;
    let media = tempfile::tempdir().unwrap();
    // A hole, which the kernel reads from its cache like anything else.
    std::fs::File::create(media.path().join(NAME))
        .and_then(|file| file.set_len(bytes as u64))
        .unwrap();
    let mut costs: [Vec<Cost>; 5] = Default::default();
    // The first round warms everything up.
    for round in 0..=rounds {
        for turn in 0..SUBJECTS.len() {
            let which = (turn + round) % SUBJECTS.len();
            let cost = measure(SUBJECTS[which].0, bytes, media.path());
            if round > 0 {
                costs[which].push(cost);
            }
        }
    }
    println!("{} MB, {rounds} rounds\n", bytes / 1_000_000);
    println!("| served by | CPU s/GB | ÷ `write_all` | GB/s |\n| --- | ---: | ---: | ---: |");
    let mut failed = false;
    for (which, (subject, name)) in SUBJECTS.into_iter().enumerate() {
        let all = &costs[which];
        let (_, cpu) = spread(all.iter().map(|cost| cost.cpu).collect());
        let (_, speed) = spread(all.iter().map(|cost| cost.speed).collect());
        // Ours is compared with the bare stream of bytes from the same origin.
        let base = if matches!(subject, File | Whole) { 3 } else { 0 };
        let ratios = all.iter().zip(&costs[base]);
        let (ratio, ratios) = spread(ratios.map(|(cost, bare)| cost.cpu / bare.cpu).collect());
        failed |= ratio > MOST;
        println!("| {name} | {cpu} | {ratios} | {speed} |");
    }
    if std::env::args().any(|argument| argument == "--check") && failed {
        println!("\nmore than {MOST} times what the bare stream costs");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}
