//! Bulk transfer over HTTP/3 at 20 Mbit/s, 100 ms and a queue of one bandwidth-delay product: `reno` and `cubic` carry
//! as much as quinn's own NewReno and Cubic on the same path.
//!
//! `cargo bench --bench goodput [-- [--check] [--live] [--seconds N] [--controllers LIST]]`. Runs in virtual time, or
//! with `--live` over real UDP through the relay. If the machine was too busy for a live run, it is repeated up to
//! three times (`chrt -r 10` before the command helps). `--check` fails if a controller carries less than 0.95 of its
//! counterpart in quinn, or if no run was valid.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use playrate::transport::{
    Client, ClientOptions, ConnectionController, ControllerChoice, Identity, Incoming, Server, ServerOptions,
    Target, Trust,
};
use playrate_netsim::{LinkStats, Loss, PathConfig, QueueLimit, Relay, RelayConfig, Seed};
use playrate_units::{Bitrate, Bytes};
use quinn::Runtime;

#[path = "common/arguments.rs"]
mod arguments;
mod simulated;

use arguments::value;
use simulated::SimulatedPair;

const RATE: Bitrate = Bitrate::from_mbps(20);
const RTT: Duration = Duration::from_millis(100);
/// Maximum number of repetitions of an invalid run.
const REPEATS: u32 = 3;
/// Minimum goodput relative to quinn's counterpart.
const LEAST: f64 = 0.95;
const PAIRS: [(&str, &str); 2] = [("reno", "quinn-newreno"), ("cubic", "quinn-cubic")];

/// Result of one transfer, measured at both ends.
struct Transfer {
    /// Payload over the time since the request.
    goodput: Bitrate,
    lost_packets: u64,
    sent_packets: u64,
    congestion_events: u64,
}

fn path() -> PathConfig {
    PathConfig::bottleneck(RATE, RTT, QueueLimit::ONE_BDP, Loss::None)
}

/// Sends zeros on one connection until the client cancels the response.
async fn serve(incoming: Incoming, control: ConnectionController) -> Option<quinn::Connection> {
    let mut session = incoming.establish(control).await.ok()?;
    let exchange = session.accept().await.ok()??.receive().await.ok()?;
    let connection = exchange.quinn().clone();
    let mut writer = exchange.start(http::Response::new(())).await.ok()?;
    let chunk = bytes::Bytes::from_static(&[0; 16_384]);
    while writer.write(chunk.clone()).await.is_ok() {}
    Some(connection)
}

/// One transfer from `server`, which is at `address`, to `client`.
async fn transfer(
    runtime: Arc<dyn Runtime>,
    (server, client): (Server, Client),
    address: SocketAddr,
    choice: ControllerChoice,
    time: Duration,
) -> anyhow::Result<Transfer> {
    let (done, outcome) = tokio::sync::oneshot::channel();
    runtime.spawn(Box::pin(async move {
        if let Some(incoming) = server.accept().await {
            // Fails if the client failed, which is reported there.
            drop(done.send(serve(incoming, ConnectionController::new(choice)).await));
        }
    }));
    let connection = client.connect(&Target::at("localhost", address)).await?;
    let began = runtime.now();
    let (_, mut body) = connection.get("/", http::HeaderMap::new()).await?;
    while runtime.now() - began < time {
        body.chunk().await?.context("the server ended the transfer")?;
    }
    let (elapsed, received) = (runtime.now() - began, Bytes::new(body.received()));
    drop(body);
    connection.close();
    client.wait_idle().await;
    let stats = outcome
        .await?
        .context("the server ended without a connection")?
        .stats()
        .path;
    Ok(Transfer {
        goodput: received.per(elapsed).context("no time passed")?,
        lost_packets: stats.lost_packets,
        sent_packets: stats.sent_packets,
        congestion_events: stats.congestion_events,
    })
}

/// Runs one transfer in virtual time.
fn in_simulation(choice: &ControllerChoice, time: Duration) -> anyhow::Result<(Transfer, LinkStats)> {
    let SimulatedPair {
        sim,
        path,
        runtime,
        server,
        client,
    } = SimulatedPair::new(&path(), |_| {})?;
    let address = server.local_addr()?;
    let run = transfer(runtime, (server, client), address, choice.clone(), time);
    let done = sim.run(time + Duration::from_secs(60), run)??;
    Ok((done, sim.link_stats(path.forward)))
}

/// Runs one transfer over real UDP. Also returns the reason why the run is invalid, if it is.
fn through_relay(
    choice: &ControllerChoice,
    time: Duration,
) -> anyhow::Result<(Transfer, LinkStats, Option<String>)> {
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let _context = tokio.enter();
    let runtime: Arc<dyn Runtime> = Arc::new(quinn::TokioRuntime);
    let identity = Identity::development(&[])?;
    let options = ClientOptions::new(Trust::Pin(identity.pin()));
    let client = Client::bind(Arc::clone(&runtime), options)?;
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Server::bind(loopback, Arc::clone(&runtime), ServerOptions::new(identity))?;
    let relay = Relay::start(&RelayConfig::new(server.local_addr()?, path()).with_seed(Seed::new(1)))?;
    let address = relay.local_addr();
    let done = tokio.block_on(transfer(runtime, (server, client), address, choice.clone(), time))?;
    let report = relay.stop()?;
    let flaw = report.flaws().first().map(ToString::to_string);
    Ok((done, report.totals.forward.link, flaw))
}

fn main() -> anyhow::Result<ExitCode> {
    let has = |flag| std::env::args().any(|argument| argument == flag);
    let live = has("--live");
    let time = Duration::from_secs(value("--seconds")?.unwrap_or(25));
    let names: Option<String> = value("--controllers")?;
    let names = names.as_deref().unwrap_or("reno,quinn-newreno,cubic,quinn-cubic");
    let mode = if live { "over UDP" } else { "in virtual time" };
    println!("{RATE}, {RTT:?}, a queue of 1 BDP, {time:?} each, {mode}\n");
    println!("| controller | goodput | lost of sent packets | loss events | queueing mean / max |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    let mut goodputs = Vec::new();
    let mut failed = false;
    for choice in ControllerChoice::list(names)? {
        let (mut run, mut link, mut flaw) = if live {
            through_relay(&choice, time)?
        } else {
            let (run, link) = in_simulation(&choice, time)?;
            (run, link, None)
        };
        for _ in 0..REPEATS {
            if flaw.is_some() {
                (run, link, flaw) = through_relay(&choice, time)?;
            }
        }
        failed |= flaw.is_some();
        let flaw = flaw.map_or_else(String::new, |flaw| format!(" not valid: {flaw}"));
        println!(
            "| `{choice}` | {:.2} Mbit/s | {} of {} | {} | {} / {} ms |{flaw}",
            run.goodput.as_bits_per_second() as f64 / 1e6,
            run.lost_packets,
            run.sent_packets,
            run.congestion_events,
            link.mean_queue_delay.as_millis(),
            link.max_queue_delay.as_millis(),
        );
        goodputs.push((choice.to_string(), run.goodput.as_bits_per_second() as f64));
    }
    println!();
    let goodput = |name: &str| {
        goodputs
            .iter()
            .find(|(known, _)| known == name)
            .map(|found| found.1)
    };
    for (own, quinns) in PAIRS {
        if let (Some(carried), Some(reference)) = (goodput(own), goodput(quinns)) {
            println!("{own} carries {:.3} of what {quinns} does", carried / reference);
            failed |= carried < LEAST * reference;
        }
    }
    Ok(ExitCode::from(u8::from(failed && has("--check"))))
}
