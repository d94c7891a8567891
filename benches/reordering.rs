//! Goodput and response times for each threshold of loss detection, over paths that reorder, lose or do neither.
//!
//! `cargo bench --bench reordering [-- --controller SPEC]`, in virtual time. 40 responses of 500 kB one after another
//! at 20 Mbit/s with a queue of one bandwidth-delay product. "Lost" is what the sender considers lost, in percent of
//! what it sent; "dropped" is what the path dropped.

use std::time::Duration;

use anyhow::Context;
use bytes::Bytes as Chunk;
use playrate::transport::{ConnectionController, ControllerChoice, Incoming, LossDetection, Target};
use playrate_netsim::{Loss, PathConfig, QueueLimit, Reordering};
use playrate_units::{Bitrate, Bytes, Probability};

#[path = "common/arguments.rs"]
mod arguments;
mod simulated;

use simulated::SimulatedPair;

const RATE: Bitrate = Bitrate::from_mbps(20);
const RESPONSES: usize = 40;
const RESPONSE: usize = 500_000;
static ZEROS: [u8; RESPONSE] = [0; RESPONSE];
/// Virtual time after which a run has failed.
const LIMIT: Duration = Duration::from_secs(600);

const RTTS: [Duration; 2] = [Duration::from_millis(30), Duration::from_millis(100)];
const DETECTIONS: [LossDetection; 6] = [
    LossDetection::RFC_9002,
    LossDetection::new(3, 1.25),
    LossDetection::new(64, 1.125),
    LossDetection::new(64, 1.25),
    LossDetection::new(64, 1.5),
    LossDetection::new(1_000_000, 1.5),
];

const fn percent(percent: u32) -> Probability {
    Probability::from_parts_per_billion(percent * 10_000_000)
}

/// Impairment of a path in the data's direction, in addition to its queue.
struct Disturbance {
    name: &'static str,
    loss: Loss,
    late: Option<Reordering>,
}

const fn late(name: &'static str, share: u32, milliseconds: u64) -> Disturbance {
    Disturbance {
        name,
        loss: Loss::None,
        late: Some(Reordering::new(
            percent(share),
            Duration::from_millis(milliseconds),
        )),
    }
}

const DISTURBANCES: [Disturbance; 6] = [
    Disturbance {
        name: "none",
        loss: Loss::None,
        late: None,
    },
    Disturbance {
        name: "1 % lost",
        loss: Loss::Bernoulli(percent(1)),
        late: None,
    },
    late("1 % by 10 ms", 1, 10),
    late("5 % by 2 ms", 5, 2),
    late("5 % by 10 ms", 5, 10),
    late("5 % by 30 ms", 5, 30),
];

/// Answers all requests of a connection with zeros, until its client closes it.
async fn serve(incoming: Incoming, control: ConnectionController) -> Option<quinn::Connection> {
    let mut session = incoming.establish(control).await.ok()?;
    let mut connection = None;
    while let Ok(Some(request)) = session.accept().await {
        let exchange = request.receive().await.ok()?;
        connection = Some(exchange.quinn().clone());
        let answered = exchange.respond(http::Response::new(()), Chunk::from_static(&ZEROS));
        // The last response's acknowledgement may be overtaken by the client's close.
        drop(answered.await);
    }
    connection
}

struct Outcome {
    goodput: Bitrate,
    /// Time of each response, sorted.
    times: Vec<Duration>,
    lost_packets: u64,
    sent_packets: u64,
    dropped_packets: u64,
}

impl Outcome {
    fn time(&self, percentile: usize) -> Duration {
        self.times[(self.times.len() - 1) * percentile / 100]
    }
}

fn run(
    choice: &ControllerChoice,
    rtt: Duration,
    disturbance: &Disturbance,
    detection: LossDetection,
) -> anyhow::Result<Outcome> {
    let mut path = PathConfig::bottleneck(RATE, rtt, QueueLimit::ONE_BDP, disturbance.loss);
    path.forward.reordering = disturbance.late;
    let SimulatedPair {
        sim,
        path: link,
        runtime,
        server,
        client,
    } = SimulatedPair::new(&path, |options| options.transport.loss_detection = detection)?;
    let target = Target::at("localhost", server.local_addr()?);
    let (done, outcome) = tokio::sync::oneshot::channel();
    let control = ConnectionController::new(choice.clone());
    runtime.spawn(Box::pin(async move {
        if let Some(incoming) = server.accept().await {
            // Fails if the client failed, which is reported there.
            drop(done.send(serve(incoming, control).await));
        }
    }));
    let (times, stats) = sim.run(LIMIT, async {
        let connection = client.connect(&target).await?;
        let mut times = Vec::new();
        for _ in 0..RESPONSES {
            let began = runtime.now();
            let (_, mut body) = connection.get("/", http::HeaderMap::new()).await?;
            while body.chunk().await?.is_some() {}
            times.push(runtime.now() - began);
        }
        connection.close();
        client.wait_idle().await;
        let connection = outcome.await?.context("the server ended without a connection")?;
        anyhow::Ok((times, connection.stats().path))
    })??;
    let elapsed: Duration = times.iter().sum();
    let mut outcome = Outcome {
        goodput: Bytes::new((RESPONSES * RESPONSE) as u64)
            .per(elapsed)
            .context("no time passed")?,
        times,
        lost_packets: stats.lost_packets,
        sent_packets: stats.sent_packets,
        dropped_packets: sim.link_stats(link.forward).dropped.total().packets,
    };
    outcome.times.sort();
    Ok(outcome)
}

fn main() -> anyhow::Result<()> {
    let choice: ControllerChoice = match arguments::value("--controller")? {
        Some(choice) => choice,
        None => "cubic".parse()?,
    };
    println!("`{choice}` at {RATE}; thresholds in packets and RTTs\n");
    println!("| RTT | path | thresholds | goodput | p50 | p95 | lost | dropped |");
    println!("| --- | --- | --- | ---: | ---: | ---: | ---: | ---: |");
    for rtt in RTTS {
        for disturbance in &DISTURBANCES {
            for detection in DETECTIONS {
                let outcome = run(&choice, rtt, disturbance, detection)?;
                let share = |packets: u64| 100.0 * packets as f64 / outcome.sent_packets.max(1) as f64;
                println!(
                    "| {} ms | {} | {}, {} | {:.2} Mbit/s | {} ms | {} ms | {:.2} % | {:.2} % |",
                    rtt.as_millis(),
                    disturbance.name,
                    detection.packet_threshold,
                    detection.time_threshold,
                    outcome.goodput.as_bits_per_second() as f64 / 1e6,
                    outcome.time(50).as_millis(),
                    outcome.time(95).as_millis(),
                    share(outcome.lost_packets),
                    share(outcome.dropped_packets),
                );
            }
        }
    }
    Ok(())
}
