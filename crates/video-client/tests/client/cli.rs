//! The binary as its users run it: its output and its exit codes.

use std::process::{Child, Command, Stdio};

use crate::common::{Manner, media, serve};
use playrate_test_support::{assert_contains, text};
use rstest::rstest;

/// Starts the program and waits for its end; `meddle` can interfere in the meantime.
async fn run_with(arguments: &[&str], meddle: impl FnOnce(&mut Child) + Send + 'static) -> Ended {
    let mut program = Command::new(env!("CARGO_BIN_EXE_video-client"));
    program.arg("play").args(arguments);
    program.stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = tokio::task::spawn_blocking(move || {
        let mut child = program.spawn().unwrap();
        meddle(&mut child);
        child.wait_with_output().unwrap()
    });
    let output = running.await.unwrap();
    Ended {
        code: output.status.code(),
        stdout: output.stdout,
        stderr: text(&output.stderr),
    }
}

async fn run(arguments: &[&str]) -> Ended {
    run_with(arguments, |_| ()).await
}

/// Exit code and output of a run.
struct Ended {
    code: Option<i32>,
    stdout: Vec<u8>,
    stderr: String,
}

/// A server, and the arguments to play its file.
struct Served {
    file: bytes::Bytes,
    arguments: [String; 3],
}

/// A server of this `manner` with a file of the repository's media.
fn server(name: &str, manner: Manner) -> Served {
    let file = media(name);
    let (address, pin) = serve(file.clone(), manner);
    let url = format!("https://{address}/title.mp4");
    let arguments = [url, "--pin".to_owned(), pin.to_string()];
    Served { file, arguments }
}

impl Served {
    async fn play(&self, more: &[&str]) -> Ended {
        self.play_with(more, |_| ()).await
    }

    async fn play_with(&self, more: &[&str], meddle: impl FnOnce(&mut Child) + Send + 'static) -> Ended {
        let [url, option, pin] = self.arguments.each_ref().map(String::as_str);
        run_with(&[&[url, option, pin], more].concat(), meddle).await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_title_goes_to_stdout_and_the_report_to_stderr() {
    let server = server("title-720p.mp4", Manner::Good);
    let output = server.play(&["--output", "-"]).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout == server.file, "stdout is the title, byte for byte");
    assert!(output.stderr.contains("start-up delay"), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn json_goes_to_stdout_and_the_title_to_a_file() {
    let server = server("fixtures/progressive-moov-first.mp4", Manner::Good);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("copy.mp4");
    let to_file = ["--output", path.to_str().unwrap()];
    let more = ["--json", "--series", "--clock", "rebuffer"];
    let output = server.play(&[&more[..], &to_file].concat()).await;
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stderr.is_empty(), "{}", output.stderr);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "complete");
    assert_eq!(json["viewer"]["rebuffer_ratio"], 0.0);
    assert_eq!(json["viewer"]["frames_shown"], json["viewer"]["frames"]);
    assert!(json["series"]["at_s"].as_array().unwrap().len() > 10);
    assert!(std::fs::read(path).unwrap() == server.file);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_mid_stream_means_a_report_and_exit_code_1() {
    let server = server("title-720p.mp4", Manner::LeavesAfter(2_000_000));
    let output = server.play(&["--reconnect-limit", "0s"]).await;
    assert_eq!(output.code, Some(1));
    assert_contains(&text(&output.stdout), &["broke off", "still to come"]);
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_come_back_means_a_report_with_the_interruption_and_exit_code_1() {
    let server = server("title-720p.mp4", Manner::LeavesAfter(2_000_000));
    let output = server.play(&["--reconnect-limit", "2s", "--json"]).await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains("trying again for"), "{}", output.stderr);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["outcome"], "failed");
    assert_eq!(json["network"]["reconnects"], 0);
    let interruptions = json["network"]["interruptions"].as_array().unwrap();
    assert_eq!(interruptions.len(), 1);
    let reason = interruptions[0]["reason"].as_str().unwrap();
    assert!(reason.contains("closed the connection"), "{reason}");
    assert!(json["viewer"]["frames_remaining"].as_u64().unwrap() > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_request_leaves_an_existing_file_alone() {
    let server = server("fixtures/fragmented.mp4", Manner::NotFound);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious.mp4");
    std::fs::write(&path, "precious").unwrap();
    let output = server.play(&["--output", path.to_str().unwrap()]).await;
    assert_eq!(output.code, Some(1));
    assert_contains(&output.stderr, &["404"]);
    assert_eq!(
        text(&output.stdout),
        "",
        "where nothing came there is nothing to report"
    );
    assert_eq!(std::fs::read(path).unwrap(), b"precious");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_goes_away_ends_the_run_with_exit_code_1() {
    let server = server("title-720p.mp4", Manner::Good);
    let output = server
        .play_with(&["--output", "-"], |child| child.stdout = None)
        .await;
    assert_eq!(output.code, Some(1));
    assert_contains(&output.stderr, &["cannot write the title"]);
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
#[case::output("https://localhost:4433/a.mp4", &["--output", "/no/such/place/a.mp4"], "the directory /no/such/place does not exist")]
#[tokio::test]
async fn bad_input_names_the_fix_and_exits_2(#[case] url: &str, #[case] more: &[&str], #[case] fix: &str) {
    let output = run(&[&[url], more].concat()).await;
    assert_eq!(output.code, Some(2));
    assert_contains(&output.stderr, &[fix]);
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn nobody_there_is_a_failed_run_without_a_report() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/a.mp4", socket.local_addr().unwrap());
    let output = run(&[&url, "--insecure", "--timeout", "300ms"]).await;
    assert_eq!(output.code, Some(1));
    assert_contains(&output.stderr, &["no answer from 127.0.0.1"]);
    assert!(output.stdout.is_empty());
}

#[tokio::test]
async fn the_help_teaches() {
    let output = run(&["--help"]).await;
    let text = text(&output.stdout);
    assert_eq!(output.code, Some(0));
    let parts = [
        "Examples:",
        "ffplay",
        "--playout-buffer",
        "Exit codes",
        "docs/video-client.md",
    ];
    assert_contains(&text, &parts);
    let wide: Vec<_> = text.lines().filter(|line| line.chars().count() > 80).collect();
    assert_eq!(wide, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(unix)]
async fn ctrl_c_prints_what_there_is_and_exits_1() {
    let server = server("title-720p.mp4", Manner::FallsSilentAfter(1_500_000));
    let directory = tempfile::tempdir().unwrap();
    let copy = directory.path().join("copy.mp4");
    let to_copy = copy.to_str().unwrap().to_owned();
    let interrupt = move |child: &mut Child| {
        let began = std::time::Instant::now();
        while std::fs::metadata(&copy).map_or(0, |file| file.len()) < 1_500_000 {
            assert!(began.elapsed().as_secs() < 60, "the title does not come");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let killed = Command::new("kill")
            .args(["-INT", &child.id().to_string()])
            .status();
        assert!(killed.unwrap().success());
    };
    let output = server.play_with(&["--output", &to_copy], interrupt).await;
    assert_eq!(output.code, Some(1));
    assert_contains(&text(&output.stdout), &["stopped before the end", "1.50 MB"]);
    assert!(output.stderr.is_empty(), "{}", output.stderr);
}
