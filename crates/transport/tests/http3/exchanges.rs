//! Requests and responses on one connection.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, StatusCode};
use playrate_cc::Bitrate;
use playrate_transport::{
    Body, BodyWriter, ConnectionLost, ExchangeError, QuinnController, TransportOptions, time,
};
use playrate_units::Bytes as Size;

use crate::common::{
    H3_REQUEST_CANCELLED, begin, big_rig, fetch, ok_rig, payload, rest, rig, rig_with, stream, with_length,
};
use playrate_test_support::{assert_order, until};
use rstest::rstest;

/// With a large MTU, quinn alone deadlocks if two MTUs reach its initial window, and falls back to the smallest MTU if
/// ten exceed the kernel's limit per call.
#[rstest]
#[case::usual_mtu(None)]
#[case::large_mtu(Some(16_000))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_megabytes_arrive_byte_for_byte_under_every_controller(#[case] mtu: Option<u16>) {
    let sent = payload(5_000_000);
    let served = sent.clone();
    let change = |transport: &mut TransportOptions| {
        if let Some(mtu) = mtu {
            (transport.initial_mtu, transport.mtu_discovery) = (mtu, None);
        }
    };
    let choices = "reno cubic cubic+start=hystartpp bbr quinn-newreno quinn-cubic quinn-bbr";
    let choices: Vec<_> = choices.split(' ').collect();
    let rig = rig_with(
        &choices,
        |options| change(&mut options.transport),
        move |exchange| {
            let (served, quinn) = (served.clone(), exchange.quinn().clone());
            Box::pin(async move {
                let sent = stream(exchange, served).await;
                assert!(mtu.is_none_or(|mtu| quinn.stats().path.current_mtu == mtu));
                sent
            })
        },
    );
    for number in 0..choices.len() {
        let client = rig.client(|options| change(&mut options.transport));
        let connection = client.connect(&rig.target()).await.unwrap();
        assert!(fetch(&connection, "/title.mp4").await.unwrap() == sent);
        assert!(rig.outcome(number).await.is_ok());
        assert!(connection.quinn().stats().udp_rx.bytes > 5_000_000);
        connection.close();
        let control = rig.controls.lock().unwrap()[number].clone();
        until("the connection's last sample counts all of it", async || {
            let latest = control.monitor().latest();
            latest.is_some_and(|sample| sample.delivered.as_u64() > 5_000_000)
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
async fn knowledge_of_the_video_stays_on_its_connection() {
    let rig = rig(|exchange| {
        if exchange.request().uri().path() == "/title" {
            let rate = Some(Bitrate::from_kbps(5_240));
            exchange.control().knowledge().set_average_rate(rate);
        }
        Box::pin(exchange.respond(with_length(2), "ok".into()))
    });
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
async fn head_and_range_requests_follow_rfc_9110() {
    let rig = rig(|exchange| {
        let range = exchange.request().headers().get("range").cloned();
        let mut response = with_length(10);
        if let Some(range) = range {
            *response.status_mut() = StatusCode::PARTIAL_CONTENT;
            response.headers_mut().insert("x-range", range);
        }
        Box::pin(exchange.respond(response, "0123456789".into()))
    });
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
        let rig = rig(move |exchange| {
            let counter = Arc::clone(&counter);
            Box::pin(async move {
                let mut writer = exchange.start(with_length(8_000_000)).await?;
                for _ in 0..800 {
                    writer.write(Bytes::from(vec![7; 10_000])).await?;
                    counter.fetch_add(10_000, SeqCst);
                }
                writer.finish().await
            })
        });
        let client = rig.client(|options| {
            options.transport.stream_receive_window = Size::new(stream_receive_window);
            options.transport.receive_window = Size::new(receive_window);
        });
        let connection = client.connect(&rig.target()).await.unwrap();
        let (_, mut body) = connection.get("/", HeaderMap::new()).await.unwrap();
        until("the window is full", async || {
            written.load(SeqCst) as u64 + 20_000 > SMALL
        })
        .await;
        time::sleep(&*rig.runtime, Duration::from_millis(200)).await;
        assert!(written.load(SeqCst) as u64 <= SMALL, "{}", written.load(SeqCst));
        assert_eq!(rest(&mut body).await.unwrap().len(), 8_000_000);
        assert!(rig.outcome(0).await.is_ok());
    }
}

/// Writes pieces of 64 KiB until there is no more room, and returns their number. On a single-threaded runtime nothing
/// leaves in the meantime.
async fn fill(writer: &mut BodyWriter) -> Result<usize, ExchangeError> {
    let piece = payload(64 << 10);
    let mut pieces = 0;
    while let Some(ready) = writer.ready().now_or_never() {
        ready?;
        writer.write(piece.clone()).await?;
        pieces += 1;
    }
    Ok(pieces)
}

#[tokio::test]
async fn a_writer_that_stops_waiting_for_room_has_to_wait_again() {
    let rig = rig(|exchange| {
        Box::pin(async move {
            let mut writer = exchange.start(http::Response::new(())).await?;
            let pieces = fill(&mut writer).await?;
            assert!((4..=8).contains(&pieces), "{pieces} pieces of 64 KiB");
            assert!(writer.ready().now_or_never().is_none());
            // There is room once bytes may leave.
            writer.write(payload(64 << 10)).await?;
            writer.finish().await
        })
    });
    let connection = rig.connect().await;
    let body = fetch(&connection, "/").await.unwrap();
    assert!(body.len() > 4 << 16, "{}", body.len());
    assert!(rig.outcome(0).await.is_ok());
}

#[tokio::test]
async fn a_writer_of_a_lost_connection_fails_as_often_as_it_is_used() {
    let rig = rig(|exchange| {
        Box::pin(async move {
            let quinn = exchange.quinn().clone();
            let mut writer = exchange.start(http::Response::new(())).await?;
            fill(&mut writer).await?;
            quinn.close(0_u32.into(), b"");
            for _ in 0..3 {
                writer.ready().await?;
                let error = writer.write("more".into()).await.unwrap_err();
                assert!(matches!(error, ExchangeError::Connection(_)), "{error}");
            }
            writer.finish().await
        })
    });
    let connection = rig.connect().await;
    assert!(fetch(&connection, "/").await.is_err());
    assert_eq!(rig.outcome(0).await, Err(ConnectionLost::ClosedHere.into()));
}

#[tokio::test]
async fn a_write_that_is_given_up_is_completed_by_the_next_one() {
    let body = payload(400_000);
    let sent = body.clone();
    let rig = rig(move |exchange| {
        let body = sent.clone();
        Box::pin(async move {
            let mut writer = exchange.start(with_length(body.len())).await?;
            let first = writer.write(body.slice(..200_000)).now_or_never();
            assert!(first.is_none(), "the client's window has no room for all of it");
            writer.write(body.slice(200_000..)).await?;
            writer.finish().await
        })
    });
    let connection = rig.connect_narrow().await;
    assert!(
        fetch(&connection, "/").await.unwrap() == body,
        "whole and in order"
    );
    assert!(rig.outcome(0).await.is_ok());
}

/// Bytes that report when their last owner drops them.
struct OwnedBytes {
    bytes: Vec<u8>,
    released: Arc<AtomicBool>,
}

impl AsRef<[u8]> for OwnedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for OwnedBytes {
    fn drop(&mut self) {
        self.released.store(true, SeqCst);
    }
}

/// quinn keeps its input until it is acknowledged. Had the body been copied on the way, the original would be released
/// with the write. On one thread no acknowledgement comes in between.
#[tokio::test]
async fn a_body_is_handed_to_quinn_without_being_copied() {
    let rig = rig(|exchange| {
        Box::pin(async move {
            let released = Arc::new(AtomicBool::new(false));
            let body = Bytes::from_owner(OwnedBytes {
                bytes: vec![7; 100_000],
                released: Arc::clone(&released),
            });
            let mut writer = exchange.start(with_length(body.len())).await?;
            writer.write(body).now_or_never().unwrap()?;
            assert!(!released.load(SeqCst), "quinn holds a copy");
            writer.finish().await?;
            assert!(released.load(SeqCst), "something else still holds it");
            Ok(())
        })
    });
    let connection = rig.connect().await;
    assert_eq!(fetch(&connection, "/").await.unwrap(), vec![7; 100_000]);
    assert!(rig.outcome(0).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_is_dropped_is_cancelled_and_the_connection_lives_on() {
    let rig = big_rig(|_| {}, payload(20_000_000));
    let connection = rig.connect().await;
    drop(begin(&connection, "/big").await);
    let cancelled = ExchangeError::Cancelled(H3_REQUEST_CANCELLED);
    assert_eq!(rig.outcome(0).await, Err(cancelled));
    assert_eq!(fetch(&connection, "/small").await.unwrap().len(), 1_000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_abandoned_response_does_not_look_complete() {
    let rig = rig(|exchange| {
        let path = exchange.request().uri().path().to_owned();
        let lie = path == "/short";
        Box::pin(async move {
            if path == "/silent" {
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
    });
    let connection = rig.connect().await;
    for path in ["/dropped", "/silent"] {
        let cancelled = ExchangeError::Cancelled(H3_REQUEST_CANCELLED);
        assert_eq!(fetch(&connection, path).await, Err(cancelled), "{path}");
    }
    let error = fetch(&connection, "/short").await.unwrap_err();
    assert_eq!(error.to_string(), "the body ended after 10 of 100 bytes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_too_large_is_refused_and_the_server_goes_on() {
    let rig = ok_rig(|_| {});
    let connection = rig.connect().await;
    let mut headers = HeaderMap::new();
    headers.insert("x-large", HeaderValue::from_str(&"x".repeat(100_000)).unwrap());
    // The server's SETTINGS contain its limit. Until the client has read them, the server cancels the exchange.
    until("the client refuses", async || {
        let error = connection.get("/", headers.clone()).await.unwrap_err();
        matches!(error, ExchangeError::TooLarge { .. })
    })
    .await;
    assert_eq!(fetch(&rig.connect().await, "/").await.unwrap(), b"ok");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_share_a_connection() {
    let big = payload(300_000);
    let rig = big_rig(|_| {}, big.clone());
    let connection = rig.connect().await;
    let fetches = [(); 3].map(|()| fetch(&connection, "/big"));
    for fetched in join_all(fetches).await {
        assert!(fetched.unwrap() == big);
    }
    assert_eq!(rig.controls.lock().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_falls_behind_holds_the_sender_back() {
    let rig = big_rig(|_| {}, payload(20_000_000));
    let window = Size::from_mib(1);
    let client = rig.client(|options| {
        options.transport.stream_receive_window = window;
        options.transport.receive_window = window;
    });
    let connection = client.connect(&rig.target()).await.unwrap();
    let (_, mut body) = connection.get("/big", HeaderMap::new()).await.unwrap();
    for _ in 0..100 {
        // Long enough for everything that the window allows to arrive.
        time::sleep(&*rig.runtime, Duration::from_millis(5)).await;
        body.chunk().await.unwrap().unwrap();
    }
    let came = || connection.quinn().stats().udp_rx.bytes;
    until("much of the window has arrived", async || {
        came() > window.as_u64() / 2
    })
    .await;
    time::sleep(&*rig.runtime, Duration::from_millis(200)).await;
    let came = came();
    // The pieces read plus one, the window, and a tenth for headers and retransmissions.
    let most = (body.received() + (64 << 10) + window.as_u64()) * 11 / 10;
    assert!(came <= most, "{came} B arrived, {} were read", body.received());
    let rest = rest(&mut body).await.unwrap().len();
    assert!(rest > 10_000_000, "the rest still arrives: {rest}");
}

/// RFC 9218: of two responses of 2 MB, most of one arrives before most of the other.
#[rstest]
#[case::more_urgent("u=6, i", "u=1", true)]
#[case::more_urgent_and_incremental("u=3", "u=1, i", true)]
#[case::less_urgent("u=2", "u=3", false)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_urgent_response_overtakes(#[case] earlier: &str, #[case] later: &str, #[case] overtakes: bool) {
    let rig = big_rig(|_| {}, payload(2_000_000));
    // The server waits for the client, which reads the first response only once both have begun.
    let client = rig.client(|options| {
        options.transport.stream_receive_window = Size::new(50_000);
        options.transport.receive_window = Size::new(100_000);
    });
    let connection = client.connect(&rig.target()).await.unwrap();
    let order = Mutex::new(Vec::new());
    let begin = async |priority: &str| {
        let headers = HeaderMap::from_iter([("priority".parse().unwrap(), priority.parse().unwrap())]);
        connection.get("/big", headers).await.unwrap().1
    };
    let read = async |number: usize, body: &mut Body| {
        while let Some(chunk) = body.chunk().await.unwrap() {
            order.lock().unwrap().push((number, chunk.len()));
        }
    };
    let (mut earlier, mut later) = (begin(earlier).await, begin(later).await);
    tokio::join!(read(0, &mut earlier), read(1, &mut later));
    let order = order.into_inner().unwrap();
    assert_order(&order, overtakes);
}
