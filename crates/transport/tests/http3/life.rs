//! Ends of connections and servers.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use playrate_transport::{ConnectionLost, ExchangeError, ServerOptions, time};
use tokio::runtime::{Builder, Runtime};

use crate::common::{H3_REQUEST_CANCELLED, begin, big_rig, fetch, ok_rig, payload, rest, runtime, settled};
use playrate_test_support::PATIENCE;

/// A runtime for a server, and one for a client that only runs while a thread waits for it.
fn runtimes() -> (Runtime, Runtime) {
    let of_server = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let of_client = Builder::new_current_thread().enable_all().build();
    (of_server.unwrap(), of_client.unwrap())
}

#[test]
fn the_server_survives_a_client_that_is_killed_in_the_middle_of_a_body() {
    let (server_runtime, client_runtime) = runtimes();
    let rig = server_runtime.block_on(async { big_rig(|_| {}, payload(30_000_000)) });
    let target = rig.target();
    let kept = client_runtime.block_on(async {
        let client = rig.client(|options| options.transport.idle_timeout = Duration::from_secs(5));
        let connection = client.connect(&target).await.unwrap();
        begin(&connection, "/big").await.0
    });
    // Nothing is dropped, because that would send a CONNECTION_CLOSE.
    std::mem::forget((client_runtime, kept));
    server_runtime.block_on(async {
        assert_eq!(rig.outcome(0).await, Err(ConnectionLost::TimedOut.into()));
        rig.without_connections().await;
        assert_eq!(fetch(&rig.connect().await, "/small").await.unwrap().len(), 1_000);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_exchange_with_a_client_that_reads_nothing_is_reset_although_keep_alives_are_acknowledged() {
    let change = |options: &mut ServerOptions| {
        options.stall_timeout = Duration::from_secs(3);
        options.transport.keep_alive = Some(Duration::from_millis(50));
    };
    let rig = big_rig(change, payload(4_000_000));
    let connection = rig.connect_narrow().await;
    let (_, mut body) = connection.get("/big", HeaderMap::new()).await.unwrap();
    let stalled = ExchangeError::Stalled(Duration::from_secs(3));
    assert_eq!(rig.outcome(0).await, Err(stalled));
    let cancelled = ExchangeError::Cancelled(H3_REQUEST_CANCELLED);
    assert_eq!(rest(&mut body).await, Err(cancelled));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_lets_a_response_end_and_refuses_further_requests_and_clients() {
    let big = payload(3_000_000);
    let rig = big_rig(|_| {}, big.clone());
    // Most of the response is still to come when the shutdown begins.
    let connection = rig.connect_narrow().await;
    let idle = rig.connect().await;
    let (mut body, mut got) = begin(&connection, "/big").await;
    let server = rig.server.clone();
    let (finished, outcome) = tokio::sync::oneshot::channel();
    rig.runtime.spawn(Box::pin(async move {
        let _ = finished.send(server.shutdown(PATIENCE).await);
    }));
    // An idle connection is closed immediately, which also shows that the shutdown has begun.
    idle.quinn().closed().await;
    let error = fetch(&connection, "/more").await.unwrap_err();
    let is_rejected = matches!(error, ExchangeError::GoingAway | ExchangeError::Cancelled { .. });
    assert!(is_rejected, "{error}");
    // An answer, not the end of a timeout.
    let error = rig.client(|_| {}).connect(&rig.target()).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    got.extend(rest(&mut body).await.unwrap());
    assert!(got == big);
    assert_eq!(outcome.await, Ok(true));
    let reason = connection.quinn().closed().await;
    assert!(ConnectionLost::from(reason).is_orderly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_does_not_wait_longer_than_its_deadline() {
    let rig = big_rig(|_| {}, payload(3_000_000));
    let connection = rig.connect_narrow().await;
    let (mut body, _) = begin(&connection, "/big").await;
    assert!(!rig.server.shutdown(Duration::from_millis(200)).await);
    let closed = ConnectionLost::ClosedByPeer {
        code: 0x100,
        reason: Some("server shut down".to_owned()),
    };
    assert_eq!(rest(&mut body).await, Err(closed.into()));
}

#[test]
fn a_client_that_acknowledges_nothing_is_informed_of_the_shutdown() {
    let (server_runtime, paused_runtime) = runtimes();
    let rig = server_runtime.block_on(async { big_rig(|_| {}, payload(30_000_000)) });
    let (connection, _body) = paused_runtime.block_on(async {
        let connection = rig.connect().await;
        let (body, _) = begin(&connection, "/big").await;
        (connection, body)
    });
    server_runtime.block_on(async {
        // The window is full then, and the subsequent probes are not acknowledged either.
        let control = rig.controls.lock().unwrap()[0].clone();
        let delivered = || Some(control.monitor().latest()?.delivered.as_u64());
        settled("no more is delivered", delivered).await;
        assert!(!rig.server.shutdown(Duration::ZERO).await);
    });
    // Dropped, so that nothing answers the client any more.
    drop(rig);
    drop(server_runtime);
    let reason = paused_runtime.block_on(connection.quinn().closed());
    assert!(ConnectionLost::from(reason.clone()).is_orderly(), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_closes_when_its_last_handle_is_dropped() {
    let rig = ok_rig(|_| {});
    let connection = rig.connect().await;
    let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
    drop(connection);
    assert_eq!(
        body.chunk().await.unwrap(),
        Some(Bytes::from("ok")),
        "a body holds it"
    );
    drop(body);
    rig.without_connections().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_ends_with_whatever_comes_first() {
    let runtime = runtime();
    let limit = Duration::from_millis(20);
    let never = std::future::pending::<()>();
    assert_eq!(time::timeout(&*runtime, limit, never).await, Err(time::Elapsed));
    assert_eq!(time::timeout(&*runtime, Duration::ZERO, async { 7 }).await, Ok(7));
    let before = runtime.now();
    time::sleep(&*Arc::clone(&runtime), limit).await;
    assert!(runtime.now() - before >= limit);
}
