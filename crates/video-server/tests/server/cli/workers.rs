//! Several workers of one server, as its clients and its operator see them.

use http::{HeaderMap, StatusCode};
use playrate_transport::{Client, Connection, Target};
use playrate_units::Bytes;

use crate::cli::process::{refused, start, start_with_metrics};
use playrate_test_support::{Media, ServerProcess, assert_contains, fetch, until};

/// Length of a body whose transfer takes some time.
const LENGTH: usize = 4_000_000;

fn media() -> Media {
    let media = Media::new();
    let bytes: Vec<u8> = (0..).flat_map(u32::to_le_bytes).take(LENGTH).collect();
    media.put("file.bin", bytes);
    media
}

async fn client(serving: &ServerProcess) -> (Client, Connection) {
    // Limits the data in flight.
    let client = playrate_test_support::client(serving.pin(), |options| {
        options.transport.stream_receive_window = Bytes::new(64 << 10);
    });
    let connection = client
        .connect(&Target::at("localhost", serving.address()))
        .await
        .unwrap();
    (client, connection)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_page_of_metrics_has_the_sums_of_all_workers() {
    let media = media();
    let serving = start_with_metrics(&media, &["--no-tcp", "--workers", "4"]);
    let mut connections = Vec::new();
    for _ in 0..16 {
        let connection = serving.connect().await;
        let length = fetch(&connection, "/file.bin", HeaderMap::new()).await;
        assert_eq!(length, LENGTH as u64);
        connections.push(connection);
    }
    let count = connections.len() as u64;
    until("all responses are acknowledged", async || {
        serving.metric("playrate_responses_total") == count
    })
    .await;
    let by_worker = [0, 1, 2, 3]
        .map(|worker| serving.metric(&format!("playrate_worker_connections{{worker=\"{worker}\"}}")));
    assert_eq!(by_worker.iter().sum::<u64>(), count);
    let used = by_worker.iter().filter(|&&count| count > 0);
    assert!(used.count() > 1, "{by_worker:?}");
    for (name, expected) in [
        ("connections", count),
        ("content_bytes_total", count * LENGTH as u64),
        ("http_responses_total{protocol=\"HTTP/3\",code=\"200\"}", count),
    ] {
        assert_eq!(serving.metric(&format!("playrate_{name}")), expected, "{name}");
    }
    for connection in connections {
        connection.close();
    }
    let log = serving.stop();
    assert_contains(&log, &["sessions=16", "responses=16", "drained=true"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_viewer_whose_port_changes_reaches_its_worker_and_the_page_counts_it() {
    let media = media();
    let serving = start_with_metrics(&media, &["--no-tcp", "--workers", "2"]);
    let (client, connection) = client(&serving).await;
    // Each port reaches the other worker with probability one half.
    for _ in 0..20 {
        client.rebind().unwrap();
        let length = fetch(&connection, "/file.bin", HeaderMap::new()).await;
        assert_eq!(length, LENGTH as u64);
    }
    assert!(serving.metric("playrate_forwarded_datagrams_total") > 0);
    assert_eq!(serving.metric("playrate_lost_forwarded_datagrams_total"), 0);
    assert_eq!(serving.metric("playrate_connections"), 1);
}

#[test]
fn a_second_server_on_the_port_is_told_that_it_is_in_use() {
    let media = media();
    let serving = start(media.root(), &["--no-tcp", "--workers", "3"]);
    let address = serving.address().to_string();
    for workers in ["1", "3"] {
        let films = media.root().to_str().unwrap();
        let mut arguments = vec!["serve", "--media", films, "--no-tcp"];
        arguments.extend(["--listen", &address, "--workers", workers]);
        assert_contains(&refused(&arguments), &[&address, "is in use by another program"]);
    }
    serving.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_lets_the_responses_of_all_workers_end() {
    let media = media();
    let serving = start(
        media.root(),
        &["--no-tcp", "--workers", "4", "--drain-timeout", "1min"],
    );
    let mut bodies = Vec::new();
    for _ in 0..8 {
        let (client, connection) = client(&serving).await;
        let (response, body) = connection.get("/file.bin", HeaderMap::new()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        bodies.push((client, connection, body));
    }
    serving.signal("TERM");
    serving.is_refusing().await;
    for (_client, _connection, mut body) in bodies {
        while body.chunk().await.unwrap().is_some() {}
        assert_eq!(body.received(), LENGTH as u64);
    }
    assert_contains(&serving.exits(0), &["cut_responses=0", "responses=8"]);
}
