//! Tests of both forms of the report.

use super::*;
use crate::playout::{CatchUp, Clock, Happening, Playout, PlayoutConfig};
use playrate_media::Frame;

fn report(outcome: Outcome) -> QualityReport {
    let ms = Duration::from_millis;
    let config = PlayoutConfig::new(Bytes::new(1_000), Clock::CatchUp(CatchUp::default()));
    let mut player = Playout::new(config.clone()).unwrap();
    let frames: Vec<_> = (0..4)
        .map(|n| Frame {
            offset: 1_000 * n,
            size: Bytes::new(1_000),
            dts: ms(40 * n),
            pts: ms(40 * n),
            key: n == 0,
        })
        .collect();
    let mut throughput = Throughput::new(ms(10));
    player.add_frames(ms(0), &frames);
    for (at, bytes) in [(20, 1_000), (500, 1_500)] {
        player.deliver(ms(at), Bytes::new(bytes));
        throughput.record(ms(at), Bytes::new(bytes));
    }
    player.advance(ms(600));
    let events = std::iter::from_fn(|| player.poll_event())
        .filter(|event| !matches!(event.what, Happening::Shown { .. } | Happening::Discarded { .. }))
        .collect();
    QualityReport {
        url: "https://localhost:4433/film.mp4".to_owned(),
        outcome,
        title: None,
        average_rate: player.report().average_rate,
        playout_buffer: config.playout_buffer,
        receive_buffer: config.receive_buffer,
        playout: player.report(),
        network: NetworkReport {
            connected: Some(ms(8)),
            first_byte: Some(ms(20)),
            ended: ms(600),
            received: Bytes::new(2_500),
            promised: Some(Bytes::new(4_000)),
            throughput: Rates::from(&throughput),
        },
        events,
        series: player.series().to_vec(),
    }
}

#[test]
fn the_json_has_the_documented_fields_and_no_others() {
    let report = report(Outcome::Failed("the server left".to_owned()));
    let json: serde_json::Value = serde_json::from_str(&report.to_json(true).unwrap()).unwrap();
    let documented = include_str!("../../../../docs/video-client.md");
    let mut fields = Vec::new();
    for (section, value) in json.as_object().unwrap() {
        fields.push(section.clone());
        if let Some(object) = value.as_object() {
            fields.extend(object.keys().map(|key| format!("{section}.{key}")));
        }
    }
    for field in &fields {
        assert!(
            documented.contains(&format!("| `{field}` |")),
            "{field} is not documented"
        );
    }
    for line in documented
        .lines()
        .filter(|line| line.starts_with("| `") && line.contains('.'))
    {
        let name = line.split('`').nth(1).unwrap();
        if name.starts_with("title.") {
            continue; // this report has no title
        }
        assert!(
            fields.iter().any(|field| field == name),
            "{name} is documented but not there"
        );
    }
}

#[test]
fn the_json_says_what_happened() {
    let report = report(Outcome::Failed("the server left".to_owned()));
    let json: serde_json::Value = serde_json::from_str(&report.to_json(false).unwrap()).unwrap();
    assert_eq!(json["format"], "video-client-play");
    assert_eq!(json["outcome"], "failed");
    assert_eq!(json["error"], "the server left");
    assert_eq!(json["viewer"]["startup_delay_s"], 0.02);
    assert_eq!(json["viewer"]["frames_shown"], 1);
    assert_eq!(json["viewer"]["frames_discarded"], 1);
    assert_eq!(json["viewer"]["frames_remaining"], 2);
    assert_eq!(json["viewer"]["underflow_events"], 1);
    assert_eq!(json["viewer"]["rebuffer_ratio"], serde_json::Value::Null);
    assert_eq!(json["network"]["throughput_mean_bps"], 2_500 * 8 * 1_000 / 490);
    assert_eq!(json["network"]["retransmissions"], serde_json::Value::Null);
    assert_eq!(json["player"]["clock"], "catch-up");
    assert_eq!(json["events"][1]["what"], "underflow-began");
    assert_eq!(json["events"][1]["at_s"], 0.06);
    assert!(json.get("series").is_none());
}

#[test]
fn the_text_says_what_happened() {
    let text = report(Outcome::Failed("the server left".to_owned())).to_text();
    for part in [
        "broke off: the server left",
        "1 shown, 1 discarded, 2 still to come, of 4",
        "2.5kB of 4kB in 0.60 s",
        "1, frozen for 0.54 s",
        "catch-up clock, playout buffer 1kB",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}
