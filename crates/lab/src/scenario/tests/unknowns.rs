//! Keys for what the description of a test bed leaves open.

use super::*;
use crate::scenario::memory::{kept_ssthresh, with_ssthresh};
use playrate_netsim::Loss;

/// [`GOOD`] with `line` replaced by `other`.
fn with(line: &str, other: &str) -> String {
    assert!(GOOD.contains(line));
    GOOD.replacen(line, other, 1)
}

const LOSS: &str = "loss = \"0.01%\"";

/// [`GOOD`] behind a Wi-Fi hop, with these additional keys in its `path` table.
fn wifi(keys: &str) -> String {
    with("rate = \"0.95λ\"", "rate = \"wifi(15Mbit/s,gap=5s)\"")
        .replace("queue = \"1bdp\"\n", "")
        .replace(LOSS, keys)
}

#[test]
fn a_loss_scale_multiplies_the_loss_that_the_path_says() {
    let loss = |line: &str| parse(&with(LOSS, line)).path.forward.loss.to_string();
    assert_eq!(loss("loss = \"0.01%\"\nloss_scale = 4"), "0.04%");
    assert_eq!(loss("loss = \"0.01%\"\nloss_scale = 0.5"), "0.005%");
    assert_eq!(
        loss("loss = \"gilbert(0.1%,20%)\"\nloss_scale = 3"),
        "gilbert(0.3%,20%)"
    );
    assert_eq!(loss("loss_scale = 3"), "none");
    // A hop's residual loss has its own key.
    let hop = parse(&wifi("loss_scale = 3")).path.forward;
    assert_eq!(hop.loss.to_string(), "0.06%");
    let said = explain(&[parse(&with(LOSS, "loss = \"0.01%\"\nloss_scale = 4"))]);
    assert_contains(&said, &["4 times as frequent as the path says: 0.04%"]);
}

#[test]
fn acknowledgements_are_lost_on_the_way_back_only() {
    let path = parse(&with(LOSS, "ack_loss = \"0.1%\"")).path;
    assert_eq!(path.forward.loss, Loss::None);
    assert_eq!(path.backward.loss.to_string(), "0.1%");
    let said = explain(&[parse(&with(LOSS, "ack_loss = \"0.1%\""))]);
    assert_contains(&said, &["0.1% of ACKs lost"]);
    let hop = parse(&wifi("ack_loss = \"1%\"")).path;
    assert_eq!(
        [hop.forward.loss, hop.backward.loss].map(|loss| loss.to_string()),
        ["0.06%", "1%"]
    );
}

#[test]
fn parameters_of_a_wifi_hop_are_set_one_by_one_over_those_of_the_rate() {
    let keys = "wifi = { queue = \"150kB\", stall = \"300ms\", modes = \"50/100\", attempts = 4 }";
    let scenario = parse(&wifi(keys));
    let rate = "wifi(15Mbit/s,queue=150kB,modes=50/100,attempts=4,gap=5s,stall=300ms)";
    assert_eq!(scenario.path.forward.rate.to_string(), rate);
    let queue = scenario.path.forward.queue;
    assert_eq!(queue, QueueLimit::Bytes(Bytes::from_kb(150)));
    assert!(explain(std::slice::from_ref(&scenario)).contains(rate));
    // As a setting of a command, or of a case.
    let scenario = parse_with(&wifi(""), &set("path.wifi.queue=200packets"));
    assert_eq!(scenario.path.forward.queue, QueueLimit::Packets(200));
}

#[test]
fn one_queue_in_packets_or_bytes_is_the_same_for_all_paths() {
    for (text, limit, words) in [
        ("300packets", QueueLimit::Packets(300), "queue 300 packets"),
        ("450kB", QueueLimit::Bytes(Bytes::from_kb(450)), "queue 450 kB"),
    ] {
        for (rate, rtt) in [("0.95λ", "3ms"), ("15Mbit/s", "200ms")] {
            let queue = with("\"1bdp\"", &format!("\"{text}\"")).replace("100ms", rtt);
            let scenario = parse(&queue.replace("0.95λ", rate));
            assert_eq!(scenario.path.forward.queue, limit);
            assert_contains(&explain(&[scenario]), &[words]);
        }
    }
}

#[test]
fn a_variable_title_has_the_same_rate_in_other_frames() {
    let title = |text: &str| {
        let scenario = parse(text);
        assert_eq!(scenario.title_rate(), Bitrate::from_kbps(5_240));
        scenario.viewer.title
    };
    let second = |title: &ServedTitle, at: u64| -> u64 {
        let frames = title.source().title().frames().iter();
        let shown = frames.filter(|frame| frame.pts.as_secs() == at);
        shown.map(|frame| frame.size.as_u64()).sum()
    };
    let variable = |factor: &str| with("rate = \"5", &format!("variability = {factor}\nrate = \"5"));
    let (nominal, even) = (title(GOOD), title(&variable("0")));
    assert_eq!(
        title(&variable("1")).source().identity(),
        nominal.source().identity()
    );
    assert!(second(&nominal, 16) < second(&nominal, 0) / 5);
    assert!(second(&even, 16).abs_diff(second(&even, 0)) < second(&even, 0) / 100);
    let said = explain(&[parse(&variable("1.5"))]);
    assert_contains(&said, &["its rate 1.5 times as variable"]);
}

#[test]
fn a_connection_leaves_the_larger_of_ssthresh_and_half_its_window_behind() {
    let end = |window, ssthresh: Option<u64>| {
        let mut end = playrate_cc::Snapshot::default();
        (end.window, end.ssthresh) = (Bytes::new(window), ssthresh.map(Bytes::new));
        kept_ssthresh(&end).map(Bytes::as_u64)
    };
    assert_eq!(end(100_000, Some(30_000)), Some(50_000));
    assert_eq!(end(40_000, Some(30_000)), Some(30_000));
    assert_eq!(end(40_000, None), None);
    let cubic: Controller = "cubic+start=hystartpp".parse().unwrap();
    let begins = with_ssthresh(&cubic, Bytes::from_kb(64)).unwrap();
    assert_eq!(begins.to_string(), "cubic(ssthresh=64kB)+start=hystartpp");
    let viewer = |controllers: &str| {
        let text = GOOD.replace("[\"reno\", \"cubic\"]", controllers);
        format!("{text}\n[viewer]\nremembers_ssthresh = true\n")
    };
    assert!(parse(&viewer("[\"cubic\"]")).remembers_ssthresh);
    let said = problem(&viewer("[\"cubic\", \"quinn-cubic\"]"));
    assert_contains(&said, &["`viewer.remembers_ssthresh`: ", "`quinn-cubic`"]);
}

#[test]
fn clients_may_acknowledge_as_rarely_as_browsers() {
    let scenario = |packets| parse(&format!("{GOOD}\n[viewer]\nack_packets = {packets}\n"));
    let setup = scenario(10).setup(&"cubic".parse().unwrap(), 1);
    let request = setup.viewers[0].ack_request.unwrap();
    assert_eq!(request.packets, 10);
    assert!(
        request.longest.unwrap() <= Duration::from_millis(25),
        "{request:?}"
    );
    let said = problem(&format!("{GOOD}\n[viewer]\nack_packets = 0\n"));
    assert_contains(&said, &["nonzero"]);
}

#[rstest]
#[case::scale(with(LOSS, "loss_scale = -1"), "path.loss_scale", "0 or more")]
#[case::certain(
    with(LOSS, "loss = \"60%\"\nloss_scale = 2"),
    "path.loss_scale",
    "no more than 100%"
)]
#[case::scale_text(with(LOSS, "loss_scale = \"3\""), "path.loss_scale", "f64")]
#[case::ack_loss(with(LOSS, "ack_loss = \"often\""), "path.ack_loss", "0.01%")]
#[case::no_hop(with(LOSS, "wifi = { queue = \"150kB\" }"), "path.wifi", "wifi(15Mbit/s)")]
#[case::hop_key(wifi("wifi = { quue = \"150kB\" }"), "path.wifi.quue", "device_queue")]
#[case::hop_value(wifi("wifi = { queue = \"long\" }"), "path.wifi.queue", "1bdp")]
#[case::hop_unit(wifi("wifi = { gap = 5 }"), "path.wifi.gap", "ms")]
#[case::hop_type(wifi("wifi = { gap = true }"), "path.wifi.gap", "in quotes")]
#[case::useless_hop(wifi("wifi = { modes = \"0/100\" }"), "path.wifi", "none of them 0")]
#[case::variability(with("trace", "variability = 11\ntrace"), "title.variability", "0 and 10")]
#[case::of_a_file(
    with("trace = \"film-1080p\"", "file = \"embedded\"\nvariability = 2"),
    "title.variability",
    "only a trace"
)]
fn an_error_names_key_and_correction(#[case] text: String, #[case] key: &str, #[case] correction: &str) {
    let error = problem(&text);
    let place = format!("`{key}`: ");
    assert!(error.starts_with("test.toml, line "), "{error}");
    assert_contains(&error, &[&place, correction]);
}
