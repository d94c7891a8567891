//! Valid and invalid scenario files.

use std::collections::BTreeSet;
use std::fmt::Write as _;

mod built_in;
mod encoder;
mod unknowns;
mod variation;

use super::document::PAPERS;
use super::*;
use playrate_netsim::{QueueLimit, WifiConfig};
use playrate_test_support::assert_contains;
use playrate_units::{Bitrate, Bytes};
use rstest::rstest;
use std::path::Path;
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

const PAPERS_TRANSPORT: &str = "[transport]\nloss_thresholds = \"rfc9002\"\nmtu_discovery = false\n";

const QUICK: Changes = Changes {
    quick: true,
    trials: None,
    seed: None,
    settings: Vec::new(),
};

/// Changes of this setting only.
fn set(setting: &str) -> Changes {
    Changes {
        settings: vec![setting.parse().unwrap()],
        ..Changes::default()
    }
}

/// The scenario of a text without cases.
fn parse_with(text: &str, changes: &Changes) -> Scenario {
    let mut cases = all(text, changes).unwrap();
    assert_eq!(cases.len(), 1);
    cases.remove(0)
}

fn parse(text: &str) -> Scenario {
    parse_with(text, &Changes::default())
}

/// The error message of a text.
fn problem(text: &str) -> String {
    all(text, &Changes::default()).unwrap_err().to_string()
}

fn all(text: &str, changes: &Changes) -> Result<Vec<Scenario>, ScenarioError> {
    ScenarioSource::new("test", "test.toml", text.to_owned(), Path::new(".")).scenarios(changes)
}

/// Duration of the title in seconds.
fn playing(scenario: &Scenario) -> u64 {
    scenario.viewer.title.source().title().duration().as_secs()
}

#[test]
fn a_scenario_is_what_its_file_says() {
    let scenario = parse(GOOD);
    assert_eq!(scenario.title_rate(), Bitrate::from_kbps(5_240));
    assert_eq!(scenario.path.forward.rate.mean(), Some(Bitrate::from_kbps(4_978)));
    assert_eq!(scenario.path.round_trip(), Duration::from_millis(100));
    assert_eq!((scenario.trials, scenario.seed_of(3)), (3, 9));
    assert_eq!(playing(&scenario), 70);
    assert_eq!(scenario.viewer.playout.receive_buffer, Bytes::new(256_000_000));
    let names: Vec<_> = scenario.controllers.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["reno", "cubic"]);
}

#[test]
fn the_player_may_be_faster_than_the_server_knows_and_the_title_of_another_rate() {
    let text = GOOD.replace(
        "duration = \"70s\"",
        "duration = \"70s\"\ndeclared_rate_factor = 0.00001",
    );
    let text = format!("{text}[viewer]\nspeed = 1.77\nreports_speed = true\n");
    let scenario = parse(&text);
    let setup = scenario.setup(&scenario.controllers[0], 7);
    let viewer = &setup.viewers[0];
    assert_eq!((viewer.playout.speed_percent, viewer.reports_speed), (177, true));
    assert!((viewer.declared_rate_factor - 1e-5).abs() < 1e-12);
    assert_eq!(scenario.title_rate(), Bitrate::from_kbps(5_240));
    assert_contains(
        &explain(&[scenario]),
        &[
            "plays at 1.77 times the normal speed, reported",
            "(λ), 0.00001 times that according to the server's library",
        ],
    );
    for (key, wrong) in [
        ("viewer.speed", "5.0"),
        ("title.declared_rate_factor", "0"),
        ("viewer.titles_per_connection", "17"),
    ] {
        let error = all(GOOD, &set(&format!("{key}={wrong}"))).unwrap_err();
        assert_contains(&error.to_string(), &[&format!("`{key}` must be ")]);
    }
}

#[test]
fn seeks_are_sorted_by_time_and_a_connection_may_carry_several_titles() {
    let text = format!("{GOOD}[viewer]\nseeks = [\"40s->5s\", \"20s->50s\"]\ntitles_per_connection = 3\n");
    let scenario = parse(&text);
    let viewer = scenario.setup(&scenario.controllers[0], 7).viewers.remove(0);
    let seconds = |seek: &Seek| (seek.at.as_secs(), seek.to.as_secs());
    let seeks: Vec<_> = viewer.seeks.iter().map(seconds).collect();
    assert_eq!(seeks, [(20, 50), (40, 5)]);
    assert_eq!(viewer.titles_per_connection, 3);
    let said = explain(&[scenario]);
    assert_contains(&said, &["after 20.0 s to 50.0 s, after 40.0 s to 5.00 s"]);
    let said = problem(&text.replace("20s->50s", "20s"));
    assert_contains(&said, &["write TIME->POSITION, such as 20s->80s"]);
}

#[test]
fn the_papers_transport_is_named_by_their_scenarios_and_has_the_hash_of_programs_without_another() {
    let product = parse(GOOD);
    assert_eq!(product.transport, TransportProfile::default());
    let papers = parse(&format!("{GOOD}{PAPERS_TRANSPORT}"));
    assert_eq!(papers.transport, TransportProfile::PAPERS);
    assert_ne!(product.hash, papers.hash);
    for name in named(PAPERS).into_iter().chain(["generated:7#3".to_owned()]) {
        for case in open(&name, &Changes::default()).unwrap() {
            assert_eq!(case.transport, TransportProfile::PAPERS, "{name}");
        }
    }
    let said = problem(&format!("{GOOD}[transport]\nloss_thresholds = \"3\"\n"));
    assert_contains(&said, &["unknown variant `3`", "`product` or `rfc9002`"]);
}

#[test]
fn the_hash_covers_everything_a_run_depends_on_and_nothing_else() {
    let base = parse(GOOD).hash;
    for same in [
        GOOD.replace("A test.", "Another."),
        GOOD.replace("trials = 3", "trials = 4 # more"),
        GOOD.replace("\"reno\", ", ""),
        GOOD.replace("trials = 1", "trials = 2"),
    ] {
        assert_eq!(parse(&same).hash, base, "{same}");
    }
    assert_ne!(parse(&GOOD.replace("0.01%", "0.02%")).hash, base);
    assert_ne!(parse_with(GOOD, &QUICK).hash, base);
}

#[test]
fn quick_has_fewer_trials_of_a_shorter_title_and_a_given_number_of_trials_wins() {
    let scenario = parse_with(GOOD, &QUICK);
    assert_eq!((scenario.trials, playing(&scenario)), (1, 10));
    let changes = Changes {
        trials: Some(9),
        seed: Some(100),
        ..QUICK
    };
    let scenario = parse_with(GOOD, &changes);
    assert_eq!((scenario.trials, scenario.seed), (9, 100));
}

#[test]
fn a_queue_of_a_small_multiple_of_the_bdp_is_no_longer_than_that_unless_the_scenario_says_so() {
    let small = GOOD.replace("\"100ms\"", "\"10ms\"");
    assert_eq!(parse(&small).path.forward.queue, QueueLimit::ONE_BDP);
    let least = small.replace("\"1bdp\"", "\"1bdp\"\nleast_queue = \"48kB\"");
    let path = parse(&least).path;
    assert_eq!(path.forward.queue, QueueLimit::Bytes(Bytes::new(48_000)));
}

#[test]
fn a_wifi_path_has_queues_and_loss_of_its_own_which_can_be_overridden() {
    let wifi = GOOD
        .replace("\"0.95λ\"", "\"wifi(15Mbit/s)\"")
        .replace("queue =", "#queue =")
        .replace("loss =", "#loss =");
    let path = parse(&wifi).path;
    let hop = WifiConfig::new(Bitrate::from_mbps(15));
    assert_eq!(path, PathConfig::wifi(&hop, Duration::from_millis(100)));
    let other = wifi.replace("#queue = \"1bdp\"", "queue = \"1MB\"");
    let other = other.replace("15Mbit/s", "15Mbit/s,residual_loss=1%");
    let forward = parse(&other).path.forward;
    assert_eq!(forward.queue, QueueLimit::Bytes(Bytes::from_kb(1_000)));
    assert_eq!(forward.loss.to_string(), "1%");
}

#[test]
fn a_title_is_a_trace_a_file_or_a_ladder_and_not_two_of_them() {
    let neither = GOOD.replace("trace = \"film-1080p\"\n", "");
    let both = GOOD.replace("trace =", "file = \"embedded\"\ntrace =");
    let ladder = GOOD.replace("trace =", "ladder = \"bbb\"\ntrace =");
    for text in [neither, both, ladder] {
        assert_contains(&problem(&text), &["exactly one of `trace`, `file` and `ladder`"]);
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
fast_switch = true
refetches_last = true
start_segments = 1
joins = "0s..3s"
count = 2
"#;

#[test]
fn a_ladder_has_rates_and_an_adaptive_player() {
    let scenario = parse(LADDER);
    let presentation = scenario.viewer.title.representations().unwrap();
    assert_eq!(presentation.segment_count(), 10);
    let [low, high] = presentation.representations() else {
        panic!("{presentation:?}")
    };
    assert_eq!((&*low.name, &*high.name), ("low", "high"));
    assert_eq!(scenario.title_rate(), Bitrate::from_kbps(4_820));
    let options = &scenario.viewer.dash;
    assert_eq!(options.abr.to_string(), "fixed:low");
    assert_eq!(options.buffer.stable, Duration::from_secs(9));
    assert!(options.fast_switch && options.refetches_last && options.start_segments == 1);
    assert!(!scenario.ideal, "there is no ideal sender for an adaptive player");
    let joins = |seed| {
        let setup = scenario.setup(&scenario.controllers[0], seed);
        setup.viewers.iter().map(|it| it.joins).collect::<Vec<_>>()
    };
    assert!(joins(1).iter().all(|&at| at <= Duration::from_millis(3_050)));
    assert!(joins(1) != joins(2) && joins(1) == joins(1) && joins(1)[0] != joins(1)[1]);
}

#[test]
fn only_a_ladder_has_rates_and_an_adaptive_player() {
    let rates = GOOD.replace("trace =", "rates = { a = \"1Mbit/s\" }\ntrace =");
    let abr = format!("{GOOD}\n[viewer]\nabr = \"throughput\"\n");
    for text in [rates, abr] {
        assert_contains(&problem(&text), &["ladder = \"bbb\""]);
    }
    let said = problem(&LADDER.replace("count = 2", "receive_autotuning = true"));
    assert_contains(&said, &["`viewer.receive_autotuning` must be left out"]);
}

#[test]
fn every_scenario_of_the_directory_is_built_in_and_can_be_read_and_explained() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(directory).unwrap();
    let files: BTreeSet<String> = entries
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".toml")?.to_owned()))
        .collect();
    assert_eq!(
        files,
        BUILT_IN.iter().map(|(name, _)| (*name).to_owned()).collect()
    );
    for (name, _) in BUILT_IN {
        for changes in [Changes::default(), QUICK] {
            assert_contains(&explain(&open(name, &changes).unwrap()), &[name, "──▶"]);
        }
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let said = open("p13-99", &Changes::default()).unwrap_err().to_string();
    assert_contains(&said, &["`p13-99`", "p13-9,"]);
    let error = open("./no-such.toml", &Changes::default())
        .unwrap_err()
        .to_string();
    assert_contains(&error, &["./no-such.toml"]);
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
    let rtts = [short, slow].map(|case| case.path.round_trip().as_millis());
    assert_eq!(rtts, [10, 100]);
    assert_eq!(slow.path.forward.rate.mean(), Some(Bitrate::from_mbps(2)));
    assert_eq!(slow.title_rate(), Bitrate::from_mbps(1));
    assert_eq!((short.trials, slow.trials), (2, 3));
    assert_eq!(short.full_name(), "test short");
    let (text, set) = (explain(&cases), "path.rtt = \"10ms\"");
    assert_contains(
        &text,
        &["Near the viewer.", set, "10 ms round trip", "seeds 7 to 8"],
    );
}

#[test]
fn the_hash_of_a_case_is_that_of_the_scenario_it_makes() {
    let cases = all(&with_cases(), &Changes::default()).unwrap();
    let short = GOOD.replace("rtt = \"100ms\"", "rtt = \"10ms\"");
    assert_eq!(cases[0].hash, parse(&short).hash);
    assert_ne!(cases[0].hash, cases[1].hash);
}

#[test]
fn quick_runs_the_cases_it_names_with_its_own_values_and_settings_win() {
    let slow = parse_with(&with_cases(), &QUICK);
    assert_eq!((slow.case.as_str(), playing(&slow)), ("slow", 10));
    assert_eq!(slow.viewers.leaves_after, Some(Duration::from_secs(5)));
    let changes = Changes {
        quick: true,
        ..set("title.duration=12s")
    };
    assert_eq!(playing(&parse_with(&with_cases(), &changes)), 12);
}

#[test]
fn an_error_in_a_setting_names_the_command_line() {
    let error = all(GOOD, &set("path.queue=tiny")).unwrap_err().to_string();
    assert!(
        error.starts_with("test.toml, command line, `path.queue`: "),
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
fn join_times_and_access_delays_are_drawn_from_the_seed() {
    let scenario = parse(&with_flows());
    let cubic: Controller = "cubic".parse().unwrap();
    let setup = scenario.setup(&cubic, 5);
    assert_eq!((setup.bulk.len(), scenario.flows()), (20, 23));
    let joins = setup.viewers.iter().map(|viewer| viewer.joins.as_secs());
    assert_eq!(joins.collect::<Vec<_>>(), [40, 41, 42]);
    let range = Duration::from_millis(5)..=Duration::from_millis(15);
    for bulk in &setup.bulk {
        assert_eq!(bulk.controller.to_string(), "reno");
        assert!(bulk.joins <= Duration::from_millis(10_050));
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
    assert_contains(&text, &["3 viewers; joining at 40.0 s, one more every 1.00 s"]);
    assert_contains(
        &text,
        &["20 endless downloads, each under reno", "5ms..15ms from each end"],
    );
    assert_contains(&text, &["3 viewers + 20 downloads"]);
}

#[test]
fn downloads_can_have_the_viewers_controller_or_be_absent() {
    let same = with_flows().replace("\"reno\"\njoins", "\"same\"\njoins");
    let scenario = parse(&same);
    let setup = scenario.setup(&"compound".parse().unwrap(), 1);
    assert_eq!(setup.bulk[0].controller.to_string(), "compound");
    let none = with_flows().replace("count = 20", "count = 0");
    assert_eq!(parse(&none).bulk, None);
}

#[rstest]
#[case::unit(GOOD, "0.95λ", "20Mbits", "line 13, `path.rate`", "20Mbit/s")]
#[case::number(GOOD, "\"100ms\"", "100", "line 14, `path.rtt`", "in quotes")]
#[case::route(GOOD, "100ms", "down,100ms@1s", "line 14, `path.rtt`", "must be a time")]
#[case::unknown_key(GOOD, "loss =", "los =", "line 16, `path.los`", "expected")]
#[case::controller(GOOD, "\"cubic\"", "\"cubik\"", "line 3, `controllers`", "cubic")]
#[case::loss(GOOD, "0.01%", "sometimes", "line 16, `path.loss`", "0.01%")]
#[case::queue(GOOD, "1bdp", "100B", "line 15, `path.queue`", "1bdp")]
#[case::trace(GOOD, "film-1080p", "nothing.csv", "line 8, `title.trace`", "film-1080p")]
#[case::low_rate(GOOD, "5.24Mbit/s", "1bit/s", "line 9, `title.rate`", "less than a byte")]
#[case::no_trials(GOOD, "trials = 3", "trials = 0", "line 4, `trials`", "at least 1")]
#[case::no_controllers(GOOD, "\"reno\", \"cubic\"", "", "line 3, `controllers`", "at least one")]
#[case::syntax(GOOD, "seed = 7", "seed = ", "line 5, `seed`", "")]
#[case::ladder_without_rates(LADDER, "rates =", "#", "line ", "needs rates")]
#[case::ladder_with_a_rate(LADDER, "rates =", "rate = \"1Mbit/s\"\nrates =", "line ", "several rates")]
#[case::equal_rates(LADDER, "0.44", "4.82", "line ", "differ")]
#[case::ladder(LADDER, "\"bbb\"", "\"films.csv\"", "line ", "a built-in ladder: bbb")]
#[case::fixed(LADDER, "fixed:low", "fixed:1080p", "line ", "expected one of: low, high")]
#[case::abr(LADDER, "fixed:low", "bola", "line ", "bola")]
#[case::no_start(LADDER, "segments = 1", "segments = 0", "line ", "at least 1 segment")]
#[case::not_of_a_ladder(
    GOOD,
    "[path]",
    "[viewer]\nfast_switch = true\n[path]",
    "line ",
    "only the player of a ladder"
)]
#[case::ideal(LADDER, "about", "ideal = true\nabout", "line ", "`ideal` must be left out")]
#[case::range(LADDER, "0s..3s", "3s..0s", "line ", "shorter time first")]
#[case::case_value(&with_cases(), "\"10ms\"", "\"10\"", "line 27, case `short`, `path.rtt`", "100ms")]
#[case::case_key(&with_cases(), "path.rtt", "path.rrt", "line 27, case `short`, `path.rrt`", "unknown field")]
#[case::not_a_table(&with_cases(), "path.rtt", "path.rtt.x", "line 27, case `short`, `path.rtt.x`", "not a table")]
#[case::case_elsewhere(&with_cases(), "\"1Mbit/s\"", "\"1bit/s\"", "line 31, case `slow`, `title.rate`", "byte")]
#[case::case_name(&with_cases(), "name = \"slow\"", "name = \"a b\"", "line 30, `case.name`", "letters")]
#[case::case_twice(&with_cases(), "name = \"slow\"", "name = \"short\"", "line 30, `case.name`", "duplicate")]
#[case::quick_case(&with_cases(), "[\"slow\"]", "[\"fast\"]", "line 21, `quick.cases`", "short, slow")]
#[case::in_the_scenario(&with_cases(), "\"1bdp\"", "\"100B\"", "line 15, case `short`, `path.queue`", "1bdp")]
#[case::no_viewer(&with_flows(), "count = 3", "count = 0", "line 24, `viewer.count`", "must be 1 to")]
#[case::many_downloads(&with_flows(), "count = 20", "count = 2000", "line 29, `bulk.count`", "at most")]
#[case::joins(&with_flows(), "0s..10s", "10s..0s", "line 31, `bulk.joins`", "5ms..15ms")]
#[case::window(&with_flows(), "50s..\"", "50s\"", "line 35, `measure.windows`", "50s..150s")]
#[case::download_controller(&with_flows(), "\"reno\"\njoins", "\"rino\"\njoins", "line 30, `bulk.controller`", "rino")]
fn an_error_names_file_place_and_correction(
    #[case] text: &str,
    #[case] good: &str,
    #[case] bad: &str,
    #[case] place: &str,
    #[case] correction: &str,
) {
    assert!(text.contains(good));
    let error = problem(&text.replacen(good, bad, 1));
    let place = format!("test.toml, {place}");
    assert!(error.starts_with(&place) && error.contains(correction), "{error}");
}

#[test]
fn an_uplink_has_a_rate_a_queue_and_batches_of_its_own() {
    let keys = "uplink = \"100kbit/s\"\nack_loss = \"2%\"\nack_batches = \"25ms\"\nloss =";
    let text = GOOD.replacen("loss =", keys, 1);
    let scenario = parse_with(&text, &Changes::default());
    let link = &scenario.path.backward;
    assert_eq!(link.rate, "100kbit/s".parse().unwrap());
    assert_eq!(link.queue, UPLINK_QUEUE);
    assert_eq!(link.batches, Duration::from_millis(25));
    assert!((link.loss.mean() - 0.02).abs() < 1e-9);
    assert_contains(
        &explain(&[scenario]),
        &["queue 64packets", "every 25 ms", "ACKs over 0.10 Mbit/s"],
    );
    let text = text.replacen("ack_loss", "uplink_queue = \"20kB\"\nack_loss", 1);
    let other = parse_with(&text, &Changes::default());
    assert_eq!(other.path.backward.queue, QueueLimit::Bytes(Bytes::from_kb(20)));
}

#[test]
fn an_rtt_that_changes_is_split_over_both_directions_and_its_first_value_sizes_the_queue() {
    let text = GOOD.replacen("\"100ms\"", "\"100ms,down@30s,20ms@30.3s\"", 1);
    let scenario = parse_with(&text, &Changes::default());
    let delays = [&scenario.path.forward, &scenario.path.backward].map(|link| link.delay.to_string());
    assert_eq!(delays, ["50ms,down@30s,10ms@30.3s"; 2]);
    let queues = [GOOD, &text].map(|text| {
        let path = parse_with(text, &Changes::default()).path;
        path.forward.queue_limit(path.round_trip())
    });
    assert_eq!(queues[0], queues[1]);
    assert!(explain(&[scenario]).contains("50ms,down@30s,10ms@30.3s"));
}
