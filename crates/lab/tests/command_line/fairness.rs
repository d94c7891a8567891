//! `lab fairness` as a user has it.

use super::Lab;

const FAIRNESS: &str =
    "fairness --quick --rate 3Mbit/s --rtt 40ms --out out --controllers cubic,video --beside cubic";

#[test]
fn every_pair_is_run_once_and_printed_within_80_columns() {
    let lab = Lab::new();
    let printed = lab.succeeds(FAIRNESS);
    assert!(
        printed.lines().all(|line| line.chars().count() <= 80),
        "{printed}"
    );
    assert!(printed.contains("3.00 Mbit/s, 40ms, queue 1bdp"), "{printed}");
    // A viewer and a download, of two controllers, in two scenarios.
    let rows = lab.read("out/runs.jsonl");
    assert_eq!(rows.lines().count(), 8);
    for file in ["out/fairness-share.svg", "out/fairness-left.svg"] {
        assert!(lab.read(file).contains("video"), "{file}");
    }
    let json: serde_json::Value = serde_json::from_str(&lab.read("out/fairness.json")).unwrap();
    let pairs = json["pairs"].as_array().unwrap();
    assert_eq!(pairs.len(), 2);
    for pair in pairs {
        let of = |demand: &str, number: &str| pair[demand][number].as_f64().unwrap();
        // Both flows want all they can get, so the link is full, and headers take a few percent of it.
        let used = of("needy", "viewer_share") + of("needy", "download_share");
        assert!((0.8..0.99).contains(&used), "{pair:#}");
    }
    // Under its own kind a download is the measure of harm.
    assert_eq!(pairs[0]["harm"].as_f64(), Some(0.0));

    // What is there is taken as it is: a mark in it that changes no number is still there.
    let marked = rows.replace("\"outcome\":\"stopped\"", "\"outcome\":\"complete\"");
    assert_ne!(marked, rows);
    lab.write("out/runs.jsonl", &marked);
    assert_eq!(lab.succeeds(FAIRNESS), printed);
    assert_eq!(lab.read("out/runs.jsonl"), marked);
}

#[test]
fn a_controller_that_is_none_exits_2_and_is_named() {
    let lab = Lab::new();
    for arguments in [
        "--controllers reno,qubic",
        "--beside qubic",
        "--rate 20",
        "--queue 100B",
    ] {
        let said = lab.is_refused(&format!("fairness --out out {arguments}"));
        let value = arguments.rsplit([' ', ',']).next().unwrap();
        assert!(said.contains(value), "{said}");
    }
}
