//! Scenario files, good and bad.

use super::*;
use playrate_netsim::WifiConfig;
use rstest::rstest;
use std::time::Duration;

const GOOD: &str = r#"
about = "A test."
controllers = ["reno", "cubic"]
trials = 3
seed = 7

[title]
trace = "film-1080p"
rate = "5.24Mbit/s"
duration = "70s"

[path]
rate = "0.95λ"
rtt = "100ms"
queue = "1bdp"
loss = "0.01%"

[quick]
trials = 1
duration = "10s"
"#;

fn parse(text: &str, changes: &Changes) -> Result<Scenario, ScenarioError> {
    let cases = all(text, changes)?;
    assert_eq!(cases.len(), 1);
    Ok(cases.into_iter().next().unwrap())
}

fn all(text: &str, changes: &Changes) -> Result<Vec<Scenario>, ScenarioError> {
    Scenario::parse("test", "test.toml", text, Path::new("."), changes)
}

#[test]
fn a_scenario_is_what_its_file_says() {
    let scenario = parse(GOOD, &Changes::default()).unwrap();
    assert_eq!(scenario.title_rate(), Bitrate::from_kbps(5_240));
    assert_eq!(scenario.path.forward.rate.mean(), Some(Bitrate::from_kbps(4_978)));
    assert_eq!(scenario.path.round_trip(), Duration::from_millis(100));
    assert_eq!((scenario.trials, scenario.seed_of(3)), (3, 9));
    assert_eq!(
        scenario.title.source().title().duration(),
        Duration::from_secs(70)
    );
    assert_eq!(scenario.playout.receive_buffer, Bytes::new(256_000_000));
    let names: Vec<_> = scenario.controllers.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["reno", "cubic"]);
}

#[test]
fn the_hash_tells_what_a_run_depends_on_and_nothing_else() {
    let hash = |text: &str, quick| {
        let changes = Changes {
            quick,
            ..Changes::default()
        };
        parse(text, &changes).unwrap().hash
    };
    let base = hash(GOOD, false);
    for same in [
        GOOD.replace("A test.", "Another."),
        GOOD.replace("trials = 3", "trials = 4 # more"),
        GOOD.replace("\"reno\", ", ""),
        GOOD.replace("trials = 1", "trials = 2"),
    ] {
        assert_eq!(hash(&same, false), base, "{same}");
    }
    assert_ne!(hash(&GOOD.replace("0.01%", "0.02%"), false), base);
    assert_ne!(hash(GOOD, true), base);
}

#[test]
fn quick_has_fewer_trials_of_a_shorter_title_and_asking_for_trials_wins() {
    let quick = Changes {
        quick: true,
        ..Changes::default()
    };
    let scenario = parse(GOOD, &quick).unwrap();
    assert_eq!(scenario.trials, 1);
    assert_eq!(
        scenario.title.source().title().duration(),
        Duration::from_secs(10)
    );
    let changes = Changes {
        trials: Some(9),
        seed: Some(100),
        ..quick
    };
    let scenario = parse(GOOD, &changes).unwrap();
    assert_eq!((scenario.trials, scenario.seed), (9, 100));
}

#[test]
fn a_small_multiple_of_the_bdp_is_still_a_queue_of_32_packets() {
    let small = GOOD.replace("\"100ms\"", "\"10ms\"");
    let path = parse(&small, &Changes::default()).unwrap().path;
    assert_eq!(path.forward.queue, QueueLimit::Bytes(Bytes::new(48_000)));
}

#[test]
fn a_wifi_path_brings_its_queues_and_its_loss_and_may_be_given_others() {
    let wifi = GOOD
        .replace("\"0.95λ\"", "\"wifi(15Mbit/s)\"")
        .replace("queue =", "#queue =")
        .replace("loss =", "#loss =");
    let path = parse(&wifi, &Changes::default()).unwrap().path;
    let hop = WifiConfig::new(Bitrate::from_mbps(15));
    assert_eq!(path, PathConfig::wifi(&hop, Duration::from_millis(100)));
    let other = wifi.replace("#queue = \"1bdp\"", "queue = \"1MB\"");
    let other = other.replace("15Mbit/s", "15Mbit/s,residual_loss=1%");
    let forward = parse(&other, &Changes::default()).unwrap().path.forward;
    assert_eq!(forward.queue, QueueLimit::Bytes(Bytes::from_kb(1_000)));
    assert_eq!(forward.loss.to_string(), "1%");
}

#[rstest]
#[case::unit("0.95λ", "20Mbits", 13, "path.rate", "20Mbit/s")]
#[case::number("\"100ms\"", "100", 14, "path.rtt", "in quotes")]
#[case::unknown_key("loss =", "los =", 16, "path.los", "expected")]
#[case::controller("\"cubic\"", "\"cubik\"", 3, "controllers", "cubic")]
#[case::loss("0.01%", "sometimes", 16, "path.loss", "0.01%")]
#[case::queue("1bdp", "100B", 15, "path.queue", "100kB|1bdp")]
#[case::trace("film-1080p", "nothing.csv", 8, "title.trace", "film-1080p")]
#[case::low_rate("5.24Mbit/s", "1bit/s", 9, "title.rate", "less than a byte")]
#[case::no_trials("trials = 3", "trials = 0", 4, "trials", "at least 1")]
#[case::no_controllers("\"reno\", \"cubic\"", "", 3, "controllers", "at least one")]
#[case::syntax("seed = 7", "seed = ", 5, "seed", "")]
fn what_is_wrong_is_said_with_file_line_key_and_mend(
    #[case] good: &str,
    #[case] bad: &str,
    #[case] line: usize,
    #[case] key: &str,
    #[case] mend: &str,
) {
    assert!(GOOD.contains(good));
    let text = GOOD.replacen(good, bad, 1);
    let error = parse(&text, &Changes::default()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("test.toml, line {line}, `{key}`: ")),
        "{error}"
    );
    assert!(mend.split('|').any(|mend| error.contains(mend)), "{error}");
}

#[test]
fn a_title_is_a_trace_a_file_or_a_ladder_and_not_two_of_them() {
    let neither = GOOD.replace("trace = \"film-1080p\"\n", "");
    let both = GOOD.replace("trace =", "file = \"embedded\"\ntrace =");
    let ladder = GOOD.replace("trace =", "ladder = \"bbb\"\ntrace =");
    for text in [neither, both, ladder] {
        let error = parse(&text, &Changes::default()).unwrap_err().to_string();
        assert!(error.contains("a `trace`, a `file` or a `ladder`"), "{error}");
    }
}

const LADDER: &str = r#"
about = "A test."
controllers = ["reno"]
[title]
ladder = "bbb"
rates = { high = "4.82Mbit/s", low = "0.44Mbit/s" }
duration = "30s"
[path]
rate = "2λ"
rtt = "40ms"
[viewer]
abr = "fixed:low"
buffer = "9s"
joins = "0s..3s"
count = 2
"#;

#[test]
fn a_ladder_has_rates_and_a_player_that_chooses() {
    let scenario = parse(LADDER, &Changes::default()).unwrap();
    let presentation = scenario.title.representations().unwrap();
    assert_eq!(presentation.segment_count(), 10);
    let names: Vec<_> = presentation
        .representations()
        .iter()
        .map(|it| &*it.name)
        .collect();
    assert_eq!(names, ["low", "high"]);
    assert_eq!(scenario.title_rate(), Bitrate::from_kbps(4_820));
    assert_eq!(scenario.dash.abr.to_string(), "fixed:low");
    assert_eq!(scenario.dash.buffer.stable, Duration::from_secs(9));
    assert!(!scenario.ideal, "what is best for such a player is not known");
    let joins = |seed| {
        let setup = scenario.setup(&scenario.controllers[0], seed);
        setup.viewers.iter().map(|it| it.joins).collect::<Vec<_>>()
    };
    assert!(joins(1).iter().all(|&at| at <= Duration::from_secs(3)));
    assert!(joins(1) != joins(2) && joins(1) == joins(1) && joins(1)[0] != joins(1)[1]);
}

#[rstest]
#[case(
    "rates = { high = \"4.82Mbit/s\", low = \"0.44Mbit/s\" }\n",
    "",
    "needs rates"
)]
#[case("rates =", "rate = \"1Mbit/s\"\nrates =", "several rates")]
#[case("0.44", "4.82", "differ")]
#[case("\"bbb\"", "\"films.csv\"", "one that comes with the lab: bbb")]
#[case("fixed:low", "fixed:1080p", "write one of low, high")]
#[case("fixed:low", "bola", "no way to choose")]
#[case("controllers", "ideal = true\ncontrollers", "leave `ideal` out")]
#[case("0s..3s", "3s..0s", "ends before it begins")]
fn a_mistake_in_a_ladder_is_named(#[case] good: &str, #[case] bad: &str, #[case] words: &str) {
    let text = LADDER.replacen(good, bad, 1);
    let error = parse(&text, &Changes::default()).unwrap_err().to_string();
    assert!(error.starts_with("test.toml, line "), "{error}");
    assert!(error.contains(words), "{error}");
}

#[test]
fn only_a_ladder_has_rates_and_a_way_to_choose() {
    let rates = GOOD.replace("trace =", "rates = { a = \"1Mbit/s\" }\ntrace =");
    let abr = format!("{GOOD}\n[viewer]\nabr = \"throughput\"\n");
    for text in [rates, abr] {
        let error = parse(&text, &Changes::default()).unwrap_err().to_string();
        assert!(error.contains("ladder = \"bbb\""), "{error}");
    }
}

#[test]
fn every_scenario_of_the_directory_is_built_in_and_can_be_read_and_explained() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut files = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|end| end == "toml") {
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                BUILT_IN.iter().any(|(name, _)| *name == stem),
                "{stem} is not built in"
            );
            files += 1;
        }
    }
    assert_eq!(files, BUILT_IN.len());
    for (name, _) in BUILT_IN {
        for quick in [false, true] {
            let changes = Changes {
                quick,
                ..Changes::default()
            };
            let text = explain(&open(name, &changes).unwrap());
            assert!(text.contains(name) && text.contains("──▶"), "{text}");
        }
    }
}

#[test]
fn a_name_that_is_none_is_answered_with_those_there_are() {
    let error = open("p13-99", &Changes::default()).unwrap_err().to_string();
    assert!(error.contains("`p13-99`") && error.contains("p13-9,"), "{error}");
    let error = open("./no-such.toml", &Changes::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("./no-such.toml"), "{error}");
}

const CASES: &str = r#"
[[case]]
name = "short"
about = "Near the viewer."
set = { "path.rtt" = "10ms", trials = 2 }

[[case]]
name = "slow"
set = { path.rate = "2Mbit/s", title = { rate = "1Mbit/s" } }
"#;

fn with_cases() -> String {
    format!("{GOOD}cases = [\"slow\"]\nset = {{ \"viewer.leaves_after\" = \"5s\" }}\n{CASES}")
}

#[test]
fn a_case_is_the_scenario_with_some_values_in_place_of_others() {
    let cases = all(&with_cases(), &Changes::default()).unwrap();
    let [short, slow] = cases.as_slice() else {
        panic!("{cases:?}")
    };
    assert_eq!((short.case.as_str(), slow.case.as_str()), ("short", "slow"));
    assert_eq!(short.path.round_trip(), Duration::from_millis(10));
    assert_eq!(slow.path.round_trip(), Duration::from_millis(100));
    assert_eq!(slow.path.forward.rate.mean(), Some(Bitrate::from_mbps(2)));
    assert_eq!(slow.title_rate(), Bitrate::from_mbps(1));
    assert_eq!((short.trials, slow.trials), (2, 3));
    assert_eq!(short.full_name(), "test short");
    let text = explain(&cases);
    for part in [
        "Near the viewer.",
        "path.rtt = \"10ms\"",
        "10 ms there and back",
        "seeds 7 to 8",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn the_hash_of_a_case_is_that_of_the_scenario_it_makes() {
    let cases = all(&with_cases(), &Changes::default()).unwrap();
    let short = GOOD.replace("rtt = \"100ms\"", "rtt = \"10ms\"");
    assert_eq!(cases[0].hash, parse(&short, &Changes::default()).unwrap().hash);
    assert_ne!(cases[0].hash, cases[1].hash);
}

#[test]
fn quick_runs_the_cases_it_names_with_its_own_values_and_whoever_asks_has_the_last_word() {
    let mut changes = Changes {
        quick: true,
        ..Changes::default()
    };
    let cases = all(&with_cases(), &changes).unwrap();
    assert_eq!(cases.len(), 1);
    assert_eq!(
        (cases[0].case.as_str(), cases[0].viewers.leaves_after),
        ("slow", Some(Duration::from_secs(5)))
    );
    assert_eq!(
        cases[0].title.source().title().duration(),
        Duration::from_secs(10)
    );
    changes.settings = vec!["title.duration=12s".parse().unwrap()];
    let cases = all(&with_cases(), &changes).unwrap();
    assert_eq!(
        cases[0].title.source().title().duration(),
        Duration::from_secs(12)
    );
}

#[rstest]
#[case::value("\"10ms\"", "\"10\"", "line 24, case `short`, `path.rtt`", "100ms")]
#[case::key("path.rtt", "path.rrt", "line 24, case `short`, `path.rrt`", "unknown field")]
#[case::not_a_table(
    "path.rtt",
    "path.rtt.x",
    "line 24, case `short`, `path.rtt.x`",
    "not a table"
)]
#[case::elsewhere("\"1Mbit/s\"", "\"1bit/s\"", "line 29, case `slow`, `title.rate`", "byte")]
#[case::name("name = \"slow\"", "name = \"a b\"", "line 30, `case.name`", "letters")]
#[case::twice("name = \"slow\"", "name = \"short\"", "line 30, `case.name`", "already")]
#[case::quick("[\"slow\"]", "[\"fast\"]", "line 21, `quick.cases`", "short, slow")]
#[case::in_the_scenario(
    "queue = \"1bdp\"",
    "queue = \"100B\"",
    "line 15, case `short`, `path.queue`",
    "1bdp"
)]
fn what_is_wrong_in_a_case_is_said_with_file_case_and_key(
    #[case] good: &str,
    #[case] bad: &str,
    #[case] place: &str,
    #[case] mend: &str,
) {
    let text = with_cases();
    assert!(text.contains(good));
    let wrong = all(&text.replacen(good, bad, 1), &Changes::default());
    let error = wrong.unwrap_err().to_string();
    assert!(error.starts_with(&format!("test.toml, {place}: ")), "{error}");
    assert!(error.contains(mend), "{error}");
}

#[test]
fn what_is_wrong_with_a_value_asked_for_is_not_blamed_on_the_file() {
    let changes = Changes {
        settings: vec!["path.queue=tiny".parse().unwrap()],
        ..Changes::default()
    };
    let error = all(GOOD, &changes).unwrap_err().to_string();
    assert!(
        error.starts_with("test.toml, as asked for, `path.queue`: "),
        "{error}"
    );
}

const FLOWS: &str = r#"
[viewer]
count = 3
joins = "40s"
join_every = "1s"

[bulk]
count = 20
controller = "reno"
joins = "0s..10s"
leaves_after = "30s"

[measure]
windows = ["50s..150s", "50s.."]
"#;

fn with_flows() -> String {
    let access = "rate = \"0.95λ\"\naccess_delay = \"5ms..15ms\"";
    let text = GOOD.replace("rate = \"0.95λ\"", access);
    format!("{text}{FLOWS}")
}

#[test]
fn flows_come_when_the_seed_says_and_are_as_far_away_as_it_says() {
    let scenario = parse(&with_flows(), &Changes::default()).unwrap();
    let cubic: ControllerChoice = "cubic".parse().unwrap();
    let setup = scenario.setup(&cubic, 5);
    assert_eq!(
        (setup.viewers.len(), setup.bulk.len(), scenario.flows()),
        (3, 20, 23)
    );
    let joins: Vec<_> = setup
        .viewers
        .iter()
        .map(|viewer| viewer.joins.as_secs())
        .collect();
    assert_eq!(joins, [40, 41, 42]);
    let range = Duration::from_millis(5)..=Duration::from_millis(15);
    for bulk in &setup.bulk {
        assert_eq!(bulk.controller.to_string(), "reno");
        assert!(bulk.joins <= Duration::from_secs(10));
        assert!(range.contains(&bulk.access.server) && range.contains(&bulk.access.client));
        assert_ne!(bulk.access.server, bulk.access.client);
    }
    let drawn = |seed| -> Vec<_> {
        let flows = scenario.setup(&cubic, seed).bulk;
        flows.iter().map(|bulk| (bulk.joins, bulk.access)).collect()
    };
    assert_eq!(drawn(5), drawn(5));
    assert_ne!(drawn(5), drawn(6));
    let windows: Vec<_> = setup.windows.iter().map(ToString::to_string).collect();
    assert_eq!(windows, ["50s..150s", "50s.."]);
    let text = explain(std::slice::from_ref(&scenario));
    for part in [
        "3 viewers; joining at 40.0 s, one more every 1.00 s",
        "20 endless downloads, each under reno",
        "5ms..15ms from each end",
        "3 viewers + 20 downloads",
    ] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
}

#[test]
fn downloads_may_have_the_viewers_controller_or_not_be_there() {
    let same = with_flows().replace("\"reno\"\njoins", "\"same\"\njoins");
    let scenario = parse(&same, &Changes::default()).unwrap();
    let setup = scenario.setup(&"compound".parse().unwrap(), 1);
    assert_eq!(setup.bulk[0].controller.to_string(), "compound");
    let none = with_flows().replace("count = 20", "count = 0");
    assert_eq!(parse(&none, &Changes::default()).unwrap().bulk, None);
}

#[rstest]
#[case::none("count = 3", "count = 0", "`viewer.count`", "at least 1|1 to")]
#[case::many("count = 20", "count = 2000", "`bulk.count`", "at most")]
#[case::joins("0s..10s", "10s..0s", "`bulk.joins`", "5ms..15ms")]
#[case::window("50s..\"", "50s\"", "`measure.windows`", "50s..150s")]
#[case::controller("\"reno\"\njoins", "\"rino\"\njoins", "`bulk.controller`", "rino")]
fn what_is_wrong_with_flows_is_said_with_the_key(
    #[case] good: &str,
    #[case] bad: &str,
    #[case] key: &str,
    #[case] mend: &str,
) {
    let text = with_flows();
    assert!(text.contains(good));
    let error = parse(&text.replacen(good, bad, 1), &Changes::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains(key), "{error}");
    assert!(mend.split('|').any(|mend| error.contains(mend)), "{error}");
}

#[test]
fn groups_are_the_scenarios_of_a_paper_and_of_all_of_them() {
    assert_eq!(named("p12"), ["p12-3", "p12-5"]);
    assert_eq!(named("p13-4"), ["p13-4"]);
    let papers = named(PAPERS);
    assert!(papers.contains(&"p15-pob") && !papers.contains(&"three-controllers"));
    let in_groups: usize = groups().iter().skip(1).map(|(_, names)| names.len()).sum();
    assert_eq!(in_groups, papers.len());
}
