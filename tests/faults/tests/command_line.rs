//! The `faults` binary as a user sees it.
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

use std::process::{Command, Output};

/// The exit code, standard output and standard error of the binary with these arguments.
fn run(arguments: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_faults"));
    let Output {
        status,
        stdout,
        stderr,
    } = command.args(arguments.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// Standard output of the binary, which must succeed.
fn succeeds(arguments: &str) -> String {
    let (code, stdout, stderr) = run(arguments);
    assert_eq!(code, Some(0), "{arguments}: {stderr}");
    stdout
}

/// As [`succeeds`], for a text whose lines must fit 80 columns.
fn prints(arguments: &str) -> String {
    let text = succeeds(arguments);
    let is_wide = |line: &str| line.chars().count() > 80;
    assert!(!text.lines().any(is_wide), "{arguments}: {text}");
    text
}

#[test]
fn a_campaign_prints_the_same_counts_with_any_number_of_jobs() {
    let one = prints("--seeds 12 --from 301 --jobs 1");
    // With the hash of all packets.
    assert_eq!(one, prints("--seeds 12 --from 301 --jobs 4"));
    for words in [
        "Seeds 301 to 312",
        "all sessions",
        "wire hash",
        "Every invariant holds in each of them",
    ] {
        assert!(one.contains(words), "{words} is missing in: {one}");
    }
}

#[test]
fn a_seed_prints_its_plan_its_time_line_and_its_verdict() {
    let shown = prints("--seed 4");
    assert_eq!(shown, prints("--seed 4"));
    for words in [
        "path",
        "server",
        "the client",
        "verdict     every invariant holds",
    ] {
        assert!(shown.contains(words), "{words} is missing in: {shown}");
    }
    let json: serde_json::Value = serde_json::from_str(&succeeds("--seed 4 --json")).unwrap();
    assert!(shown.contains(json["wire_hash"].as_str().unwrap()), "{shown}");
    assert_eq!(json["seed"], 4);
    assert_eq!(json["violations"], serde_json::json!([]));
}

#[test]
fn help_names_the_command_and_every_option() {
    let help = prints("--help");
    for words in [
        "cargo run --release -p faults -- [OPTIONS]",
        "--seed <N>",
        "--seeds",
        "--from",
        "--jobs",
        "--json",
    ] {
        assert!(help.contains(words), "{words} is missing in: {help}");
    }
}

#[test]
fn impossible_campaigns_are_refused() {
    for (arguments, words) in [
        ("--seeds 0", "--seeds"),
        ("--seed 1 --jobs 2", "--jobs"),
        (
            "--seeds 2 --from 18446744073709551615",
            "begin with a smaller one",
        ),
    ] {
        let (code, stdout, stderr) = run(arguments);
        assert_eq!((code, stdout.as_str()), (Some(2), ""), "{arguments}: {stderr}");
        assert!(stderr.contains(words), "{stderr}");
    }
}
