//! `lab matrix` as a user has it.
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// A window of ten packets is 0.6 Mbit/s here: who comes to more has to grow.
const SCENARIO: &str = r#"
about = "A few seconds."
controllers = ["stream"]
trials = 9
[title]
trace = "film-1080p"
rate = "2Mbit/s"
duration = "9s"
[path]
rate = "3Mbit/s"
rtt = "200ms"
[quick]
set = { "title.duration" = "4s" }
"#;

fn matrix(directory: &Path, controllers: &str) -> Output {
    let list = format!("--controllers={controllers}");
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .current_dir(directory)
        .args([
            "matrix",
            "--quick",
            "--scenarios",
            "./few.toml",
            "--out",
            "out",
            &list,
        ])
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn rows_of(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

fn rows(file: &Path) -> Vec<String> {
    rows_of(&text(&fs::read(file).unwrap()))
}

#[test]
fn a_controller_is_added_to_the_map_without_running_the_others_again() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("few.toml"), SCENARIO).unwrap();
    let made = matrix(here, "reno,cubic");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let printed = text(&made.stdout);
    for words in ["reno", "cubic", "mean rank", "matrix.html"] {
        assert!(printed.contains(words), "{words} is missing in: {printed}");
    }
    let file = here.join("out/runs.jsonl");
    let first = rows(&file);
    assert_eq!(first.len(), 2);
    assert!(
        first.iter().all(|row| row.contains("\"frames\":120,")),
        "{first:?}"
    );

    // What is there is taken as it is: a mark in it is still there when another controller has come.
    let marked = text(&fs::read(&file).unwrap()).replace("\"frames_shown\":120", "\"frames_shown\":119");
    assert_ne!(rows_of(&marked), first);
    fs::write(&file, &marked).unwrap();
    let made = matrix(here, "reno,cubic,reno+start=hystartpp");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let second = rows(&file);
    assert_eq!(second.len(), 3);
    assert_eq!(second[..2], rows_of(&marked));
    let json: serde_json::Value =
        serde_json::from_slice(&fs::read(here.join("out/matrix.json")).unwrap()).unwrap();
    let standings = json["standings"].as_array().unwrap();
    let mean: f64 = standings
        .iter()
        .map(|one| one["mean_rank"].as_f64().unwrap())
        .sum();
    // However they come out, ranks of three are 1 to 3.
    assert!((mean - 6.0).abs() < 1e-9, "{json:#}");
    let page = text(&fs::read(here.join("out/matrix.html")).unwrap());
    assert!(page.contains("reno+start=hystartpp") && page.matches("<svg").count() == 2);
}

#[test]
fn a_controller_that_is_none_exits_2_and_is_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("few.toml"), SCENARIO).unwrap();
    let made = matrix(directory.path(), "reno,qubic");
    assert_eq!(made.status.code(), Some(2));
    assert!(text(&made.stderr).contains("qubic"), "{}", text(&made.stderr));
}
