//! noq in virtual time: bulk transfers over one path, and over two paths of one connection.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::sync::Arc;
use std::time::Duration;

use noq::congestion::CubicConfig;
use noq::{FourTuple, PathStatus, TransportConfig};
use playrate_netsim::{Loss, Noq, Pair, PairOutcome, PathConfig, QueueLimit, Seed, Side};
use playrate_units::{Bitrate, Probability};

fn path(mbps: u64, rtt: u64, loss: Loss) -> PathConfig {
    let (rate, rtt) = (Bitrate::from_mbps(mbps), Duration::from_millis(rtt));
    PathConfig::bottleneck(rate, rtt, QueueLimit::ONE_BDP, loss)
}

fn transport(transport: &mut TransportConfig) {
    transport
        .congestion_controller_factory(Arc::new(CubicConfig::default()))
        .stream_receive_window(20_000_000_u32.into())
        .max_concurrent_multipath_paths(2);
}

/// Opens the second path if there is one, and reads all data on it and the first; returns the number of bytes.
async fn read(client: Side<Noq>) -> usize {
    if let Some(local) = client.address(1) {
        // Connection IDs for further paths arrive a round trip after the handshake.
        client.sleep(Duration::from_millis(200)).await;
        let ends = FourTuple::new(client.server(), Some(local));
        let path = client.connection.open_path(ends, PathStatus::Available);
        path.await.unwrap();
    }
    let mut stream = client.connection.accept_uni().await.unwrap();
    stream.read_to_end(usize::MAX).await.unwrap().len()
}

/// Downloads `bytes` over all of `paths` together.
fn download(seed: u64, bytes: usize, paths: &[PathConfig]) -> PairOutcome<(), usize> {
    let mut pair = Pair::noq(paths[0].clone())
        .server_transport(transport)
        .client_transport(transport);
    for path in &paths[1..] {
        pair = pair.with_path(path.clone());
    }
    let serve = async |server: Side<Noq>| {
        let mut stream = server.connection.open_uni().await.unwrap();
        stream.write_all(&vec![7; bytes]).await.unwrap();
        stream.finish().unwrap();
        server.connection.closed().await;
    };
    let outcome = pair.run(Seed::new(seed), serve, read).unwrap();
    assert_eq!(outcome.client, bytes);
    assert!(outcome.paths.iter().all(|path| path.forward.stats.is_conserved()));
    outcome
}

/// Rate of a download in Mbit/s, the handshake included.
fn mbps(outcome: &PairOutcome<(), usize>) -> f64 {
    outcome.client as f64 * 8e-6 / outcome.ended.as_secs_f64()
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let lossy = Probability::from_parts_per_billion(5_000_000).into();
    for paths in [
        vec![path(20, 100, lossy)],
        vec![path(4, 60, lossy), path(4, 120, lossy)],
    ] {
        let download = |seed| download(seed, 1_000_000, &paths);
        assert_eq!(download(1), download(1));
        assert_ne!(download(1).digest, download(2).digest);
    }
}

#[test]
fn a_bulk_transfer_fills_the_link() {
    let outcome = download(1, 50_000_000, &[path(20, 100, Loss::None)]);
    // 1,452 of 1,480 bytes are payload of UDP, and slow start takes some of the twenty seconds.
    let mbps = mbps(&outcome);
    assert!((17.5..19.7).contains(&mbps), "{mbps} Mbit/s");
    assert!(outcome.paths[0].forward.stats.max_queue.as_u64() <= 250_000);
}

#[test]
fn two_paths_of_one_connection_carry_their_rates_together() {
    let paths = [path(4, 60, Loss::None), path(4, 120, Loss::None)];
    let outcome = download(1, 30_000_000, &paths);
    let mbps = mbps(&outcome);
    assert!((7.0..8.0).contains(&mbps), "{mbps} Mbit/s");
    for path in &outcome.paths {
        let bytes = path.forward.stats.delivered.bytes.as_u64();
        assert!(bytes > 13_000_000, "{bytes} bytes over one of two equal links");
    }
}
