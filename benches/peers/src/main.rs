//! Cost of a bulk response to the server, and latency of small ones, over loopback: quinn, quinn with [larger
//! sends](merging::Merging), and s2n-quic, once each in every round, in changing order.
//!
//! `cargo run --release [-- [ROUNDS] [MEGABYTES]]`. Server and client have a thread, a runtime and, on Linux,
//! a processor each, and each implementation has its own client. CPU time is that of the server's thread,
//! which other work on the machine affects little.

mod merging;
#[path = "../../common/processor.rs"]
mod processor;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use merging::Merging;
use playrate_transport::{TransportOptions, udp_socket};
use processor::{run, used};
use quinn::{AsyncUdpSocket, Endpoint, Runtime, TokioRuntime};
use rustls::RootCertStore;
use rustls::pki_types::PrivatePkcs8KeyDer;

const CHUNK: usize = 64 << 10;
/// Sizes of the responses whose latency is measured, and how many there are of each.
const SMALL: [(u64, &str); 2] = [(100, "100 B"), (200_000, "200 kB")];
const EXCHANGES: usize = 300;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    Quinn,
    Merged,
    S2n,
}

const SUBJECTS: [(Subject, &str); 3] = [
    (Subject::Quinn, "quinn"),
    (Subject::Merged, "quinn, sends merged"),
    (Subject::S2n, "s2n-quic"),
];

/// Measurements of one run.
#[derive(Clone, Default)]
struct Run {
    /// CPU seconds of the server's thread per GB, and GB per second.
    cpu: f64,
    speed: f64,
    /// Datagrams in a system call, and lost ones, where that is known.
    per_send: f64,
    lost: u64,
    /// From asking to the last byte, for each of [`SMALL`].
    latencies: [Vec<f64>; SMALL.len()],
}

type Certified = rcgen::CertifiedKey<rcgen::KeyPair>;
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn transport(options: &TransportOptions) -> Arc<quinn::TransportConfig> {
    Arc::new(options.to_quinn().unwrap())
}

/// Answers every stream of one connection with as many bytes as it asks for. Returns the datagrams per send, and
/// the number of lost packets.
async fn serve_quinn(identity: &Certified, merged: bool, ready: mpsc::Sender<SocketAddr>) -> (f64, u64) {
    let runtime: Arc<dyn Runtime> = Arc::new(TokioRuntime);
    let plain = runtime.wrap_udp_socket(udp_socket(LOOPBACK).unwrap()).unwrap();
    let merging = merged.then(|| Merging::new(Arc::clone(&plain), &runtime));
    let socket = merging
        .clone()
        .map_or(plain, |merging| merging as Arc<dyn AsyncUdpSocket>);
    let options = TransportOptions::server();
    let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der());
    let chain = vec![identity.cert.der().clone()];
    let mut config = quinn::ServerConfig::with_single_cert(chain, key.into()).unwrap();
    config.transport_config(transport(&options));
    let endpoint =
        Endpoint::new_with_abstract_socket(options.to_endpoint().unwrap(), Some(config), socket, runtime)
            .unwrap();
    ready.send(endpoint.local_addr().unwrap()).unwrap();
    let connection = endpoint.accept().await.unwrap().await.unwrap();
    let chunk = Bytes::from(vec![7; CHUNK]);
    while let Ok((mut send, mut receive)) = connection.accept_bi().await {
        let mut asked = [0; 8];
        receive.read_exact(&mut asked).await.unwrap();
        let mut left = u64::from_be_bytes(asked) as usize;
        while left > 0 {
            let piece = chunk.slice(..left.min(CHUNK));
            left -= piece.len();
            send.write_chunk(piece).await.unwrap();
        }
        send.finish().unwrap();
    }
    let stats = connection.stats();
    endpoint.wait_idle().await;
    let sends = merging.map_or(stats.udp_tx.ios, |merging| merging.sends());
    (
        stats.udp_tx.datagrams as f64 / sends as f64,
        stats.path.lost_packets,
    )
}

async fn fetch_quinn(
    certificate: rustls::pki_types::CertificateDer<'static>,
    server: SocketAddr,
    megabytes: u64,
) -> Run {
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

async fn serve_s2n(identity: &Certified, ready: mpsc::Sender<SocketAddr>) -> (f64, u64) {
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
    (f64::NAN, 0)
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

/// A bulk response, or with no megabytes many small ones.
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

fn transfer(subject: Subject, megabytes: u64) -> Run {
    let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (certificate, pem) = (identity.cert.der().clone(), identity.cert.pem());
    let (ready, address) = mpsc::channel();
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            let before = used();
            let done = run(0, async {
                match subject {
                    Subject::S2n => serve_s2n(&identity, ready).await,
                    _ => serve_quinn(&identity, subject == Subject::Merged, ready).await,
                }
            });
            (used() - before, done)
        });
        let client = scope.spawn(move || {
            let address = address.recv().unwrap();
            run(1, async {
                match subject {
                    Subject::S2n => fetch_s2n(pem, address, megabytes).await,
                    _ => fetch_quinn(certificate, address, megabytes).await,
                }
            })
        });
        let mut run = client.join().unwrap();
        let (cpu, (per_send, lost)) = server.join().unwrap();
        run.cpu = cpu.as_secs_f64() / (megabytes as f64 / 1e3);
        (run.per_send, run.lost) = (per_send, lost);
        run
    })
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
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse().unwrap());
    let rounds: usize = arguments.next().unwrap_or(10) as usize;
    let megabytes: u64 = arguments.next().unwrap_or(500);
    let mut bulk: [Vec<Run>; 3] = Default::default();
    let mut latencies: [[Vec<f64>; SMALL.len()]; 3] = Default::default();
    // The first round warms everything up.
    for round in 0..=rounds {
        for turn in 0..SUBJECTS.len() {
            let which = (turn + round) % SUBJECTS.len();
            let (subject, _) = SUBJECTS[which];
            let (large, small) = (transfer(subject, megabytes), transfer(subject, 0));
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
        "| server | CPU s/GB | ÷ quinn's | GB/s | datagrams per send | lost | {} p50 / p99 µs | {} |",
        SMALL[0].1, SMALL[1].1
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    for (which, (_, name)) in SUBJECTS.into_iter().enumerate() {
        let runs = &bulk[which];
        let of = |what: fn(&Run) -> f64| spread(runs.iter().map(what).collect());
        let ratios = runs.iter().zip(&bulk[0]).map(|(run, first)| run.cpu / first.cpu);
        let latency = |size: usize| {
            let mut all = latencies[which][size].clone();
            format!("{:.0} / {:.0}", at(&mut all, 50), at(&mut all, 99))
        };
        println!(
            "| {name} | {} | {} | {} | {:.1} | {} | {} | {} |",
            of(|run| run.cpu),
            spread(ratios.collect()),
            of(|run| run.speed),
            at(&mut runs.iter().map(|run| run.per_send).collect::<Vec<_>>(), 50),
            runs.iter().map(|run| run.lost).sum::<u64>(),
            latency(0),
            latency(1),
        );
    }
}
