//! Requests that a well-behaved client never makes, from another HTTP/3 client (`h3` on `h3-quinn`).

use bytes::Bytes;
use http::{Method, Request};
use playrate_test_support::certificate;
use quinn::{ConnectionError, VarInt};

use crate::http3::common::{Running, field, get, read};
use crate::viewer::{Session, Viewer};

/// Connection error of a frame in the wrong place (RFC 9114 §8.1).
const H3_FRAME_UNEXPECTED: VarInt = VarInt::from_u32(0x105);

/// Connects with the server's development certificate as the only authority.
async fn connect(running: &Running) -> (Viewer, Session) {
    let viewer = Viewer::trusting(&certificate(&running.identity.certificate_pem()));
    let session = viewer.connect(running.server.local_addr().unwrap()).await;
    (viewer, session.unwrap())
}

async fn status(
    session: &mut Session,
    method: Method,
    body: Option<Bytes>,
) -> Result<(u16, String), h3::error::StreamError> {
    status_at("film.mp4", session, method, body).await
}

async fn status_at(
    path: &str,
    session: &mut Session,
    method: Method,
    body: Option<Bytes>,
) -> Result<(u16, String), h3::error::StreamError> {
    let request = Request::builder()
        .method(method)
        .uri(format!("https://localhost/{path}"));
    let mut stream = session.sender.send_request(request.body(()).unwrap()).await?;
    if let Some(body) = body {
        stream.send_data(body).await?;
    }
    stream.finish().await?;
    let response = stream.recv_response().await?;
    let allow = field(&response, "allow").to_owned();
    while stream.recv_data().await?.is_some() {}
    Ok((response.status().as_u16(), allow))
}

#[tokio::test]
async fn other_methods_are_answered_with_405_and_what_is_allowed() {
    let running = Running::start();
    let (_viewer, mut session) = connect(&running).await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        let body = Bytes::from_static(b"some content");
        let (status, allow) = status(&mut session, method.clone(), Some(body)).await.unwrap();
        assert_eq!((status, &*allow), (405, "GET, HEAD, OPTIONS"), "{method}");
    }
    let (options, allow) = status(&mut session, Method::OPTIONS, None).await.unwrap();
    assert_eq!((options, &*allow), (204, "GET, HEAD, OPTIONS"));
    let (whole, _) = status(&mut session, Method::GET, None).await.unwrap();
    assert_eq!(whole, 200);
}

#[tokio::test]
async fn a_request_larger_than_is_taken_is_answered_and_not_read_further() {
    let running = Running::start();
    let (_viewer, mut session) = connect(&running).await;
    let request = Request::post("https://localhost/film.mp4").body(()).unwrap();
    let mut stream = session.sender.send_request(request).await.unwrap();
    let stopped = loop {
        if let Err(error) = stream.send_data(Bytes::from(vec![0; 16 << 10])).await {
            break error;
        }
    };
    assert!(
        matches!(stopped, h3::error::StreamError::RemoteTerminate { code, .. } if code.value() == 0x100),
        "{stopped}"
    );
    assert_eq!(stream.recv_response().await.unwrap().status(), 405);
    assert_eq!(status(&mut session, Method::GET, None).await.unwrap().0, 200);
}

#[tokio::test]
async fn a_report_that_is_cut_because_of_long_fields_is_refused() {
    let running = Running::with(|setup| setup.settings.event_path = Some("/cmcd".to_owned()));
    let (_viewer, mut session) = connect(&running).await;
    // More than a request may have in all, but not more content than a report may have.
    let request = Request::post("https://localhost/cmcd").header("x-long", "X".repeat(56_000));
    let mut stream = session
        .sender
        .send_request(request.body(()).unwrap())
        .await
        .unwrap();
    let _ = stream.send_data(Bytes::from(b"e=t\n".repeat(7_500))).await;
    let _ = stream.finish().await;
    assert_eq!(stream.recv_response().await.unwrap().status(), 413);
}

#[tokio::test]
async fn reports_of_events_are_counted_where_they_are_received() {
    let running = Running::with(|setup| setup.settings.event_path = Some("/cmcd".to_owned()));
    let (_viewer, mut session) = connect(&running).await;
    let report = Bytes::from_static(b"e=ps,sta=r,ts=1\ne=t,sta=r,ts=2\n");
    let too_long = Bytes::from(b"e=t\n".repeat(10_000));
    for (path, content, expected) in [
        ("cmcd", report.clone(), 204),
        ("film.mp4", report, 405),
        ("cmcd", Bytes::from_static(b"<xml>"), 400),
        ("cmcd", too_long, 413),
    ] {
        let (status, _) = status_at(path, &mut session, Method::POST, Some(content))
            .await
            .unwrap();
        assert_eq!(status, expected, "{path}");
    }
    for method in [Method::PUT, Method::DELETE] {
        let answer = status_at("cmcd", &mut session, method, None).await.unwrap();
        assert_eq!(answer, (405, "GET, HEAD, POST, OPTIONS".to_owned()));
    }
    let counts = running.server.site().player_events();
    assert_eq!(
        counts,
        [(("other", ""), 0), (("ps", "r"), 1), (("t", "r"), 1)].into()
    );
}

#[tokio::test]
async fn a_client_that_speaks_no_http3_harms_nobody() {
    let running = Running::start();
    let broken = running.connect().await;
    let (mut stream, _) = broken.quinn().open_bi().await.unwrap();
    // A frame of type DATA (RFC 9114 §7.2.1) may not begin a request.
    stream.write_all(&[0x00, 0x04, 1, 2, 3, 4]).await.unwrap();
    let _ = stream.finish();
    let closed = broken.quinn().closed().await;
    assert!(
        matches!(&closed, ConnectionError::ApplicationClosed(close) if close.error_code == H3_FRAME_UNEXPECTED),
        "{closed}"
    );
    let summary = running.summaries.nth(0).await;
    assert_ne!(summary.end, video_server::serve::SessionEnd::Orderly);
    let (response, _) = get(&running.connect().await, "/film.mp4", &[]).await;
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn noise_on_the_port_is_ignored() {
    let running = Running::start();
    let noise = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    for length in [0, 1, 20, 1_200, 1_500, 9_000] {
        let datagram: Vec<u8> = (0..=u8::MAX).rev().cycle().take(length).collect();
        noise
            .send_to(&datagram, running.server.local_addr().unwrap())
            .unwrap();
    }
    let connection = running.connect().await;
    let (_, mut body) = connection.get("/film.mp4", http::HeaderMap::new()).await.unwrap();
    assert!(read(&mut body).await.unwrap() == running.file("film.mp4"));
}
