//! Endpoints without packet protection send the same packets as with it, and detect the same errors.

use std::net::SocketAddr;
use std::sync::{Arc, LazyLock};

use playrate_units::Probability;
use quinn::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::crypto::{CryptoProvider, ring};
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, RootCertStore};
use quinn::{
    ClientConfig, Connection, ConnectionError, ConnectionId, ConnectionIdGenerator, Endpoint, EndpointConfig,
    Incoming, Runtime, ServerConfig, TransportConfig,
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

use super::*;
use crate::{LinkFault, LinkFaultKind};

/// Bytes to send, all the same.
static BLOCK: [u8; 50_000] = [0x5A; 50_000];
const LIMIT: RunLimits = RunLimits {
    deadline: Duration::from_secs(60),
    polls_per_instant: 1_000_000,
};

fn ring() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn transport(controller: Arc<dyn ControllerFactory + Send + Sync>) -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(controller);
    Arc::new(transport)
}

/// Configurations of a server and of its clients.
fn configs(server: Arc<CryptoProvider>, client: Arc<CryptoProvider>) -> (ServerConfig, ClientConfig) {
    // The same for all, with signatures of constant length: its packets may be lost and sent again.
    static IDENTITY: LazyLock<(CertificateDer<'static>, KeyPair)> = LazyLock::new(|| {
        let key = KeyPair::generate_for(&PKCS_ED25519).unwrap();
        let params = CertificateParams::new(vec!["server".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().der().clone(), key)
    });
    let (certificate, key) = &*IDENTITY;
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let versions = &[&rustls::version::TLS13];
    let crypto = rustls::ServerConfig::builder_with_provider(server)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(crypto).unwrap()));
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let crypto = rustls::ClientConfig::builder_with_provider(client)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(crypto).unwrap()));
    (server, client)
}

fn endpoint(sim: &Simulation, host: Host, config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    let socket = sim.bind(host, if server.is_some() { 443 } else { 0 }).unwrap();
    Endpoint::new_with_abstract_socket(config, server, socket, sim.runtime_on(host)).unwrap()
}

async fn connect(endpoint: &Endpoint, address: SocketAddr, config: ClientConfig) -> Connection {
    let connecting = endpoint.connect_with(config, address, "server").unwrap();
    connecting.await.unwrap()
}

/// Sends a client ten blocks, with new keys after each.
async fn send_blocks(incoming: Incoming) {
    let connection = incoming.await.unwrap();
    let mut stream = connection.open_uni().await.unwrap();
    for _ in 0..10 {
        stream.write_all(&BLOCK).await.unwrap();
        connection.force_key_update();
    }
    stream.finish().unwrap();
    connection.closed().await;
}

/// Reads ten blocks, with new keys after the first bytes, and checks them.
async fn read_blocks(connection: &Connection) {
    let mut stream = connection.accept_uni().await.unwrap();
    let mut read = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.unwrap() {
        if read == 0 {
            connection.force_key_update();
        }
        read += chunk.bytes.len();
        assert!(chunk.bytes.iter().all(|&byte| byte == BLOCK[0]));
    }
    assert_eq!(read, 10 * BLOCK.len());
}

/// Downloads ten blocks after a Retry. Returns the digest, and true if packets in flight contained parts of blocks in
/// clear text.
fn download(
    path: &PathConfig,
    controller: Arc<dyn ControllerFactory + Send + Sync>,
    protects: [bool; 2],
) -> (u64, bool) {
    let (sim, server, client, _) = pair(Seed::new(1), path);
    let provider = |protects| if protects { ring() } else { sim.crypto_provider() };
    let (mut server_config, client_config) = configs(provider(protects[0]), provider(protects[1]));
    server_config.transport_config(transport(controller));
    let listening = endpoint(&sim, server, sim.endpoint_config("server"), Some(server_config));
    let address = listening.local_addr().unwrap();
    sim.runtime().spawn(Box::pin(async move {
        listening.accept().await.unwrap().retry().unwrap();
        let incoming = listening.accept().await.unwrap();
        assert!(incoming.remote_address_validated());
        send_blocks(incoming).await;
    }));
    let calling = endpoint(&sim, client, sim.endpoint_config("client"), None);
    let connection = sim.run(LIMIT, connect(&calling, address, client_config)).unwrap();
    let reader = connection.clone();
    sim.runtime().spawn(Box::pin(async move {
        read_blocks(&reader).await;
        reader.close(0_u32.into(), b"");
    }));
    let is_clear = sim.run(LIMIT, async {
        sim.runtime().sleep(Duration::from_millis(500)).await;
        let clear = [BLOCK[0]; 100];
        let is_clear = lock(&sim.shared.network)
            .contents()
            .any(|packet| packet.windows(clear.len()).any(|part| part == clear));
        connection.closed().await;
        is_clear
    });
    (sim.digest(), is_clear.unwrap())
}

fn lossy(parts_per_billion: u32) -> PathConfig {
    let mut path = twenty_mbps();
    let loss = Probability::from_parts_per_billion(parts_per_billion);
    path.forward = path.forward.with_loss(loss);
    path.backward = path.backward.with_loss(loss);
    path
}

#[test]
fn the_packets_are_the_same_with_and_without_protection() {
    for loss in [0, 20_000_000] {
        let controllers: [Arc<dyn ControllerFactory + Send + Sync>; 2] = [
            Arc::new(CubicConfig::default()),
            Arc::new(NewRenoConfig::default()),
        ];
        for controller in controllers {
            let path = lossy(loss);
            let (protected, is_clear) = download(&path, Arc::clone(&controller), [true; 2]);
            assert!(!is_clear);
            let (unprotected, is_clear) = download(&path, controller, [false; 2]);
            assert!(is_clear, "nothing was switched off");
            assert_eq!(unprotected, protected, "loss {loss}");
        }
    }
}

#[test]
fn one_endpoint_of_a_real_network_is_enough_for_protection() {
    for protects in [[true, false], [false, true]] {
        let cubic = Arc::new(CubicConfig::default());
        assert!(!download(&twenty_mbps(), cubic, protects).1, "{protects:?}");
    }
}

#[test]
fn links_that_damage_packets_get_real_protection() {
    let mut path = twenty_mbps();
    let share = Probability::from_parts_per_billion(20_000_000);
    path.forward = path.forward.with_fault(LinkFault::new(
        Duration::ZERO,
        Duration::MAX,
        LinkFaultKind::Corruption(share),
    ));
    // If damaged bytes were accepted, it would fail.
    let (_, is_clear) = download(&path, Arc::new(CubicConfig::default()), [false; 2]);
    assert!(!is_clear);
}

/// Connection IDs that every endpoint accepts as its own.
struct CountedIds(u64);

impl ConnectionIdGenerator for CountedIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0 += 1;
        ConnectionId::new(&self.0.to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[test]
fn a_stateless_reset_is_recognised_without_protection() {
    let (sim, server, client, _) = pair(Seed::new(1), &twenty_mbps());
    let (server_config, client_config) = configs(sim.crypto_provider(), sim.crypto_provider());
    // Another endpoint with the same key for resets.
    let mut config = sim.endpoint_config("server");
    config.cid_generator(|| Box::new(CountedIds(0)));
    let listening = endpoint(&sim, server, config.clone(), Some(server_config.clone()));
    let address = listening.local_addr().unwrap();
    sim.runtime_on(server).spawn(Box::pin(async move {
        let connection = listening.accept().await.unwrap().await.unwrap();
        connection.closed().await;
    }));
    let calling = endpoint(&sim, client, sim.endpoint_config("client"), None);
    let connection = sim.run(LIMIT, connect(&calling, address, client_config)).unwrap();
    sim.crash(server);
    let _again = endpoint(&sim, server, config, Some(server_config));
    let lost = sim.run(LIMIT, async {
        let mut stream = connection.open_uni().await.unwrap();
        stream.write_all(&BLOCK).await.unwrap();
        connection.closed().await
    });
    assert!(matches!(lost, Ok(ConnectionError::Reset)), "{lost:?}");
    assert!(sim.now().elapsed() < Duration::from_secs(1), "{}", sim.now());
}
