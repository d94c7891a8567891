//! Frames of live encoders, and mistakes in their tables.

use super::*;

const LIVE: &str = r#"
about = "Live."
controllers = ["cubic"]
[title]
rate = "6Mbit/s"
duration = "10s"
[encoder]
rate = "0.9window"
group = "2s"
frame_rate = 25
key_frame_factor = 5
[path]
rate = "5Mbit/s"
rtt = "100ms"
"#;

/// Sizes of the frames of the trial with this seed.
fn sizes(scenario: &Scenario, seed: u64) -> Vec<u64> {
    let title = scenario.trial_values(seed).title;
    let frames = title.source().title().frames();
    frames.iter().map(|frame| frame.size.as_u64()).collect()
}

#[test]
fn frames_are_in_groups_and_have_the_highest_rate_on_average() {
    let scenario = parse(&LIVE.replace("group", "variation = 0.0\ngroup"));
    let title = scenario.trial_values(1).title;
    let info = title.source().title();
    assert_eq!(info.average_rate(), Bitrate::from_mbps(6));
    let keys = (0_u64..).zip(info.frames()).filter(|(_, frame)| frame.key);
    assert_eq!(
        keys.map(|(number, _)| number).collect::<Vec<_>>(),
        [0, 50, 100, 150, 200]
    );
    let sizes = sizes(&scenario, 1);
    assert_eq!(sizes.len(), 250);
    let factor = sizes[50] as f64 / sizes[51] as f64;
    assert!((factor - 5.0).abs() < 0.01, "{factor}");
}

#[test]
fn sizes_of_frames_vary_with_the_seed_and_within_their_bounds() {
    let scenario = parse(LIVE);
    let (first, again, other) = (sizes(&scenario, 1), sizes(&scenario, 1), sizes(&scenario, 2));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let deltas = || {
        first
            .iter()
            .enumerate()
            .filter(|(number, _)| number % 50 != 0)
            .map(|(_, size)| *size as f64)
    };
    let spread = deltas().fold(0.0, f64::max) / deltas().fold(f64::INFINITY, f64::min);
    assert!((1.3..=1.51).contains(&spread), "{spread}");
}

#[test]
fn a_mistake_in_an_encoder_names_the_key_and_what_would_be_right() {
    for (find, replace, key, expected) in [
        ("0.9window", "0.9", "`encoder.rate`", "0.9window"),
        (
            "frame_rate = 25",
            "frame_rate = 0",
            "`encoder.frame_rate`",
            "1 to 240",
        ),
        ("duration = \"10s\"", "", "`title`", "`title.duration`"),
        (
            "[encoder]",
            "trace = \"film-1080p\"\n[encoder]",
            "`title.trace`",
            "only `rate` and `duration`",
        ),
        (
            "group",
            "least_rate = \"7Mbit/s\"\ngroup",
            "`encoder.least_rate`",
            "at most `title.rate`",
        ),
        (
            "[path]",
            "[viewer]\nclock = \"rebuffer\"\n[path]",
            "`viewer.clock`",
            "count, joins",
        ),
        (
            "controllers = [\"cubic\"]",
            "controllers = [\"cubic\", \"noq-bbr3\"]",
            "`controllers`",
            "`encoder.stack = \"noq\"`",
        ),
        (
            "[encoder]",
            "[bulk]\ncontroller = \"noq-cubic\"\n[encoder]",
            "`bulk.controller`",
            "leave it out",
        ),
        (
            "[encoder]",
            "[encoder]\nstack = \"tcp\"",
            "`encoder.stack`",
            "`quinn` or `noq`",
        ),
        (
            "[title]",
            "ideal = true\n[title]",
            "`title",
            "`ideal` must be left out",
        ),
    ] {
        let error = problem(&LIVE.replacen(find, replace, 1));
        assert!(error.contains(key) && error.contains(expected), "{error}");
    }
}

#[test]
fn an_encoder_over_noq_takes_noqs_own_controllers_and_refuses_quinns() {
    let over_noq = LIVE.replace("[encoder]", "[encoder]\nstack = \"noq\"");
    let with = |controllers| over_noq.replace("[\"cubic\"]", controllers);
    let scenario = parse(&with(r#"["noq-newreno", "noq-cubic", "noq-bbr3", "video"]"#));
    for controller in &scenario.controllers {
        let setup = scenario.setup(controller, 1);
        assert_eq!(setup.broadcasts[0].stack, Stack::Noq);
        assert_eq!(setup.broadcasts[0].controller, *controller);
    }
    assert_ne!(scenario.hash, parse(LIVE).hash);
    let error = problem(&with(r#"["quinn-cubic"]"#));
    assert!(
        error.contains("`quinn-cubic`") && error.contains("`noq-cubic`"),
        "{error}"
    );
    // Downloads run over quinn, and these have the encoder's controller.
    let error = problem(&with(r#"["noq-cubic"]"#).replace("[path]", "[bulk]\ncontroller = \"same\"\n[path]"));
    assert!(
        error.contains("`controllers`") && error.contains("over noq only"),
        "{error}"
    );
}
