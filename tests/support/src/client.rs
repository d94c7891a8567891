//! Clients that trust a test's server, and certificates for one.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use http::HeaderMap;
use playrate_transport::{Client, ClientOptions, Connection, Pin, Trust};
use quinn::TokioRuntime;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

use crate::PATIENCE;

/// A client that trusts the server with `pin`, with `change` applied to its options.
pub fn client(pin: Pin, change: impl FnOnce(&mut ClientOptions)) -> Client {
    let mut options = ClientOptions::new(Trust::Pin(pin));
    options.connect_timeout = PATIENCE;
    change(&mut options);
    Client::bind(Arc::new(TokioRuntime), options).unwrap()
}

/// Fetches `path` and returns the length of its body.
pub async fn fetch(connection: &Connection, path: &str, fields: HeaderMap) -> u64 {
    let (_, mut body) = connection.get(path, fields).await.unwrap();
    while body.chunk().await.unwrap().is_some() {}
    body.received()
}

/// The certificate of a server in PEM.
pub fn certificate(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// TLS of a client that trusts `certificate` alone and offers one protocol.
pub fn tls_config(certificate: &CertificateDer<'static>, protocol: &[u8]) -> rustls::ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![protocol.to_vec()];
    tls
}

/// Settings of a plain quinn client for HTTP/3 that trusts `certificate` alone.
pub fn h3_config(certificate: &CertificateDer<'static>) -> quinn::ClientConfig {
    let tls = QuicClientConfig::try_from(tls_config(certificate, b"h3")).unwrap();
    quinn::ClientConfig::new(Arc::new(tls))
}

/// Writes a file that only its user can read.
pub fn put_private(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    #[cfg(unix)]
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// Writes a new self-signed certificate for `localhost` and its key into `directory`, as `cert.pem` and `key.pem`.
pub fn certify(directory: &Path) -> CertificateDer<'static> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    fs::write(directory.join("cert.pem"), made.cert.pem()).unwrap();
    put_private(&directory.join("key.pem"), &made.signing_key.serialize_pem());
    made.cert.der().clone()
}
