//! Requests over TCP that a well-behaved client never makes.

use std::time::Duration;

use http::{Method, StatusCode, Version};
use playrate_transport::time;
use quinn::TokioRuntime;
use rstest::rstest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::cli::tcp::Site;
use playrate_test_support::text;

const LONG: Duration = Duration::from_secs(120);

/// The first line of the response to these bytes over HTTP/1.1.
async fn status_line(head: &str) -> String {
    let site = Site::new();
    let serving = site.serve(&[]);
    let mut stream = site.open(serving.address(), b"http/1.1").await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 1_000];
    let length = stream.read(&mut answer).await.unwrap();
    text(&answer[..length]).lines().next().unwrap().to_owned()
}

#[rstest]
#[case::none("GET /film.mp4 HTTP/1.1\r\n\r\n", "HTTP/1.1 400")]
#[case::two("HEAD /film.mp4 HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400")]
#[case::invalid("HEAD /film.mp4 HTTP/1.1\r\nHost: a b\r\n\r\n", "HTTP/1.1 400")]
#[case::empty("HEAD /film.mp4 HTTP/1.1\r\nHost:\r\n\r\n", "HTTP/1.1 200")]
#[case::before_http_1_1("HEAD /film.mp4 HTTP/1.0\r\n\r\n", "HTTP/1.0 200")]
#[tokio::test]
async fn a_request_over_http_1_1_names_its_host(#[case] head: &str, #[case] expected: &str) {
    let line = status_line(head).await;
    assert!(line.starts_with(expected), "{line}");
}

#[tokio::test]
async fn content_without_end_is_not_read_after_the_answer() {
    let site = Site::new();
    let serving = site.serve(&[]);
    let stream = site.open(serving.address(), b"http/1.1").await;
    let (mut reading, mut writing) = tokio::io::split(stream);
    let head = "POST /film.mp4 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    writing.write_all(head.as_bytes()).await.unwrap();
    let sending = async {
        let chunk = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        // Ends once the server has closed the connection.
        while writing.write_all(chunk.as_bytes()).await.is_ok() {}
    };
    let receiving = async {
        let mut answer = Vec::new();
        // A reset may follow the answer.
        let _ = reading.read_to_end(&mut answer).await;
        text(&answer)
    };
    let both = async { tokio::join!(sending, receiving).1 };
    let answer = time::timeout(&TokioRuntime, LONG, both).await;
    let answer = answer.expect("the connection is still open");
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
}

#[tokio::test]
async fn content_over_http_2_is_not_read_and_its_stream_ends_after_the_answer() {
    /// Type, flags, stream and payload of a frame (RFC 9113 §4.1).
    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
    }
    let [data, headers, rst_stream, settings, window_update] = [0, 1, 3, 4, 8];
    let site = Site::new();
    let serving = site.serve(&[]);
    let mut stream = site.open(serving.address(), b"h2").await;
    // `POST https://localhost/film.mp4` (RFC 7541 appendix A), END_HEADERS, and content without end.
    let head = b"\x83\x87\x04\x09/film.mp4\x01\x09localhost";
    let sent = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(settings, 0, 0, &[]),
        frame(headers, 4, 1, head),
        frame(data, 0, 1, &[b'x'; 10_000]),
    ];
    stream.write_all(&sent.concat()).await.unwrap();
    let mut received = Vec::new();
    let reading = async {
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head).await.unwrap();
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; usize::try_from(length).unwrap()];
            stream.read_exact(&mut payload).await.unwrap();
            let (kind, flags, number) = (head[3], head[4], head[8]);
            if number == 1 {
                received.push((kind, flags & 1 == 1));
            }
            if kind == rst_stream {
                break payload;
            }
        }
    };
    let reset = time::timeout(&TokioRuntime, LONG, reading).await;
    assert_eq!(reset.expect("the stream stays open"), [0; 4], "NO_ERROR");
    assert_eq!(received.first(), Some(&(headers, false)));
    assert!(received.contains(&(data, true)), "END_STREAM: {received:?}");
    assert!(
        received.iter().all(|(kind, _)| *kind != window_update),
        "{received:?}"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn responses_that_wait_for_their_client_cost_little_memory() {
    const CONNECTIONS: usize = 6;
    let site = Site::new();
    let serving = site.serve(&[]);
    let before = serving.resident();
    let (mut clients, mut responses) = (Vec::new(), Vec::new());
    for _ in 0..CONNECTIONS {
        let mut client = site.connect(serving.address(), Version::HTTP_2).await;
        for _ in 0..100 {
            let response = client.start(Method::GET, "/long.bin", &[]).await;
            assert_eq!(response.status(), StatusCode::OK);
            responses.push(response);
        }
        clients.push(client);
    }
    let grown = serving.resident().saturating_sub(before);
    // A chunk of 64 KiB for each response would be 38 MB.
    assert!(grown < CONNECTIONS * (3 << 20), "{grown} bytes more resident");
}
