//! The operator's view of a running server.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;

use http::HeaderMap;
use playrate_transport::{Connection, ConnectionLost};
use rstest::rstest;
use serde_json::{Value, json};

use crate::cli::process::{assert_fields, run, start_with_metrics};
use playrate_test_support::{
    Media, PATIENCE, ServerProcess, assert_contains, eventually, fetch, text, until,
};

/// A server of `film.mp4` and what `put` adds to the directory.
fn serving_with(put: impl FnOnce(&Media), more: &[&str]) -> (Media, ServerProcess) {
    let media = Media::film();
    put(&media);
    let serving = start_with_metrics(&media, more);
    (media, serving)
}

fn serving(more: &[&str]) -> (Media, ServerProcess) {
    serving_with(|_| (), more)
}

/// One request over HTTP/1.1: the head of the response and its body.
pub(crate) fn request(serving: &ServerProcess, line: &str) -> (String, String) {
    serving.ask(line, "Accept: */*")
}

fn connections(serving: &ServerProcess) -> Value {
    serde_json::from_str(&request(serving, "GET /connections.json").1).unwrap()
}

/// The value on the line of `/metrics` that begins with `name`.
pub(crate) fn metric(metrics: &str, name: &str) -> u64 {
    let line = metrics.lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name} is missing in {metrics}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

async fn get(connection: &Connection, path: &str, cmcd: &str) -> u64 {
    let mut fields = HeaderMap::new();
    fields.insert("cmcd-request", cmcd.parse().unwrap());
    fetch(connection, path, fields).await
}

#[tokio::test]
async fn connections_and_what_their_players_say_show_while_they_last_and_are_counted_after() {
    let bad = |media: &Media| {
        media.put("empty.mp4", "");
        media.put("bad.mpd", "<MPD/>");
    };
    let (_media, serving) = serving_with(bad, &["--choose-by", "query", "--arm", "b=reno"]);
    assert_eq!(connections(&serving)["connections"].as_array().unwrap().len(), 0);
    let connection = serving.connect().await;
    let report = "sid=\"one\",ot=av,br=30,bl=4200";
    let length = get(&connection, "/film.mp4?arm=b", &format!("{report},bs")).await;
    // Samples are 20 ms apart, so the end of a short transfer appears only in a later sample or at the end of the
    // connection.
    let responses = Cell::new(1);
    let seen = eventually("the round-trip time is known", async || {
        get(&connection, "/film.mp4", report).await;
        responses.set(responses.get() + 1);
        let seen = connections(&serving);
        (!seen["connections"][0]["rtt_ms"].is_null()).then_some(seen)
    })
    .await;
    let responses = responses.get();
    assert_eq!(seen["controller"], "video");
    assert_fields(
        &seen["arms"][0],
        &json!({ "arm": "b", "sessions": 0, "rtt_ms": null }),
    );
    let one = &seen["connections"][0];
    let expected = json!({
        "arm": "b", "controller": "reno", "buffer_s": 4.2, "playback": "playing", "video_rate": 30_000,
        "starvations": 1,
    });
    assert_fields(one, &expected);
    for known in ["window", "rtt_ms", "min_rtt_ms", "in_flight", "phase", "reason"] {
        assert!(!one[known].is_null(), "{known}: {one}");
    }
    assert!(one["delivered"].as_u64().unwrap() > 0, "{one}");

    let (_, metrics) = request(&serving, "GET /metrics");
    assert_eq!(metric(&metrics, "playrate_unplayable_titles "), 1);
    assert_eq!(metric(&metrics, "playrate_unusable_manifests "), 1);
    assert!(metric(&metrics, "playrate_connections ") >= 1);
    assert!(metric(&metrics, "playrate_players{state=\"playing\"}") >= 1);
    assert!(!metrics.contains("playrate_sessions_total{"), "{metrics}");

    connection.close();
    until("the connection has ended", async || {
        connections(&serving)["connections"] == json!([])
    })
    .await;
    let (_, metrics) = request(&serving, "GET /metrics");
    let session = "{arm=\"b\",controller=\"reno\"}";
    let of = |name: &str| metric(&metrics, &format!("playrate_{name}{session}"));
    assert_eq!((of("sessions_total"), of("player_starvations_total")), (1, 1));
    assert_eq!(of("session_duration_seconds_count"), 1);
    assert_eq!(metric(&metrics, "playrate_responses_total"), responses);
    let acknowledged = responses * length;
    assert_eq!(metric(&metrics, "playrate_content_bytes_total"), acknowledged);
    // The last part shows when quinn releases the connection, a moment after it has ended.
    until("all bytes are delivered", async || {
        serving.metric("playrate_delivered_bytes_total") > acknowledged
    })
    .await;
    assert_eq!(metric(&metrics, "playrate_connections "), 0);
    let seen = connections(&serving);
    assert_eq!(seen["sessions"], 1);
    let arm = &seen["arms"][0];
    let expected = json!({ "controller": "reno", "sessions": 1, "starvations": 1, "buffer_s": 4.2 });
    assert_fields(arm, &expected);
    assert!(arm["rtt_ms"].as_f64() > Some(0.0), "{arm}");
    assert_eq!(seen["arms"][1]["arm"], "default");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_dashboard_knows_what_was_before_it_was_opened_and_forgets_connections_that_ended() {
    let (_media, serving) = serving(&[]);
    let history = || -> Value { serde_json::from_str(&request(&serving, "GET /history.json").1).unwrap() };
    assert_eq!(history()["connections"], json!([]));
    let connection = serving.connect().await;
    let length = get(&connection, "/film.mp4", "sid=\"one\",ot=av,br=30,bl=4200").await;
    let past = eventually("there are three samples", async || {
        get(&connection, "/film.mp4", "sid=\"one\",ot=av,br=30,bl=4200").await;
        let past = history();
        (past["connections"][0]["samples"].as_array()?.len() > 2).then_some(past)
    })
    .await;
    let now = connections(&serving);
    assert_eq!(past["connections"][0]["id"], now["connections"][0]["id"]);
    let samples = past["connections"][0]["samples"].as_array().unwrap();
    let (first, last) = (&samples[0], &samples[samples.len() - 1]);
    assert!(first["t"].as_f64() < last["t"].as_f64(), "{past}");
    assert!(last["t"].as_f64() <= now["at_s"].as_f64(), "{past}");
    assert!(first["delivered"].as_u64() < last["delivered"].as_u64(), "{past}");
    assert!(last["delivered"].as_u64() > Some(length), "{past}");
    assert!(!last["rtt_ms"].is_null(), "{past}");
    assert_eq!(last["buffer_s"], 4.2);
    connection.close();
    until("the connection is forgotten", async || {
        history()["connections"] == json!([])
    })
    .await;
}

#[test]
fn slow_heads_do_not_hold_the_address_on_which_supervisors_ask() {
    let (_media, serving) = serving(&[]);
    let url = serving.announced("Metrics").trim_start_matches("http://");
    let address: SocketAddr = url.trim_end_matches('/').parse().unwrap();
    let _held: Vec<_> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // After a response, it is a connection with a request.
            stream
                .write_all(b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\n")
                .unwrap();
            assert_eq!(stream.read(&mut [0]).unwrap(), 1);
            stream
        })
        .collect();
    for _ in 0..8 {
        let (head, _) = request(&serving, "GET /healthz");
        assert_contains(&head, &["HTTP/1.1 200"]);
    }
}

#[rstest]
#[case::ipv4("127.0.0.1:9433", true)]
#[case::ipv6("[::1]:9433", true)]
#[case::localhost("LOCALHOST", true)]
#[case::configured("metrics.example:9433", true)]
#[case::another_site("attacker.example:9433", false)]
#[case::another_site_with_a_similar_name("metrics.example.attacker.example", false)]
#[case::invalid("a b", false)]
fn pages_of_other_sites_read_nothing_by_a_name_that_resolves_to_this_address(
    #[case] host: &str,
    #[case] is_answered: bool,
) {
    let (_media, serving) = serving(&[
        "--metrics-host",
        "localhost.example",
        "--metrics-host",
        "metrics.example",
    ]);
    for (path, always) in [
        ("/", false),
        ("/metrics", false),
        ("/connections.json", false),
        ("/readyz", true),
    ] {
        let head = serving.ask_as(host, &format!("GET {path}"), "Accept: */*").0;
        let status = if is_answered || always {
            "HTTP/1.1 200"
        } else {
            "HTTP/1.1 421"
        };
        assert_contains(&head, &[status]);
    }
}

#[test]
fn the_page_needs_nothing_but_itself() {
    let (_media, serving) = serving(&[]);
    let (head, page) = request(&serving, "GET /");
    assert_contains(&head, &["text/html", "content-security-policy"]);
    assert!(page.starts_with("<!doctype html>"));
    for elsewhere in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    assert!(page.len() < 64 << 10, "{} bytes", page.len());
}

#[test]
fn what_is_not_there_and_what_cannot_be_done_is_said() {
    let (_media, serving) = serving(&[]);
    let (head, body) = request(&serving, "GET /film.mp4");
    assert_contains(&head, &["HTTP/1.1 404"]);
    assert_contains(&body, &["/metrics"]);
    let (head, _) = request(&serving, "DELETE /connections.json");
    assert_contains(&head, &["HTTP/1.1 405", "allow: GET, HEAD"]);
    let (head, body) = request(&serving, "HEAD /metrics");
    assert!(head.starts_with("HTTP/1.1 200") && body.is_empty(), "{head}");
}

#[tokio::test]
async fn refused_clients_are_counted() {
    let large = |media: &Media| media.large("large.bin", 64 << 20);
    let (_media, serving) = serving_with(large, &["--max-connections", "1"]);
    let held = serving.connect().await;
    let _unread = held.get("/large.bin", HeaderMap::new()).await.unwrap();
    assert!(serving.try_connect().await.is_err());
    // The refused client had to validate its address first because the limit was reached.
    let counts = [
        ("refused_connections", 1),
        ("evicted_connections", 0),
        ("retried_handshakes", 1),
    ];
    for (name, value) in counts {
        assert_eq!(serving.metric(&format!("playrate_{name}_total")), value, "{name}");
    }
    assert!(held.quinn().close_reason().is_none());
}

#[tokio::test]
async fn a_connection_without_requests_is_closed_after_the_idle_limit() {
    let (_media, serving) = serving(&["--idle-limit", "2s"]);
    let reason = ConnectionLost::from(serving.connect().await.quinn().closed().await);
    assert!(reason.is_orderly(), "{reason}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_and_evicted_connections_over_tcp_are_counted() {
    let (_media, serving) = serving(&["--max-connections", "1"]);
    let count = |what: &str| serving.metric(&format!("playrate_{what}_tcp_connections_total"));
    let connect = || TcpStream::connect(serving.address()).unwrap();
    let _held = connect();
    until("one is refused because the other is new", async || {
        let _held = [(); 8].map(|()| connect());
        count("refused") > 0
    })
    .await;
    let _held = connect();
    until("one makes room", async || {
        let _held = connect();
        count("evicted") > 0
    })
    .await;
    assert_contains(&serving.stop(), &["refused a TCP connection for media"]);
}

/// Names of our metrics, and of process metrics, in a text.
fn mentioned(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let metrics = words.filter(|word| word.starts_with("playrate_") || word.starts_with("process_"));
    metrics
        .filter(|metric| !metric.ends_with('_'))
        .map(|metric| metric.strip_suffix("_bucket").unwrap_or(metric))
        .collect()
}

#[tokio::test]
async fn every_metric_of_the_board_the_alerts_and_the_docs_is_exported() {
    // Only its owner may read it.
    let mut key = tempfile::NamedTempFile::new().unwrap();
    write!(key, "k1:{}", "0123456789abcdef".repeat(4)).unwrap();
    let (_media, serving) = serving_with(
        |media| media.large("large.bin", 256 << 20),
        &[
            "--choose-by",
            "query",
            "--arm",
            "b=reno",
            "--cmcd-events",
            "/cmcd",
            "--signing-key",
            key.path().to_str().unwrap(),
            "--public",
            "/",
        ],
    );
    let connection = serving.connect().await;
    get(&connection, "/film.mp4?arm=b", "sid=\"one\",ot=av,br=30,bl=4200").await;
    // Long enough for an estimate of the delivery rate.
    get(&connection, "/large.bin", "").await;
    // Histograms and session counters have no sample until the first session has ended.
    let open = request(&serving, "GET /metrics").1;
    connection.close();
    let metrics = eventually("the session is counted", async || {
        let metrics = request(&serving, "GET /metrics").1;
        metrics.contains("playrate_sessions_total{").then_some(metrics)
    })
    .await;
    let exported = mentioned(&metrics);
    let exported: BTreeSet<_> = exported.union(&mentioned(&open)).copied().collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for file in [
        "packaging/grafana/video-server.json",
        "packaging/prometheus/video-server.rules.yml",
        "docs/operating/monitoring.md",
    ] {
        let text = fs::read_to_string(root.join(file)).unwrap();
        let unknown: Vec<_> = mentioned(&text).difference(&exported).copied().collect();
        assert_eq!(unknown, [""; 0], "{file}\n{metrics}");
    }
}

#[test]
fn metrics_have_the_text_format_whatever_the_client_accepts() {
    let (_media, serving) = serving(&[]);
    let accept = "Accept: application/openmetrics-text; version=1.0.0";
    let (head, metrics) = serving.ask("GET /metrics", accept);
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let sample = |counter: &str| format!("\n# TYPE {counter} counter\n{counter} ");
    let samples = ["process_cpu_seconds_total", "playrate_lost_bytes_total"].map(sample);
    assert_contains(&metrics, &samples.each_ref().map(String::as_str));
    assert!(!metrics.contains("# UNIT"), "{metrics}");
    assert!(!metrics.contains("# EOF"), "{metrics}");
}

#[tokio::test]
async fn responses_handshakes_and_connections_over_tcp_are_counted() {
    let (_media, serving) = serving(&[]);
    // No TLS: the handshake fails.
    let mut stream = TcpStream::connect(serving.address()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = stream.read_to_end(&mut Vec::new());
    let held = TcpStream::connect(serving.address()).unwrap();
    let connection = serving.connect().await;
    fetch(&connection, "/film.mp4", HeaderMap::new()).await;
    let counts = [
        ("playrate_tcp_connections_accepted_total ", 2),
        ("playrate_tcp_connections ", 1),
        ("playrate_failed_tcp_handshakes_total ", 1),
        (
            "playrate_http_responses_total{protocol=\"HTTP/3\",code=\"200\"}",
            1,
        ),
    ];
    let metrics = eventually("all of it is counted", async || {
        let metrics = request(&serving, "GET /metrics").1;
        let mut counts = counts.into_iter();
        let is_counted = counts.all(|(name, count)| metric(&metrics, name) == count);
        is_counted.then_some(metrics)
    })
    .await;
    assert_eq!(connections(&serving)["tcp_connections"], 1);
    assert!(metric(&metrics, "process_open_fds ") > 3 && metric(&metrics, "process_threads ") > 1);
    assert!(metrics.contains("playrate_build_info{version=\""), "{metrics}");
    drop(held);
}

#[rstest]
#[case::another_status("HTTP/1.1 500 Not 200 ", 1)]
#[case::an_endless_line("x", 1 << 24)]
#[case::nothing("", 1)]
fn an_answer_other_than_ready_fails_the_health_check(#[case] answer: &str, #[case] times: usize) {
    let answer = answer.repeat(times);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let answering = thread::spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        stream.write_all(answer.as_bytes())
    });
    let output = run(&["healthcheck", &address]);
    assert_eq!(output.status.code(), Some(1));
    assert_contains(&text(&output.stderr), &[&address]);
    // The program does not read it all.
    assert_eq!(answering.join().unwrap().is_err(), times > 1);
}

#[tokio::test]
async fn a_server_that_drains_is_alive_and_not_ready() {
    let (_media, serving) = serving_with(
        |media| media.large("large.bin", 64 << 20),
        &["--drain-timeout", "20s"],
    );
    let is = |status: &str, line: &str| {
        request(&serving, line)
            .0
            .starts_with(&format!("HTTP/1.1 {status}"))
    };
    // As a container asks.
    let address = serving
        .announced("Metrics")
        .replace("http://", "")
        .replace('/', "");
    let probe = || run(&["healthcheck", &address]);
    assert!(is("200", "GET /healthz") && is("200", "GET /readyz"));
    assert_eq!(probe().status.code(), Some(0));
    // A response that is never read keeps the server from ending.
    let connection = serving.connect().await;
    let response = connection.get("/large.bin", HeaderMap::new()).await.unwrap();
    serving.signal("TERM");
    until("it is not ready", async || is("503", "GET /readyz")).await;
    assert!(is("200", "GET /healthz"));
    let draining = probe();
    assert_eq!(draining.status.code(), Some(1));
    assert_contains(&text(&draining.stderr), &["not ready", "503"]);
    drop(response);
}
