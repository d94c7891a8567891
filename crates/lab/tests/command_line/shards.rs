//! Runs made in shards or after an interruption leave the same directory as one `lab run`.

use std::fs;
use std::process::Command;

use super::{Lab, text};

/// The scenario of all tests, with a claim.
fn scenario() -> String {
    let claim = r#"
[[claim]]
id = "few/discards"
says = "reno discards no more than cubic"
why = "Ours."
check = ["frames_discarded[reno] <= frames_discarded[cubic]"]
"#;
    super::SCENARIO.replace("trials", "claims = [\"few\"]\ntrials") + claim
}

#[test]
fn merged_shards_are_the_directory_of_one_run_to_the_byte() {
    let lab = Lab::with(&scenario());
    lab.succeeds("run ./few.toml --series=all --out whole");
    for shard in 1..=3 {
        lab.succeeds(&format!(
            "run ./few.toml --series=all --shard {shard}/3 --jobs {shard} --out part{shard}"
        ));
    }
    let rows = |name: &str| lab.read(&format!("{name}/runs.jsonl")).lines().count();
    assert_eq!(["whole", "part1", "part2", "part3"].map(rows), [6, 2, 2, 2]);
    let said = lab.succeeds("merge part3 part1 part2 --out merged");
    assert!(said.contains("6 runs together: merged/runs.jsonl"), "{said}");
    let (whole, merged) = (lab.tree("whole"), lab.tree("merged"));
    assert_eq!(
        whole.keys().collect::<Vec<_>>(),
        merged.keys().collect::<Vec<_>>()
    );
    assert!(whole == merged, "some file differs");
    assert!(whole.keys().any(|name| name.starts_with("series")));

    // Claims and report come out the same.
    for line in ["claims DIR --scenario ./few.toml", "report DIR --out DIR-report"] {
        let [whole, merged] = ["whole", "merged"].map(|name| {
            let said = lab.succeeds(&line.replace("DIR", name));
            said.replace(name, "DIR")
        });
        assert_eq!(whole, merged);
    }
    assert!(lab.tree("whole-report") == lab.tree("merged-report"));
    // A single shard is a directory of results like any other.
    lab.succeeds("report part2");
    lab.succeeds("run ./few.toml --out merged --resume");
    assert_eq!(lab.read("merged/runs.jsonl"), lab.read("whole/runs.jsonl"));
}

#[test]
fn incomplete_or_different_shards_are_not_merged() {
    let lab = Lab::with(&scenario());
    for shard in 1..=2 {
        lab.succeeds(&format!("run ./few.toml --shard {shard}/2 --out part{shard}"));
    }
    let said = lab.is_refused("merge part1 --out merged");
    assert!(
        said.contains("3 of 6 runs are missing") && said.contains("shard 2/2"),
        "{said}"
    );

    lab.succeeds("run ./few.toml --out whole");
    let said = lab.is_refused("merge part1 whole --out merged");
    assert!(said.contains("whole is not a shard"), "{said}");
    let said = lab.is_refused("merge part1 part2 --out whole");
    assert!(said.contains("whole already holds results"), "{said}");

    lab.succeeds("run ./few.toml --trials 3 --shard 2/2 --out more");
    let said = lab.is_refused("merge part1 more --out merged");
    assert!(
        said.contains("the run few under ideal with seed 3 is only in it"),
        "{said}"
    );
    lab.write("few.toml", &scenario().replace("3Mbit/s", "4Mbit/s"));
    lab.succeeds("run ./few.toml --shard 2/2 --out other");
    let said = lab.is_refused("merge part1 other --out merged");
    assert!(said.contains("the scenario `few` differs"), "{said}");

    // The same shard twice is accepted, unless one was edited.
    fs::create_dir_all(lab.path("copy/scenarios")).unwrap();
    for (name, bytes) in lab.tree("part1") {
        fs::write(lab.path("copy").join(name), bytes).unwrap();
    }
    lab.succeeds("merge part1 copy part2 --out twice");
    assert_eq!(lab.read("twice/runs.jsonl"), lab.read("whole/runs.jsonl"));
    let rows = lab.read("copy/runs.jsonl");
    let changed = rows.replace("\"frames_shown\":", "\"frames_shown\":1");
    lab.write("copy/runs.jsonl", &changed);
    let said = lab.is_refused("merge part1 copy part2 --out merged");
    assert!(
        said.contains("few under ideal with seed 1 differs between part1 and copy"),
        "{said}"
    );
    let changed = rows.replace("\"program\":\"", "\"program\":\"7");
    lab.write("copy/runs.jsonl", &changed);
    let said = lab.is_refused("merge part1 copy part2 --out merged");
    assert!(said.contains("version 7"), "{said}");

    // An unfinished shard has to be finished.
    let rows: Vec<_> = rows.split_inclusive('\n').collect();
    lab.write("copy/runs.part.jsonl", rows[0]);
    fs::remove_file(lab.path("copy/runs.jsonl")).unwrap();
    let said = lab.is_refused("merge copy part2 --out merged");
    assert!(
        said.contains("copy is not complete") && said.contains("--shard 1/2 --resume"),
        "{said}"
    );
    assert!(!lab.path("merged").exists());
}

#[test]
fn a_shards_directory_is_resumed_with_that_shard_only() {
    let lab = Lab::with(&scenario());
    lab.succeeds("run ./few.toml --shard 1/2 --out part");
    for (line, named) in [
        ("--shard 2/2", "2/2 was requested"),
        ("--shard 1/3", "1/3 was requested"),
        ("--trials 7", "continues only with --shard"),
        ("--shard 1/2 --trials 7", "other runs were requested"),
    ] {
        let said = lab.is_refused(&format!("run ./few.toml --resume --out part {line}"));
        assert!(
            said.contains("part holds shard 1/2") && said.contains(named),
            "{said}"
        );
    }
    lab.succeeds("run ./few.toml --shard 1/2 --resume --out part");
    let said = lab.is_refused("run ./few.toml --shard 3/2 --out none");
    assert!(said.contains("`3/2` is not a shard"), "{said}");
}

#[test]
#[cfg(unix)]
fn an_interrupted_run_keeps_finished_runs_and_resuming_leaves_the_same_bytes() {
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    const TRIALS: usize = 30;
    let lab = Lab::with(&scenario());
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
    assert!(
        said.contains(&format!("stopped after {kept} of {all} runs")) && said.contains("--resume"),
        "{said}"
    );
    assert!(!lab.path("cut/runs.jsonl").exists());

    // Kept rows are not made again: an edit of one stays.
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
    let lab = Lab::with(&(super::SCENARIO.to_owned() + "[bulk]\ncontroller = \"cubic\"\n"));
    lab.succeeds("run ./few.toml --series --out whole");
    // In the way of the last series of a run, which cannot be written.
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
