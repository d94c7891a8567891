//! `lab worlds` as a user has it.

use serde_json::Value;

use super::Lab;

/// Both fitted parts hold over a fast path without loss only; the judged one in every world.
pub(super) const SCENARIO: &str = r#"
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
queue = "1000packets"
[quick]
duration = "3s"
[[figure]]
kind = "over-time"
show = ["window"]
[[claim]]
id = "T-1/lost"
says = "reno loses nothing"
paper = "Reno | the least aggressive"
check = ["lost_packets[reno] <= 0"]
[[claim]]
id = "T-1/fast"
says = "cubic is far faster than the title"
check = ["throughput_bps[cubic] >= 4e6"]
[[claim]]
id = "T-2"
says = "reno plays within a minute"
check = ["startup_delay_s[reno] <= 60"]
"#;

pub(super) const BED: &str = r#"
about = "Two unknowns, of whose combinations one makes all claims hold."
scenarios = ["./few.toml"]
[fit]
rows = ["T-1"]
[judge]
rows = ["T-2"]
[search]
worlds = 3
judged = 2
[quick]
worlds = 2
judged = 1
[[unknown]]
name = "rate"
why = "Not given."
key = "path.rate"
nominal = "3Mbit/s"
choices = ["2.5Mbit/s", "3Mbit/s", "4Mbit/s", "10Mbit/s"]
[[unknown]]
name = "loss"
why = "Not given."
key = "path.loss"
nominal = "none"
choices = ["none", "5%", "10%", "20%"]
[[unknown]]
name = "start"
why = "Not given."
component = "start"
of = ["cubic"]
nominal = "standard"
choices = ["standard", "hystartpp"]
"#;

fn lab() -> Lab {
    let lab = Lab::with(SCENARIO);
    lab.write("bed.toml", BED);
    lab
}

fn lines(lab: &Lab, file: &str) -> Vec<Value> {
    let text = lab.read(file);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn the_search_finds_the_world_in_which_all_fitted_claims_hold() {
    let lab = lab();
    let printed = lab.succeeds("worlds ./bed.toml --out out");
    for words in [
        "fitted world    2 of 2 fitted, 1 of 1 judged",
        "10Mbit/s (3Mbit/s)",
        "T-1/fast",
        "worlds.jsonl",
    ] {
        assert!(printed.contains(words), "{words} is missing in: {printed}");
    }
    let outcome: Value = serde_json::from_str(&lab.read("out/worlds.json")).unwrap();
    assert_eq!(outcome["fitted"]["choices"]["rate"], "10Mbit/s");
    assert_eq!(outcome["fitted"]["choices"]["loss"], "none");
    assert_eq!(outcome["fitted"]["fit"]["holds"], 2);
    assert_eq!(outcome["nominal"]["choices"]["rate"], "3Mbit/s");
    // No world of the sample is that one: a step led to it.
    let worlds = lines(&lab, "out/worlds.jsonl");
    let sampled = worlds
        .iter()
        .filter(|line| line["origin"] == "sample" && line["stage"] == "sample");
    let scores: Vec<_> = sampled
        .map(|line| line["fit"]["holds"].as_u64().unwrap())
        .collect();
    assert_eq!(scores.len(), 3);
    assert!(scores.iter().all(|score| *score < 2), "{scores:?}");
    let share = scores.iter().sum::<u64>();
    let parts = outcome["parts"].as_array().unwrap();
    let robust: f64 = parts[..2]
        .iter()
        .map(|part| part["robustness"].as_f64().unwrap())
        .sum();
    assert!((robust * 3.0 - share as f64).abs() < 0.001, "{outcome:#}");
    assert_eq!(
        (&parts[2]["judged"], &parts[2]["worlds"]),
        (&Value::Bool(true), &Value::from(2))
    );
    assert!(parts[0]["robustness"].as_f64().unwrap() < 1.0);
}

#[test]
fn the_same_search_gives_the_same_bytes_on_any_number_of_threads_and_when_resumed() {
    let lab = lab();
    lab.succeeds("worlds ./bed.toml --quick --jobs 1 --out one");
    lab.succeeds("worlds ./bed.toml --quick --jobs 3 --out many");
    let whole = lab.tree("one");
    assert_eq!(whole, lab.tree("many"));
    let runs = lab.read("one/runs.jsonl");
    let mut keys: Vec<&str> = runs
        .lines()
        .map(|row| row.split("\"viewer\":").next().unwrap())
        .collect();
    let rows = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), rows, "a run was made twice");

    // As if it had been interrupted after five runs.
    let done: String = runs.split_inclusive('\n').take(5).collect();
    std::fs::create_dir(lab.path("part")).unwrap();
    lab.write(
        "part/runs.part.jsonl",
        &done.replace("\"frames_shown\":90", "\"frames_shown\":89"),
    );
    let said = lab.is_refused("worlds ./bed.toml --quick --out part");
    assert!(said.contains("--resume"), "{said}");
    lab.succeeds("worlds ./bed.toml --quick --out part --resume");
    assert_eq!(lab.read("part/worlds.json"), lab.read("one/worlds.json"));
    assert_eq!(lab.read("part/runs.jsonl").lines().count(), rows);
    // What was there is taken as it is.
    let marked = lab.read("part/runs.jsonl");
    assert_eq!(
        marked.matches("\"frames_shown\":89").count(),
        done.matches("\"frames_shown\":90").count()
    );
}

#[test]
fn the_first_trials_of_the_last_stage_keep_their_series_and_are_made_again_where_these_are_missing() {
    let lab = lab();
    lab.succeeds("worlds ./bed.toml --quick --worlds 1 --out out");
    let outcome: Value = serde_json::from_str(&lab.read("out/worlds.json")).unwrap();
    assert_ne!(outcome["nominal"]["choices"], outcome["fitted"]["choices"]);
    let rows = lines(&lab, "out/runs.jsonl");
    let last = rows.iter().filter(|row| row["seed"].as_u64() >= Some(201));
    let firsts = last.filter(|row| row["trial"] == 1 && row["controller"] != "ideal");
    let mut expected: Vec<String> = Vec::new();
    for row in firsts {
        let hash = row["scenario_hash"].as_str().unwrap();
        let controller = row["controller"].as_str().unwrap().replace(['+', '='], "_");
        let kinds = ["events", "playout", "queue", "transport"];
        let stem = format!("series/{hash}/few/{controller}-seed201-viewer0");
        expected.extend(kinds.map(|kind| format!("{stem}-{kind}.csv")));
    }
    expected.sort();
    let whole = lab.tree("out");
    let files = whole.keys().map(|file| file.to_string_lossy().into_owned());
    let series: Vec<String> = files.filter(|file| file.starts_with("series/")).collect();
    assert_eq!(series, expected);
    assert!(expected.len() >= 3 * 4, "{expected:?}");

    std::fs::remove_dir_all(lab.path("out/series")).unwrap();
    lab.succeeds("worlds ./bed.toml --quick --worlds 1 --out out --resume");
    assert_eq!(lab.tree("out"), whole);
}

#[test]
fn another_seed_draws_another_sample() {
    let lab = lab();
    lab.succeeds("worlds ./bed.toml --quick --worlds 4 --seed 2 --out two");
    lab.succeeds("worlds ./bed.toml --quick --worlds 4 --seed 3 --out three");
    let choices = |out: &str| -> Vec<Value> {
        let all = lines(&lab, &format!("{out}/worlds.jsonl"));
        let sampled = all
            .into_iter()
            .filter(|line| line["origin"] == "sample" && line["stage"] == "sample");
        sampled.map(|line| line["choices"].clone()).collect()
    };
    assert_eq!(choices("two").len(), 4);
    assert_ne!(choices("two"), choices("three"));
}

#[test]
fn shards_of_the_sample_are_merged_and_the_search_goes_on_from_there() {
    let lab = lab();
    lab.succeeds("worlds ./bed.toml --quick --worlds 3 --out whole");
    for shard in [1, 2] {
        lab.succeeds(&format!(
            "worlds ./bed.toml --quick --worlds 3 --shard {shard}/2 --out shard{shard}"
        ));
    }
    lab.succeeds("merge shard1 shard2 --out merged");
    let merged = lab.read("merged/runs.jsonl");
    lab.succeeds("worlds ./bed.toml --quick --worlds 3 --out merged --resume");
    for file in ["runs.jsonl", "worlds.json", "worlds.jsonl"] {
        assert_eq!(
            lab.read(&format!("merged/{file}")),
            lab.read(&format!("whole/{file}"))
        );
    }
    let whole = lab.read("whole/runs.jsonl");
    assert!(
        whole.starts_with(&merged) && merged.lines().count() > 5,
        "{merged}"
    );
}

#[test]
fn a_found_world_is_judged_without_a_search_by_the_runs_of_the_last_stage() {
    let lab = lab();
    let said = lab.is_refused("worlds ./bed.toml --found --out found");
    assert!(
        said.contains("has no [found] table: `lab worlds ./bed.toml`"),
        "{said}"
    );
    let printed = lab.succeeds("worlds ./bed.toml --quick --out searched");
    let (_, table) = printed.split_once("\n[found]\n").unwrap();
    let (table, _) = table.split_once("\n\nEvery world").unwrap();
    lab.write("bed.toml", &format!("{BED}\n[found]\n{table}\n"));
    let printed = lab.succeeds("worlds ./bed.toml --found --quick --out found");
    assert!(!printed.contains("random"), "{printed}");

    let outcome =
        |out: &str| -> Value { serde_json::from_str(&lab.read(&format!("{out}/worlds.json"))).unwrap() };
    let (searched, found) = (outcome("searched"), outcome("found"));
    assert_eq!(found["fitted"]["choices"], searched["fitted"]["choices"]);
    for key in ["fit", "judged", "trials"] {
        assert_eq!(found["fitted"][key], searched["fitted"][key]);
        assert_eq!(found["nominal"][key], searched["nominal"][key]);
    }
    assert_eq!(found["found"]["worlds"], 2);
    assert_eq!(searched["found"], Value::Null);
    for key in ["sample", "as_good"] {
        assert_eq!((&found[key], searched[key].is_object()), (&Value::Null, true));
    }
    for (one, other) in found["parts"]
        .as_array()
        .unwrap()
        .iter()
        .zip(searched["parts"].as_array().unwrap())
    {
        assert_eq!((&one["id"], &one["fitted"]), (&other["id"], &other["fitted"]));
        assert_eq!(one["robustness"], Value::Null);
    }
    let origins: Vec<Value> = lines(&lab, "found/worlds.jsonl")
        .iter()
        .map(|line| line["origin"].clone())
        .collect();
    assert_eq!(origins, ["nominal", "found"]);
    let rows = lab.read("searched/runs.jsonl");
    let own = lab.read("found/runs.jsonl");
    assert!(own.lines().all(|row| rows.contains(row)) && own.lines().count() > 10);

    let plan = lab.succeeds("worlds ./bed.toml --found --plan");
    assert!(
        plan.contains("nominal and found world") && !plan.contains("sample"),
        "{plan}"
    );
    let said = lab.is_refused("worlds ./bed.toml --found --worlds 3");
    assert!(said.contains("cannot be used with"), "{said}");
}

#[test]
fn all_test_beds_are_described_planned_and_made_one_after_the_other() {
    let lab = Lab::new();
    let plan = lab.succeeds("worlds all --plan --quick --worlds 1");
    for words in ["kyutech: ", "All test beds: at most"] {
        assert!(plan.contains(words), "{words} is missing in: {plan}");
    }
    // A share of the sample in which most have no run.
    lab.succeeds("worlds all --quick --worlds 1 --shard 40/40 --out shares");
    for name in ["kyutech", "ns2", "mininet"] {
        assert!(lab.path(&format!("shares/{name}/shard.json")).exists(), "{name}");
    }
    let shown = lab.succeeds("worlds all --show");
    for name in ["kyutech: ", "\nns2: ", "\nmininet: "] {
        assert!(shown.contains(name), "{name} is missing in: {shown}");
    }
    let plan = lab.succeeds("worlds all --found --plan");
    assert_eq!(plan.matches("nominal and found world").count(), 3, "{plan}");
    // Before the first run: an earlier search of one of them is not overwritten.
    std::fs::create_dir_all(lab.path("out/ns2")).unwrap();
    lab.write("out/ns2/runs.jsonl", "");
    let said = lab.is_refused("worlds all --quick --out out");
    assert!(
        said.contains("out/ns2 already holds results") && said.contains("--resume"),
        "{said}"
    );
    assert!(!lab.path("out/kyutech").exists());
}

#[test]
fn plan_and_show_run_nothing() {
    let lab = lab();
    let plan = lab.succeeds("worlds ./bed.toml --plan");
    for words in [
        "bed: 3 unknowns, 2 fitted parts, 1 judged parts",
        "steps of one unknown",
        "CPU time",
    ] {
        assert!(plan.contains(words), "{words} is missing in: {plan}");
    }
    let shown = lab.succeeds("worlds ./bed.toml --show");
    for words in [
        "Fitted rows: T-1 (2 parts).",
        "Sets path.loss.",
        "Candidates: none, 5%, 10%, 20%.",
    ] {
        assert!(shown.contains(words), "{words} is missing in: {shown}");
    }
    assert!(!lab.path("lab-worlds").exists());
}

#[test]
fn a_wrong_file_is_refused_with_line_and_correction() {
    let lab = lab();
    lab.write("bad.toml", &BED.replace("path.loss", "path.los"));
    let said = lab.is_refused("worlds ./bad.toml --out out");
    assert!(
        said.contains("bad.toml, line 25") && said.contains("los"),
        "{said}"
    );
    let said = lab.is_refused("worlds nowhere");
    assert!(said.contains("kyutech, ns2, mininet"), "{said}");
}
