//! [`Victim`]: a server under attack, and connections of each kind to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use playrate::transport::{Pin, udp_socket};
use quinn::TokioRuntime;
use quinn::crypto::rustls::QuicClientConfig;
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A certificate for `localhost` that its server is started with, so that all clients can trust it.
pub(crate) struct Certificate {
    directory: tempfile::TempDir,
    der: CertificateDer<'static>,
}

impl Certificate {
    pub(crate) fn generate() -> anyhow::Result<Self> {
        let identity = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
        let directory = tempfile::tempdir()?;
        std::fs::write(directory.path().join("cert.pem"), identity.cert.pem())?;
        std::fs::write(
            directory.path().join("key.pem"),
            identity.signing_key.serialize_pem(),
        )?;
        Ok(Self {
            directory,
            der: identity.cert.der().clone(),
        })
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("cert.pem")
    }

    /// Options with which `video-server serve` uses it.
    pub(crate) fn options(&self) -> Vec<String> {
        let text = |path: &Path| path.display().to_string();
        let key = self.directory.path().join("key.pem");
        vec![
            "--cert".to_owned(),
            text(&self.path()),
            "--key".to_owned(),
            text(&key),
        ]
    }
}

/// A server under attack. Clones are the same server.
#[derive(Clone)]
pub(crate) struct Victim {
    pub(crate) address: SocketAddr,
    pub(crate) pin: Pin,
    /// Path of the title that it serves.
    pub(crate) title: String,
    roots: Arc<RootCertStore>,
}

impl Victim {
    pub(crate) fn new(address: SocketAddr, certificate: &Certificate, title: &str) -> anyhow::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der.clone())?;
        Ok(Self {
            address,
            pin: Pin::of(&certificate.der)?,
            title: format!("/{title}"),
            roots: Arc::new(roots),
        })
    }

    /// TLS of a client that offers one protocol.
    pub(crate) fn tls(&self, protocol: &[u8]) -> Result<rustls::ClientConfig, rustls::Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_root_certificates(Arc::clone(&self.roots))
            .with_no_client_auth();
        tls.alpn_protocols = vec![protocol.to_vec()];
        Ok(tls)
    }

    /// A TCP connection from `source`. The caller limits the time for it.
    pub(crate) async fn tcp(&self, source: Ipv4Addr) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        socket.bind((source, 0).into())?;
        let stream = socket.connect(self.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A TCP connection from `source` with TLS, for one protocol. The caller limits the time for it.
    pub(crate) async fn tls_stream(
        &self,
        source: Ipv4Addr,
        protocol: &[u8],
    ) -> io::Result<TlsStream<TcpStream>> {
        let tls = self.tls(protocol).map_err(io::Error::other)?;
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let stream = self.tcp(source).await?;
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await
    }

    /// Settings of HTTP/3 clients with `transport`.
    pub(crate) fn quic_config(&self, transport: quinn::TransportConfig) -> io::Result<quinn::ClientConfig> {
        let tls = self.tls(b"h3").map_err(io::Error::other)?;
        let tls = QuicClientConfig::try_from(tls).map_err(io::Error::other)?;
        let mut config = quinn::ClientConfig::new(Arc::new(tls));
        config.transport_config(Arc::new(transport));
        Ok(config)
    }

    /// A QUIC connection on `endpoint`.
    pub(crate) async fn quic(
        &self,
        endpoint: &quinn::Endpoint,
        config: quinn::ClientConfig,
    ) -> io::Result<quinn::Connection> {
        let connecting = endpoint.connect_with(config, self.address, "localhost");
        Ok(connecting.map_err(io::Error::other)?.await?)
    }
}

/// An endpoint for QUIC connections from `source`.
pub(crate) fn endpoint(source: Ipv4Addr) -> io::Result<quinn::Endpoint> {
    let socket = udp_socket((source, 0).into()).map_err(io::Error::other)?;
    quinn::Endpoint::new(
        quinn::EndpointConfig::default(),
        None,
        socket,
        Arc::new(TokioRuntime),
    )
}

/// Another socket at `source` for an endpoint.
pub(crate) fn another_socket(source: Ipv4Addr) -> io::Result<UdpSocket> {
    udp_socket((source, 0).into()).map_err(io::Error::other)
}
