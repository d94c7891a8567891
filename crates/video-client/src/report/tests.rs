//! Tests of both forms of the report.

use std::sync::Arc;

use super::*;
use crate::cmsd::CmsdSample;
use crate::dash::tests::representation;
use crate::dash::{DashOptions, DashPlayer, Decision, Presentation};
use crate::playout::{CatchUp, Clock, Playout, PlayoutConfig};
use crate::transfer::Transfer;
use playrate_media::Frame;
use rstest::rstest;

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

/// Two segments of three, the second in a higher representation; the third is missing.
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
    assert!(matches!(
        player.decide(Duration::from_secs(4)),
        Decision::Fetch { .. }
    ));
    let reason = "the server answered 404 Not Found to /high/2.m4s".to_owned();
    player.pass_over(Duration::from_millis(4_040), reason);
    player.report()
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
    // Names in the first cells of tables; a cell may have several.
    let cells = documented
        .lines()
        .filter(|line| line.starts_with("| `"))
        .filter_map(|line| line.split(" | ").next());
    let names: Vec<&str> = cells
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    for field in &fields {
        assert!(names.contains(&field.as_str()), "{field} is not documented");
    }
    for name in names.iter().filter(|name| name.contains('.')) {
        if name.starts_with("title.") {
            continue; // this report has no title
        }
        assert!(
            fields.iter().any(|field| field == name),
            "{name} is documented but not there"
        );
    }
}

/// Compares whole reports, so a change of any number or word is seen. `INSTA_UPDATE=always` writes new snapshots.
#[rstest]
#[case("interrupted_session", report(Outcome::Failed("the server left".to_owned())))]
#[case("adaptive_session", QualityReport { dash: Some(dash()), ..report(Outcome::Incomplete(1)) })]
fn the_report_says_what_happened_in_both_forms(#[case] name: &str, #[case] report: QualityReport) {
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(format!("{name}.json"), report.to_json(false).unwrap());
        insta::assert_snapshot!(format!("{name}.txt"), report.to_text());
    });
}
