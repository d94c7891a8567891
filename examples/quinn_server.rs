//! A server and a client of quinn over loopback. Each sends 20 MB to the other under `video`.
//!
//! `cargo run --example quinn_server`. In a package of its own it needs:
//!
//! ```toml
//! [dependencies]
//! anyhow = "1"
//! playrate = { path = "../playrate", default-features = false }
//! quinn = "0.11"
//! rcgen = "0.14"
//! tokio = { version = "1", features = ["macros", "rt-multi-thread"] }
//! ```

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use playrate::cc::Bitrate;
use playrate::quinn::ConnectionController;
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Connection, Endpoint, Incoming, ServerConfig, TransportConfig};

/// The program's own settings of quinn.
fn configure(transport: &mut TransportConfig) {
    transport.keep_alive_interval(Some(Duration::from_secs(5)));
}

/// Serves one connection under its own controller.
async fn serve(incoming: Incoming, mut server: ServerConfig) -> Result<()> {
    let controller = ConnectionController::new("video".parse()?);
    server.transport_config(controller.transport(configure));
    let connection = incoming.accept_with(Arc::new(server))?.await?;
    inform(&controller);
    send(&connection).await?;
    receive(&connection).await?;
    connection.closed().await;
    report("server", &controller)
}

/// Connects, and sends under a controller of the client's own.
async fn upload(endpoint: &Endpoint, mut client: ClientConfig, server: &Endpoint) -> Result<()> {
    let controller = ConnectionController::new("video".parse()?);
    client.transport_config(controller.transport(configure));
    let connecting = endpoint.connect_with(client, server.local_addr()?, "localhost")?;
    let connection = connecting.await?;
    receive(&connection).await?;
    send(&connection).await?;
    connection.close(0_u32.into(), b"done");
    endpoint.wait_idle().await;
    report("client", &controller)
}

/// Called once the title is known.
fn inform(controller: &ConnectionController) {
    let known = controller.knowledge();
    // Of the title that is watched.
    known.set_average_rate(Some(Bitrate::from_mbps(5)));
    // The best that its manifest offers.
    known.set_highest_rate(Some(Bitrate::from_mbps(8)));
}

fn report(end: &str, controller: &ConnectionController) -> Result<()> {
    let last = controller
        .monitor()
        .latest()
        .context("nothing was acknowledged")?;
    let rtt = last.snapshot.smoothed_rtt;
    let rtt = rtt.map_or("not measured yet".to_owned(), |rtt| format!("{rtt:?}"));
    let window = last.snapshot.window;
    println!("{end}: {controller}, window {window}, smoothed RTT {rtt}");
    Ok(())
}

/// Sends 20 MB, in place of your protocol.
async fn send(connection: &Connection) -> Result<()> {
    let mut stream = connection.open_uni().await?;
    for _ in 0..2_000 {
        stream.write_all(&[7; 10_000]).await?;
    }
    stream.finish()?;
    // Returns when the peer has acknowledged all of it.
    stream.stopped().await?;
    Ok(())
}

async fn receive(connection: &Connection) -> Result<()> {
    let mut stream = connection.accept_uni().await?;
    while stream.read_chunk(usize::MAX, true).await?.is_some() {}
    Ok(())
}

#[tokio::main]
async fn main() -> Result<()> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, mut roots) = (own.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der());
    let config = ServerConfig::with_single_cert(vec![certificate], key.into())?;
    let server = Endpoint::server(config.clone(), (Ipv4Addr::LOCALHOST, 0).into())?;
    let accepting = server.clone();
    let serving = tokio::spawn(async move {
        let incoming = accepting.accept().await.context("the endpoint was closed")?;
        serve(incoming, config).await
    });
    let endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    let client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    upload(&endpoint, client, &server).await?;
    serving.await?
}
