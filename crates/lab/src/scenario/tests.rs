//! Scenario files, good and bad.

use super::*;
use rstest::rstest;

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

fn parse(text: &str, changes: Changes) -> Result<Scenario, ScenarioError> {
    Scenario::parse("test", "test.toml", text, Path::new("."), changes)
}

#[test]
fn a_scenario_is_what_its_file_says() {
    let scenario = parse(GOOD, Changes::default()).unwrap();
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
        parse(text, changes).unwrap().hash
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
    let scenario = parse(GOOD, quick).unwrap();
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
    let scenario = parse(GOOD, changes).unwrap();
    assert_eq!((scenario.trials, scenario.seed), (9, 100));
}

#[test]
fn a_small_multiple_of_the_bdp_is_still_a_queue_of_32_packets() {
    let small = GOOD.replace("\"100ms\"", "\"10ms\"");
    let path = parse(&small, Changes::default()).unwrap().path;
    assert_eq!(path.forward.queue, QueueLimit::Bytes(Bytes::new(48_000)));
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
    let error = parse(&text, Changes::default()).unwrap_err().to_string();
    assert!(
        error.starts_with(&format!("test.toml, line {line}, `{key}`: ")),
        "{error}"
    );
    assert!(mend.split('|').any(|mend| error.contains(mend)), "{error}");
}

#[test]
fn a_title_is_a_trace_or_a_file_and_not_both() {
    let neither = GOOD.replace("trace = \"film-1080p\"\n", "");
    let both = GOOD.replace("trace =", "file = \"embedded\"\ntrace =");
    for text in [neither, both] {
        let error = parse(&text, Changes::default()).unwrap_err().to_string();
        assert!(error.contains("either a `trace` or a `file`"), "{error}");
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
            let scenario = open(
                name,
                Changes {
                    quick,
                    ..Changes::default()
                },
            )
            .unwrap();
            let text = scenario.explain();
            assert!(text.contains(name) && text.contains("──▶"), "{text}");
        }
    }
}

#[test]
fn a_name_that_is_none_is_answered_with_those_there_are() {
    let error = open("p13-99", Changes::default()).unwrap_err().to_string();
    assert!(error.contains("`p13-99`") && error.contains("p13-9,"), "{error}");
    let error = open("./no-such.toml", Changes::default())
        .unwrap_err()
        .to_string();
    assert!(error.contains("./no-such.toml"), "{error}");
}
