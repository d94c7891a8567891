//! A plain quinn server with `video` on its connections, and a client that fetches 20 MB from it over loopback.
//!
//! `cargo run --example quinn_server`

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use playrate::cc::Bitrate;
use playrate::quinn::{ConnectionController, ControllerChoice};
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Endpoint, Incoming, ServerConfig, TransportConfig};

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// Serves one connection with its own controller.
async fn serve(incoming: Incoming, mut server: ServerConfig) -> Outcome<()> {
    let choice: ControllerChoice = "video".parse()?;
    let controller = ConnectionController::new(choice);
    let mut transport = TransportConfig::default();
    controller.install(&mut transport);
    controller.request_acks(&mut transport);
    server.transport_config(Arc::new(transport));
    let connection = incoming.accept_with(Arc::new(server))?.await?;

    // Called once the title is known: its average rate, and the best rate in its manifest.
    let known = controller.knowledge();
    known.set_average_rate(Some(Bitrate::from_mbps(5)));
    known.set_highest_rate(Some(Bitrate::from_mbps(8)));

    let mut stream = connection.open_uni().await?;
    for _ in 0..2_000 {
        stream.write_all(&[7; 10_000]).await?;
    }
    stream.finish()?;
    connection.closed().await;
    let end = controller.monitor().latest().ok_or("nothing was acknowledged")?;
    println!(
        "{}: window {}, smoothed RTT {:?}",
        controller.choice(),
        end.snapshot.window,
        end.snapshot.smoothed_rtt.unwrap_or_default()
    );
    Ok(())
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let (certificate, mut roots) = (own.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
    let config = ServerConfig::with_single_cert(vec![certificate], key)?;
    let server = Endpoint::server(config.clone(), (Ipv4Addr::LOCALHOST, 0).into())?;
    let address = server.local_addr()?;
    let serving = tokio::spawn(async move {
        let incoming = server.accept().await.ok_or("the endpoint was closed")?;
        serve(incoming, config).await
    });

    let mut client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);
    let connection = client.connect(address, "localhost")?.await?;
    let received = connection.accept_uni().await?.read_to_end(30_000_000).await?;
    println!("{} bytes received", received.len());
    connection.close(0_u32.into(), b"done");
    client.wait_idle().await;
    serving.await?
}
