//! Servers with several workers, each with its own socket on one port.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use playrate_transport::{
    BindError, ClientTotals, ConnectionLost, EndpointKey, Identity, Server, ServerOptions, Worker,
    further_sockets, udp_socket,
};
use rstest::rstest;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::common::{Rig, fetch, narrow, payload, rig_of, runtime, stream};
use crate::raw;

const ADDRESS: &str = "127.0.0.1:0";

/// A server with `count` workers on `address` that answers with `length` bytes.
fn rig(
    address: &str,
    count: usize,
    (identity, length): (&Identity, usize),
    change: impl FnOnce(&mut ServerOptions),
) -> Rig {
    let first = udp_socket(address.parse().unwrap()).unwrap();
    let further = further_sockets(&first, count - 1).unwrap();
    let sockets = [first].into_iter().chain(further);
    let mut options = ServerOptions::new(identity.clone());
    change(&mut options);
    let sockets = sockets.map(|socket| (socket, runtime())).collect();
    let server = Server::on_sockets(sockets, options).unwrap();
    let body = payload(length);
    rig_of(server, identity.clone(), &["cubic"], move |exchange| {
        Box::pin(stream(exchange, body.clone()))
    })
}

fn identity() -> Identity {
    Identity::development(&[]).unwrap()
}

/// Numbers of connections of the workers.
fn connections(rig: &Rig) -> Vec<usize> {
    let workers = rig.server.workers().iter();
    workers.map(Worker::open_connections).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_divided_among_workers_and_each_receives_every_byte() {
    for count in [2, 4] {
        let rig = Arc::new(rig(ADDRESS, count, (&identity(), 300_000), |_| ()));
        let mut clients = JoinSet::new();
        for _ in 0..40 {
            let rig = Arc::clone(&rig);
            clients.spawn(async move {
                let connection = rig.connect().await;
                assert!(fetch(&connection, "/").await.unwrap() == payload(300_000));
                connection
            });
        }
        let clients = clients.join_all().await;
        let connections = connections(&rig);
        assert_eq!(connections.iter().sum::<usize>(), clients.len());
        // One of the four has no client with a probability of 4 * 0.75^40 = 4e-5.
        assert!(connections.iter().all(|&count| count > 0), "{connections:?}");
        assert_eq!(rig.server.open_connections(), clients.len());
        rig.server.shutdown(Duration::ZERO).await;
        assert_eq!(rig.server.open_connections(), 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_whose_address_changes_all_the_time_loses_no_byte() {
    const LENGTH: usize = 6_000_000;
    let rig = rig(ADDRESS, 2, (&identity(), LENGTH), |_| ());
    // The window is smaller than the part of the body that each address receives, so each address has to extend it.
    let client = rig.client(narrow);
    let connection = client.connect(&rig.target()).await.unwrap();
    let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
    let (mut received, mut rebound) = (Vec::new(), 0);
    while let Some(chunk) = body.chunk().await.unwrap() {
        received.extend_from_slice(&chunk);
        if received.len() / 200_000 > rebound {
            rebound += 1;
            client.rebind().unwrap();
        }
    }
    assert!(received == payload(LENGTH));
    let forwarded = rig.server.forwarded();
    // Each new address reaches the other worker with a probability of one half.
    assert!(rebound > 20 && forwarded.forwarded > 0, "{rebound} {forwarded:?}");
    assert_eq!(forwarded.lost, 0);
    assert_eq!(rig.server.open_connections(), 1, "the same connection throughout");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limit_of_connections_is_that_of_all_workers_together() {
    let rig = Arc::new(rig(ADDRESS, 4, (&identity(), 100), |options| {
        options.max_connections = 6;
        options.evict_after = Duration::MAX;
    }));
    let mut clients = JoinSet::new();
    for _ in 0..20 {
        let rig = Arc::clone(&rig);
        clients.spawn(async move {
            let connection = rig.client(|_| ()).connect(&rig.target()).await.ok()?;
            // The server may also refuse it after the handshake.
            fetch(&connection, "/").await.ok().map(|_| connection)
        });
    }
    let served: Vec<_> = clients.join_all().await.into_iter().flatten().collect();
    assert_eq!(served.len(), 6);
    let ClientTotals { refused, evicted, .. } = rig.server.clients();
    assert_eq!((refused, evicted), (14, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_of_a_returning_client_is_valid_for_all_workers() {
    // If the limit is reached, a client without a token has to validate its address (Retry).
    let rig = rig(ADDRESS, 2, (&identity(), 100), |options| {
        options.max_connections = 1;
        options.evict_after = Duration::ZERO;
    });
    let client = raw::endpoint(&rig);
    let mut kept = Vec::new();
    for number in 0..8 {
        // Each port reaches another worker with a probability of one half.
        client.rebind(UdpSocket::bind(ADDRESS).unwrap()).unwrap();
        let connection = raw::connect(&client, &rig).await;
        assert!(!raw::response(&connection).await.is_empty());
        rig.outcome(number).await.unwrap();
        kept.push(connection);
    }
    let totals = rig.server.clients();
    assert_eq!(totals.retried, 0, "{totals:?}");
    assert_eq!(totals.refused, 0, "{totals:?}");
    assert_eq!(totals.evicted, 7, "{totals:?}");
}

/// In the second case, the connections belong to workers that no longer exist.
#[rstest]
#[case::one_worker(1)]
#[case::four_workers(4)]
fn a_server_restarted_with_the_same_key_resets_the_connections_that_it_lost(#[case] workers: usize) {
    let (identity, key) = (identity(), EndpointKey::generate().unwrap());
    let start = |address: &str, count: usize| {
        let server_runtime = Runtime::new().unwrap();
        let rig = server_runtime.block_on(async {
            rig(address, count, (&identity, 100), |options| {
                options.endpoint_key = Some(key.clone());
            })
        });
        (server_runtime, rig)
    };
    let (server_runtime, first) = start(ADDRESS, workers);
    let address: SocketAddr = first.server.local_addr().unwrap();
    let client_runtime = Runtime::new().unwrap();
    let connections = client_runtime.block_on(async {
        let mut connections = Vec::new();
        for _ in 0..12 {
            let connection = first.connect().await;
            assert!(fetch(&connection, "/").await.unwrap() == payload(100));
            connections.push(connection);
        }
        connections
    });
    // Dropped immediately, so that no client is informed.
    drop(server_runtime);
    drop(first);
    let (_server_runtime, _second) = start(&address.to_string(), 1);
    for connection in connections {
        let fetched = client_runtime.block_on(fetch(&connection, "/"));
        assert_eq!(fetched, Err(ConnectionLost::Reset.into()));
    }
}

#[test]
fn a_shared_port_is_in_use_for_a_program_that_does_not_share_it() {
    let first = udp_socket(ADDRESS.parse().unwrap()).unwrap();
    let address = first.local_addr().unwrap();
    let further = further_sockets(&first, 3).unwrap();
    assert_eq!(further.len(), 3);
    for socket in &further {
        assert_eq!(socket.local_addr().unwrap(), address);
    }
    assert!(matches!(udp_socket(address), Err(BindError::InUse { .. })));
}

#[tokio::test]
async fn a_server_without_a_socket_is_refused() {
    let error = Server::on_sockets(Vec::new(), ServerOptions::new(identity())).unwrap_err();
    assert!(error.to_string().contains("1 to 256 sockets (got 0)"), "{error}");
}
