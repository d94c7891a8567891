//! A further process takes over the port while sessions are in progress.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use http::{HeaderMap, StatusCode, Version};
use playrate_transport::{Body, Client, ClientOptions, Connection, Target, Trust};
use playrate_units::Bytes;
use quinn::TokioRuntime;

use crate::metrics::{metric, request};
use crate::process::{Serving, assert_contains, run, text};
use crate::tcp::Site;

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
        fs::write(site.path("media/long.bin"), &long).unwrap();
        Self { site, long }
    }

    /// A server on `address` with `arguments`.
    fn start(&self, address: &str, arguments: &[&str]) -> Serving {
        let state = self.site.path("state");
        let own = ["--state", state.to_str().unwrap(), "--no-watch"];
        let start = |media: &Path, all: &[&str]| Serving::start_on(address, media, all);
        self.site.serve_by(start, &[&own, arguments].concat())
    }
}

/// A session that has begun to stream, and can have no more than a little under way.
struct Session {
    connection: Connection,
    body: Body,
    received: Vec<u8>,
}

impl Session {
    async fn begin(serving: &Serving) -> Self {
        let trust = Trust::Pin(serving.announced("Pin").parse().unwrap());
        let mut options = ClientOptions::new(trust);
        options.transport.stream_receive_window = Bytes::new(64 << 10);
        let client = Client::bind(Arc::new(TokioRuntime), options).unwrap();
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

    /// Receives the rest, which has to be right.
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

fn connections(serving: &Serving) -> u64 {
    metric(&request(serving, "GET /metrics").1, "playrate_connections ")
}

/// Ends a server whose connections have been closed; returns its log.
fn ended(serving: Serving) -> String {
    let (code, _, log) = serving.end();
    assert_eq!(code, Some(0), "{log}");
    log
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
    assert_eq!(connections(&new), 2, "its own");
    for version in [Version::HTTP_2, Version::HTTP_11] {
        let mut client = site.site.connect(new.address(), version).await;
        assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
    }
    let connection = session.end(&site).await;
    assert_eq!(status(&connection).await, StatusCode::OK, "it may go on");
    connection.close();
    let log = ended(old);
    assert_contains(&log, &["has taken over the port", "cut_responses=0"]);
    for client in &clients {
        assert_eq!(status(client).await, StatusCode::OK);
        client.close();
    }
    new.signal("TERM");
    assert_contains(&ended(new), &["took over the port", "has ended"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_port_of_a_server_that_is_shutting_down_can_be_taken_over() {
    let site = StatefulSite::new();
    let old = site.start("127.0.0.1:0", &["--drain-timeout", "1min"]);
    let address = old.address();
    let session = Session::begin(&old).await;
    old.signal("TERM");
    let refused = |error: &dyn ToString| error.to_string().contains("refused");
    while !old.try_connect().await.is_err_and(|error| refused(&error)) {}
    assert!(std::net::TcpStream::connect(address).is_err());

    let new = site.start(&address.to_string(), &[]);
    assert_eq!(status(&new.connect().await).await, StatusCode::OK);
    let mut client = site.site.connect(address, Version::HTTP_11).await;
    assert_eq!(client.get("/film.mp4", &[]).await.0, StatusCode::OK);
    session.end(&site).await;
    ended(old);
    assert_eq!(status(&new.connect().await).await, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_three_processes_go_on_side_by_side() {
    let site = StatefulSite::new();
    let first = site.start("127.0.0.1:0", &[]);
    let address = first.address().to_string();
    let mut sessions = vec![Session::begin(&first).await];
    let second = site.start(&address, &[]);
    sessions.push(Session::begin(&second).await);
    let third = site.start(&address, &[]);
    sessions.push(Session::begin(&third).await);
    let mut connections = Vec::new();
    for session in sessions {
        connections.push(session.end(&site).await);
    }
    // The second one passes on datagrams for the first one, so it is there for as long as that.
    connections[1].close();
    assert_eq!(status(&connections[0]).await, StatusCode::OK);
    connections[0].close();
    ended(first);
    ended(second);
    assert_eq!(status(&connections[2]).await, StatusCode::OK);
    connections[2].close();
    third.signal("TERM");
    ended(third);
    assert_eq!(
        fs::read_dir(site.site.path("state")).unwrap().count(),
        1,
        "the key"
    );
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
    let again = site.start(&address, &[]);
    assert_eq!(status(&again.connect().await).await, StatusCode::OK);
    assert_eq!(status(&connection).await, StatusCode::OK);
    connection.close();
    let log = ended(old);
    assert_contains(&log, &["the process that took over has ended"]);
}

#[test]
fn the_directory_of_a_server_on_another_address_is_refused() {
    let site = StatefulSite::new();
    let serving = site.start("127.0.0.1:0", &[]);
    let (media, state) = (site.site.path("media"), site.site.path("state"));
    let [media, state] = [&media, &state].map(|path| path.to_str().unwrap());
    let line = ["serve", "--media", media, "--state", state, "--listen"];
    let output = run(&[&line[..], &["127.0.0.1:1"]].concat());
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    let address = serving.address().to_string();
    assert_contains(&errors, &[state, &address, "a directory of its own"]);
    serving.stop();
}
