//! `lab demo` from end to end: servers, relays and clients on loopback UDP, over a path fast enough to finish in
//! seconds.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use clap::Parser;
use lab::demo::{self, DemoArgs};
use playrate_test_support::assert_contains;
use rstest::rstest;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct TestCli {
    #[command(flatten)]
    demo: DemoArgs,
}

fn args(out: &Path) -> DemoArgs {
    let line = "demo --controllers reno,quinn-cubic --rate 40Mbit/s --rtt 20ms --queue 1bdp --json --out";
    TestCli::parse_from(line.split(' ').chain(out.to_str())).demo
}

/// The column of a CSV file.
fn column(file: &Path, name: &str) -> Vec<f64> {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let place = lines
        .next()
        .unwrap()
        .split(',')
        .position(|head| head == name)
        .unwrap();
    lines
        .filter_map(|line| line.split(',').nth(place)?.parse().ok())
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_controllers_play_the_title_side_by_side_into_an_ordinary_directory_of_results() {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut printed = Vec::new();
    let report = demo::run(&args(&out), &CancellationToken::new(), &mut printed)
        .await
        .unwrap();
    assert!(report.succeeded());

    let json: Value = serde_json::from_slice(&printed).unwrap();
    let runs = json["runs"].as_array().unwrap();
    let (size, frames) = (json["title"]["size"].as_u64().unwrap(), &json["title"]["frames"]);
    assert_eq!(json["path"]["rtt"], 0.02);
    let rows = fs::read_to_string(out.join("runs.jsonl")).unwrap();
    let rows: Vec<Value> = rows
        .lines()
        .map(|row| serde_json::from_str(row).unwrap())
        .collect();
    assert_eq!((runs.len(), rows.len()), (2, 2));
    for ((run, row), spec) in runs.iter().zip(&rows).zip(["reno", "quinn-cubic"]) {
        assert_eq!(row["controller"], spec);
        assert_eq!(row["outcome"], "complete");
        assert_eq!(row["received_bytes"].as_u64(), Some(size));
        assert_eq!(&row["frames"], frames);
        assert!(row["startup_delay_s"].is_number() && row["throughput_bps"].as_u64().unwrap() <= 40_000_000);
        assert!(row["sent_packets"].as_u64().unwrap() > size / 1_452);
        assert!(run["stalls"].is_array() && run["flaws"].is_array());
        assert_eq!(run["row"], *row);

        let series = |kind: &str| out.join(format!("series/demo/{spec}-seed1-viewer0-{kind}.csv"));
        let windows = column(&series("transport"), "window_bytes");
        assert!(!windows.is_empty() && windows.iter().all(|window| *window >= 2_400.0));
        // quinn reads the clock before the socket: an ACK frame that arrives in between appears to arrive earlier.
        let rtts = column(&series("transport"), "srtt_s");
        assert!(rtts.iter().all(|rtt| *rtt >= 0.015), "{rtts:?}");
        let queue = column(&series("queue"), "max_queue_bytes")
            .into_iter()
            .fold(0.0, f64::max);
        assert!(queue <= json["path"]["queue"].as_f64().unwrap(), "{queue}");
        assert!(!column(&series("playout"), "held_s").is_empty());
        let startup = column(&series("events"), "to_s")[0];
        assert!((startup - row["startup_delay_s"].as_f64().unwrap()).abs() < 1e-9);
    }
    let explanation = fs::read_to_string(out.join("explanation.txt")).unwrap();
    assert!(
        explanation.starts_with(json["headline"].as_str().unwrap()),
        "{explanation}"
    );
    assert_eq!(
        explanation.matches("\n- ").count(),
        json["reasons"].as_array().unwrap().len()
    );
    assert!(out.join("scenarios/demo.toml").exists());
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("quinn-cubic") && page.contains("congestion window"));
}

#[rstest]
#[case::in_the_comparison("the comparison", "One session each is not a comparison.")]
#[case::in_the_shared_links("the shared links", "Stalled time in virtual time, mean of 10 seeds")]
fn ctrl_c_in_virtual_time_keeps_and_prints_what_was_measured(#[case] interrupted: &str, #[case] kept: &str) {
    let home = tempfile::tempdir().unwrap();
    let out = home.path().join("out");
    let mut child = Command::new(env!("CARGO_BIN_EXE_lab"))
        .args("demo --controllers reno --rate 40Mbit/s --rtt 20ms --uplink unlimited --out".split(' '))
        .arg(&out)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let begins = format!("seeds in virtual time for {interrupted}.");
    assert!(lines.any(|line| line.contains(&begins)));
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    let said: Vec<String> = lines.collect();
    assert_eq!(said, [format!("without {interrupted}: stopped before the end")]);
    let output = child.wait_with_output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert_contains(&words.join(" "), &["Impaired share", "reno played", kept]);
    assert_eq!(
        fs::read_to_string(out.join("runs.jsonl"))
            .unwrap()
            .lines()
            .count(),
        1
    );
}

#[tokio::test]
async fn results_of_other_runs_are_not_overwritten() {
    let home = tempfile::tempdir().unwrap();
    let row = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rows/groups.jsonl")).unwrap();
    fs::write(home.path().join("runs.jsonl"), &row).unwrap();
    let error = demo::run(&args(home.path()), &CancellationToken::new(), &mut Vec::new())
        .await
        .unwrap_err();
    assert!(error.is_bad_input(), "{error}");
    assert_contains(&error.to_string(), &["already holds results", "--out"]);
    assert_eq!(fs::read_to_string(home.path().join("runs.jsonl")).unwrap(), row);
}

#[tokio::test]
async fn a_directory_that_cannot_be_made_is_named_before_anything_is_played() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("taken");
    fs::write(&file, "").unwrap();
    let error = demo::run(
        &args(&file.join("out")),
        &CancellationToken::new(),
        &mut Vec::new(),
    )
    .await
    .unwrap_err();
    assert!(error.to_string().contains("taken/out"), "{error}");
    assert!(error.is_bad_input());
}
