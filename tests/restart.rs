//! The real `video-server` is killed while the real `video-client` plays, and started again.
#![expect(
    clippy::expect_used,
    reason = "a test that cannot set up its processes has nothing better to do than panic"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use playrate_netsim::{PathConfig, QueueLimit, Relay, RelayConfig};
use playrate_units::{Bitrate, Probability};
use support::{Running, Server, films, program, title};

#[expect(dead_code, reason = "a server is all that this test needs of it")]
#[path = "needs/support.rs"]
mod support;

/// Writes a certificate and its key into `directory`, and returns the arguments that name them.
fn identity(directory: &Path) -> [String; 4] {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| directory.join(name));
    fs::write(&cert, made.cert.pem()).expect("the certificate is written");
    fs::write(&key, made.signing_key.serialize_pem()).expect("the key is written");
    let [cert, key] = [cert, key].map(|file| file.display().to_string());
    ["--cert".to_owned(), cert, "--key".to_owned(), key]
}

/// Length of a file that may not be there yet.
fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}

/// Waits until `file` is longer than `than`, at most 30 s.
fn wait_until_longer(file: &Path, than: u64) {
    let begun = Instant::now();
    while length(file) <= than {
        assert!(
            begun.elapsed() < Duration::from_secs(30),
            "{} bytes for 30 s",
            length(file)
        );
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_viewer_sees_nothing_of_a_server_that_is_killed_and_started_again() {
    let (films, state) = (films(), tempfile::tempdir().expect("a temporary directory"));
    let identity = identity(state.path());
    let directory = state.path().join("state").display().to_string();
    fs::create_dir(&directory).expect("a directory");
    let mut arguments: Vec<_> = identity.iter().map(String::as_str).collect();
    arguments.extend(["--state", &directory, "--no-tcp", "--controller", "cubic"]);
    let first = Server::start(films.path(), &arguments);
    let address: SocketAddr = first.address().parse().expect("an address");

    // So slow that the title, of 2.8 Mbit/s, takes 10 s, and fast enough that the buffer soon holds seconds.
    let rtt = Duration::from_millis(20);
    let path = PathConfig::bottleneck(Bitrate::from_mbps(8), rtt, QueueLimit::ONE_BDP, Probability::ZERO);
    let relay = Relay::start(&RelayConfig::new(address, path)).expect("the relay starts");
    let copy = state.path().join("copy.mp4");
    let client = Command::new(program("video-client"))
        .arg("play")
        .arg(format!("https://{}/{}", relay.local_addr(), support::TITLE))
        .args([
            "--pin",
            first.said("Pin"),
            "--clock",
            "rebuffer",
            "--json",
            "--output",
        ])
        .arg(&copy)
        .stdout(Stdio::piped())
        .spawn()
        .expect("video-client starts");
    let mut client = Running(client);

    wait_until_longer(&copy, 3_500_000);
    drop(first);
    // What was on the path and in the client is written meanwhile.
    sleep(Duration::from_secs(1));
    let held = length(&copy);
    let _second = Server::start_on(&address.to_string(), films.path(), &arguments);
    let restarted = Instant::now();
    wait_until_longer(&copy, held);
    println!(
        "first byte {:.2} s after the restart",
        restarted.elapsed().as_secs_f64()
    );

    let ended = client.wait(Duration::from_secs(60));
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
