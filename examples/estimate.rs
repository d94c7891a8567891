//! A live encoder that follows the estimate of its connection, in virtual time. It sends 30 frames per second for
//! 24 s over a link of 8 Mbit/s, which falls to 3 Mbit/s and rises again.
//!
//! `cargo run --example estimate`; with `-- --probe` the encoder adds padding until the path limits it.

use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use futures_util::future::{join, select};
use playrate::cc::{Bitrate, Bytes, Estimate, EstimateSource};
use playrate::quinn::{ConnectionController, ControllerChoice, Probe};
use playrate_netsim::{Host, HostConfig, LinkConfig, PathConfig, QueueLimit, Rate, Seed, Simulation};
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{ClientConfig, Connection, Endpoint, Runtime, SendStream, ServerConfig, TransportConfig};

const LINK: &str = "8Mbit/s,3Mbit/s@8s,8Mbit/s@16s";
const FRAME: Duration = Duration::from_nanos(33_333_333);
const LEAST: Bitrate = Bitrate::from_kbps(300);
/// Every byte of padding. A frame begins with its time, whose first byte is zero.
const PADDING: u8 = 0xff;

/// The encoder's next rate. While only the encoder limits the sender, it grows by a fifth per second. Otherwise frames
/// wait for the window or at the link, so it remains below the estimate until they have left.
fn next_rate(rate: Bitrate, estimate: Option<Estimate>) -> Bitrate {
    match estimate {
        None => rate,
        Some(bound) if bound.source == EstimateSource::Application => {
            let grown = rate.scaled(1_006, 1_000);
            grown.min(bound.rate.scaled(12, 10)).max(LEAST)
        }
        Some(limited) => rate.min(limited.rate.scaled(75, 100)).max(LEAST),
    }
}

/// Writes the padding that is due with a frame, on a stream of the lowest priority.
async fn pad(
    probe: &Probe,
    due: Bytes,
    connection: &Connection,
    padding: &mut Option<SendStream>,
) -> Result<()> {
    if !probe.is_active() {
        // Bytes that have not left yet never will.
        if let Some(mut ended) = padding.take() {
            ended.reset(0_u32.into())?;
        }
    } else if due > Bytes::ZERO {
        if padding.is_none() {
            let opened = connection.open_uni().await?;
            opened.set_priority(-1)?;
            *padding = Some(opened);
        }
        let bytes = vec![PADDING; due.as_usize()];
        // Bytes that the stream has no room for are dropped.
        let _ = padding.as_mut().map(|stream| stream.write(&bytes).now_or_never());
    }
    Ok(())
}

/// Sends a frame every 33 ms, each on a stream of its own.
async fn encode(sim: &Simulation, connection: Connection, control: &ConnectionController) -> Result<()> {
    let runtime = sim.runtime();
    let probes = std::env::args().any(|argument| argument == "--probe");
    // Up to 8 Mbit/s, for 300 kbit/s on average.
    let mut probe = probes.then(|| Probe::new(Bitrate::from_mbps(8), Bitrate::from_kbps(300)));
    let mut padding = None;
    let mut rate = Bitrate::from_mbps(1);
    for number in 0..24 * 30_u32 {
        let now = runtime.now();
        let estimate = control.estimate(now);
        rate = next_rate(rate, estimate);
        if let Some(probe) = &mut probe {
            let was_active = probe.is_active();
            let due = probe.bytes_due(now, rate * FRAME, estimate);
            pad(probe, due, &connection, &mut padding).await?;
            if let Some(found) = probe.found(now).filter(|_| was_active && !probe.is_active()) {
                println!(
                    "{:4.1} s: found {:.2} Mbit/s",
                    sim.now().as_secs_f64(),
                    found.rate.as_mbps()
                );
                rate = rate.max(found.rate.scaled(75, 100));
            }
        }
        let mut frame = sim.now().as_nanos().to_be_bytes().to_vec();
        frame.resize((rate * FRAME).as_usize(), 0);
        let mut stream = connection.open_uni().await?;
        runtime.spawn(Box::pin(async move {
            let _ = stream.write_all(&frame).await;
        }));
        if number % 30 == 0 {
            let shown = estimate.map_or("none".to_owned(), |estimate| {
                format!("{:.2} Mbit/s ({})", estimate.rate.as_mbps(), estimate.source)
            });
            println!(
                "{:4.1} s: encoder {:.2} Mbit/s, estimate {shown}",
                sim.now().as_secs_f64(),
                rate.as_mbps()
            );
        }
        runtime.sleep(FRAME).await;
    }
    runtime.sleep(Duration::from_secs(1)).await;
    Ok(())
}

/// Counts the frames that arrived, and those within 200 ms.
async fn watch(sim: &Simulation, connection: Connection, counts: &Cell<(u32, u32)>) -> Result<()> {
    loop {
        let mut stream = connection.accept_uni().await?;
        let mut made = [PADDING; 8];
        if stream.read_exact(&mut made).await.is_err() || made[0] == PADDING {
            sim.runtime().spawn(Box::pin(async move {
                while let Ok(Some(_)) = stream.read_chunk(1 << 16, false).await {}
            }));
            continue;
        }
        stream.read_to_end(1 << 20).await?;
        let made = u64::from_be_bytes(made);
        let (arrived, on_time) = counts.get();
        let is_on_time = sim.now().as_nanos() - made <= 200_000_000;
        counts.set((arrived + 1, on_time + u32::from(is_on_time)));
    }
}

fn endpoint(sim: &Simulation, host: Host, server: Option<ServerConfig>) -> Result<Endpoint> {
    let config = sim.endpoint_config(&host.ip().to_string());
    let (socket, runtime) = (sim.bind(host, 0)?, sim.runtime());
    Ok(Endpoint::new_with_abstract_socket(
        config, server, socket, runtime,
    )?)
}

fn main() -> Result<()> {
    let sim = Simulation::new(Seed::new(7));
    let delay = Duration::from_millis(25);
    let forward = LinkConfig::new(LINK.parse::<Rate>()?, delay).with_queue("4bdp".parse::<QueueLimit>()?);
    let path = PathConfig::new(forward, LinkConfig::new(Rate::Unlimited, delay));
    let path = sim.add_path(path.build(sim.seed().child("path"))?);
    let [encoder, viewer] = [(); 2].map(|()| sim.add_host(HostConfig::default()));
    sim.connect(encoder, viewer, &[path]);

    let own = rcgen::generate_simple_self_signed(["encoder".to_owned()])?;
    let (certificate, mut roots) = (own.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
    let mut config = ServerConfig::with_single_cert(vec![certificate], key)?;
    let control = ConnectionController::new("video".parse::<ControllerChoice>()?);
    control.knowledge().set_follows_path(true);
    let mut transport = TransportConfig::default();
    control.install(&mut transport);
    control.request_acks(&mut transport);
    config.transport_config(Arc::new(transport));
    let listening = endpoint(&sim, encoder, Some(config))?;
    let mut calling = endpoint(&sim, viewer, None)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    let mut transport = TransportConfig::default();
    transport.max_concurrent_uni_streams(1_000_u32.into());
    client.transport_config(Arc::new(transport));
    calling.set_default_client_config(client);

    let counts = Cell::new((0, 0));
    let session = async {
        let connecting = calling.connect(listening.local_addr()?, "encoder")?;
        let accepting = async { anyhow::Ok(listening.accept().await.context("closed")?.await?) };
        let (connected, accepted) = join(connecting, accepting).await;
        let (viewer, encoder) = (connected?, accepted?);
        let (encoding, watching) = (encode(&sim, encoder, &control), watch(&sim, viewer, &counts));
        select(pin!(encoding), pin!(watching)).await.factor_first().0
    };
    sim.run(Simulation::DAY, session)??;
    let (arrived, on_time) = counts.get();
    println!("{arrived} of 720 frames arrived, {on_time} of them within 200 ms");
    Ok(())
}
