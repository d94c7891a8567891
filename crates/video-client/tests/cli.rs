//! The binary as its users run it: what it prints where, and how it exits.
#![expect(
    clippy::disallowed_methods,
    reason = "these tests run on tokio and in real time"
)]
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

mod common;

use std::process::{Command, Output};

use common::{Manner, media, serve};
use rstest::rstest;

async fn run(arguments: Vec<String>) -> Output {
    tokio::task::spawn_blocking(move || {
        Command::new(env!("CARGO_BIN_EXE_video-client"))
            .arg("play")
            .args(arguments)
            .output()
            .unwrap()
    })
    .await
    .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A server of this `manner`, and the arguments that play from it.
fn server(name: &str, manner: Manner) -> (bytes::Bytes, Vec<String>) {
    let file = media(name);
    let (address, pin) = serve(file.clone(), manner);
    let url = format!("https://{address}/title.mp4");
    (file, vec![url, "--pin".to_owned(), pin.to_string()])
}

fn and(mut arguments: Vec<String>, more: &[&str]) -> Vec<String> {
    arguments.extend(more.iter().map(|&text| text.to_owned()));
    arguments
}

#[tokio::test(flavor = "multi_thread")]
async fn the_title_goes_to_stdout_and_the_report_to_stderr() {
    let (file, arguments) = server("title-720p.mp4", Manner::Good);
    let output = run(and(arguments, &["--output", "-"])).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stdout == file, "stdout is the title, byte for byte");
    assert!(stderr(&output).contains("start-up delay"), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn json_goes_to_stdout_and_the_title_to_a_file() {
    let (file, arguments) = server("fixtures/progressive-moov-first.mp4", Manner::Good);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy.mp4");
    let more = [
        "--json",
        "--series",
        "--clock",
        "rebuffer",
        "--output",
        path.to_str().unwrap(),
    ];
    let output = run(and(arguments, &more)).await;
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "complete");
    assert_eq!(json["viewer"]["rebuffer_ratio"], 0.0);
    assert_eq!(json["viewer"]["frames_shown"], json["viewer"]["frames"]);
    assert!(json["series"]["at_s"].as_array().unwrap().len() > 10);
    assert!(std::fs::read(path).unwrap() == file);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_mid_stream_means_a_report_and_exit_code_1() {
    let (_, arguments) = server("title-720p.mp4", Manner::LeavesAfter(2_000_000));
    let output = run(arguments).await;
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        report.contains("broke off") && report.contains("still to come"),
        "{report}"
    );
    assert!(stderr(&output).starts_with("error: "), "{}", stderr(&output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_request_leaves_an_existing_file_alone() {
    let (_, arguments) = server("fixtures/fragmented.mp4", Manner::NotFound);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious.mp4");
    std::fs::write(&path, "precious").unwrap();
    let output = run(and(arguments, &["--output", path.to_str().unwrap()])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("404"), "{}", stderr(&output));
    assert!(
        output.stdout.is_empty(),
        "where nothing came there is nothing to report"
    );
    assert_eq!(std::fs::read(path).unwrap(), b"precious");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_ends_the_run_with_exit_code_1() {
    let (_, arguments) = server("title-720p.mp4", Manner::Good);
    let output = tokio::task::spawn_blocking(move || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_video-client"))
            .arg("play")
            .args(arguments)
            .args(["--output", "-"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        child.wait_with_output().unwrap()
    })
    .await
    .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("cannot write the title"),
        "{}",
        stderr(&output)
    );
}

#[rstest]
#[case::not_tls("http://localhost:80/a.mp4", &[], "write https://localhost:80/a.mp4")]
#[case::no_path("https://localhost:4433", &[], "names no title")]
#[case::pin("https://localhost:4433/a.mp4", &["--pin", "abc"], "`abc` is not a pin")]
#[case::ca("https://localhost:4433/a.mp4", &["--ca", "/no/such/ca.pem"], "/no/such/ca.pem")]
#[case::ca_of_something_else(
    "https://localhost:4433/a.mp4", &["--ca", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], "Cargo.toml"
)]
#[case::fixed("https://localhost:4433/a.mp4", &["--abr", "fixed:1080p"], "leave --abr out")]
#[case::seeking("https://localhost:4433/a.mp4", &["--start-at", "3s"], "leave --start-at out")]
#[case::clock("https://localhost:4433/a.mpd", &["--clock", "rebuffer"], "leave --clock out")]
#[case::jitter("https://localhost:4433/a.mp4", &["--max-jitter", "50ms"], "--max-jitter 50ms")]
#[case::buffer("https://localhost:4433/a.mp4", &["--playout-buffer", "656"], "656kB")]
#[case::output("https://localhost:4433/a.mp4", &["--output", "/no/such/place/a.mp4"], "there is no directory")]
#[tokio::test]
async fn bad_input_says_the_mend_and_exits_2(#[case] url: &str, #[case] more: &[&str], #[case] mend: &str) {
    let output = run(and(vec![url.to_owned()], more)).await;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains(mend), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn nobody_there_is_a_failed_run_without_a_report() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/a.mp4", socket.local_addr().unwrap());
    let output = run(and(vec![url], &["--insecure", "--timeout", "300ms"])).await;
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("no answer from 127.0.0.1"),
        "{}",
        stderr(&output)
    );
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn the_help_teaches() {
    let output = run(vec!["--help".to_owned()]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0));
    for part in [
        "Examples:",
        "ffplay",
        "--playout-buffer",
        "Exit codes",
        "docs/video-client.md",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(unix)]
async fn ctrl_c_prints_what_there_is_and_exits_1() {
    let (_, arguments) = server("title-720p.mp4", Manner::FallsSilentAfter(1_500_000));
    let output = tokio::task::spawn_blocking(move || {
        let child = Command::new(env!("CARGO_BIN_EXE_video-client"))
            .arg("play")
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_secs(2));
        let interrupt = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(interrupt.unwrap().success());
        child.wait_with_output().unwrap()
    })
    .await
    .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        report.contains("stopped before the end") && report.contains("1.50 MB"),
        "{report}"
    );
    assert!(output.stderr.is_empty(), "{}", stderr(&output));
}
