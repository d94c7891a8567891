//! [`Victim`]: a server under attack, and connections of each kind to it.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;

use playrate::transport::{Pin, udp_socket};
use playrate_test_support::{h3_config, tls_config};
use quinn::TokioRuntime;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A server under attack. Clones refer to the same server.
#[derive(Clone)]
pub(crate) struct Victim {
    pub(crate) address: SocketAddr,
    pub(crate) pin: Pin,
    /// Path of the title that it serves.
    pub(crate) title: String,
    certificate: CertificateDer<'static>,
}

impl Victim {
    pub(crate) fn new(
        address: SocketAddr,
        certificate: CertificateDer<'static>,
        title: &str,
    ) -> anyhow::Result<Self> {
        Ok(Self {
            address,
            pin: Pin::of(&certificate)?,
            title: format!("/{title}"),
            certificate,
        })
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
        let tls = tls_config(&self.certificate, protocol);
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let stream = self.tcp(source).await?;
        TlsConnector::from(Arc::new(tls)).connect(name, stream).await
    }

    /// Settings of HTTP/3 clients with `transport`.
    pub(crate) fn quic_config(&self, transport: quinn::TransportConfig) -> quinn::ClientConfig {
        let mut config = h3_config(&self.certificate);
        config.transport_config(Arc::new(transport));
        config
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
    let config = quinn::EndpointConfig::default();
    quinn::Endpoint::new(config, None, socket(source)?, Arc::new(TokioRuntime))
}

/// A socket at `source` for an endpoint.
pub(crate) fn socket(source: Ipv4Addr) -> io::Result<UdpSocket> {
    udp_socket((source, 0).into()).map_err(io::Error::other)
}
