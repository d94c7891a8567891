//! How connections and servers end.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use playrate_transport::{
    Client, ClientOptions, ConnectionLost, ExchangeError, TransportOptions, Trust, time,
};
use playrate_units::Bytes as Size;

use crate::common::{fetch, payload, rig, runtime, stream, with_length};

#[test]
fn the_server_survives_a_client_that_is_killed_in_the_middle_of_a_body() {
    let server_runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    // On this thread alone, so that nothing of it runs once this is over.
    let client_runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let big = payload(30_000_000);
    let rig = server_runtime.block_on(async move {
        rig(
            |options| options.transport.idle_timeout = Duration::from_millis(800),
            move |exchange| {
                let length = if exchange.request().uri().path() == "/big" {
                    big.len()
                } else {
                    1_000
                };
                Box::pin(stream(exchange, big.slice(..length)))
            },
        )
    });
    let (target, pin) = (rig.target(), rig.identity.pin());
    let kept = client_runtime.block_on(async move {
        let client = Client::bind(runtime(), ClientOptions::new(Trust::Pin(pin))).unwrap();
        let connection = client.connect(&target).await.unwrap();
        let (_, mut body) = connection.get("/big", HeaderMap::new()).await.unwrap();
        body.chunk().await.unwrap().unwrap();
        body
    });
    // Nothing is dropped either: one task's end would have another say goodbye.
    std::mem::forget((client_runtime, kept));
    server_runtime.block_on(async {
        let outcome = rig.outcome(0).await;
        assert!(
            matches!(outcome, Err(ExchangeError::Connection(ConnectionLost::TimedOut))),
            "{outcome:?}"
        );
        rig.eventually("the connection is forgotten", || {
            (rig.server.open_connections() == 0).then_some(())
        })
        .await;
        assert_eq!(fetch(&rig.connect().await, "/small").await.unwrap().len(), 1_000);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_stays_but_reads_nothing_is_given_up_on() {
    let big = payload(4_000_000);
    let rig = rig(
        |options| options.stall_timeout = Duration::from_millis(300),
        move |exchange| Box::pin(stream(exchange, big.clone())),
    );
    let client = rig.client(|options| {
        options.transport = TransportOptions {
            stream_receive_window: Size::new(64 << 10),
            ..TransportOptions::client()
        };
    });
    let connection = client.connect(&rig.target()).await.unwrap();
    let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
    let outcome = rig.outcome(0).await;
    assert!(
        matches!(outcome, Err(ExchangeError::Stalled { .. })),
        "{outcome:?}"
    );
    let mut ended = Ok(Some(Bytes::new()));
    while matches!(ended, Ok(Some(_))) {
        ended = body.chunk().await;
    }
    assert!(matches!(ended, Err(ExchangeError::Cancelled { .. })), "{ended:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_lets_a_response_end_and_takes_no_further_request() {
    let big = payload(3_000_000);
    let response = big.clone();
    let rig = rig(
        |_| {},
        move |exchange| Box::pin(stream(exchange, response.clone())),
    );
    // So small a window that most of the response is still to come when the shutdown begins.
    let client = rig.client(|options| {
        options.transport = TransportOptions {
            stream_receive_window: Size::new(64 << 10),
            ..TransportOptions::client()
        };
    });
    let connection = client.connect(&rig.target()).await.unwrap();
    let idle = rig.connect().await;
    let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
    let mut got = body.chunk().await.unwrap().unwrap().to_vec();
    let server = rig.server.clone();
    let (finished, outcome) = tokio::sync::oneshot::channel();
    rig.runtime.spawn(Box::pin(async move {
        let _ = finished.send(server.shutdown(Duration::from_secs(20)).await);
    }));
    // An idle connection is closed at once, which also says that the shutdown has begun.
    idle.quinn().closed().await;
    let error = fetch(&connection, "/more").await.unwrap_err();
    assert!(
        matches!(error, ExchangeError::GoingAway | ExchangeError::Cancelled { .. }),
        "{error}"
    );
    while let Some(chunk) = body.chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
    }
    assert!(got == big);
    assert_eq!(outcome.await, Ok(true));
    let reason = connection.quinn().closed().await;
    assert!(ConnectionLost::from(reason).is_orderly());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_does_not_wait_longer_than_its_deadline() {
    let big = payload(3_000_000);
    let rig = rig(|_| {}, move |exchange| Box::pin(stream(exchange, big.clone())));
    let client = rig.client(|options| {
        options.transport = TransportOptions {
            stream_receive_window: Size::new(64 << 10),
            ..TransportOptions::client()
        };
    });
    let connection = client.connect(&rig.target()).await.unwrap();
    let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
    body.chunk().await.unwrap().unwrap();
    assert!(!rig.server.shutdown(Duration::from_millis(200)).await);
    let mut ended = Ok(Some(Bytes::new()));
    while matches!(ended, Ok(Some(_))) {
        ended = body.chunk().await;
    }
    assert!(
        matches!(
            ended,
            Err(ExchangeError::Connection(ConnectionLost::ClosedByPeer { .. }))
        ),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_too_many_is_refused() {
    let rig = rig(
        |options| options.max_connections = 1,
        |exchange| Box::pin(exchange.respond(with_length(2), "ok".into())),
    );
    let first = rig.connect().await;
    let error = rig.client(|_| {}).connect(&rig.target()).await.unwrap_err();
    assert!(error.to_string().contains("refused"), "{error}");
    assert_eq!(fetch(&first, "/").await.unwrap(), b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_closes_when_nobody_holds_it() {
    let rig = rig(
        |_| {},
        |exchange| Box::pin(exchange.respond(with_length(2), "ok".into())),
    );
    let connection = rig.connect().await;
    let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
    drop(connection);
    assert_eq!(
        body.chunk().await.unwrap(),
        Some(Bytes::from("ok")),
        "a body holds it"
    );
    drop(body);
    rig.eventually("the server sees it go", || {
        (rig.server.open_connections() == 0).then_some(())
    })
    .await;
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
