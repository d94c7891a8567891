//! noq in virtual time: bulk transfers over one path, and over two paths of one connection.

use std::sync::Arc;
use std::time::Duration;

use noq::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq::{ClientConfig, Connection, Endpoint, FourTuple, PathStatus, ServerConfig, TransportConfig};
use noq::{Runtime, congestion::CubicConfig};
use playrate_netsim::{HostConfig, LinkStats, Loss, PathConfig, QueueLimit, Seed, Simulation, VirtualSocket};
use playrate_units::{Bitrate, Probability};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};
use rustls::RootCertStore;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A block of bytes that the server writes at a time.
const BLOCK: usize = 50_000;

fn path(mbps: u64, rtt: u64, loss: Loss) -> PathConfig {
    let (rate, rtt) = (Bitrate::from_mbps(mbps), Duration::from_millis(rtt));
    PathConfig::bottleneck(rate, rtt, QueueLimit::ONE_BDP, loss)
}

fn configs(sim: &Simulation) -> (ServerConfig, ClientConfig) {
    let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
    let params = CertificateParams::new(vec!["server".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().der().clone();
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let versions = &[&rustls::version::TLS13];
    let crypto = rustls::ServerConfig::builder_with_provider(sim.crypto_provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(crypto).unwrap()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let crypto = rustls::ClientConfig::builder_with_provider(sim.crypto_provider())
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto).unwrap()));
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(CubicConfig::default()))
        .stream_receive_window(20_000_000_u32.into())
        .max_concurrent_multipath_paths(2);
    let transport = Arc::new(transport);
    server.transport_config(Arc::clone(&transport));
    client.transport_config(transport);
    (server, client)
}

async fn send(listening: Endpoint, bytes: usize) {
    let connection = listening.accept().await.unwrap().await.unwrap();
    let mut stream = connection.open_uni().await.unwrap();
    for _ in 0..bytes / BLOCK {
        stream.write_all(&[7; BLOCK]).await.unwrap();
    }
    stream.finish().unwrap();
    connection.closed().await;
}

async fn read_all(connection: &Connection) -> usize {
    let mut stream = connection.accept_uni().await.unwrap();
    let mut read = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await.unwrap() {
        read += chunk.len();
    }
    read
}

/// Result of a download: its rate in Mbit/s, the digest, and the counters of each path's forward link.
struct Download {
    mbps: f64,
    digest: u64,
    links: Vec<LinkStats>,
}

/// Downloads `bytes` over all of `paths`, each from an address of its own.
fn download(seed: u64, bytes: usize, paths: &[PathConfig]) -> Download {
    let sim = Simulation::new(Seed::new(seed));
    let [server, client] = [(); 2].map(|()| sim.add_host(HostConfig::default()));
    let mut addresses = vec![client];
    addresses.extend(paths.iter().skip(1).map(|_| sim.add_address(client)));
    let mut links = Vec::new();
    for (number, (config, address)) in paths.iter().zip(&addresses).enumerate() {
        let path = sim.add_path(config.build(sim.seed().child(&format!("path {number}"))).unwrap());
        sim.connect(server, *address, &[path]);
        links.push(path.forward);
    }
    let (server_config, client_config) = configs(&sim);
    let endpoint = |host, name, config| {
        let socket = Box::new(VirtualSocket::clone(&*sim.bind(host, 443).unwrap()));
        let endpoint_config = sim.noq_endpoint_config(name);
        Endpoint::new_with_abstract_socket(endpoint_config, config, socket, sim.runtime_on(host)).unwrap()
    };
    let listening = endpoint(server, "server", Some(server_config));
    let calling = endpoint(client, "client", None);
    let address = listening.local_addr().unwrap();
    Runtime::spawn(&*sim.runtime(), Box::pin(send(listening, bytes)));
    let read = sim.run(Duration::from_secs(120), async {
        let connection = calling
            .connect_with(client_config, address, "server")
            .unwrap()
            .await
            .unwrap();
        // Connection IDs for further paths arrive a round trip after the handshake.
        sim.runtime().sleep(Duration::from_millis(200)).await;
        for local in addresses.iter().skip(1) {
            let ends = FourTuple::new(address, Some(local.ip()));
            connection.open_path(ends, PathStatus::Available).await.unwrap();
        }
        read_all(&connection).await
    });
    assert_eq!(read, Ok(bytes));
    let links: Vec<_> = links.into_iter().map(|link| sim.link_stats(link)).collect();
    assert!(links.iter().all(LinkStats::is_conserved));
    Download {
        mbps: bytes as f64 * 8e-6 / sim.now().as_secs_f64(),
        digest: sim.digest(),
        links,
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let lossy = Probability::from_parts_per_billion(5_000_000).into();
    for paths in [
        vec![path(20, 100, lossy)],
        vec![path(4, 60, lossy), path(4, 120, lossy)],
    ] {
        let digest = |seed| download(seed, 1_000_000, &paths).digest;
        assert_eq!(digest(1), digest(1));
        assert_ne!(digest(1), digest(2));
    }
}

#[test]
fn a_bulk_transfer_fills_the_link() {
    let download = download(1, 50_000_000, &[path(20, 100, Loss::None)]);
    // 1,452 of 1,480 bytes are payload of UDP, and slow start takes about two seconds of twenty.
    assert!((17.5..19.7).contains(&download.mbps), "{} Mbit/s", download.mbps);
    assert!(download.links[0].max_queue.as_u64() <= 250_000);
}

#[test]
fn two_paths_of_one_connection_carry_their_rates_together() {
    let download = download(
        1,
        30_000_000,
        &[path(4, 60, Loss::None), path(4, 120, Loss::None)],
    );
    assert!((7.0..8.0).contains(&download.mbps), "{} Mbit/s", download.mbps);
    for link in &download.links {
        let bytes = link.delivered.bytes.as_u64();
        assert!(bytes > 13_000_000, "{bytes} bytes over one of two equal links");
    }
}
