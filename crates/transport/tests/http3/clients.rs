//! Limits of a server's clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::HeaderMap;
use playrate_transport::{Connection, ConnectionLost, Target};
use tokio::net::UdpSocket;

use crate::common::{Rig, big_rig, fetch, ok_rig, payload, rig, with_length};
use crate::raw;

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

/// Reason for which the server closes `connection`.
async fn ended(rig: &Rig, connection: &Connection) -> ConnectionLost {
    let reason = rig
        .eventually("the server closes a connection", || {
            connection.quinn().close_reason()
        })
        .await;
    reason.into()
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
async fn a_shutdown_does_not_wait_for_handshakes() {
    let rig = ok_rig(|options| options.request_timeout = Duration::from_secs(60));
    begin_forged_handshakes(&rig).await;
    assert!(rig.server.shutdown(Duration::from_secs(30)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_returning_client_need_not_prove_its_address_again() {
    let rig = ok_rig(|_| {});
    // Before the flood, so that it gets tokens without a Retry.
    let returning = raw::endpoint(&rig);
    let first = raw::connect(&returning, &rig).await;
    raw::response(&first).await;
    begin_forged_handshakes(&rig).await;
    // Packets that wait in the server's socket still count.
    let (before, same) = (AtomicU64::new(0), AtomicU64::new(0));
    let settled = || {
        let now = rig.server.clients().retried;
        let is_same = before.swap(now, Relaxed) == now;
        let times = if is_same {
            same.fetch_add(1, Relaxed)
        } else {
            same.swap(0, Relaxed)
        };
        (is_same && times >= 30).then_some(now)
    };
    let retried = rig.eventually("no more forged packets arrive", settled).await;
    let second = raw::connect(&returning, &rig).await;
    assert_eq!(rig.server.clients().retried, retried);
    let unknown = raw::connect(&raw::endpoint(&rig), &rig).await;
    assert_eq!(rig.server.clients().retried, retried + 1);
    for connection in [second, unknown] {
        assert!(!raw::response(&connection).await.is_empty());
    }
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
    let lost = ended(&rig, &idle).await;
    assert!(lost.is_orderly(), "{lost}");
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
    let lost = ended(&rig, &idle).await;
    assert!(lost.is_orderly(), "{lost}");
    // A second connection as idle as the first one: the busy one has outlasted two limits then.
    ended(&rig, &rig.connect().await).await;
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
