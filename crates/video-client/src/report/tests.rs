//! Tests of both forms of the report.

use std::sync::Arc;

use super::*;
use crate::cmsd::CmsdSample;
use crate::dash::tests::representation;
use crate::dash::{DashOptions, DashPlayer, Decision, Presentation};
use crate::playout::{CatchUp, Clock, Playout, PlayoutConfig};
use crate::transfer::Transfer;
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
        .filter(|event| !event.kind.is_of_frame())
        .collect();
    QualityReport {
        url: "https://localhost:4433/film.mp4".to_owned(),
        outcome,
        title: None,
        average_rate: player.average_rate(),
        player: PlayerSettings {
            clock: player.config().clock.kind(),
            playout_buffer: config.playout_buffer,
            receive_buffer: config.receive_buffer,
        },
        playback: player.report(),
        shown_time: player.shown_time(),
        known_time: player.known_time(),
        network: NetworkReport {
            connected: Some(ms(8)),
            first_byte: Some(ms(20)),
            ended: ms(600),
            received: Bytes::new(2_500),
            promised: Some(Bytes::new(4_000)),
            throughput: Rates::from(&throughput),
            retransmissions: None,
            interruptions: Interruptions {
                reconnects: 1,
                disconnected: ms(150),
                count: 1,
                recorded: vec![Interruption {
                    began: ms(200),
                    connected: Some(ms(350)),
                    resumed: Some(ms(370)),
                    reason: "the server was restarted".to_owned(),
                }],
            },
        },
        dash: None,
        cmsd: cmsd(),
        notes: vec!["not fetched: 1 representation of sound".to_owned()],
        events,
        series: player.series().to_vec(),
    }
}

fn cmsd() -> CmsdReport {
    let mut samples = Vec::new();
    for (second, text) in [
        (1, "\"a\";rtt=40"),
        (4, "\"a\";etp=6000;rtt=60"),
        (7, "\"a\";etp=4000;rtt=43;mb=2640"),
    ] {
        let mut headers = http::HeaderMap::new();
        headers.insert("cmsd-dynamic", text.parse().unwrap());
        CmsdSample::read(&mut samples, &headers, Duration::from_secs(second));
    }
    CmsdReport::of(samples)
}

/// Two segments of three, the second in a higher representation.
fn dash() -> DashReport {
    let named = [("low", 440), ("high", 2_640)];
    let film = named.map(|named| representation(named, &[Duration::from_secs(3); 3]));
    let film = Arc::new(Presentation::new(film.to_vec()).unwrap());
    let mut player = DashPlayer::new(film, &DashOptions::default()).unwrap();
    for (second, bytes) in [(0, 1_000_000), (2, 500_000)] {
        let requested = Duration::from_secs(second);
        assert!(matches!(player.decide(requested), Decision::Fetch { .. }));
        let transfer = Transfer {
            requested,
            first_byte: requested + Duration::from_millis(40),
            finished: requested + Duration::from_millis(1_040),
            bytes: Bytes::new(bytes),
        };
        player.fetched(transfer, None);
    }
    player.report()
}

#[test]
fn the_segments_of_an_adaptive_session_are_in_both_forms() {
    let mut report = report(Outcome::Complete);
    report.dash = Some(dash());
    let json: serde_json::Value = serde_json::from_str(&report.to_json(false).unwrap()).unwrap();
    let dash = &json["dash"];
    assert_eq!(dash["representations"][1]["name"], "high");
    assert_eq!(dash["representations"][1]["segments"], 1);
    assert_eq!(dash["segments"], 3);
    assert_eq!(dash["segments_fetched"], 2);
    assert_eq!(dash["switch_share"], 0.5);
    assert_eq!(dash["switch_sizes"]["1"], 1);
    assert_eq!(dash["mean_representation_bps"], 1_540_000);
    assert_eq!(dash["instantaneous"]["mean_bps"], 6e6);
    // The average is over both: 0.9 × 6 Mbit/s.
    assert_eq!(
        dash["series"]["smoothed_bps"],
        serde_json::json!([7_200_000, 5_400_000])
    );
    let text = report.to_text();
    for part in [
        "2 of 3: 1 at low (0.44 Mbit/s), 1 at high (2.64 Mbit/s)",
        "1, 50.0 % of segments (+1: 1)",
        "1.54 Mbit/s",
        "6.00 Mbit/s on average, varying by 47 %",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

#[test]
fn the_json_has_the_documented_fields_and_no_others() {
    let mut report = report(Outcome::Failed("the server left".to_owned()));
    report.dash = Some(dash());
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
    assert_eq!(json["network"]["reconnects"], 1);
    assert_eq!(json["network"]["disconnected_s"], 0.15);
    assert_eq!(json["network"]["interruption_count"], 1);
    assert_eq!(
        json["network"]["interruptions"],
        serde_json::json!([
            {"began_s": 0.2, "connected_s": 0.35, "resumed_s": 0.37, "reason": "the server was restarted"}
        ])
    );
    assert_eq!(json["player"]["clock"], "catch-up");
    assert_eq!(json["cmsd"]["answers"], 3);
    assert_eq!(json["cmsd"]["etp"]["mean_bps"], 5e6);
    assert_eq!(json["cmsd"]["rtt_median_s"], 0.043);
    assert_eq!(
        json["cmsd"]["series"]["etp_bps"],
        serde_json::json!([null, 6_000_000, 4_000_000])
    );
    assert_eq!(json["notes"][0], "not fetched: 1 representation of sound");
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
        "5.00 Mbit/s on average, varying by 28 %",
        "43 ms (median of 3; 40 to 60 ms)",
        "not fetched: 1 representation of sound",
        "1; reconnected 1 time, without a connection for 0.15 s",
    ] {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}
