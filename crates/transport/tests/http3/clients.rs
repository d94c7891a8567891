//! Limits of a server's clients.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use playrate_transport::{
    ConnectError, Connection, ConnectionController, ConnectionLost, Identity, Server, ServerOptions, Target,
    time,
};
use quinn::{ReadError, ReadToEndError, TokioRuntime, VarInt};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

use crate::common::{Rig, begin, big_rig, fetch, ok_rig, payload, rest, runtime, settled};
use crate::raw;
use playrate_test_support::{PATIENCE, client, eventually, until};

/// Forwards packets to a server from a socket that reads no answer: to the server they look like packets with a forged
/// source address. Stops when this is dropped.
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
        runtime().spawn(Box::pin(async move {
            let mut packet = [0; 2_000];
            while let Ok((length, _)) = from_clients.recv_from(&mut packet).await {
                if stopped.load(Relaxed) {
                    return;
                }
                to_server.send_to(&packet[..length], server).await.unwrap();
            }
        }));
        forger
    }
}

impl Drop for Forger {
    fn drop(&mut self) {
        self.stopped.store(true, Relaxed);
    }
}

/// A server that keeps handshakes with forged addresses in progress for longer than a test takes.
fn attacked_rig(change: impl FnOnce(&mut ServerOptions)) -> Rig {
    ok_rig(|options| {
        options.request_timeout = PATIENCE * 10;
        change(options);
    })
}

/// Begins handshakes with forged addresses until the server validates addresses first. They stay in progress at the
/// server for its request timeout from now. Returns the number of Retry packets that were sent for them.
async fn begin_forged_handshakes(rig: &Rig) -> u64 {
    let forger = Forger::start(rig.server.local_addr().unwrap()).await;
    let target = Target::at("localhost", forger.address);
    let mut attempts = JoinSet::new();
    for _ in 0..80 {
        let (client, target) = (rig.client(|_| {}), target.clone());
        attempts.spawn(async move { client.connect(&target).await });
    }
    until("clients have to validate their address", async || {
        rig.server.clients().retried > 0
    })
    .await;
    drop(forger);
    drop(attempts);
    // Packets that wait in the server's socket still count.
    settled("no more forged packets arrive", || {
        Some(rig.server.clients().retried)
    })
    .await
}

/// Reason why the server closes `connection`.
async fn ended(connection: &Connection) -> ConnectionLost {
    let reason = eventually("the server closes a connection", async || {
        connection.quinn().close_reason()
    })
    .await;
    reason.into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_with_forged_addresses_lock_no_client_out() {
    let rig = attacked_rig(|options| options.max_connections = 8);
    let retried = begin_forged_handshakes(&rig).await;
    let mut connections = Vec::new();
    for _ in 0..8 {
        let connection = rig.connect().await;
        assert_eq!(fetch(&connection, "/").await.unwrap(), b"ok");
        connections.push(connection);
    }
    let totals = rig.server.clients();
    assert_eq!((totals.refused, totals.evicted), (0, 0));
    assert_eq!(
        totals.retried,
        retried + 8,
        "each of the eight validated its address"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shutdown_does_not_wait_for_handshakes() {
    let rig = attacked_rig(|_| {});
    begin_forged_handshakes(&rig).await;
    assert!(rig.server.shutdown(PATIENCE).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_returning_client_need_not_validate_its_address_again() {
    let rig = attacked_rig(|_| {});
    // Before the flood, so that it gets tokens without a Retry.
    let returning = raw::endpoint(&rig);
    let first = raw::connect(&returning, &rig).await;
    raw::response(&first).await;
    let retried = begin_forged_handshakes(&rig).await;
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
    let only_one = |options: &mut ServerOptions| {
        options.max_connections = 1;
        options.evict_after = Duration::ZERO;
    };
    let rig = big_rig(only_one, big.clone());
    let first = rig.connect_narrow().await;
    let (mut body, mut got) = begin(&first, "/big").await;
    let error = rig.client(|_| {}).connect(&rig.target()).await.unwrap_err();
    let is_refused = matches!(&error, ConnectError::Lost(ConnectionLost::RefusedByPeer));
    assert!(is_refused, "{error}");
    got.extend(rest(&mut body).await.unwrap());
    assert!(got == big);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_connection_makes_room_for_another_one() {
    let rig = ok_rig(|options| {
        options.max_connections = 1;
        options.evict_after = Duration::ZERO;
    });
    let idle = rig.connect().await;
    assert_eq!(fetch(&idle, "/").await.unwrap(), b"ok");
    // The exchange ends at the server once the client has acknowledged its end.
    let second = rig.connect_eventually().await;
    assert_eq!(fetch(&second, "/").await.unwrap(), b"ok");
    let lost = ended(&idle).await;
    assert!(lost.is_orderly(), "{lost}");
    assert_eq!(rig.server.clients().evicted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_waits_while_its_session_is_evicted_is_rejected() {
    let identity = Identity::development(&[]).unwrap();
    let mut options = ServerOptions::new(identity.clone());
    options.max_connections = 1;
    options.evict_after = Duration::ZERO;
    let server = Server::bind("127.0.0.1:0".parse().unwrap(), runtime(), options).unwrap();
    let target = Target::at("localhost", server.local_addr().unwrap());
    let connect = async || {
        let client = client(identity.pin(), |_| {});
        let establish = async || {
            let incoming = server.accept().await.unwrap();
            let control = ConnectionController::new("cubic".parse().unwrap());
            incoming.establish(control).await.unwrap()
        };
        let (connection, session) = tokio::join!(client.connect(&target), establish());
        (connection.unwrap(), session)
    };
    let (first, mut session) = connect().await;
    let (mut send, mut receive) = first.quinn().open_bi().await.unwrap();
    send.write_all(raw::REQUEST).await.unwrap();
    send.finish().unwrap();
    assert_eq!(send.stopped().await, Ok(None), "the server has all of it");
    // A session without any request stays for 100 ms.
    time::sleep(&TokioRuntime, Duration::from_millis(200)).await;
    let (_second, _other) = connect().await;
    let arrival = session.accept().await.unwrap();
    assert!(arrival.is_none(), "no request is accepted");
    let error = receive.read_to_end(1_000).await.unwrap_err();
    let rejected = VarInt::from_u32(0x10b);
    let is_rejected = matches!(error, ReadToEndError::Read(ReadError::Reset(code)) if code == rejected);
    assert!(is_rejected, "{error:?}");
    assert_eq!(server.clients().evicted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_without_requests_is_closed_in_order() {
    // Keep-alives of both ends would hold it open without the limit.
    let rig = ok_rig(|options| options.idle_limit = Some(Duration::from_secs(1)));
    let idle = rig.connect_eventually().await;
    let lost = ended(&idle).await;
    assert!(lost.is_orderly(), "{lost}");
    assert_eq!(rig.server.clients().evicted, 0);
}
