//! `lab run`, `lab show` and `lab list` as a user has them.
#![expect(clippy::unwrap_used, reason = "what a test needs and cannot have fails it")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCENARIO: &str = r#"
about = "A few seconds."
controllers = ["reno", "cubic"]
trials = 2
[title]
trace = "film-1080p"
rate = "2Mbit/s"
duration = "4s"
[path]
rate = "3Mbit/s"
rtt = "40ms"
loss = "0.5%"
"#;

fn lab(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lab"))
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn scenario() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("few.toml"), SCENARIO).unwrap();
    directory
}

#[test]
fn the_same_inputs_give_the_same_bytes_on_one_thread_or_many_and_when_resumed() {
    let directory = scenario();
    let here = directory.path();
    let rows = |out: &str| fs::read(here.join(out).join("runs.jsonl")).unwrap();
    for (out, jobs) in [("one", "1"), ("many", "3")] {
        let made = lab(here, &["run", "./few.toml", "--jobs", jobs, "--out", out]);
        assert!(made.status.success(), "{}", text(&made.stderr));
        let printed = text(&made.stdout);
        for part in ["few", "ideal", "reno", "cubic", "pictures discarded"] {
            assert!(printed.contains(part), "{part} is missing in: {printed}");
        }
    }
    assert_eq!(rows("one"), rows("many"));
    assert_eq!(text(&rows("one")).lines().count(), 5);
    for row in text(&rows("one")).lines() {
        let ideal = row.contains("\"controller\":\"ideal\"");
        assert_eq!(row.contains("\"window_mean_bytes\":"), !ideal, "{row}");
        assert!(row.contains("\"role\":\"viewer\""), "{row}");
    }

    // As if it had been interrupted after three runs, in the middle of writing the fourth.
    let whole = text(&rows("one"));
    let part: Vec<_> = whole.lines().take(3).collect();
    fs::create_dir(here.join("part")).unwrap();
    let torn = format!("{}\n{{\"format\":\"lab-r", part.join("\n"));
    fs::write(here.join("part/runs.part.jsonl"), torn).unwrap();
    let refused = lab(here, &["run", "./few.toml", "--out", "part"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--resume"));
    let resumed = lab(here, &["run", "./few.toml", "--out", "part", "--resume"]);
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(rows("part"), rows("one"));
    assert!(!here.join("part/runs.part.jsonl").exists());
}

#[test]
fn time_series_are_kept_when_asked_for() {
    let directory = scenario();
    let here = directory.path();
    let made = lab(
        here,
        &["run", "./few.toml", "--trials", "1", "--series", "--out", "out"],
    );
    assert!(made.status.success(), "{}", text(&made.stderr));
    for (kind, head) in [
        (
            "transport",
            "at_s,window_bytes,ssthresh_bytes,srtt_s,rtt_s,capacity_bps",
        ),
        ("playout", "at_s,held_s,received_bytes"),
        ("queue", "at_s,max_queue_bytes"),
    ] {
        let file = here.join(format!("out/series/few/cubic-seed1-viewer0-{kind}.csv"));
        let series = fs::read_to_string(file).unwrap();
        assert!(
            series.starts_with(head) && series.lines().count() > 20,
            "{series}"
        );
    }
}

#[test]
fn a_bad_scenario_is_refused_with_file_line_key_and_mend() {
    let directory = scenario();
    let here = directory.path();
    fs::write(here.join("bad.toml"), SCENARIO.replace("3Mbit/s", "3Mbits")).unwrap();
    for arguments in [&["run", "./bad.toml"][..], &["show", "bad.toml"]] {
        let refused = lab(here, arguments);
        assert_eq!(refused.status.code(), Some(2));
        let said = text(&refused.stderr);
        assert!(said.contains("bad.toml, line 10, `path.rate`"), "{said}");
        assert!(said.contains("20Mbit/s"), "{said}");
    }
    let unknown = lab(here, &["run", "nothing"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("three-controllers"));
}

#[test]
fn scenarios_are_listed_and_explained() {
    let directory = tempfile::tempdir().unwrap();
    let listed = text(&lab(directory.path(), &["list"]).stdout);
    assert!(listed.contains("p12                  p12-3, p12-5\n"), "{listed}");
    for name in ["three-controllers", "p13-9"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
        let shown = text(&lab(directory.path(), &["show", name]).stdout);
        assert!(
            shown.starts_with(name) && shown.contains("there and back"),
            "{shown}"
        );
    }
}

#[test]
fn cases_are_run_together_or_one_by_one_and_named_in_the_rows() {
    let directory = scenario();
    let here = directory.path();
    let cases = "[[case]]\nname = \"near\"\nset = { \"path.rtt\" = \"10ms\" }\n\
                 [[case]]\nname = \"far\"\nset = { \"path.rtt\" = \"80ms\" }\n";
    fs::write(here.join("cases.toml"), format!("{SCENARIO}{cases}")).unwrap();
    let run = |out: &str, more: &[&str]| {
        let base = ["run", "./cases.toml", "--trials", "1", "--series", "--out", out];
        lab(here, &[&base, more].concat())
    };
    let made = run("all", &[]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    assert!(
        text(&made.stdout).contains("cases far\n"),
        "{}",
        text(&made.stdout)
    );
    let rows = |out: &str| text(&fs::read(here.join(out).join("runs.jsonl")).unwrap());
    assert_eq!(rows("all").lines().count(), 6);
    let one = run("one", &["--case", "far"]);
    assert!(one.status.success(), "{}", text(&one.stderr));
    let far: String = rows("all").split_inclusive('\n').skip(3).collect();
    assert_eq!(rows("one"), far);
    assert!(far.contains("\"scenario\":\"cases\",\"case\":\"far\""), "{far}");
    assert!(
        here.join("one/series/cases/far/reno-seed1-viewer0-queue.csv")
            .exists()
    );
    let unknown = run("none", &["--case", "nowhere"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("cases near, cases far"));
}

#[test]
fn every_flow_has_a_row_and_a_series_and_the_rows_do_not_depend_on_the_threads() {
    let directory = scenario();
    let here = directory.path();
    let flows = "[viewer]\ncount = 2\njoin_every = \"1s\"\n\
                 [bulk]\ncount = 3\ncontroller = \"same\"\njoins = \"0s..2s\"\n\
                 [measure]\nwindows = [\"2s..6s\"]\n";
    fs::write(here.join("flows.toml"), format!("{SCENARIO}{flows}")).unwrap();
    let rows = |out: &str, jobs: &str| {
        let arguments = ["run", "./flows.toml", "--series", "--jobs", jobs, "--out", out];
        let made = lab(here, &arguments);
        assert!(made.status.success(), "{}", text(&made.stderr));
        assert!(
            text(&made.stdout).contains("beside cubic: cubic"),
            "{}",
            text(&made.stdout)
        );
        text(&fs::read(here.join(out).join("runs.jsonl")).unwrap())
    };
    let one = rows("one", "1");
    assert_eq!(one, rows("three", "3"));
    // Two controllers, two trials, five flows; nobody is alone, so there is no ideal.
    assert_eq!(one.lines().count(), 20);
    assert_eq!(
        one.matches("\"role\":\"bulk\",\"flow_controller\":\"reno\"")
            .count(),
        6
    );
    assert_eq!(
        one.matches("\"windows\":[{\"window\":\"2s..6s\",\"from_s\":2.0,\"to_s\":6.0,")
            .count(),
        20
    );
    assert!(
        here.join("one/series/flows/reno-seed1-bulk2-transport.csv")
            .exists()
    );
}
