//! The server between publishers and subscribers.

use std::net::SocketAddr;

/// Starts the smallest relay of Media over QUIC: subscribers receive what publishers announce. Its controller is
/// moq-tokio's default.
pub fn start() -> anyhow::Result<SocketAddr> {
    let mut config = moq_tokio::server::Config::default();
    config.listen.bind = Some("127.0.0.1:0".parse()?);
    config.listen.tls.generate = vec!["localhost".to_owned()];
    let server = config.init()?;
    let address = server.local_addr()?;
    let origin = moq_tokio::origin::spawn();
    tokio::spawn(server.serve_both(origin.consume(), origin));
    Ok(address)
}
