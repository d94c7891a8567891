//! `lab run`, `lab rows`, `lab show` and `lab list`.

use playrate_test_support::{SCENARIO, assert_contains};

use super::Lab;

#[test]
fn the_same_inputs_give_the_same_bytes_on_one_thread_or_many_and_when_resumed() {
    let lab = Lab::with(SCENARIO);
    for (out, jobs) in [("one", 1), ("many", 3)] {
        let printed = lab.succeeds(&format!("run ./few.toml --jobs {jobs} --out {out}"));
        for part in ["few", "ideal", "reno", "cubic", "Discarded frames"] {
            assert!(printed.contains(part), "{part} is missing in: {printed}");
        }
    }
    let whole = lab.read("one/runs.jsonl");
    assert_eq!(whole, lab.read("many/runs.jsonl"));
    // An ideal row and one per controller, for both trials.
    assert_eq!(whole.lines().count(), 6);
    for row in whole.lines() {
        let ideal = row.contains("\"controller\":\"ideal\"");
        assert_eq!(row.contains("\"window_mean_bytes\":"), !ideal, "{row}");
        assert_contains(row, &["\"role\":\"viewer\""]);
    }

    // As if it had been interrupted after three runs, in the middle of writing the fourth.
    let done: String = whole.split_inclusive('\n').take(3).collect();
    std::fs::create_dir(lab.path("part")).unwrap();
    lab.write("part/runs.part.jsonl", &format!("{done}{{\"format\":\"lab-r"));
    assert_contains(&lab.is_refused("run ./few.toml --out part"), &["--resume"]);
    lab.succeeds("run ./few.toml --out part --resume");
    assert_eq!(lab.read("part/runs.jsonl"), whole);
    assert!(!lab.path("part/runs.part.jsonl").exists());
}

#[test]
fn series_writes_time_series_and_events() {
    let lab = Lab::with(SCENARIO);
    lab.succeeds("run ./few.toml --trials 1 --series --out out");
    let transport = "at_s,window_bytes,ssthresh_bytes,srtt_s,rtt_s,capacity_bps";
    for (kind, head) in [
        ("transport", transport),
        ("playout", "at_s,held_s,received_bytes"),
        ("queue", "at_s,max_queue_bytes"),
        ("events", "kind,from_s,to_s\nstartup,0,"),
    ] {
        let series = lab.read(&format!("out/series/few/cubic-seed1-viewer0-{kind}.csv"));
        assert!(
            series.starts_with(head) && (kind == "events" || series.lines().count() > 20),
            "{series}"
        );
    }
}

#[test]
fn runs_whose_series_are_missing_are_made_again() {
    let lab = Lab::with(SCENARIO);
    lab.succeeds("run ./few.toml --series --out whole");
    lab.succeeds("run ./few.toml --out later");
    lab.succeeds("run ./few.toml --series --out later --resume");
    assert_eq!(lab.tree("later"), lab.tree("whole"));
}

#[test]
fn an_invalid_scenario_is_refused_with_file_line_key_and_an_example() {
    let lab = Lab::new();
    lab.write("bad.toml", &SCENARIO.replace("3Mbit/s", "3Mbits"));
    for line in ["run ./bad.toml", "show bad.toml"] {
        let said = lab.is_refused(line);
        assert_contains(&said, &["bad.toml, line 10, `path.rate`", "20Mbit/s"]);
    }
    assert_contains(&lab.is_refused("run nothing"), &["three-controllers"]);
}

#[test]
fn a_refused_value_with_commas_is_told_how_to_give_several() {
    let lab = Lab::with(SCENARIO);
    let over = "--over KEY=V1,V2, or a [[case]] for each if they contain commas";
    let case = "--over splits at commas: a value that contains them needs a [[case]]";
    for (argument, advice) in [
        ("--set path.rtt=20ms,40ms", over),
        ("--set viewer.count=[1,2]", over),
        ("--set controllers=reno,cubic", "--controllers cubic,video"),
        ("--over path.rtt=20ms,80ms@15s", case),
    ] {
        let said = lab.is_refused(&format!("run ./few.toml --out out {argument}"));
        assert_contains(&said, &["command line, `", advice]);
    }
    for argument in ["--set path.rate=3Mbits", "--over path.rate=3Mbits"] {
        let said = lab.is_refused(&format!("run ./few.toml --out out {argument}"));
        assert!(!said.contains("[[case]]"), "{said}");
    }
}

#[test]
fn scenarios_are_listed_and_explained() {
    let lab = Lab::new();
    let listed = lab.succeeds("list");
    assert_contains(&listed, &["p12                   p12-3, p12-5\n"]);
    for name in ["three-controllers", "p13-9"] {
        assert!(listed.lines().any(|line| line.starts_with(name)), "{listed}");
        let shown = lab.succeeds(&format!("show {name}"));
        assert!(shown.starts_with(name) && shown.contains("round trip"), "{shown}");
    }
}

#[test]
fn cases_are_run_together_or_one_by_one_and_named_in_the_rows() {
    let lab = Lab::new();
    let cases = "[[case]]\nname = \"near\"\nset = { \"path.rtt\" = \"10ms\" }\n\
                 [[case]]\nname = \"far\"\nset = { \"path.rtt\" = \"80ms\" }\n";
    lab.write("cases.toml", &format!("{SCENARIO}{cases}"));
    let run = "run ./cases.toml --trials 1 --series --out";
    assert_contains(&lab.succeeds(&format!("{run} all")), &["cases far\n"]);
    let all = lab.read("all/runs.jsonl");
    assert_eq!(all.lines().count(), 6);
    lab.succeeds(&format!("{run} one --case far"));
    let far: String = all.split_inclusive('\n').skip(3).collect();
    assert_eq!(lab.read("one/runs.jsonl"), far);
    assert_contains(&far, &["\"scenario\":\"cases\",\"case\":\"far\""]);
    let series = "one/series/cases/far/reno-seed1-viewer0-queue.csv";
    assert!(lab.path(series).exists());
    let said = lab.is_refused(&format!("{run} none --case nowhere"));
    assert_contains(&said, &["cases near, cases far"]);
}

#[test]
fn every_flow_has_a_row_and_a_series_and_the_rows_do_not_depend_on_the_threads() {
    let lab = Lab::new();
    let flows = "[viewer]\ncount = 2\njoin_every = \"1s\"\n\
                 [bulk]\ncount = 3\ncontroller = \"same\"\njoins = \"0s..2s\"\n\
                 [measure]\nwindows = [\"2s..6s\"]\n";
    lab.write("flows.toml", &format!("{SCENARIO}{flows}"));
    for jobs in [1, 3] {
        let printed = lab.succeeds(&format!(
            "run ./flows.toml --series --jobs {jobs} --out with{jobs}"
        ));
        assert_contains(&printed, &["beside cubic: cubic"]);
    }
    let rows = lab.read("with1/runs.jsonl");
    assert_eq!(rows, lab.read("with3/runs.jsonl"));
    // Two controllers, two trials, five flows; there is no ideal row because no viewer is alone.
    let window = "\"windows\":[{\"window\":\"2s..6s\",\"from_s\":2.0,\"to_s\":6.0,";
    let bulk = "\"role\":\"bulk\",\"flow_controller\":\"reno\"";
    let counts = ["\n", window, bulk].map(|part| rows.matches(part).count());
    assert_eq!(counts, [20, 20, 6]);
    let series = "with1/series/flows/reno-seed1-bulk2-transport.csv";
    assert!(lab.path(series).exists());
}

/// Values under both controllers of the scenario called `name`, from one trial.
fn values<const N: usize>(lab: &Lab, name: &str, fields: [&str; N]) -> [[f64; N]; 2] {
    lab.succeeds(&format!("run ./{name}.toml --trials 1 --out {name}"));
    let rows = lab.rows(name);
    let [ideal, reno, cubic] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!(ideal["controller"], "ideal");
    [reno, cubic].map(|row| fields.map(|field| row[field].as_f64().unwrap()))
}

#[test]
fn a_server_that_remembers_ssthresh_leaves_slow_start_there() {
    let lab = Lab::with(&SCENARIO.replace("loss = \"0.5%\"", "queue = \"24packets\""));
    let remembers = format!("{}\n[viewer]\nremembers_ssthresh = true\n", lab.read("few.toml"));
    lab.write("again.toml", &remembers);
    let first_exit = |name: &str| values(&lab, name, ["startup_window_bytes"]);
    for (fresh, again) in first_exit("few").iter().zip(first_exit("again")) {
        assert!(again < *fresh, "{again:?} after {fresh:?}");
    }
}

#[test]
fn an_autotuned_receive_window_keeps_player_and_queue_short() {
    let text = SCENARIO.replace("rate = \"3Mbit/s\"", "rate = \"20Mbit/s\"\nqueue = \"4MB\"");
    let lab = Lab::with(&text.replace("4s", "12s").replace("0.5%", "0%"));
    let autotuned = format!("{}\n[viewer]\nreceive_autotuning = true\n", lab.read("few.toml"));
    lab.write("autotuned.toml", &autotuned);
    let times = |name: &str| values(&lab, name, ["download_s", "rtt_max_s"]);
    let (wide, autotuned) = (times("few"), times("autotuned"));
    // 12 s at 2 Mbit/s: the playout buffer holds 2.6 s of it, the window twice the bytes read in a round trip of 40 ms.
    // Otherwise, slow start into a queue that holds the whole title goes on until everything is sent.
    for [download, rtt] in wide {
        assert!(download < 2.5 && rtt > 0.5, "{wide:?}");
    }
    for [download, rtt] in autotuned {
        assert!(download > 7.0 && rtt < 0.3, "{autotuned:?}");
    }
    assert!(lab.succeeds("show ./autotuned.toml").contains("autotuned"));
}

#[test]
fn a_run_over_values_has_a_case_for_each_combination_and_resumes_them() {
    let lab = Lab::with(SCENARIO);
    let run = "run ./few.toml --over queue=0.5bdp,100kB --over rtt=20ms,40ms --out run";
    lab.succeeds(run);
    let rows = lab.read("run/runs.jsonl");
    assert!(rows.contains("\"case\":\"queue=100kB,rtt=40ms\""));
    // This mark would be lost if the row were made again.
    let marked = rows.replacen("\"outcome\":\"complete\"", "\"outcome\":\"stopped\"", 1);
    lab.write("run/runs.jsonl", &marked);
    lab.succeeds(&format!("{run} --resume"));
    assert_eq!(lab.read("run/runs.jsonl"), marked);
}

#[test]
fn a_run_says_by_how_much_each_controller_differs_from_the_baseline() {
    let lab = Lab::with(SCENARIO);
    let said = lab.succeeds("run ./few.toml --trials 3 --baseline reno --out table");
    assert_contains(&said, &["Δ: difference from reno, trial by trial"]);
    let json = lab.succeeds("run ./few.toml --trials 3 --baseline reno --json --out json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let summaries = json["groups"][0]["summaries"].as_array().unwrap();
    let lost_packets = || summaries.iter().filter(|one| one["metric"] == "lost_packets");
    let of = |controller: &str| {
        lost_packets()
            .find(|one| one["controller"] == controller)
            .unwrap()
    };
    let (reno, cubic) = (of("reno"), of("cubic"));
    let lost = |controller: &str| -> Vec<f64> {
        let rows = lab.rows("json");
        let own = rows.iter().filter(|row| row["controller"] == controller);
        own.map(|row| row["lost_packets"].as_f64().unwrap()).collect()
    };
    let [theirs, ours] = ["reno", "cubic"].map(|name| lost(name).iter().sum::<f64>() / 3.0);
    assert_eq!(cubic["count"], 3);
    for (said, expected) in [(cubic, ours), (&cubic["difference"], ours - theirs)] {
        assert!(
            (said["mean"].as_f64().unwrap() - expected).abs() < 1e-9,
            "{cubic}"
        );
    }
    assert!(reno["difference"].is_null() && reno["low"].is_number(), "{reno}");
    let said = lab.is_refused("run ./few.toml --baseline vegas --out none");
    assert_contains(&said, &["`vegas` does not run in few", "reno, cubic"]);
}

#[test]
fn generated_paths_are_summarised_together_path_by_path() {
    let lab = Lab::new();
    let run = "run generated:3:4 --controllers reno,cubic --set title.duration=2s --trials 1 --baseline reno";
    let printed = lab.succeeds(&format!("{run} --out paths"));
    assert!(printed.starts_with("generated, 4 paths\n"), "{printed}");
    let json = lab.succeeds(&format!("{run} --out json --json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let [group] = &json["groups"].as_array().unwrap()[..] else {
        panic!("{json}")
    };
    let first = &group["summaries"][0];
    assert_eq!(first["metric"], "impaired_share");
    assert_eq!([&group["paths"], &first["count"]], [4, 4]);
}

#[test]
fn rows_are_printed_with_the_metrics_that_are_computed_from_several_fields() {
    let lab = Lab::with(SCENARIO);
    lab.succeeds("run ./few.toml --out out");
    let printed = lab.succeeds("rows out");
    let stored = lab.read("out/runs.jsonl");
    assert_eq!(printed.lines().count(), stored.lines().count());
    for (printed, stored) in printed.lines().zip(stored.lines()) {
        let fields = stored.strip_suffix('}').unwrap();
        assert!(printed.starts_with(fields), "{printed}");
        let row: serde_json::Value = serde_json::from_str(printed).unwrap();
        let impaired = row["impaired_share"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&impaired), "{printed}");
    }
    let said = lab.is_refused("rows none");
    assert_contains(&said, &["none", "expected a directory of `lab run`"]);
}
