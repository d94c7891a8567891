//! Redirects from HTTP without TLS.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};

use playrate_test_support::{Media, PATIENCE, ServerProcess, assert_contains, eventually, until};
use rstest::rstest;

use crate::cli::process::{refused, start, start_on};

/// A free address for a listener.
fn free() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// The answer to one request with this `Host`, if anything listens.
fn ask(address: SocketAddr, target: &str, host: &str) -> Option<String> {
    send(address, &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

/// The answer to this request, if anything listens.
fn send(address: SocketAddr, request: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    Some(answer)
}

fn location(serving: &ServerProcess) -> String {
    format!(
        "location: https://localhost:{}/film.mp4?a=b\r\n",
        serving.address().port()
    )
}

#[test]
fn requests_without_tls_are_sent_to_the_same_url_with_it() {
    let (media, address) = (Media::film(), free());
    let serving = start(media.root(), &["--redirect-from", &address.to_string()]);
    let answer = ask(address, "/film.mp4?a=b", "localhost").unwrap();
    assert_contains(
        &answer,
        &["HTTP/1.1 308 ", &location(&serving), "connection: close"],
    );
    let elsewhere = ask(address, "/", "evil.example").unwrap();
    assert!(
        elsewhere.starts_with("HTTP/1.1 421 ") && !elsewhere.contains("location"),
        "{elsewhere}"
    );
    serving.stop();
}

#[rstest]
#[case::directly(&[], "", "127.0.0.1")]
#[case::by_a_proxy_for_connections(
    &["--trusted-proxies", "127.0.0.1", "--proxy-protocol"], "PROXY TCP4 192.0.2.7 192.0.2.1 4711 80\r\n", "192.0.2.7"
)]
#[case::by_a_proxy_for_requests(
    &["--trusted-proxies", "127.0.0.1", "--forwarded-field", "x-forwarded-for"], "", "192.0.2.8"
)]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_leaves_a_line_in_the_access_log(
    #[case] arguments: &[&str],
    #[case] before: &str,
    #[case] client: &str,
) {
    let (media, address) = (Media::film(), free());
    let (log, redirects) = (media.text(".access.log"), address.to_string());
    let more = [
        "--redirect-from",
        &redirects,
        "--access-log",
        &log,
        "--access-log-format",
        "combined",
    ];
    let serving = start(media.root(), &[&more[..], arguments].concat());
    for (host, status) in [("localhost", 308), ("evil.example", 421)] {
        let fields = format!("Host: {host}\r\nUser-Agent: A\r\nX-Forwarded-For: 192.0.2.8\r\n");
        let request = format!("{before}GET /film.mp4?a=b HTTP/1.1\r\n{fields}\r\n");
        assert_contains(
            &send(address, &request).unwrap(),
            &[&format!("HTTP/1.1 {status} ")],
        );
        let end = format!("] \"GET /film.mp4?a=b HTTP/1.1\" {status} 0 \"-\" \"A\"");
        let line = eventually("the line is there", async || {
            let text = std::fs::read_to_string(&log).unwrap();
            text.lines().find(|line| line.ends_with(&end)).map(str::to_owned)
        });
        assert!(line.await.starts_with(&format!("{client} - - [")));
    }
    serving.stop();
}

#[test]
fn an_address_in_use_is_refused() {
    let (media, taken) = (Media::film(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap().to_string();
    let arguments = ["serve", "--media", &media.text(""), "--listen", "127.0.0.1:0"];
    let complaint = refused(&[&arguments[..], &["--redirect-from", &address]].concat());
    assert_contains(&complaint, &["--redirect-from", &address, "in use"]);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_takes_over_redirects_too() {
    let (media, address) = (Media::film(), free());
    std::fs::create_dir(media.path(".state")).unwrap();
    let (state, redirects) = (media.text(".state"), address.to_string());
    let arguments = ["--state", &state, "--redirect-from", &redirects];
    let older = start(media.root(), &arguments);
    let newer = start_on(&older.address().to_string(), media.root(), &arguments);
    older.exits(0);
    until("the newer process redirects", async || {
        ask(address, "/film.mp4?a=b", "localhost").is_some_and(|answer| answer.contains(&location(&newer)))
    })
    .await;
    newer.stop();
}
