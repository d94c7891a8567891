//! File descriptors: how many stalled responses take, and what happens when none are left.

use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

use http::{Method, StatusCode, Version};
use playrate_transport::LogLimit;
use quinn::{Runtime as _, TokioRuntime};

use crate::cli::process::start_limited;
use crate::cli::tcp::Site;
use playrate_test_support::{Process, ServerProcess, sleep};

/// Descriptor limit of the server, far below 65,536.
const LIMIT: usize = 64;
/// Concurrent requests of a connection.
const REQUESTS: usize = 100;

fn start(media: &Path, arguments: &[&str]) -> ServerProcess {
    start_limited(&format!("-n {LIMIT}"), media, arguments)
}

#[tokio::test]
async fn more_responses_than_descriptors_can_stall_on_one_file() {
    let site = Site::new();
    let serving = site.serve_by(start, &[]);
    let (mut clients, mut stalled) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let mut client = site.connect(serving.address(), Version::HTTP_2).await;
        for _ in 0..REQUESTS {
            let response = client.start(Method::GET, "/long.bin", &[]).await;
            assert_eq!(response.status(), StatusCode::OK);
            stalled.push(response);
        }
        clients.push(client);
    }
    assert!(serving.descriptors() < LIMIT);
    let mut other = site.connect(serving.address(), Version::HTTP_11).await;
    let (status, _, film) = other.get("/film.mp4", &[]).await;
    assert!(status == StatusCode::OK && !film.is_empty());
}

#[tokio::test]
async fn without_a_descriptor_the_answer_is_to_come_again() {
    let site = Site::new();
    for number in 0..REQUESTS {
        // Longer than what client and sockets buffer without being asked.
        site.directory.large(&format!("media/{number}.bin"), 64 << 20);
    }
    let serving = site.serve_by(start, &[]);
    let before = serving.descriptors();
    let mut client = site.connect(serving.address(), Version::HTTP_2).await;
    let mut stalled = Vec::new();
    let mut refused = 0;
    for number in 0..REQUESTS {
        let response = client.start(Method::GET, &format!("/{number}.bin"), &[]).await;
        if response.status() == StatusCode::OK {
            stalled.push(response);
        } else {
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()["retry-after"], "10");
            refused += 1;
        }
    }
    assert!((1..REQUESTS).contains(&refused), "{refused} refused");
    drop(stalled);
    drop(client);
    serving.settles_at(before).await;
    let mut other = site.connect(serving.address(), Version::HTTP_2).await;
    assert_eq!(other.get("/film.mp4", &[]).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_without_a_descriptor_wait_and_the_log_says_so_once() {
    let site = Site::new();
    let begun = TokioRuntime.now();
    let serving = site.serve_by(start, &["--metrics", "127.0.0.1:0"]);
    let before = serving.descriptors();
    let connect = |_| TcpStream::connect(serving.address()).unwrap();
    let mut waiting: Vec<_> = (0..LIMIT).map(connect).collect();
    serving.logs("cannot accept TCP connections for media", 1).await;
    let metrics = serving.announced("Metrics").trim_start_matches("http://");
    waiting.push(TcpStream::connect(metrics.trim_end_matches('/')).unwrap());
    serving.logs("cannot accept TCP connections for metrics", 1).await;
    // The server tries again every 100 ms.
    let busy = || Process::read(serving.id()).unwrap().processor_time;
    let before_waiting = busy();
    sleep(Duration::from_secs(2)).await;
    let busy = busy().saturating_sub(before_waiting);
    assert!(busy < Duration::from_secs(1), "{busy:?} of 2 s");
    drop(waiting);
    serving.settles_at(before).await;
    let mut other = site.connect(serving.address(), Version::HTTP_2).await;
    assert_eq!(other.get("/film.mp4", &[]).await.0, StatusCode::OK);
    drop(other);
    let log = serving.stop();
    let lines = log.matches("cannot accept TCP connections").count();
    let most = 2 * (1 + begun.elapsed().as_secs() / LogLimit::INTERVAL.as_secs());
    assert!(lines as u64 <= most, "{log}");
}

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let site = Site::new();
    let below = |media: &Path, arguments: &[&str]| start_limited(&format!("-S -n {LIMIT}"), media, arguments);
    let (soft, hard) = site.serve_by(below, &[]).descriptor_limits();
    assert!(soft > LIMIT && soft == hard.min(65_536), "{soft} of {hard}");
}
