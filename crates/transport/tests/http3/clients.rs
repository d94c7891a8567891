//! Limits of a server's clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http::HeaderMap;
use playrate_transport::{Connection, ConnectionLost, Target};
use tokio::net::UdpSocket;

use crate::common::{Rig, big_rig, fetch, ok_rig, payload, rig, with_length};

/// Passes packets on to a server from a socket that reads no answer: to the server they look like packets with a forged
/// source address. Stops once this is dropped.
struct Forger {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Forger {
    async fn start(server: SocketAddr) -> Self {
        let from_clients = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let to_server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stopped = Arc::new(AtomicBool::new(false));
        let forger = Self {
            address: from_clients.local_addr().unwrap(),
            stopped: Arc::clone(&stopped),
        };
        tokio::spawn(async move {
            let mut packet = [0; 2_000];
            while let Ok((length, _)) = from_clients.recv_from(&mut packet).await {
                if stopped.load(Relaxed) {
                    return;
                }
                to_server.send_to(&packet[..length], server).await.unwrap();
            }
        });
        forger
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
    }
}

/// Begins handshakes with forged addresses until the server wants addresses to be proved. The handshakes are in
/// progress at the server for 10 s from now.
async fn begin_forged_handshakes(rig: &Rig) {
    let forger = Forger::start(rig.server.local_addr().unwrap()).await;
    let target = Target::at("localhost", forger.address);
    let attempts: Vec<_> = (0..80)
        .map(|_| {
            let (client, target) = (rig.client(|_| {}), target.clone());
            tokio::spawn(async move { client.connect(&target).await })
        })
        .collect();
    rig.eventually("clients have to prove their address", || {
        (rig.server.clients().retried > 0).then_some(())
    })
    .await;
    drop(forger);
    for attempt in attempts {
        attempt.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_with_forged_addresses_lock_no_client_out() {
    let rig = ok_rig(|options| options.max_connections = 8);
    begin_forged_handshakes(&rig).await;
    let retried = rig.server.clients().retried;
    let connections: Vec<Connection> = futures_util::future::join_all((0..8).map(|_| rig.connect())).await;
    for connection in &connections {
        assert_eq!(fetch(connection, "/").await.unwrap(), b"ok");
    }
    let totals = rig.server.clients();
    assert_eq!(totals.refused, 0);
    assert!(
        totals.retried >= retried + 8,
        "each of the eight proved its address: {totals:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_over_the_limit_is_refused_while_all_others_are_busy() {
    let big = payload(3_000_000);
    let rig = big_rig(|options| options.max_connections = 1, big.clone());
    let first = rig.connect_narrow().await;
    let (_, mut body) = first.get("/big", HeaderMap::new()).await.unwrap();
    let mut got = body.chunk().await.unwrap().unwrap().to_vec();
    let error = rig.client(|_| {}).connect(&rig.target()).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    while let Some(chunk) = body.chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
    }
    assert!(got == big);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_makes_room_for_another_one() {
    let rig = ok_rig(|options| options.max_connections = 1);
    let idle = rig.connect().await;
    let second = rig
        .eventually_async("an idle connection makes room", async || {
            rig.client(|_| {}).connect(&rig.target()).await.ok()
        })
        .await;
    assert_eq!(fetch(&second, "/").await.unwrap(), b"ok");
    let reason = idle.quinn().closed().await;
    assert!(ConnectionLost::from(reason.clone()).is_orderly(), "{reason}");
    assert_eq!(rig.server.clients().evicted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_without_requests_is_closed_in_order_and_one_with_an_exchange_is_not() {
    let release = Arc::new(tokio::sync::Notify::new());
    let rig = rig(|options| options.idle_limit = Some(Duration::from_millis(300)), {
        let release = Arc::clone(&release);
        move |exchange| {
            let release = Arc::clone(&release);
            Box::pin(async move {
                release.notified().await;
                exchange.respond(with_length(2), "ok".into()).await
            })
        }
    });
    let busy = rig.connect().await;
    let busy_quinn = busy.quinn().clone();
    let fetching = tokio::spawn(async move { fetch(&busy, "/").await });
    // Kept open by keep-alives of both ends, were it not for the limit.
    let idle = rig.connect().await;
    let reason = idle.quinn().closed().await;
    assert!(ConnectionLost::from(reason.clone()).is_orderly(), "{reason}");
    // A second connection as idle as the first one: the busy one has outlasted two limits then.
    rig.connect().await.quinn().closed().await;
    assert!(busy_quinn.close_reason().is_none());
    release.notify_one();
    assert_eq!(fetching.await.unwrap().unwrap(), b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_one_address_over_its_limit_are_refused_until_one_closes() {
    let rig = ok_rig(|options| options.max_connections_per_address = 2);
    let (first, second) = (rig.connect().await, rig.connect().await);
    let error = rig.client(|_| {}).connect(&rig.target()).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(rig.server.clients().refused, 1);
    drop(first);
    let third = rig
        .eventually_async("the place is given back", async || {
            rig.client(|_| {}).connect(&rig.target()).await.ok()
        })
        .await;
    for connection in [second, third] {
        assert_eq!(fetch(&connection, "/").await.unwrap(), b"ok");
    }
}
