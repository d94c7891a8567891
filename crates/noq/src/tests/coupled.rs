//! Coupled congestion control over noq's paths, in virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use futures_util::future::join;
use noq::{Endpoint, FourTuple, PathStatus, Runtime as _};
use playrate_netsim::{HostConfig, Loss, PathConfig, QueueLimit, Seed, Simulation, VirtualSocket};
use playrate_units::Bitrate;

use super::wire::configs;
use crate::ConnectionController;

const WARM_UP: Duration = Duration::from_secs(20);
const MEASURED: Duration = Duration::from_secs(180);

/// A link with a round trip of 60 ms and a queue of one bandwidth-delay product.
fn link(mbps: u64) -> PathConfig {
    let rate = Bitrate::from_mbps(mbps);
    PathConfig::bottleneck(rate, Duration::from_millis(60), QueueLimit::ONE_BDP, Loss::None)
}

/// Rates of the flows in Mbit/s, and the packets that the links dropped, after the warm-up.
#[derive(Debug)]
struct Outcome {
    mbps: Vec<f64>,
    dropped: u64,
}

/// Endless downloads, each under a controller and with a path through each of these links. All share `links`.
fn download(links: &[PathConfig], flows: &[(&str, &[usize])]) -> Outcome {
    let simulation = Simulation::new(Seed::new(7));
    let build = |link: &PathConfig| simulation.add_path(link.build(Seed::new(7)).unwrap());
    let links: Vec<_> = links.iter().map(build).collect();
    let runtime = simulation.runtime();
    let wait = |time| simulation.run(Simulation::DAY, runtime.sleep(time)).unwrap();
    let mut connections = Vec::new();
    for (number, (controller, ways)) in flows.iter().enumerate() {
        let [server, client] = [(); 2].map(|()| simulation.add_host(HostConfig::default()));
        let addresses: Vec<_> = ways
            .iter()
            .enumerate()
            .map(|(path, &link)| {
                let address = if path == 0 {
                    client
                } else {
                    simulation.add_address(client)
                };
                simulation.connect(server, address, &[links[link]]);
                address.ip()
            })
            .collect();
        let (server_config, client_config) = configs(&ConnectionController::new(controller.parse().unwrap()));
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
        wait(Duration::from_millis(200));
        for &local in &addresses[1..] {
            let opening = at_client.open_path(FourTuple::new(to, Some(local)), PathStatus::Available);
            simulation.run(Simulation::DAY, opening).unwrap().unwrap();
        }
        connections.push((at_server, at_client, (server, client)));
    }
    let received: Vec<Arc<AtomicU64>> = connections
        .iter()
        .map(|(server, client, _)| {
            let received = Arc::<AtomicU64>::default();
            let (server, client, count) = (server.clone(), client.clone(), Arc::clone(&received));
            runtime.spawn(Box::pin(async move {
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
    wait(MEASURED);
    let after = counts();
    let mbps = |(after, before): (&u64, &u64)| (after - before) as f64 * 8e-6 / MEASURED.as_secs_f64();
    Outcome {
        mbps: after.0.iter().zip(&before.0).map(mbps).collect(),
        dropped: after.1 - before.1,
    }
}

/// Rate of the first flow relative to the second.
fn ratio(outcome: &Outcome) -> f64 {
    outcome.mbps[0] / outcome.mbps[1]
}

#[test]
fn coupled_paths_fill_separate_links_with_fewer_losses_than_cubic() {
    let links = [link(4), link(4)];
    let [cubic, lia, olia] = ["cubic", "lia", "olia"].map(|name| download(&links, &[(name, &[0, 1])]));
    for coupled in [lia, olia] {
        assert!(coupled.mbps[0] >= 7.0, "{coupled:?}");
        assert!(2 * coupled.dropped < cubic.dropped, "{coupled:?}, {cubic:?}");
    }
}

// Two uncoupled paths take two shares.
#[test]
fn coupled_paths_through_one_link_take_about_the_share_of_one_flow() {
    let beside_reno = |name| download(&[link(8)], &[(name, &[0, 0]), ("reno", &[0])]);
    let uncoupled = beside_reno("reno");
    assert!((1.6..2.4).contains(&ratio(&uncoupled)), "{uncoupled:?}");
    for name in ["lia", "olia"] {
        let coupled = beside_reno(name);
        let share = 2.0 * coupled.mbps[0] / coupled.mbps.iter().sum::<f64>();
        assert!((0.8..1.1).contains(&share), "{name}: {coupled:?}");
    }
}
