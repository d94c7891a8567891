//! `lab run`, `lab rows`, `lab show` and `lab list`.

use playrate_test_support::SCENARIO;

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
        assert!(row.contains("\"role\":\"viewer\""), "{row}");
    }

    // As if it had been interrupted after three runs, in the middle of writing the fourth.
    let done: String = whole.split_inclusive('\n').take(3).collect();
    std::fs::create_dir(lab.path("part")).unwrap();
    lab.write("part/runs.part.jsonl", &format!("{done}{{\"format\":\"lab-r"));
    let said = lab.is_refused("run ./few.toml --out part");
    assert!(said.contains("--resume"), "{said}");
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
        assert!(said.contains("bad.toml, line 10, `path.rate`"), "{said}");
        assert!(said.contains("20Mbit/s"), "{said}");
    }
    let said = lab.is_refused("run nothing");
    assert!(said.contains("three-controllers"), "{said}");
}

#[test]
fn scenarios_are_listed_and_explained() {
    let lab = Lab::new();
    let listed = lab.succeeds("list");
    assert!(
        listed.contains("p12                   p12-3, p12-5\n"),
        "{listed}"
    );
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
    let printed = lab.succeeds(&format!("{run} all"));
    assert!(printed.contains("cases far\n"), "{printed}");
    let all = lab.read("all/runs.jsonl");
    assert_eq!(all.lines().count(), 6);
    lab.succeeds(&format!("{run} one --case far"));
    let far: String = all.split_inclusive('\n').skip(3).collect();
    assert_eq!(lab.read("one/runs.jsonl"), far);
    assert!(far.contains("\"scenario\":\"cases\",\"case\":\"far\""), "{far}");
    let series = "one/series/cases/far/reno-seed1-viewer0-queue.csv";
    assert!(lab.path(series).exists());
    let said = lab.is_refused(&format!("{run} none --case nowhere"));
    assert!(said.contains("cases near, cases far"), "{said}");
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
        assert!(printed.contains("beside cubic: cubic"), "{printed}");
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

#[test]
fn a_server_that_remembers_ssthresh_leaves_slow_start_there() {
    let lab = Lab::with(&SCENARIO.replace("loss = \"0.5%\"", "queue = \"24packets\""));
    let remembers = format!("{}\n[viewer]\nremembers_ssthresh = true\n", lab.read("few.toml"));
    lab.write("again.toml", &remembers);
    let first_exit = |name: &str| -> Vec<f64> {
        lab.succeeds(&format!("run ./{name}.toml --trials 1 --out {name}"));
        let rows = lab.rows(name);
        rows.iter()
            .filter_map(|row| row["startup_window_bytes"].as_f64())
            .collect()
    };
    let (fresh, again) = (first_exit("few"), first_exit("again"));
    assert_eq!((fresh.len(), again.len()), (2, 2));
    for (fresh, again) in fresh.iter().zip(&again) {
        assert!(again < fresh, "{again} after {fresh}");
    }
}

#[test]
fn an_autotuned_receive_window_keeps_player_and_queue_short() {
    let text = SCENARIO.replace("rate = \"3Mbit/s\"", "rate = \"20Mbit/s\"\nqueue = \"4MB\"");
    let lab = Lab::with(&text.replace("4s", "12s").replace("0.5%", "0%"));
    let autotuned = format!("{}\n[viewer]\nreceive_autotuning = true\n", lab.read("few.toml"));
    lab.write("autotuned.toml", &autotuned);
    let times = |name: &str| -> Vec<[f64; 2]> {
        lab.succeeds(&format!("run ./{name}.toml --trials 1 --out {name}"));
        let rows = lab.rows(name);
        let times = rows.iter().filter(|row| row["controller"] != "ideal");
        times
            .map(|row| ["download_s", "rtt_max_s"].map(|name| row[name].as_f64().unwrap()))
            .collect()
    };
    let (wide, autotuned) = (times("few"), times("autotuned"));
    assert_eq!((wide.len(), autotuned.len()), (2, 2));
    // 12 s at 2 Mbit/s: the playout buffer holds 2.6 s of it, the window twice the bytes read in a round trip of 40 ms.
    // Otherwise, slow start into a queue that holds the whole title goes on until everything is sent.
    assert!(
        wide.iter().all(|[download, rtt]| *download < 2.5 && *rtt > 0.5),
        "{wide:?}"
    );
    assert!(
        autotuned
            .iter()
            .all(|[download, rtt]| *download > 7.0 && *rtt < 0.3),
        "{autotuned:?}"
    );
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
    let printed = lab.succeeds("run ./few.toml --trials 3 --baseline reno --out table");
    assert!(
        printed.contains("Δ: difference to reno, trial by trial"),
        "{printed}"
    );
    let json = lab.succeeds("run ./few.toml --trials 3 --baseline reno --json --out json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let summaries = json["groups"][0]["summaries"].as_array().unwrap();
    let of = |controller: &str| {
        let is =
            |one: &&serde_json::Value| one["metric"] == "lost_packets" && one["controller"] == controller;
        summaries.iter().find(is).unwrap()
    };
    let (reno, cubic) = (of("reno"), of("cubic"));
    let lost = |controller: &str| -> Vec<f64> {
        let rows = lab.rows("json");
        let own = rows.iter().filter(|row| row["controller"] == controller);
        own.map(|row| row["lost_packets"].as_f64().unwrap()).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (theirs, ours) = (lost("reno"), lost("cubic"));
    assert_eq!(cubic["count"], 3);
    assert!(
        (cubic["mean"].as_f64().unwrap() - mean(&ours)).abs() < 1e-9,
        "{cubic}"
    );
    let difference = cubic["difference"]["mean"].as_f64().unwrap();
    assert!(
        (difference - (mean(&ours) - mean(&theirs))).abs() < 1e-9,
        "{cubic}"
    );
    assert!(reno["difference"].is_null() && reno["low"].is_number(), "{reno}");
    let said = lab.is_refused("run ./few.toml --baseline vegas --out none");
    assert!(
        said.contains("`vegas` does not run in few") && said.contains("reno, cubic"),
        "{said}"
    );
}

#[test]
fn generated_paths_are_summarised_together_path_by_path() {
    let lab = Lab::new();
    let run = "run generated:3:4 --controllers reno,cubic --set title.duration=2s --trials 1 --baseline reno";
    let printed = lab.succeeds(&format!("{run} --out paths"));
    assert!(printed.starts_with("generated, 4 paths\n"), "{printed}");
    let json = lab.succeeds(&format!("{run} --out json --json"));
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let group = &json["groups"][0];
    assert_eq!(
        (group["paths"].as_u64(), json["groups"].as_array().unwrap().len()),
        (Some(4), 1)
    );
    let first = &group["summaries"][0];
    assert_eq!(
        (first["metric"].as_str(), first["count"].as_u64()),
        (Some("impaired_share"), Some(4))
    );
}

#[test]
fn rows_are_printed_with_the_metrics_that_are_computed_from_several_fields() {
    let lab = Lab::with(SCENARIO);
    lab.succeeds("run ./few.toml --out out");
    let printed = lab.succeeds("rows out");
    let stored = lab.read("out/runs.jsonl");
    assert_eq!(printed.lines().count(), stored.lines().count());
    for (printed, stored) in printed.lines().zip(stored.lines()) {
        assert!(
            printed.starts_with(stored.strip_suffix('}').unwrap()),
            "{printed}"
        );
        let row: serde_json::Value = serde_json::from_str(printed).unwrap();
        assert!(
            (0.0..=1.0).contains(&row["impaired_share"].as_f64().unwrap()),
            "{printed}"
        );
    }
    let said = lab.is_refused("rows none");
    assert!(
        said.contains("none") && said.contains("expected a directory of `lab run`"),
        "{said}"
    );
}
