//! Virtual time: the executor alone, and with quinn.

mod executor;
mod faults;
mod null_protection;
mod quinn_flows;
mod sockets;

use core::time::Duration;
use std::sync::LazyLock;

use playrate_units::Bitrate;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use quinn::rustls::{self, RootCertStore};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519};

use super::*;
use crate::{Loss, PathConfig, QueueLimit};

pub(super) fn twenty_mbps() -> PathConfig {
    PathConfig::bottleneck(
        Bitrate::from_mbps(20),
        Duration::from_millis(100),
        QueueLimit::ONE_BDP,
        Loss::None,
    )
}

/// A server, a client and one path between them.
pub(super) fn pair(seed: Seed, config: &PathConfig) -> (Simulation, Host, Host, PathId) {
    pair_of(seed, config, [HostConfig::default(); 2])
}

/// A server and a client with these configurations, and one path between them.
pub(super) fn pair_of(
    seed: Seed,
    config: &PathConfig,
    hosts: [HostConfig; 2],
) -> (Simulation, Host, Host, PathId) {
    let sim = Simulation::new(seed);
    let path = sim.add_path(config.build(seed.child("path")).unwrap());
    let [server, client] = hosts.map(|host| sim.add_host(host));
    sim.connect(server, client, &[path]);
    (sim, server, client, path)
}

pub(super) fn ring() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Configurations of a server and of its clients.
pub(super) fn configs(
    server: Arc<CryptoProvider>,
    client: Arc<CryptoProvider>,
) -> (ServerConfig, ClientConfig) {
    // One identity for all tests, with signatures of constant length, because handshake packets may be lost and sent
    // again.
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

pub(super) fn endpoint(
    sim: &Simulation,
    host: Host,
    config: EndpointConfig,
    server: Option<ServerConfig>,
) -> Endpoint {
    let socket = sim.bind(host, if server.is_some() { 443 } else { 0 }).unwrap();
    Endpoint::new_with_abstract_socket(config, server, socket, sim.runtime_on(host)).unwrap()
}

pub(super) async fn connect(endpoint: &Endpoint, address: SocketAddr, config: ClientConfig) -> Connection {
    let connecting = endpoint.connect_with(config, address, "server").unwrap();
    connecting.await.unwrap()
}
