//! Live video over quinn in virtual time, as a publisher of Media over QUIC sends it: a stream for each group, and late
//! groups are reset. One row for each controller, encoder and path. Packet counts differ slightly between runs, because
//! the certificate and quinn's BBR are random.
//!
//! The path has 5 Mbit/s and 100 ms. The transport is that of moq-native-ietf 0.11.0: no MTU discovery.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use playrate_netsim::{Host, HostConfig, PathConfig, QueueLimit, Seed, Simulation, VirtualRuntime};
use playrate_quinn::{ConnectionController, ControllerChoice};
use playrate_units::{Bitrate, Bytes, Probability};
use quinn::rustls::{RootCertStore, pki_types::PrivatePkcs8KeyDer};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig, VarInt,
};

const RATE: Bitrate = Bitrate::from_mbps(5);
const RTT: Duration = Duration::from_millis(100);
/// Queues of 500 ms and 50 ms at that rate.
const QUEUES: [Bytes; 2] = [Bytes::new(312_500), Bytes::new(31_250)];
const VIDEO: Duration = Duration::from_secs(60);
const DEADLINE: Duration = Duration::from_millis(400);
const FRAME_RATE: u32 = 30;
const GROUP: u32 = 60;
/// Size of a group's first frame, as a multiple of the others.
const KEY_FRAME: usize = 5;

/// Results of one run.
#[derive(Default)]
struct Row {
    ages: Vec<Duration>,
    round_trips: Vec<Duration>,
    estimates: Vec<u64>,
    lost: u64,
    sent: u64,
}

/// Sends groups of frames of an encoder at `rate`.
async fn publish(connection: Connection, rate: Bitrate, runtime: Arc<VirtualRuntime>) -> Result<Row> {
    let mut row = Row::default();
    let bytes = rate.as_bytes_per_second() / u64::from(FRAME_RATE) * u64::from(GROUP);
    let unit = usize::try_from(bytes)? / (GROUP as usize - 1 + KEY_FRAME);
    let frames = u32::try_from(VIDEO.as_secs())? * FRAME_RATE;
    let mut group = connection.open_uni().await?;
    let mut previous = None;
    let started = now(&runtime);
    for index in 0..frames {
        let due = started + VIDEO * index / frames;
        runtime.sleep(due.saturating_sub(now(&runtime))).await;
        let place = index % GROUP;
        if place == 0 && index > 0 {
            group.finish()?;
            previous = Some(std::mem::replace(&mut group, connection.open_uni().await?));
        }
        if place > 0 && DEADLINE <= Duration::from_secs(1) * place / FRAME_RATE {
            // What is left of the group before is late. If all of it was acknowledged, the stream is gone.
            let _ = previous
                .take()
                .map(|mut late: SendStream| late.reset(VarInt::from_u32(0)));
        }
        let size = if place == 0 { KEY_FRAME * unit } else { unit };
        let mut frame = vec![0; size];
        frame[..8].copy_from_slice(&runtime.time().as_nanos().to_le_bytes());
        frame[8..16].copy_from_slice(&u64::try_from(size)?.to_le_bytes());
        group.write_all(&frame).await?;
        let path = connection.stats().path;
        row.round_trips.push(path.rtt);
        let bits = 8_000_000 * u128::from(path.cwnd);
        row.estimates
            .push(u64::try_from(bits / path.rtt.as_micros().max(1))?);
    }
    group.finish()?;
    runtime.sleep(Duration::from_secs(2)).await;
    let path = connection.stats().path;
    (row.lost, row.sent) = (path.lost_packets, path.sent_packets);
    connection.close(VarInt::from_u32(0), b"");
    Ok(row)
}

/// Reads the frames of one group, and records their ages.
async fn read(
    mut group: RecvStream,
    ages: Arc<Mutex<Vec<Duration>>>,
    runtime: Arc<VirtualRuntime>,
) -> Result<()> {
    loop {
        let mut header = [[0; 8]; 2];
        group.read_exact(header.as_flattened_mut()).await?;
        let [made, size] = header.map(u64::from_le_bytes);
        let mut rest = vec![0; usize::try_from(size)?.saturating_sub(16)];
        group.read_exact(&mut rest).await?;
        let age = now(&runtime).saturating_sub(Duration::from_nanos(made));
        ages.lock().unwrap_or_else(PoisonError::into_inner).push(age);
    }
}

/// Subscribes: reads each group in a task of its own until the publisher closes the connection.
async fn subscribe(connection: Connection, ages: Arc<Mutex<Vec<Duration>>>, runtime: Arc<VirtualRuntime>) {
    while let Ok(group) = connection.accept_uni().await {
        let reading = read(group, Arc::clone(&ages), Arc::clone(&runtime));
        // A group ends with an error: after its last frame, or where it was reset.
        quinn::Runtime::spawn(&*runtime, Box::pin(async { drop(reading.await) }));
    }
}

fn now(runtime: &VirtualRuntime) -> Duration {
    Duration::from_nanos(runtime.time().as_nanos())
}

fn endpoint(sim: &Simulation, host: Host, server: Option<ServerConfig>) -> Result<Endpoint> {
    let config = sim.endpoint_config(&host.ip().to_string());
    let socket = sim.bind(host, 0)?;
    Ok(Endpoint::new_with_abstract_socket(
        config,
        server,
        socket,
        sim.runtime(),
    )?)
}

fn run(controller: &str, rate: Bitrate, loss: Probability, queue: Bytes) -> Result<Row> {
    let sim = Simulation::new(Seed::new(7));
    let config = PathConfig::bottleneck(RATE, RTT, QueueLimit::Bytes(queue), loss);
    let path = sim.add_path(config.build(sim.seed().child("path"))?);
    let (publisher, subscriber) = (
        sim.add_host(HostConfig::default()),
        sim.add_host(HostConfig::default()),
    );
    sim.connect(publisher, subscriber, &[path]);

    let choice: ControllerChoice = controller.parse()?;
    let mut transport = TransportConfig::default();
    transport.mtu_discovery_config(None);
    ConnectionController::new(choice).install(&mut transport);
    let own = rcgen::generate_simple_self_signed(["publisher".to_owned()])?;
    let (certificate, mut roots) = (own.cert.der().clone(), RootCertStore::empty());
    roots.add(certificate.clone())?;
    let key = PrivatePkcs8KeyDer::from(own.signing_key.serialize_der()).into();
    let mut config = ServerConfig::with_single_cert(vec![certificate], key)?;
    config.transport_config(Arc::new(transport));
    let listening = endpoint(&sim, publisher, Some(config))?;
    let mut calling = endpoint(&sim, subscriber, None)?;
    calling.set_default_client_config(ClientConfig::with_root_certificates(Arc::new(roots))?);

    let (address, runtime) = (listening.local_addr()?, sim.runtime());
    let ages = Arc::default();
    let received = Arc::clone(&ages);
    quinn::Runtime::spawn(
        &*sim.runtime(),
        Box::pin(async move {
            if let Ok(connecting) = calling.connect(address, "publisher")
                && let Ok(connection) = connecting.await
            {
                subscribe(connection, received, runtime).await;
            }
        }),
    );
    let runtime = sim.runtime();
    let mut row = sim.run(Simulation::DAY, async move {
        let connection = listening
            .accept()
            .await
            .context("the endpoint was closed")?
            .await?;
        publish(connection, rate, runtime).await
    })??;
    row.ages = std::mem::take(&mut *ages.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(row)
}

fn main() -> Result<()> {
    println!("encoder  loss      queue  controller   on time  p95 ms  srtt ms  cwnd*8/srtt  lost of packets");
    let encoders = [(4, "0%"), (4, "0.5%"), (10, "0%")];
    for ((rate, loss), queue) in encoders
        .into_iter()
        .flat_map(|encoder| QUEUES.map(|queue| (encoder, queue)))
    {
        for controller in ["quinn-cubic", "quinn-bbr", "video"] {
            let mut row = run(controller, Bitrate::from_mbps(rate), loss.parse()?, queue)?;
            let on_time = row.ages.iter().filter(|&&age| age <= DEADLINE).count();
            println!(
                "{rate:>7}  {loss:>4}  {queue:>9}  {controller:<11}  {:>6.1}%  {:>6}  {:>7}  {:>11.2}  {:>6} of {}",
                100.0 * on_time as f64 / (VIDEO.as_secs_f64() * f64::from(FRAME_RATE)),
                percentile(&mut row.ages, 95).as_millis(),
                percentile(&mut row.round_trips, 50).as_millis(),
                1e-6 * percentile(&mut row.estimates, 50) as f64,
                row.lost,
                row.sent,
            );
        }
    }
    Ok(())
}

/// The value that `percent` of `values` do not exceed; the default if there are none.
fn percentile<T: Copy + Default + Ord>(values: &mut [T], percent: usize) -> T {
    values.sort_unstable();
    let last = values.len().saturating_sub(1);
    values.get(last * percent / 100).copied().unwrap_or_default()
}
