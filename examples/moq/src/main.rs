//! Live video over Media over QUIC (MoQ), from a publisher behind a slow uplink to a subscriber, under several
//! congestion controllers in the same run.
//!
//! Each controller has its own publisher, path and subscriber; all share one server, which runs in this process unless
//! `--server` names another. The table shows the frames that arrived in time, and the stack's estimate of the path.

mod publisher;
mod server;
mod subscriber;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use playrate_netsim::{LinkConfig, Loss, PathConfig, QueueLimit, Rate, Relay, RelayConfig};
use playrate_units::{Bitrate, Bytes};

use playrate_moq_noq::ControllerChoice;
use publisher::Encoder;

/// Frames per second, and frames per group: a group of pictures lasts two seconds.
const FRAME_RATE: u32 = 30;
const GROUP: u64 = 60;
/// Name of the only track.
const TRACK: &str = "video";

/// Live video over Media over QUIC from behind a slow uplink, one row per congestion controller
#[derive(Clone, Debug, Parser)]
struct Arguments {
    /// Congestion controllers of the publishers; noq-bbr3 is moq-tokio's default
    #[arg(long, value_delimiter = ',', default_value = "video,noq-bbr3,noq-cubic")]
    controllers: Vec<ControllerChoice>,

    /// The encoder: a rate such as 10Mbit/s, a share of moq's estimate of the path such as 90%, or a share of the
    /// controller's pacing rate such as 90%-of-pacing
    #[arg(long, default_value = "90%")]
    encoder: Encoder,

    /// Duration of the video
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,

    /// Age in milliseconds at which a frame is late
    #[arg(long, value_name = "MS", default_value_t = 400)]
    deadline: u64,

    /// Rate from each publisher to the server
    #[arg(long, default_value = "5Mbit/s")]
    rate: Bitrate,

    /// Propagation round-trip time in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 100)]
    rtt: u64,

    /// Delay of a full queue in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500)]
    queue: u64,

    /// Random loss from the publisher to the server
    #[arg(long, default_value = "0%")]
    loss: Loss,

    /// Address of a server, such as a moq-relay, that needs no token; by default one runs in this process
    #[arg(long, value_name = "ADDRESS:PORT")]
    server: Option<SocketAddr>,
}

impl Arguments {
    /// The path of one publisher. The publisher is the client, so the slow direction is `backward`.
    fn path(&self) -> PathConfig {
        let one_way = Duration::from_millis(self.rtt) / 2;
        let bytes = self.rate.as_bytes_per_second() * self.queue / 1_000;
        let uplink = LinkConfig::new(Rate::Constant(self.rate), one_way)
            .with_queue(QueueLimit::Bytes(Bytes::new(bytes)))
            .with_loss(self.loss);
        PathConfig::new(LinkConfig::new(Rate::Unlimited, one_way), uplink)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let server = match arguments.server {
        Some(server) => server,
        None => server::start()?,
    };
    eprintln!("the server is {server}");
    let epoch = Instant::now();
    let mut runs = Vec::new();
    for controller in arguments.controllers.clone() {
        let arguments = arguments.clone();
        runs.push(tokio::spawn(async move {
            run(&arguments, controller, server, epoch).await
        }));
    }
    println!(
        "{:>24} {:>8} {:>8} {:>8} {:>9} {:>9} {:>9} {:>6}",
        "controller", "on time", "p50 ms", "p95 ms", "encoded", "estimate", "srtt ms", "lost"
    );
    for run in runs {
        println!("{}", run.await??);
    }
    Ok(())
}

/// One row of the table.
async fn run(
    arguments: &Arguments,
    controller: ControllerChoice,
    server: SocketAddr,
    epoch: Instant,
) -> anyhow::Result<String> {
    let relay = Relay::start(&RelayConfig::new(server, arguments.path()))?;
    let video = Duration::from_secs(arguments.seconds);
    let deadline = Duration::from_millis(arguments.deadline);
    // Two controllers of the same name are two broadcasts.
    let name = format!("{controller}-{}", relay.local_addr().port());

    let (subscriber, latencies) = subscriber::start(server, name.clone(), deadline, epoch)?;
    let sent = publisher::publish(
        &controller,
        &arguments.encoder,
        relay.local_addr(),
        &name,
        video,
        epoch,
    )
    .await
    .with_context(|| format!("the publisher under {controller}"))?;
    subscriber.abort();
    let latencies = latencies.await?;

    let report = relay.stop()?;
    for flaw in report.flaws() {
        eprintln!("the path of {controller} was not as configured: {flaw}");
    }
    ensure!(
        !latencies.is_empty(),
        "no frame of {name} arrived within {} s",
        arguments.seconds
    );
    let on_time = latencies.iter().filter(|&&latency| latency <= deadline).count();
    let milliseconds =
        |times: &[Duration], share| percentile(times, share).map_or(0, |time| time.as_millis());
    Ok(format!(
        "{:>24} {:>7.1}% {:>8} {:>8} {:>9.2} {:>9.2} {:>9} {:>6}",
        controller.to_string(),
        100.0 * on_time as f64 / sent.frames as f64,
        milliseconds(&latencies, 50),
        milliseconds(&latencies, 95),
        8e-6 * sent.bytes as f64 / video.as_secs_f64(),
        percentile(&sent.estimates, 50).map_or(0.0, |rate| 1e-6 * rate as f64),
        milliseconds(&sent.round_trips, 50),
        sent.lost,
    ))
}

/// The value that `percent` of `values` do not exceed; `None` if there are none.
fn percentile<T: Copy + Ord>(values: &[T], percent: usize) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let last = sorted.len().checked_sub(1)?;
    sorted.get(last * percent / 100).copied()
}
