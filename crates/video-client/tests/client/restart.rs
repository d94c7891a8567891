//! The real `video-server` is killed while the real `video-client` plays, and then restarted.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use playrate_netsim::{PathConfig, QueueLimit, Relay, RelayConfig};
use playrate_test_support::{PATIENCE, Running, ServerProcess, TITLE, certify, films, program, title};
use playrate_units::{Bitrate, Probability};

/// Writes a certificate and its key into `directory`, and returns the arguments for them.
fn identity(directory: &Path) -> [String; 4] {
    certify(directory);
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| directory.join(name).display().to_string());
    ["--cert".to_owned(), cert, "--key".to_owned(), key]
}

/// Length of a file that may not exist yet.
fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// Waits at most [`PATIENCE`] until `file` is longer than `than`.
fn wait_until_longer(file: &Path, than: u64) {
    let begun = Instant::now();
    while length(file) <= than {
        assert!(begun.elapsed() < PATIENCE, "{} bytes", length(file));
        sleep(Duration::from_millis(5));
    }
}

/// Waits until the length of `file` has been constant for a second, and returns it.
fn settled(file: &Path) -> u64 {
    let (mut before, mut since) = (length(file), Instant::now());
    while since.elapsed() < Duration::from_secs(1) {
        sleep(Duration::from_millis(5));
        let now = length(file);
        if now != before {
            (before, since) = (now, Instant::now());
        }
    }
    before
}

/// A server on a path of 8 Mbit/s, and what is needed to restart it.
struct Site {
    films: tempfile::TempDir,
    directory: tempfile::TempDir,
    arguments: Vec<String>,
    server: Option<ServerProcess>,
    address: SocketAddr,
    relay: Relay,
}

impl Site {
    /// Starts a server with these arguments and its certificate. The path is slow enough that the title, at 2.8 Mbit/s,
    /// takes 10 s, and fast enough that the buffer soon has several seconds.
    fn start(directory: tempfile::TempDir, more: &[&str]) -> Self {
        let films = films();
        let mut arguments = identity(directory.path()).to_vec();
        let more = more.iter().chain(&["--no-tcp", "--controller", "cubic"]);
        arguments.extend(more.map(|&argument| argument.to_owned()));
        let listen = "127.0.0.1:0";
        let server = start(listen, &films, &arguments);
        let address = server.address();
        let rtt = Duration::from_millis(20);
        let path = PathConfig::bottleneck(Bitrate::from_mbps(8), rtt, QueueLimit::ONE_BDP, Probability::ZERO);
        let relay = Relay::start(&RelayConfig::new(address, path)).expect("the relay starts");
        Self {
            films,
            directory,
            arguments,
            server: Some(server),
            address,
            relay,
        }
    }

    /// File to which [`play`](Self::play) writes.
    fn copy(&self) -> PathBuf {
        self.directory.path().join("copy.mp4")
    }

    /// Plays the title into [`copy`](Self::copy).
    fn play(&self) -> Running {
        let pin = self.server.as_ref().expect("it has started").announced("Pin");
        let client = Command::new(env!("CARGO_BIN_EXE_video-client"))
            .arg("play")
            .arg(format!("https://{}/{}", self.relay.local_addr(), TITLE))
            .args(["--pin", pin, "--clock", "rebuffer", "--json", "--output"])
            .arg(self.copy())
            .stdout(Stdio::piped())
            .spawn()
            .expect("video-client starts");
        Running(client)
    }

    /// Kills the server, restarts it once nothing has arrived for a second, and waits until more arrives. Returns the
    /// time since the server was killed.
    fn restart(&mut self) -> Duration {
        let killed = Instant::now();
        drop(self.server.take());
        // Data on the path and in the client is written in the meantime.
        let held = settled(&self.copy());
        self.server = Some(start(&self.address.to_string(), &self.films, &self.arguments));
        wait_until_longer(&self.copy(), held);
        killed.elapsed()
    }
}

fn start(listen: &str, films: &tempfile::TempDir, arguments: &[String]) -> ServerProcess {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let server = Command::new(program("video-server"));
    ServerProcess::start(server, listen, films.path(), &arguments)
}

#[test]
fn a_server_that_forgot_its_clients_is_missed_after_five_seconds() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut site = Site::start(directory, &[]);
    let _client = site.play();
    wait_until_longer(&site.copy(), 500_000);
    let waited = site.restart();
    println!("first byte {:.2} s after the end", waited.as_secs_f64());
    // The client's limit is 5 s; the transport's default would be 30 s.
    assert!(waited < Duration::from_secs(25), "{waited:?}");
    assert!(waited > Duration::from_secs(4), "{waited:?}: was it recognized?");
}

#[test]
fn a_viewer_sees_nothing_of_a_server_that_is_killed_and_started_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let state = directory.path().join("state");
    fs::create_dir(&state).expect("a directory");
    let mut site = Site::start(directory, &["--state", &state.display().to_string()]);
    let mut client = site.play();
    let copy = site.copy();
    // The player then has 10 s buffered.
    wait_until_longer(&copy, 6_000_000);
    let waited = site.restart();
    println!("first byte {:.2} s after the end", waited.as_secs_f64());

    let ended = client.wait(PATIENCE * 2);
    let output = client.0.stdout.take().expect("piped");
    let report = std::io::read_to_string(output).expect("it is text");
    assert!(
        ended.is_some_and(|status| status.success()),
        "{ended:?}: {report}"
    );
    assert!(
        fs::read(&copy).expect("the copy") == fs::read(title()).expect("the title"),
        "the bytes are the title's"
    );
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    let (network, viewer) = (&report["network"], &report["viewer"]);
    assert_eq!(report["outcome"], "complete");
    assert_eq!(network["reconnects"], 1, "{network}");
    assert_eq!(
        network["received_bytes"], network["promised_bytes"],
        "nothing came twice"
    );
    assert_eq!(viewer["underflow_events"], 0, "{viewer} {network}");
}
