//! Two iroh endpoints over loopback: one sends under playrate's `video`, and each second prints the congestion window,
//! the smoothed RTT and the rate.
//!
//! ```console
//! cargo run --release --manifest-path examples/iroh/Cargo.toml
//! ```

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use iroh::endpoint::{Builder, PathId, QuicTransportConfig, presets};
use iroh::{Endpoint, EndpointAddr};
use playrate_cc::Bitrate;
use playrate_noq::{EndpointFactory, NoqController};
use tokio::time::{Instant, interval, sleep, timeout};

const ALPN: &[u8] = b"playrate/example";
/// A frame of a live video of 6 Mbit/s leaves every 20 ms.
const FRAME: usize = 15_000;
const FRAME_INTERVAL: Duration = Duration::from_millis(20);
const SECONDS: u32 = 5;

/// An endpoint that is only reachable over loopback.
fn local() -> anyhow::Result<Builder> {
    let builder = Endpoint::builder(presets::Minimal).clear_ip_transports();
    Ok(builder.bind_addr((Ipv4Addr::LOCALHOST, 0))?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let factory = EndpointFactory::new("video".parse()?);
    let transport = QuicTransportConfig::builder().congestion_controller_factory(Arc::new(factory));
    let sender = local()?.transport_config(transport.build()).bind().await?;
    let receiver = local()?.alpns(vec![ALPN.to_vec()]).bind().await?;

    let address = EndpointAddr::new(receiver.id()).with_ip_addr(receiver.bound_sockets()[0]);
    let receiving = tokio::spawn(receive(receiver));
    let sent = timeout(Duration::from_secs(30), send(&sender, address))
        .await
        .context("no connection within 30 s")??;
    let received = receiving.await??;
    sender.close().await;
    anyhow::ensure!(received == sent, "{received} of {sent} bytes arrived");
    println!("{received} bytes arrived");
    Ok(())
}

/// Receives one stream and returns its length.
async fn receive(endpoint: Endpoint) -> anyhow::Result<usize> {
    let incoming = endpoint.accept().await.context("the endpoint is closed")?;
    let connection = incoming.await?;
    let mut stream = connection.accept_uni().await?;
    let mut received = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX).await? {
        received += chunk.len();
    }
    connection.close(0_u32.into(), b"received");
    endpoint.close().await;
    Ok(received)
}

/// Sends frames for some seconds and returns the number of bytes.
async fn send(endpoint: &Endpoint, address: EndpointAddr) -> anyhow::Result<usize> {
    let connection = endpoint.connect(address, ALPN).await?;
    let controller = || {
        let state = connection
            .congestion_state(PathId::ZERO)
            .context("the path is closed")?;
        NoqController::of(state).context("another controller")
    };
    // The encoder's rate. It may change at any time.
    let rate = Bitrate::from_mbps(6);
    controller()?.control().knowledge().set_average_rate(Some(rate));

    let mut stream = connection.open_uni().await?;
    let (began, mut frames, mut sent) = (Instant::now(), interval(FRAME_INTERVAL), 0);
    for second in 1..=SECONDS {
        let before = sent;
        while began.elapsed() < Duration::from_secs(second.into()) {
            frames.tick().await;
            stream.write_all(&[0; FRAME]).await?;
            sent += FRAME;
        }
        let snapshot = controller()?.snapshot();
        println!(
            "{second} s: window {}, srtt {:.2?}, {:.2} Mbit/s written",
            snapshot.window,
            snapshot.smoothed_rtt.unwrap_or_default(),
            (sent - before) as f64 * 8e-6
        );
    }
    stream.finish()?;
    timeout(Duration::from_secs(10), connection.closed()).await?;
    sleep(Duration::from_millis(10)).await;
    Ok(sent)
}
