//! Searches that are finished, and those that are refused.

use std::sync::atomic::AtomicBool;

use clap::Parser;
use rstest::rstest;
use tempfile::TempDir;

use super::*;
use crate::worlds::{WorldsArgs, run};

const SCENARIO: &str = r#"
about = "A few seconds."
claims = ["T-1", "T-2"]
controllers = ["reno", "cubic"]
trials = 2
[title]
trace = "film-1080p"
rate = "2Mbit/s"
duration = "6s"
[path]
rate = "3Mbit/s"
rtt = "40ms"
[quick]
duration = "3s"
[[claim]]
id = "T-1"
says = "reno loses nothing"
check = ["lost_packets[reno] <= 0"]
[[claim]]
id = "T-2"
says = "reno plays before it asks"
check = ["startup_delay_s[reno] < 0"]
"#;

const BED: &str = r#"
about = "One unknown."
scenarios = ["./few.toml"]
[fit]
rows = ["T-1"]
[judge]
rows = ["T-2"]
[search]
worlds = 3
judged = 2
[quick]
worlds = 3
judged = 2
[[unknown]]
name = "counting"
why = "Not given."
argument = "counting"
of = ["reno"]
nominal = "bytes"
choices = ["bytes", "acks"]
"#;

#[derive(Parser)]
struct CommandLine {
    #[command(flatten)]
    args: WorldsArgs,
}

/// A finished search in the directory `out`, and the argument that names its test bed.
fn searched() -> (TempDir, String) {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("few.toml"), SCENARIO).unwrap();
    let bed = home.path().join("bed.toml");
    fs::write(&bed, BED).unwrap();
    let argument = bed.display().to_string();
    let out = home.path().join("out").display().to_string();
    let CommandLine { args } = CommandLine::parse_from(["worlds", &argument, "--quick", "--out", &out]);
    run(&args, &AtomicBool::new(false), &mut std::io::sink()).unwrap();
    (home, argument)
}

fn read(home: &TempDir, argument: &str) -> Result<Finished, CommandError> {
    Finished::read(&Declared::read(argument)?, &home.path().join("out"))
}

#[test]
fn a_finished_search_has_the_rows_and_verdicts_of_both_worlds() {
    let (home, argument) = searched();
    let finished = read(&home, &argument).unwrap();
    let verdict = |part: &FinishedPart| part.fitted.as_ref().unwrap().verdict;
    let parts: Vec<(&str, bool, Verdict)> = finished
        .parts
        .iter()
        .map(|part| (part.claim.id.as_str(), part.judged, verdict(part)))
        .collect();
    assert_eq!(parts[1], ("T-2", true, Verdict::Fails));
    assert_eq!((parts[0].0, parts[0].1), ("T-1", false));
    assert_eq!(finished.short.iter().filter(|world| world.is_random()).count(), 3);
    // Only the runs that claims read, under the names of the scenario.
    for world in [&finished.nominal, &finished.fitted] {
        assert!(world.runs.iter().all(|run| run.label == "reno"));
        assert_eq!(world.runs.len(), 3);
        assert_eq!(world.directory, home.path().join("out"));
    }
    assert_eq!(finished.nominal.runs[0].row.key.controller, "reno");
}

#[rstest]
#[case(
    "worlds.json",
    "\"version\": 1",
    "\"version\": 2",
    "expected `lab-worlds`, version 1"
)]
#[case(
    "worlds.json",
    "\"test_bed\": \"bed\"",
    "\"test_bed\": \"bad\"",
    "of the test bed `bad`; expected `bed`"
)]
#[case(
    "worlds.json",
    "\"bytes\"",
    "\"packets\"",
    "`counting` is `packets`; expected one of: bytes, acks"
)]
#[case(
    "worlds.json",
    "\"counting\": \"",
    "\"count\": \"",
    "the unknown `counting` has no value"
)]
#[case(
    "worlds.json",
    "\"fails\"",
    "\"holds\"",
    "the verdicts on `T-1` are not those of the rows"
)]
#[case(
    "worlds.json",
    "\"fails\"",
    "\"succeeds\"",
    "unknown verdict `succeeds`; expected one of: holds"
)]
#[case("worlds.json", "T-2", "T-3", "the verdicts on `T-2`")]
#[case(
    "worlds.json",
    "lost_packets[reno]",
    "lost_packets[cubic]",
    "the verdicts on `T-1`"
)]
#[case(
    "worlds.jsonl",
    "lab-worlds",
    "lab-world",
    "worlds.jsonl, line 1 has format `lab-world`"
)]
#[case(
    "runs.jsonl",
    "\"seed\":201",
    "\"seed\":91",
    "lacks 1 of 3 runs of the nominal world's last stage, such as few under reno with seed 201"
)]
fn a_search_of_something_else_is_refused_with_the_place_and_what_helps(
    #[case] file: &str,
    #[case] old: &str,
    #[case] new: &str,
    #[case] correction: &str,
) {
    let (home, argument) = searched();
    let path = home.path().join("out").join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "{old}");
    fs::write(&path, text.replace(old, new)).unwrap();
    let error = read(&home, &argument).unwrap_err();
    let said = error.to_string();
    assert!(error.is_bad_input() && said.contains("out"), "{said}");
    assert!(said.contains(correction), "{correction} is missing in: {said}");
}

#[test]
fn an_unfinished_search_is_refused() {
    let (home, argument) = searched();
    fs::remove_file(home.path().join("out/worlds.json")).unwrap();
    let said = read(&home, &argument).unwrap_err().to_string();
    assert!(
        said.contains("worlds.json") && said.contains("finished `lab worlds`"),
        "{said}"
    );
}
