//! Downloads over noq's paths in virtual time, and the two settings that are measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join;
use noq::{Endpoint, FourTuple, PathStatus, Runtime as _};
use playrate_netsim::{HostConfig, Loss, PathConfig, QueueLimit, Rate, Seed, Simulation, VirtualSocket};
use playrate_units::Bitrate;

use crate::ConnectionController;
use crate::configs::configs;

/// Time before the measurement, for the flows to reach their shares.
const WARM_UP: Duration = Duration::from_secs(20);
/// Flows start within this time of each other, as the seed says.
const STAGGER_MS: u64 = 2_000;

/// Two separate links of 4 Mbit/s with these RTTs in ms and queues of one bandwidth-delay product.
pub(crate) fn separate_links(rtts_ms: [u64; 2]) -> [PathConfig; 2] {
    let rate = Bitrate::from_mbps(4);
    rtts_ms.map(|ms| PathConfig::bottleneck(rate, Duration::from_millis(ms), QueueLimit::ONE_BDP, Loss::None))
}

/// The first flow's rate divided by the mean of both flows' rates, under these controllers. It has two paths of these
/// RTTs in ms, and the other flow has the first path. All share a link of 8 Mbit/s, whose queue is a bandwidth-delay
/// product of the mean RTT.
pub(crate) fn share_of_link(seed: u64, measured: Duration, rtts_ms: [u64; 2], names: [&str; 2]) -> f64 {
    let (rate, mean) = (
        Bitrate::from_mbps(8),
        Duration::from_millis(rtts_ms[0] + rtts_ms[1]) / 2,
    );
    let queue = QueueLimit::Bytes(rate * mean);
    let link = PathConfig::bottleneck(rate, Duration::ZERO, queue, Loss::None);
    let [near, far] = rtts_ms.map(|ms| PathConfig::of_rate(Rate::Unlimited, Duration::from_millis(ms)));
    let [controller, other] = names;
    let flows = [
        Flow {
            controller,
            paths: &[&[0, 1], &[0, 2]],
        },
        Flow {
            controller: other,
            paths: &[&[0, 1]],
        },
    ];
    let outcome = download(seed, measured, &[link, near, far], &flows);
    2.0 * outcome.mbps[0] / outcome.mbps.iter().sum::<f64>()
}

/// An endless download under the named controller. Each of its paths goes through the links with these numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow<'a> {
    pub(crate) controller: &'a str,
    pub(crate) paths: &'a [&'a [usize]],
}

/// Rates of the flows in Mbit/s, and the packets that the links dropped, after the warm-up.
#[derive(Clone, Debug)]
pub(crate) struct Outcome {
    pub(crate) mbps: Vec<f64>,
    pub(crate) dropped: u64,
}

/// Number below `bound` that depends on the seed and `name` alone.
fn draw(seed: Seed, name: &str, bound: u64) -> u64 {
    seed.child(name).number() % bound
}

/// Runs `flows` over `links` for `measured` after the warm-up. The flows start at different times, as `seed` says.
pub(crate) fn download(seed: u64, measured: Duration, links: &[PathConfig], flows: &[Flow<'_>]) -> Outcome {
    let seed = Seed::new(seed);
    let simulation = Simulation::new(seed);
    let build = |link: &PathConfig| simulation.add_path(link.build(seed).unwrap());
    let links: Vec<_> = links.iter().map(build).collect();
    let runtime = simulation.runtime();
    let wait = |time| simulation.run(Simulation::DAY, runtime.sleep(time)).unwrap();
    let mut connections = Vec::new();
    for (number, flow) in flows.iter().enumerate() {
        let [server, client] = [(); 2].map(|()| simulation.add_host(HostConfig::default()));
        let addresses: Vec<_> = flow
            .paths
            .iter()
            .enumerate()
            .map(|(path, through)| {
                let address = if path == 0 {
                    client
                } else {
                    simulation.add_address(client)
                };
                let through: Vec<_> = through.iter().map(|&link| links[link]).collect();
                simulation.connect(server, address, &through);
                address.ip()
            })
            .collect();
        let (server_config, client_config) =
            configs(&ConnectionController::new(flow.controller.parse().unwrap()));
        let endpoint = |name: &str, host, config| {
            let socket = simulation.bind(host, 0).unwrap();
            let endpoint = simulation.noq_endpoint_config(&format!("{name} {number}"));
            let socket = Box::new(VirtualSocket::clone(&socket));
            Endpoint::new_with_abstract_socket(endpoint, config, socket, simulation.runtime_on(host)).unwrap()
        };
        let server = endpoint("server", server, Some(server_config));
        let client = endpoint("client", client, None);
        let to = server.local_addr().unwrap();
        let connecting = client.connect_with(client_config, to, "localhost").unwrap();
        let accepting = async { server.accept().await.unwrap().await.unwrap() };
        let (at_client, at_server) = simulation
            .run(Simulation::DAY, join(connecting, accepting))
            .unwrap();
        let at_client = at_client.unwrap();
        // Connection IDs for further paths arrive a round trip after the handshake.
        wait(Duration::from_millis(300));
        for &local in &addresses[1..] {
            let opening = at_client.open_path(FourTuple::new(to, Some(local)), PathStatus::Available);
            simulation.run(Simulation::DAY, opening).unwrap().unwrap();
        }
        connections.push((at_server, at_client, (server, client)));
    }
    let received: Vec<Arc<AtomicU64>> = connections
        .iter()
        .enumerate()
        .map(|(number, (server, client, _))| {
            let received = Arc::<AtomicU64>::default();
            let (server, client, count) = (server.clone(), client.clone(), Arc::clone(&received));
            let start = Duration::from_millis(draw(seed, &format!("start {number}"), STAGGER_MS));
            let starting = runtime.sleep(start);
            runtime.spawn(Box::pin(async move {
                starting.await;
                let mut stream = server.open_uni().await.unwrap();
                while stream.write_all(&[7; 10_000]).await.is_ok() {}
            }));
            runtime.spawn(Box::pin(async move {
                let mut stream = client.accept_uni().await.unwrap();
                while let Ok(Some(chunk)) = stream.read_chunk(usize::MAX).await {
                    count.fetch_add(chunk.len() as u64, Relaxed);
                }
            }));
            received
        })
        .collect();
    let counts = || -> (Vec<u64>, u64) {
        let drops = links
            .iter()
            .map(|link| simulation.link_stats(link.forward).dropped.total().packets);
        (
            received.iter().map(|count| count.load(Relaxed)).collect(),
            drops.sum(),
        )
    };
    wait(WARM_UP);
    let before = counts();
    wait(measured);
    let after = counts();
    let mbps = |(after, before): (&u64, &u64)| (after - before) as f64 * 8e-6 / measured.as_secs_f64();
    Outcome {
        mbps: after.0.iter().zip(&before.0).map(mbps).collect(),
        dropped: after.1 - before.1,
    }
}
