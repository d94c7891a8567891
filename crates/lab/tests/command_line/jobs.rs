//! `lab jobs`: commands for a cluster that leave the directory of one `lab run`.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{Lab, SCENARIO, text};

/// The words of a command in the list of jobs.
fn words(command: &Value) -> Vec<&str> {
    let words = command.as_array().unwrap().iter();
    words.map(|word| word.as_str().unwrap()).collect()
}

/// Runs a command of the list of jobs, whose program is a path.
fn execute(lab: &Lab, command: &Value) {
    let words = words(command);
    let output = Command::new(words[0])
        .args(&words[1..])
        .current_dir(lab.home.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{words:?}: {}", text(output.stderr));
}

#[test]
fn the_listed_commands_leave_the_directory_of_one_run_however_often_they_are_run() {
    let lab = Lab::with(SCENARIO);
    let selection =
        "./few.toml --trials 3 --set path.queue=0.5bdp --over loss=0.5%,gilbert(0.1%,20%) --series";
    lab.succeeds(&format!("run {selection} --out whole"));
    let program = env!("CARGO_BIN_EXE_lab");
    let listed = lab.succeeds(&format!(
        "jobs {selection} --shards 4 --cores 2 --out all --lab {program}"
    ));
    let list: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(
        [&list["format"], &list["program"]],
        ["lab-jobs", env!("CARGO_PKG_VERSION")]
    );
    assert_eq!([&list["version"], &list["runs"], &list["cores"]], [1, 18, 2]);
    let jobs = list["jobs"].as_array().unwrap();
    let runs: Vec<_> = jobs.iter().map(|job| job["runs"].as_u64().unwrap()).collect();
    assert_eq!(runs, [5, 5, 4, 4]);
    assert!(!lab.path("all").exists(), "nothing is run by this command");

    for job in jobs {
        execute(&lab, &job["command"]);
        let rows = lab.read(&format!("{}/runs.jsonl", job["directory"].as_str().unwrap()));
        assert_eq!(rows.lines().count() as u64, job["runs"].as_u64().unwrap());
    }
    // As if it had been interrupted in its last run, and begun once more.
    let first = lab.path(jobs[0]["directory"].as_str().unwrap());
    let rows = fs::read_to_string(first.join("runs.jsonl")).unwrap();
    fs::write(
        first.join("runs.part.jsonl"),
        rows.trim_end().strip_suffix('}').unwrap(),
    )
    .unwrap();
    fs::remove_file(first.join("runs.jsonl")).unwrap();
    for _ in 0..2 {
        execute(&lab, &jobs[0]["command"]);
        execute(&lab, &list["merge"]["command"]);
        let mut merged = lab.tree("all");
        merged.retain(|name, _| !name.starts_with("shards"));
        assert!(merged == lab.tree("whole"), "some file differs");
    }
}

#[test]
fn jobs_that_cannot_be_made_are_refused_with_what_would_be_right() {
    let lab = Lab::with(SCENARIO);
    let kubernetes = "--shards 2 --format kubernetes --image lab --claim runs";
    for (line, named) in [
        ("./few.toml --shards 7", "at most the number of runs, 6 (got 7)"),
        ("./few.toml --shards 0", "0"),
        ("./few.toml", "--shards"),
        ("./none.toml --shards 2", "./none.toml"),
        ("./few.toml --shards 2 --case n10", "n10"),
        ("./few.toml --shards 2 --over speed=1", "path.queue"),
        ("./few.toml --shards 2 --format kubernetes --image lab", "--claim"),
        (
            &format!("./few.toml {kubernetes} --name My_Jobs"),
            "--name `My_Jobs`",
        ),
        (
            &format!("./few.toml {kubernetes} --out /srv/runs"),
            "such as sweeps/runs",
        ),
    ] {
        let said = lab.is_refused(&format!("jobs {line}"));
        assert!(said.contains(named), "{line}: {said}");
    }
}
