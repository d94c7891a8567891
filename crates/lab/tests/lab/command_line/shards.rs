//! Runs made in shards or after an interruption give the rows of one `lab run`.

use std::fs;
use std::process::Command;

use playrate_test_support::{SCENARIO, assert_contains};

use super::{Lab, text};

#[test]
fn the_rows_of_all_shards_are_those_of_one_run() {
    let lab = Lab::with(SCENARIO);
    lab.succeeds("run ./few.toml --trials 3 --series=all --out whole");
    for shard in 1..=3 {
        lab.succeeds(&format!(
            "run ./few.toml --trials 3 --series=all --shard {shard}/3 --jobs {shard} --out part{shard}"
        ));
    }
    let count = |name: &str| lab.read(&format!("{name}/runs.jsonl")).lines().count();
    assert_eq!(["whole", "part1", "part2", "part3"].map(count), [9, 3, 3, 3]);
    let (whole, joined) = (lab.succeeds("rows whole"), lab.succeeds("rows part3 part1 part2"));
    assert_eq!(lab.succeeds("rows part3 part1 part2 part1"), joined);
    let sorted = |rows: &str| {
        let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
        rows.sort();
        rows
    };
    assert_eq!(sorted(&whole), sorted(&joined));
    let tree: usize = (1..=3)
        .map(|shard| lab.tree(&format!("part{shard}/series")).len())
        .sum();
    assert_eq!(lab.tree("whole/series").len(), tree);
    // A page of all shards shows the summary of the whole run.
    lab.succeeds("report part1 part2 part3 --baseline reno --out joined-page");
    lab.succeeds("report whole --baseline reno --out whole-page");
    assert!(lab.read("joined-page/report.html") == lab.read("whole-page/report.html"));
    // Rows of shards in one directory are ordinary results: a run adds the missing ones.
    fs::create_dir(lab.path("all")).unwrap();
    lab.write(
        "all/runs.jsonl",
        &(lab.read("part1/runs.jsonl") + &lab.read("part2/runs.jsonl")),
    );
    lab.succeeds("run ./few.toml --trials 3 --out all --resume");
    assert_eq!(lab.read("all/runs.jsonl"), lab.read("whole/runs.jsonl"));
    let said = lab.is_refused("run ./few.toml --shard 3/2 --out none");
    assert_contains(&said, &["`3/2` is not a shard"]);
}

#[test]
fn directories_with_different_results_of_a_run_are_refused() {
    let lab = Lab::with(SCENARIO);
    lab.succeeds("run ./few.toml --trials 1 --out one");
    fs::create_dir(lab.path("other")).unwrap();
    let changed = lab
        .read("one/runs.jsonl")
        .replace("\"frames_shown\":", "\"frames_shown\":1");
    lab.write("other/runs.jsonl", &changed);
    for command in ["rows", "report"] {
        assert_contains(
            &lab.is_refused(&format!("{command} one other")),
            &["few under ideal with seed 1 differ between one and other"],
        );
    }
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_keeps_finished_runs_and_resuming_leaves_the_same_bytes() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    const TRIALS: usize = 30;
    let lab = Lab::with(SCENARIO);
    let line = format!("run ./few.toml --trials {TRIALS}");
    let mut command = lab.command(&format!("{line} --jobs 1 --out cut"));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let part = lab.path("cut/runs.part.jsonl");
    let done =
        || fs::read_to_string(&part).map_or(0, |text| text.lines().filter(|line| !line.is_empty()).count());
    let began = Instant::now();
    // The ideal rows come first and take no time.
    while done() < TRIALS + 3 {
        assert!(
            child.try_wait().unwrap().is_none() && began.elapsed() < Duration::from_secs(120),
            "no run comes to an end"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = text(output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(output.stdout.is_empty());
    let kept = done();
    let all = 3 * TRIALS;
    assert!((TRIALS + 3..all).contains(&kept), "{kept}");
    assert_contains(
        &said,
        &[&format!("stopped after {kept} of {all} runs"), "--resume"],
    );
    assert!(!lab.path("cut/runs.jsonl").exists());

    // Kept rows are not made again: an edited row stays.
    let rows = lab.read("cut/runs.part.jsonl");
    let marked = rows.replacen("\"outcome\":\"complete\"", "\"outcome\":\"stopped\"", 1);
    assert_ne!(rows, marked);
    lab.write("cut/runs.part.jsonl", &marked);
    lab.succeeds(&format!("{line} --out cut --resume"));
    lab.succeeds(&format!("{line} --out whole"));
    let resumed = lab.read("cut/runs.jsonl");
    assert_eq!(resumed.matches("\"stopped\"").count(), 1);
    assert_eq!(
        resumed.replace("\"stopped\"", "\"complete\""),
        lab.read("whole/runs.jsonl")
    );
    assert_eq!(lab.tree("cut").len(), lab.tree("whole").len());
}

#[test]
fn a_run_whose_series_are_not_whole_is_made_again_when_resumed() {
    let lab = Lab::with(&(SCENARIO.to_owned() + "[bulk]\ncontroller = \"cubic\"\n"));
    lab.succeeds("run ./few.toml --series --out whole");
    // Prevents the last series of a run from being written.
    let last = lab.path("part/series/few/reno-seed1-bulk0-transport.csv");
    fs::create_dir_all(&last).unwrap();
    let output = lab
        .command("run ./few.toml --series --out part")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(output.stderr));
    fs::remove_dir(&last).unwrap();
    lab.succeeds("run ./few.toml --series --out part --resume");
    assert!(lab.tree("part") == lab.tree("whole"), "some file differs");
}
