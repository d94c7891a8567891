//! A newer process takes over the port while sessions are in progress.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

use http::{HeaderMap, StatusCode, Version};
use playrate_transport::{Body, Connection, Target};
use playrate_units::Bytes;
use tokio::task::JoinSet;

use crate::cli::process::{program, run, start_on};
use crate::cli::tcp::Site;
use playrate_test_support::{ServerProcess, assert_contains, client, sleep, text, until};

/// A site whose servers have a directory for their state.
struct StatefulSite {
    site: Site,
    long: Vec<u8>,
}

impl StatefulSite {
    fn new() -> Self {
        let site = Site::new();
        fs::create_dir(site.path("state")).unwrap();
        // Bytes that differ from place to place.
        let long: Vec<u8> = (0..4_000_000_u32).flat_map(u32::to_le_bytes).collect();
        site.directory.put("media/long.bin", &long);
        Self { site, long }
    }

    /// A server on `address` with `arguments`.
    fn start(&self, address: &str, arguments: &[&str]) -> ServerProcess {
        let own = ["--state", &self.site.text("state"), "--no-watch"];
        let start = |media: &Path, all: &[&str]| start_on(address, media, all);
        self.site.serve_by(start, &[&own, arguments].concat())
    }
}

/// A session that has begun to stream, with little data in flight at any time.
struct Session {
    connection: Connection,
    body: Body,
    received: Vec<u8>,
}

impl Session {
    async fn begin(serving: &ServerProcess) -> Self {
        let client = client(serving.pin(), |options| {
            options.transport.stream_receive_window = Bytes::new(64 << 10);
        });
        let target = Target::at("localhost", serving.address());
        let connection = client.connect(&target).await.unwrap();
        let (_, mut body) = connection.get("/long.bin", HeaderMap::new()).await.unwrap();
        let received = body.chunk().await.unwrap().unwrap().to_vec();
        Self {
            connection,
            body,
            received,
        }
    }

    /// Receives the rest and checks it.
    async fn end(mut self, site: &StatefulSite) -> Connection {
        while let Some(chunk) = self.body.chunk().await.unwrap() {
            self.received.extend_from_slice(&chunk);
        }
        assert!(self.received == site.long);
        self.connection
    }
}

async fn status(connection: &Connection) -> StatusCode {
    let response = connection.head("/film.mp4", HeaderMap::new()).await;
    response.unwrap().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_interrupts_no_session_and_new_clients_reach_the_new_process() {
    let site = StatefulSite::new();
    let metrics = ["--metrics", "127.0.0.1:0"];
    let old = site.start("127.0.0.1:0", &metrics);
    let session = Session::begin(&old).await;
    let mut old_tcp = site.site.connect(old.address(), Version::HTTP_2).await;
    assert_eq!(old_tcp.get("/film.mp4", &[]).await.0, StatusCode::OK);

    let new = site.start(&old.address().to_string(), &metrics);
    let clients = [new.connect().await, new.connect().await];
    for client in &clients {
        assert_eq!(status(client).await, StatusCode::OK);
    }
    assert_eq!(new.metric("playrate_connections"), 2, "its own");
    for version in [Version::HTTP_2, Version::HTTP_11] {
        let mut client = site.site.connect(new.address(), version).await;
        assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
    }
    let connection = session.end(&site).await;
    assert_eq!(status(&connection).await, StatusCode::OK, "it may go on");
    connection.close();
    let log = old.exits(0);
    assert_contains(&log, &["has taken over the port", "cut_responses=0"]);
    for client in &clients {
        assert_eq!(status(client).await, StatusCode::OK);
        client.close();
    }
    new.signal("TERM");
    assert_contains(&new.exits(0), &["took over the port", "has ended"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_port_of_a_server_that_is_shutting_down_can_be_taken_over() {
    let site = StatefulSite::new();
    let old = site.start("127.0.0.1:0", &["--drain-timeout", "1min"]);
    let address = old.address();
    let session = Session::begin(&old).await;
    old.signal("TERM");
    old.is_refusing().await;
    // Another task accepts them and learns of the shutdown on its own.
    let is_refused = async || TcpStream::connect(address).is_err();
    until("connections over TCP are refused", is_refused).await;

    let new = site.start(&address.to_string(), &[]);
    assert_eq!(status(&new.connect().await).await, StatusCode::OK);
    let mut client = site.site.connect(address, Version::HTTP_11).await;
    assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
    session.end(&site).await;
    old.exits(0);
    assert_eq!(status(&new.connect().await).await, StatusCode::OK);
}

/// Three processes that took over from each other, and a session of each of the older two.
async fn three_processes(site: &StatefulSite) -> ([ServerProcess; 3], Vec<Session>) {
    let first = site.start("127.0.0.1:0", &[]);
    let address = first.address().to_string();
    let mut sessions = vec![Session::begin(&first).await];
    let second = site.start(&address, &[]);
    sessions.push(Session::begin(&second).await);
    let third = site.start(&address, &[]);
    ([first, second, third], sessions)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_three_processes_go_on_side_by_side() {
    let site = StatefulSite::new();
    let ([first, second, third], mut sessions) = three_processes(&site).await;
    sessions.push(Session::begin(&third).await);
    let mut connections = Vec::new();
    for session in sessions {
        connections.push(session.end(&site).await);
    }
    // The second process forwards datagrams to the first one, so it lives at least as long.
    connections[1].close();
    assert_eq!(status(&connections[0]).await, StatusCode::OK);
    connections[0].close();
    first.exits(0);
    second.exits(0);
    assert_eq!(status(&connections[2]).await, StatusCode::OK);
    connections[2].close();
    third.signal("TERM");
    third.exits(0);
    let left = fs::read_dir(site.site.path("state")).unwrap();
    assert_eq!(left.count(), 1, "the key");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_other_numbers_of_workers_take_over_from_each_other() {
    let site = StatefulSite::new();
    let mut address = "127.0.0.1:0".to_owned();
    let (mut processes, mut sessions) = (Vec::new(), Vec::new());
    for workers in ["1", "4", "2"] {
        let process = site.start(&address, &["--workers", workers]);
        address = process.address().to_string();
        for _ in 0..2 {
            sessions.push(Session::begin(&process).await);
        }
        // Each of its sockets probably gets one of these.
        for _ in 0..6 {
            let connection = process.connect().await;
            assert_eq!(status(&connection).await, StatusCode::OK);
            connection.close();
        }
        processes.push(process);
    }
    for session in sessions {
        session.end(&site).await.close();
    }
    let last = processes.pop().unwrap();
    for process in processes {
        process.exits(0);
    }
    assert_eq!(status(&last.connect().await).await, StatusCode::OK);
    last.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_survive_the_crash_of_the_process_that_took_over() {
    let site = StatefulSite::new();
    let old = site.start("127.0.0.1:0", &[]);
    let address = old.address().to_string();
    let session = Session::begin(&old).await;
    let crashing = site.start(&address, &[]);
    assert_eq!(status(&crashing.connect().await).await, StatusCode::OK);
    // Killed.
    drop(crashing);
    let connection = session.end(&site).await;
    old.logs("has the port again", 1).await;
    let again = site.start(&address, &[]);
    assert_eq!(status(&again.connect().await).await, StatusCode::OK);
    assert_eq!(status(&connection).await, StatusCode::OK);
    connection.close();
    let log = old.exits(0);
    assert_contains(&log, &["the process that took over has ended"]);
}

/// Requests a title over HTTP/3, HTTP/2 and metrics.
async fn assert_serves(serving: &ServerProcess, site: &StatefulSite) {
    let connection = serving.connect().await;
    assert_eq!(status(&connection).await, StatusCode::OK);
    connection.close();
    let mut client = site.site.connect(serving.address(), Version::HTTP_2).await;
    assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
    serving.metric("playrate_connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_crashes_of_newer_processes_one_accepts_over_tcp_again_and_stays_when_idle() {
    let site = StatefulSite::new();
    let metrics = ["--metrics", "127.0.0.1:0"];
    let mut old = site.start("127.0.0.1:0", &metrics);
    let address = old.address().to_string();
    // Keeps the process from ending while the newer one serves.
    let session = Session::begin(&old).await;
    for (round, arguments) in [(1, &metrics[..]), (2, &["--no-tcp"])] {
        let crashing = site.start(&address, arguments);
        old.logs("has taken over the port", round).await;
        assert_eq!(status(&crashing.connect().await).await, StatusCode::OK);
        let (is_tcp_open, has_tcp) = (
            TcpStream::connect(&address).is_ok(),
            !arguments.contains(&"--no-tcp"),
        );
        assert_eq!(is_tcp_open, has_tcp, "not read by any process");
        drop(crashing);
        old.logs("has the port again", round).await;
        assert_serves(&old, &site).await;
    }
    session.end(&site).await.close();
    sleep(Duration::from_millis(300)).await;
    assert!(!old.has_ended(), "no other process has the port");
    assert_serves(&old, &site).await;
    old.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_older_process_takes_the_port_back_from_a_frozen_one_which_ends_when_it_resumes() {
    let site = StatefulSite::new();
    let metrics = ["--metrics", "127.0.0.1:0"];
    let old = site.start("127.0.0.1:0", &metrics);
    let session = Session::begin(&old).await;
    let frozen = site.start(&old.address().to_string(), &metrics);
    assert_eq!(status(&frozen.connect().await).await, StatusCode::OK);
    frozen.signal("STOP");
    old.logs("has the port again", 1).await;
    assert_serves(&old, &site).await;
    frozen.signal("CONT");
    assert_contains(&frozen.exits(1), &["taken the port back"]);
    session.end(&site).await.close();
    // It listens at the path of the frozen process.
    let again = site.start(&old.address().to_string(), &metrics);
    old.exits(0);
    assert_serves(&again, &site).await;
    again.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_of_the_middle_process_loses_no_session() {
    let site = StatefulSite::new();
    let ([first, second, third], sessions) = three_processes(&site).await;
    second.signal("STOP");
    first.logs("so this one waits", 1).await;
    second.signal("CONT");
    for session in sessions {
        session.end(&site).await.close();
    }
    assert!(!first.exits(0).contains("port again"));
    second.exits(0);
    assert_eq!(status(&third.connect().await).await, StatusCode::OK);
    // The first one only looked whether it has the port.
    let log = third.stop();
    assert!(!log.contains("cannot hand over"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_runs_keeps_the_port_from_an_older_one() {
    let site = StatefulSite::new();
    let old = site.start("127.0.0.1:0", &[]);
    let session = Session::begin(&old).await;
    let new = site.start(&old.address().to_string(), &[]);
    sleep(Duration::from_secs(7)).await;
    assert_eq!(status(&new.connect().await).await, StatusCode::OK);
    session.end(&site).await.close();
    assert!(!old.exits(0).contains("port again"));
    new.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_process_goes_on_if_the_newer_one_fails_before_it_serves() {
    let site = StatefulSite::new();
    let mut old = site.start("127.0.0.1:0", &["--metrics", "127.0.0.1:0"]);
    let address = old.address().to_string();
    // The process cannot write that it serves.
    let full = fs::File::create("/dev/full").unwrap();
    let (media, state) = (site.site.text("media"), site.site.text("state"));
    let failing = program()
        .args([
            "serve",
            "--no-watch",
            "--access-log",
            "none",
            "--listen",
            &address,
            "--media",
            &media,
            "--state",
            &state,
        ])
        .stdout(full)
        .output()
        .unwrap();
    let errors = text(&failing.stderr);
    assert_eq!(failing.status.code(), Some(1), "{errors}");
    assert_contains(&errors, &["took over the port"]);
    old.logs("has the port again", 1).await;
    assert_serves(&old, &site).await;

    // A process that takes over and stays silent.
    let mut silent = UnixStream::connect(site.site.path("state/handover")).unwrap();
    let mut answer = [0; 1_000];
    assert!(silent.read(&mut answer).unwrap() > 0);
    silent.write_all(b"{\"tcp\":true,\"metrics\":false}\n").unwrap();
    let length = silent.read(&mut answer).unwrap();
    assert_eq!(&answer[..length], b"taken\n");
    sleep(Duration::from_millis(300)).await;
    assert!(!old.has_ended(), "no other process serves");
    drop(silent);
    old.logs("has the port again", 2).await;
    assert_serves(&old, &site).await;
    let new = site.start(&address, &["--metrics", "127.0.0.1:0"]);
    assert_contains(&old.exits(0), &["has taken over the port"]);
    assert_serves(&new, &site).await;
    new.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_waits_for_the_port_of_one_that_is_ending() {
    let site = StatefulSite::new();
    let ending = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = ending.local_addr().unwrap().to_string();
    let mut ended = JoinSet::new();
    ended.spawn(async move {
        sleep(Duration::from_millis(500)).await;
        drop(ending);
    });
    let serving = site.start(&address, &[]);
    ended.join_all().await;
    assert_eq!(status(&serving.connect().await).await, StatusCode::OK);
    serving.stop();
}

/// Exit code and log of a process that is started while others run, and does not serve.
fn fails(site: &StatefulSite, address: &str) -> (Option<i32>, String) {
    let (media, state) = (site.site.text("media"), site.site.text("state"));
    let output = run(&["serve", "--media", &media, "--state", &state, "--listen", address]);
    (output.status.code(), text(&output.stderr))
}

#[test]
fn a_process_that_gets_no_answer_may_be_started_again() {
    let site = StatefulSite::new();
    let silent = UnixListener::bind(site.site.path("state/handover")).unwrap();
    let answers = std::thread::spawn(move || {
        // Until the other side gives up, too late for a further attempt.
        assert_eq!(silent.accept().unwrap().0.read(&mut [0]).unwrap(), 0);
    });
    let (code, errors) = fails(&site, "127.0.0.1:0");
    assert_eq!(code, Some(1), "{errors}");
    assert_contains(&errors, &["cannot take over", "no answer"]);
    answers.join().unwrap();
}

#[test]
fn a_server_with_another_key_is_not_taken_over() {
    let site = StatefulSite::new();
    let serving = site.start("127.0.0.1:0", &[]);
    fs::write(site.site.path("state/endpoint-key"), [1; 32]).unwrap();
    let (code, errors) = fails(&site, &serving.address().to_string());
    assert_eq!(code, Some(2), "{errors}");
    assert_contains(&errors, &["its key is not", "endpoint-key", "stop it first"]);
    serving.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_with_a_long_path_does_without_taking_over() {
    let site = StatefulSite::new();
    let long = site.site.text(&"d".repeat(120));
    fs::create_dir(&long).unwrap();
    let start = |media: &Path, all: &[&str]| start_on("127.0.0.1:0", media, all);
    let serving = site.site.serve_by(start, &["--state", &long]);
    assert_eq!(status(&serving.connect().await).await, StatusCode::OK);
    assert_contains(&serving.stop(), &["no other process can take over the port"]);
}

#[test]
fn the_directory_of_a_server_on_another_address_is_refused() {
    let site = StatefulSite::new();
    let serving = site.start("127.0.0.1:0", &[]);
    let (code, errors) = fails(&site, "127.0.0.1:1");
    assert_eq!(code, Some(2), "{errors}");
    let (state, address) = (site.site.text("state"), serving.address().to_string());
    assert_contains(&errors, &[&state, &address, "a directory of its own"]);
    serving.stop();
}
