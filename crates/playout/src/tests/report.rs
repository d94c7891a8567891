//! [`PlaybackReport`]: its written form, and the impaired share.

use serde::{Deserialize, Serialize};

use super::*;

fn report() -> PlaybackReport {
    PlaybackReport {
        startup_delay: Some(Duration::from_nanos(10_100_000_900)),
        ended: None,
        frames: 100,
        frames_shown: 75,
        frames_discarded: 24,
        frames_missing: 1,
        underflow_events: 2,
        stalled_time: ms(300),
        rebases: 1,
        rebuffering_ratio: None,
        mean_bitrate: Some(Bitrate::from_kbps(448)),
    }
}

/// A row of a result file that flattens the report among its own fields.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct ResultRow {
    trial: u32,
    #[serde(flatten)]
    playback: PlaybackReport,
}

#[test]
fn the_names_and_units_of_files_are_those_of_the_released_formats() {
    let row = ResultRow {
        trial: 3,
        playback: report().in_whole_microseconds(),
    };
    let text = serde_json::to_string(&row).unwrap();
    assert_eq!(
        text,
        "{\"trial\":3,\"startup_delay_s\":10.1,\"ended_s\":null,\"frames\":100,\"frames_shown\":75,\
         \"frames_discarded\":24,\"frames_missing\":1,\"underflow_events\":2,\"frozen_s\":0.3,\"rebases\":1,\
         \"rebuffer_ratio\":null,\"mean_bitrate_bps\":448000}"
    );
    assert_eq!(serde_json::from_str::<ResultRow>(&text).unwrap(), row);
}

#[test]
fn an_event_is_written_as_its_time_and_its_name() {
    let (pts, late) = (ms(40), ms(2));
    for (kind, name) in [
        (PlayoutEventKind::Shown { pts, late }, "shown"),
        (PlayoutEventKind::UnderflowBegan, "underflow-began"),
        (PlayoutEventKind::Seek { pts }, "seek"),
    ] {
        let text = serde_json::to_string(&PlayoutEvent { at: ms(1_500), kind }).unwrap();
        assert_eq!(text, format!("{{\"at_s\":1.5,\"what\":\"{name}\"}}"));
    }
}

#[test]
fn a_missing_field_is_an_error_that_names_it() {
    let whole = serde_json::to_value(ResultRow {
        trial: 3,
        playback: report(),
    })
    .unwrap();
    for name in whole.as_object().unwrap().keys() {
        let mut part = whole.clone();
        part.as_object_mut().unwrap().remove(name);
        let error = serde_json::from_value::<ResultRow>(part).unwrap_err().to_string();
        assert!(error.contains(&format!("missing field `{name}`")), "{error}");
    }
}

#[test]
fn a_negative_time_is_an_error() {
    let mut value = serde_json::to_value(report()).unwrap();
    value["frozen_s"] = (-0.5).into();
    let error = serde_json::from_value::<PlaybackReport>(value).unwrap_err();
    assert_eq!(error.to_string(), "-0.5 is not a time in seconds");
}

#[test]
fn impaired_time_counts_once_and_a_viewer_of_no_frame_lost_all_of_it() {
    let share = |frames_shown, frames_discarded, stalled: u64| {
        let report = PlaybackReport {
            frames: 100,
            frames_shown,
            frames_discarded,
            stalled_time: ms(stalled),
            ..PlaybackReport::default()
        };
        report.impaired_share(ms(4_000))
    };
    let close = |one: f64, other: f64| (one - other).abs() < 1e-12;
    // 75 of 100 frames, 3 s; the stall fell into the other second.
    assert!(close(share(75, 25, 1_000), 0.25));
    assert!(close(share(75, 25, 0), 0.25));
    // As a rebuffering ratio: 1 s of 5 s.
    assert!(close(share(100, 0, 1_000), 0.2));
    assert!(close(share(100, 0, 0), 0.0));
    assert!(close(share(0, 0, 0), 1.0));
    assert!(close(
        PlaybackReport::default().impaired_share(Duration::ZERO),
        1.0
    ));
}

proptest::proptest! {
    #[test]
    fn what_is_read_back_equals_what_was_written(
        nanos in proptest::option::of(0_u64..1 << 48), ratio in proptest::option::of(0_u32..1_024), rate in 0..u64::MAX,
    ) {
        let written = PlaybackReport {
            startup_delay: nanos.map(Duration::from_nanos),
            ended: nanos.map(|nanos| Duration::from_nanos(nanos / 7)),
            stalled_time: Duration::from_nanos(nanos.unwrap_or(1) / 3),
            rebuffering_ratio: ratio.map(|ratio| f64::from(ratio) / 1_024.0),
            mean_bitrate: Some(Bitrate::from_bits_per_second(rate)),
            ..report()
        };
        let text = serde_json::to_string(&written).unwrap();
        proptest::prop_assert_eq!(serde_json::from_str::<PlaybackReport>(&text).unwrap(), written);
    }
}
