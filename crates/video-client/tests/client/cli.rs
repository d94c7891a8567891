//! The binary as its users run it: its output and its exit codes.

use std::process::{Child, Command, Stdio};

use crate::common::{Manner, media, serve};
use rstest::rstest;

/// Starts the program and waits for its end; `meddle` can interfere in the meantime.
async fn run_with(arguments: Vec<String>, meddle: impl FnOnce(&mut Child) + Send + 'static) -> Ended {
    let running = tokio::task::spawn_blocking(move || {
        let mut child = Command::new(env!("CARGO_BIN_EXE_video-client"))
            .arg("play")
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        meddle(&mut child);
        child.wait_with_output().unwrap()
    });
    let output = running.await.unwrap();
    Ended {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

async fn run(arguments: Vec<String>) -> Ended {
    run_with(arguments, |_| ()).await
}

/// Exit code and output of a run.
struct Ended {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

impl Ended {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

/// A server of this `manner`, and the arguments to play from it.
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
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout == file, "stdout is the title, byte for byte");
    assert!(output.stderr.contains("start-up delay"), "{}", output.stderr);
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
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.is_empty(), "{}", output.stderr);
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
    let output = run(and(arguments, &["--reconnect-limit", "0s"])).await;
    assert_eq!(output.code, Some(1));
    let report = output.text();
    assert!(
        report.contains("broke off") && report.contains("still to come"),
        "{report}"
    );
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_come_back_means_a_report_with_the_interruption_and_exit_code_1() {
    let (_, arguments) = server("title-720p.mp4", Manner::LeavesAfter(2_000_000));
    let output = run(and(arguments, &["--reconnect-limit", "2s", "--json"])).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("trying again for"), "{}", output.stderr);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "failed");
    assert_eq!(json["network"]["reconnects"], 0);
    let interruptions = json["network"]["interruptions"].as_array().unwrap();
    assert_eq!(interruptions.len(), 1);
    assert!(
        interruptions[0]["reason"]
            .as_str()
            .unwrap()
            .contains("closed the connection")
    );
    assert!(json["viewer"]["frames_remaining"].as_u64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_request_leaves_an_existing_file_alone() {
    let (_, arguments) = server("fixtures/fragmented.mp4", Manner::NotFound);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious.mp4");
    std::fs::write(&path, "precious").unwrap();
    let output = run(and(arguments, &["--output", path.to_str().unwrap()])).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("404"), "{}", output.stderr);
    assert!(
        output.stdout.is_empty(),
        "where nothing came there is nothing to report"
    );
    assert_eq!(std::fs::read(path).unwrap(), b"precious");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_ends_the_run_with_exit_code_1() {
    let (_, arguments) = server("title-720p.mp4", Manner::Good);
    let piped = and(arguments, &["--output", "-"]);
    let output = run_with(piped, |child| child.stdout = None).await;
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("cannot write the title"),
        "{}",
        output.stderr
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
#[case::jitter("https://localhost:4433/a.mp4", &["--max-jitter", "50ms"], "--max-jitter (50ms)")]
#[case::buffer("https://localhost:4433/a.mp4", &["--playout-buffer", "656"], "656kB")]
#[case::output("https://localhost:4433/a.mp4", &["--output", "/no/such/place/a.mp4"], "there is no directory")]
#[tokio::test]
async fn bad_input_names_the_fix_and_exits_2(#[case] url: &str, #[case] more: &[&str], #[case] fix: &str) {
    let output = run(and(vec![url.to_owned()], more)).await;
    assert_eq!(output.code, Some(2));
    assert!(output.stderr.contains(fix), "{}", output.stderr);
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn nobody_there_is_a_failed_run_without_a_report() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/a.mp4", socket.local_addr().unwrap());
    let output = run(and(vec![url], &["--insecure", "--timeout", "300ms"])).await;
    assert_eq!(output.code, Some(1));
    assert!(
        output.stderr.contains("no answer from 127.0.0.1"),
        "{}",
        output.stderr
    );
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn the_help_teaches() {
    let output = run(vec!["--help".to_owned()]).await;
    let text = output.text();
    assert_eq!(output.code, Some(0));
    for part in [
        "Examples:",
        "ffplay",
        "--playout-buffer",
        "Exit codes",
        "docs/video-client.md",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(unix)]
async fn ctrl_c_prints_what_there_is_and_exits_1() {
    let (_, arguments) = server("title-720p.mp4", Manner::FallsSilentAfter(1_500_000));
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.mp4");
    let arguments = and(arguments, &["--output", copy.to_str().unwrap()]);
    let interrupt = move |child: &mut Child| {
        let began = std::time::Instant::now();
        while std::fs::metadata(&copy).map_or(0, |file| file.len()) < 1_500_000 {
            assert!(began.elapsed().as_secs() < 60, "the title does not come");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let id = child.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-INT", &id])
                .status()
                .unwrap()
                .success()
        );
    };
    let output = run_with(arguments, interrupt).await;
    assert_eq!(output.code, Some(1));
    let report = output.text();
    assert!(
        report.contains("stopped before the end") && report.contains("1.50 MB"),
        "{report}"
    );
    assert!(output.stderr.is_empty(), "{}", output.stderr);
}
