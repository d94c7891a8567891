//! quinn itself, including encryption, over modelled paths.

use std::net::SocketAddr;
use std::sync::Arc;

use playrate_units::Probability;
use quinn::congestion::CubicConfig;
use quinn::{ClientConfig, Connection, Endpoint, Runtime, TransportConfig};

use super::*;

/// An endpoint for clients.
fn calling(sim: &Simulation, host: Host) -> Endpoint {
    endpoint(sim, host, sim.endpoint_config(&host.ip().to_string()), None)
}

/// A server that sends `bytes` to each client, its address, and the configuration of its clients.
fn serve(sim: &Simulation, server: Host, bytes: usize) -> (SocketAddr, ClientConfig) {
    let (mut server_config, mut client_config) = configs(ring(), ring());
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(Arc::new(CubicConfig::default()))
        .stream_receive_window(20_000_000_u32.into())
        .max_idle_timeout(None);
    let transport = Arc::new(transport);
    server_config.transport_config(Arc::clone(&transport));
    client_config.transport_config(transport);
    let listening = endpoint(sim, server, sim.endpoint_config("server"), Some(server_config));
    let address = listening.local_addr().unwrap();
    let runtime = sim.runtime();
    sim.runtime().spawn(Box::pin(async move {
        while let Some(incoming) = listening.accept().await {
            let connection = incoming.await.unwrap();
            runtime.spawn(Box::pin(async move {
                let mut stream = connection.open_uni().await.unwrap();
                let block = vec![7; 50_000];
                for _ in 0..bytes / block.len() {
                    stream.write_all(&block).await.unwrap();
                }
                stream.finish().unwrap();
                connection.closed().await;
            }));
        }
    }));
    (address, client_config)
}

async fn read_all(connection: &Connection) -> usize {
    let mut stream = connection.accept_uni().await.unwrap();
    let mut read = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await.unwrap() {
        read += chunk.bytes.len();
    }
    read
}

/// Downloads a megabyte over a lossy path; returns the digest.
fn download(seed: u64) -> u64 {
    let mut config = twenty_mbps();
    config.forward = config
        .forward
        .with_loss(Probability::from_parts_per_billion(5_000_000));
    let (sim, server, client, path) = pair(Seed::new(seed), &config);
    let (address, config) = serve(&sim, server, 1_000_000);
    let calling = calling(&sim, client);
    let read = sim.run(Duration::from_secs(60), async {
        let connection = connect(&calling, address, config).await;
        assert!(
            connection.rtt() >= Duration::from_millis(100),
            "faster than light: {:?}",
            connection.rtt()
        );
        read_all(&connection).await
    });
    assert_eq!(read, Ok(1_000_000));
    let stats = sim.link_stats(path.forward);
    assert!(stats.is_conserved());
    assert!(stats.dropped.loss.packets > 0);
    sim.digest()
}

#[test]
fn the_same_seed_gives_the_same_packets_on_any_thread() {
    let here = download(1);
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(|| download(1))).collect();
    for thread in threads {
        assert_eq!(thread.join().unwrap(), here);
    }
    assert_ne!(download(2), here);
}

#[test]
fn cubic_fills_a_link_with_a_queue_of_one_bdp() {
    let (sim, server, client, path) = pair(Seed::new(1), &twenty_mbps());
    let (address, config) = serve(&sim, server, 100_000_000);
    let calling = calling(&sim, client);
    sim.runtime().spawn(Box::pin(async move {
        let connection = connect(&calling, address, config).await;
        read_all(&connection).await;
    }));
    let run_until = |seconds| {
        let deadline = Duration::from_secs(seconds);
        assert!(matches!(
            sim.run(deadline, std::future::pending::<()>()),
            Err(RunError::Deadline { .. })
        ));
        sim.link_stats(path.forward)
    };
    // The start overshoots and recovers; then the link is measured.
    let (before, after) = (run_until(10), run_until(10 + 10));
    let sent = (after.delivered.bytes - before.delivered.bytes)
        .per(Duration::from_secs(10))
        .unwrap();
    assert!(
        (19.8..=20.01).contains(&sent.as_mbps()),
        "{sent} of 20 Mbit/s used"
    );
    assert!(after.max_queue.as_u64() <= 250_000);
    assert!(after.is_conserved());
}

#[test]
fn two_flows_share_a_bottleneck() {
    let sim = Simulation::new(Seed::new(5));
    let path = sim.add_path(twenty_mbps().build(Seed::new(5)).unwrap());
    let server = sim.add_host(HostConfig::default());
    let (address, config) = serve(&sim, server, 2_000_000);
    let (sender, read) = std::sync::mpsc::channel();
    for _ in 0..2 {
        let client = sim.add_host(HostConfig::default());
        sim.connect(server, client, &[path]);
        let (calling, config, sender) = (calling(&sim, client), config.clone(), sender.clone());
        sim.runtime().spawn(Box::pin(async move {
            let connection = connect(&calling, address, config).await;
            sender.send(read_all(&connection).await).unwrap();
        }));
    }
    let ended = sim.run(Duration::from_secs(10), std::future::pending::<()>());
    // Both finish well before that, and then no task has a timer left.
    assert!(ended.is_err());
    assert_eq!(read.try_iter().collect::<Vec<_>>(), [2_000_000; 2]);
    let stats = sim.link_stats(path.forward);
    assert!(stats.delivered.bytes.as_u64() > 4_000_000 && stats.is_conserved());
    assert_eq!(sim.network_stats().unroutable, 0);
}

#[test]
fn cubic_heeds_marks_and_nothing_is_dropped() {
    let mut config = twenty_mbps();
    // The start overshoots before marks can stop it, so the queue is large.
    config.forward = config
        .forward
        .with_queue(QueueLimit::Bdp(8_000))
        .with_aqm("codel(ecn)".parse().unwrap());
    let (sim, server, client, path) = pair(Seed::new(1), &config);
    let (address, config) = serve(&sim, server, 20_000_000);
    let calling = calling(&sim, client);
    let read = sim.run(Duration::from_secs(30), async {
        let connection = connect(&calling, address, config).await;
        read_all(&connection).await
    });
    assert_eq!(read, Ok(20_000_000));
    let stats = sim.link_stats(path.forward);
    assert!(stats.marked > 3, "{stats:?}");
    assert_eq!(stats.dropped.total().packets, 0, "{stats:?}");
    let mean = stats.mean_queue_delay;
    assert!(mean < Duration::from_millis(60), "{mean:?}");
}
