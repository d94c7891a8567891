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
