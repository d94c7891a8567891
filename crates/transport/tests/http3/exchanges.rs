//! What goes over one connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderValue, StatusCode};
use playrate_cc::Bitrate;
use playrate_transport::{ExchangeError, QuinnController, TransportOptions, time};
use playrate_units::Bytes as Size;

use crate::common::{fetch, payload, rig, rig_with, stream, with_length};

/// RFC 9114 §8.1.
const H3_REQUEST_CANCELLED: u64 = 0x10c;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_megabytes_arrive_byte_for_byte_under_every_controller() {
    let sent = payload(5_000_000);
    let served = sent.clone();
    let rig = rig_with(
        &["reno", "cubic+start=hystartpp", "quinn-newreno", "quinn-cubic"],
        |_| {},
        move |exchange| Box::pin(stream(exchange, served.clone())),
    );
    for number in 0..4 {
        let connection = rig.connect().await;
        assert!(fetch(&connection, "/title.mp4").await.unwrap() == sent);
        assert!(rig.outcome(number).await.is_ok());
        assert!(connection.totals().received_bytes.as_u64() > 5_000_000);
        connection.close();
        let control = rig.controls.lock().unwrap()[number].clone();
        rig.eventually("the connection's last sample counts all of it", || {
            control
                .monitor()
                .latest()
                .filter(|sample| sample.delivered.as_u64() > 5_000_000)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_connection_has_the_controller_it_was_given() {
    let (report, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let rig = rig_with(
        &["reno", "quinn-newreno"],
        |_| {},
        move |exchange| {
            let state = exchange.quinn().congestion_state().into_any();
            let ours = state.is::<QuinnController>();
            let baseline = state.is::<quinn::congestion::NewReno>();
            report
                .send((exchange.control().to_string(), ours, baseline))
                .unwrap();
            Box::pin(exchange.respond(with_length(2), "ok".into()))
        },
    );
    for (name, ours, baseline) in [("reno", true, false), ("quinn-newreno", false, true)] {
        let connection = rig.connect().await;
        fetch(&connection, "/").await.unwrap();
        assert_eq!(reports.recv().await, Some((name.to_owned(), ours, baseline)));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_exchange_learns_of_the_video_is_known_on_its_connection_only() {
    let rig = rig(
        |_| {},
        |exchange| {
            if exchange.request().uri().path() == "/title" {
                let rate = Some(Bitrate::from_kbps(5_240));
                exchange.control().knowledge().set_average_rate(rate);
            }
            Box::pin(exchange.respond(with_length(2), "ok".into()))
        },
    );
    let (one, other) = (rig.connect().await, rig.connect().await);
    fetch(&one, "/title").await.unwrap();
    fetch(&other, "/index").await.unwrap();
    let rates: Vec<_> = rig
        .controls
        .lock()
        .unwrap()
        .iter()
        .map(|control| control.knowledge().average_rate())
        .collect();
    assert_eq!(rates, [Some(Bitrate::from_kbps(5_240)), None]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn head_and_range_are_asked_as_http_wants_them() {
    let rig = rig(
        |_| {},
        |exchange| {
            let range = exchange.request().headers().get("range").cloned();
            let mut response = with_length(10);
            if let Some(range) = range {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                response.headers_mut().insert("x-range", range);
            }
            Box::pin(exchange.respond(response, "0123456789".into()))
        },
    );
    let connection = rig.connect().await;
    let response = connection.head("/title.mp4?x=1", HeaderMap::new()).await.unwrap();
    assert_eq!(response.headers()["content-length"], "10");
    assert!(
        rig.outcome(0).await.is_ok(),
        "the body of a HEAD's response is left out"
    );
    for (last, expected) in [(Some(99), "bytes=90-99"), (None, "bytes=90-")] {
        let mut headers = HeaderMap::new();
        headers.insert("cmcd-request", HeaderValue::from_static("bl=1200"));
        let (response, mut body) = connection.get_range("/a", 90, last, headers).await.unwrap();
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(response.headers()["x-range"], expected);
        assert_eq!(body.chunk().await.unwrap(), Some(Bytes::from("0123456789")));
        assert_eq!(body.chunk().await.unwrap(), None);
    }
    let error = connection.get("no slash", HeaderMap::new()).await.unwrap_err();
    assert!(matches!(error, ExchangeError::BadRequest { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_writes_no_further_ahead_of_a_client_that_does_not_read_than_the_smaller_window() {
    const SMALL: u64 = 128 << 10;
    for (stream_receive_window, receive_window) in [(SMALL, 8 * SMALL), (8 * SMALL, SMALL)] {
        let written = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&written);
        let rig = rig(
            |_| {},
            move |exchange| {
                let counter = Arc::clone(&counter);
                Box::pin(async move {
                    let mut writer = exchange.start(with_length(8_000_000)).await?;
                    for _ in 0..800 {
                        writer.write(Bytes::from(vec![7; 10_000])).await?;
                        counter.fetch_add(10_000, SeqCst);
                    }
                    writer.finish().await
                })
            },
        );
        let client = rig.client(|options| {
            options.transport = TransportOptions {
                stream_receive_window: Size::new(stream_receive_window),
                receive_window: Size::new(receive_window),
                ..TransportOptions::client()
            };
        });
        let connection = client.connect(&rig.target()).await.unwrap();
        let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
        rig.eventually("the window is full", || {
            (written.load(SeqCst) as u64 + 20_000 > SMALL).then_some(())
        })
        .await;
        time::sleep(&*rig.runtime, Duration::from_millis(200)).await;
        assert!(written.load(SeqCst) as u64 <= SMALL, "{}", written.load(SeqCst));
        while body.chunk().await.unwrap().is_some() {}
        assert_eq!(body.received(), 8_000_000);
        assert!(rig.outcome(0).await.is_ok());
    }
}

/// On one thread: while the server's task runs, nothing leaves.
#[tokio::test]
async fn who_gives_up_waiting_for_room_has_to_wait_again() {
    let rig = rig(
        |_| {},
        |exchange| {
            Box::pin(async move {
                let piece = payload(64 << 10);
                let mut writer = exchange.start(http::Response::new(())).await?;
                let mut pieces = 0;
                while let Some(ready) = writer.ready().now_or_never() {
                    ready?;
                    writer.write(piece.clone()).await?;
                    pieces += 1;
                }
                assert!((4..=8).contains(&pieces), "{pieces} pieces of 64 KiB");
                assert!(writer.ready().now_or_never().is_none());
                // Once it may leave there is room.
                writer.write(piece).await?;
                writer.finish().await
            })
        },
    );
    let connection = rig.connect().await;
    let body = fetch(&connection, "/").await.unwrap();
    assert!(body.len() > 4 << 16, "{}", body.len());
    assert!(rig.outcome(0).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_dropped_is_cancelled_and_the_connection_lives_on() {
    let big = payload(20_000_000);
    let rig = rig(
        |_| {},
        move |exchange| {
            let length = if exchange.request().uri().path() == "/big" {
                big.len()
            } else {
                1_000
            };
            Box::pin(stream(exchange, big.slice(..length)))
        },
    );
    let connection = rig.connect().await;
    let (_, mut body) = connection.get("/big", HeaderMap::new()).await.unwrap();
    body.chunk().await.unwrap().unwrap();
    drop(body);
    match rig.outcome(0).await {
        Err(ExchangeError::Cancelled { code }) => assert_eq!(code, H3_REQUEST_CANCELLED),
        other => panic!("{other:?}"),
    }
    assert_eq!(fetch(&connection, "/small").await.unwrap().len(), 1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_is_given_up_does_not_look_whole() {
    let rig = rig(
        |_| {},
        |exchange| {
            let lie = exchange.request().uri().path() == "/short";
            Box::pin(async move {
                if exchange.request().uri().path() == "/silent" {
                    return Ok(());
                }
                let response = if lie {
                    with_length(100)
                } else {
                    http::Response::new(())
                };
                let mut writer = exchange.start(response).await?;
                writer.write("0123456789".into()).await?;
                if lie { writer.finish().await } else { Ok(()) }
            })
        },
    );
    let connection = rig.connect().await;
    for path in ["/dropped", "/silent"] {
        let error = fetch(&connection, path).await.unwrap_err();
        assert!(
            matches!(error, ExchangeError::Cancelled { .. }),
            "{path}: {error}"
        );
    }
    let error = fetch(&connection, "/short").await.unwrap_err();
    assert_eq!(error.to_string(), "the body ended after 10 of 100 bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_large_is_refused_and_the_server_goes_on() {
    let rig = rig(
        |_| {},
        |exchange| Box::pin(exchange.respond(with_length(2), "ok".into())),
    );
    let connection = rig.connect().await;
    // The server's SETTINGS say how much it takes; they have arrived with the first response.
    fetch(&connection, "/").await.unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-large", HeaderValue::from_str(&"x".repeat(100_000)).unwrap());
    let error = connection.get("/", headers).await.unwrap_err();
    assert!(matches!(error, ExchangeError::TooLarge { .. }), "{error}");
    assert_eq!(fetch(&rig.connect().await, "/").await.unwrap(), b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_share_a_connection() {
    let big = payload(300_000);
    let served = big.clone();
    let rig = rig(|_| {}, move |exchange| Box::pin(stream(exchange, served.clone())));
    let connection = rig.connect().await;
    let (one, two, three) = tokio::join!(
        fetch(&connection, "/1"),
        fetch(&connection, "/2"),
        fetch(&connection, "/3")
    );
    for fetched in [one, two, three] {
        assert!(fetched.unwrap() == big);
    }
    assert_eq!(rig.controls.lock().unwrap().len(), 1);
}

/// quinn alone deadlocks where two MTUs reach its initial window, and falls back to the smallest MTU where ten
/// exceed what the kernel sends at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_mtu_works_under_every_controller() {
    let sent = payload(2_000_000);
    let served = sent.clone();
    let large = |transport: &mut TransportOptions| {
        transport.initial_mtu = 16_000;
        transport.mtu_discovery = None;
    };
    let rig = rig_with(
        &["cubic", "quinn-newreno", "quinn-cubic"],
        |options| large(&mut options.transport),
        move |exchange| {
            let (served, quinn) = (served.clone(), exchange.quinn().clone());
            Box::pin(async move {
                let sent = stream(exchange, served).await;
                assert_eq!(quinn.stats().path.current_mtu, 16_000);
                sent
            })
        },
    );
    for number in 0..3 {
        let client = rig.client(|options| large(&mut options.transport));
        let connection = client.connect(&rig.target()).await.unwrap();
        assert!(fetch(&connection, "/").await.unwrap() == sent);
        assert!(rig.outcome(number).await.is_ok());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_falls_behind_holds_the_sender_back() {
    let served = payload(20_000_000);
    let rig = rig(|_| {}, move |exchange| Box::pin(stream(exchange, served.clone())));
    let window = Size::from_mib(1);
    let client = rig.client(|options| {
        options.transport.stream_receive_window = window;
        options.transport.receive_window = window;
    });
    let connection = client.connect(&rig.target()).await.unwrap();
    let (_, mut body) = connection.get("/title.mp4", HeaderMap::new()).await.unwrap();
    for _ in 0..100 {
        // Long enough for all that the window allows to come.
        time::sleep(&*rig.runtime, Duration::from_millis(5)).await;
        body.chunk().await.unwrap().unwrap();
    }
    time::sleep(&*rig.runtime, Duration::from_millis(200)).await;
    let came = connection.totals().received_bytes.as_u64();
    // One piece more than was read, the window, and a tenth for headers and what was sent twice.
    let most = (body.received() + (64 << 10) + window.as_u64()) * 11 / 10;
    assert!(came > window.as_u64() / 2, "{came} bytes came");
    assert!(came <= most, "{came} bytes came, {} were read", body.received());
    let mut rest = 0;
    while let Some(chunk) = body.chunk().await.unwrap() {
        rest += chunk.len();
    }
    assert!(rest > 10_000_000, "the rest still comes: {rest}");
}
