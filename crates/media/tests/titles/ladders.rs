//! Ladders of representations, from the sizes of real encodes.

use std::path::Path;
use std::time::Duration;

use playrate_media::{FrameTrace, Ladder, MediaError, SegmentSizes};
use playrate_units::Bitrate;
use rstest::rstest;

fn asset(path: &str) -> String {
    let assets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets");
    std::fs::read_to_string(assets.join(path)).unwrap()
}

fn rates() -> Vec<(String, Bitrate)> {
    [("1080p", 4_820), ("480p", 440), ("720p", 2_640)]
        .map(|(name, kbps)| (name.to_owned(), Bitrate::from_kbps(kbps)))
        .to_vec()
}

fn ladder(seconds: u64) -> Ladder {
    let sizes: SegmentSizes = asset("ladders/bbb.csv").parse().unwrap();
    let frames: FrameTrace = asset("traces/film-1080p.csv").parse().unwrap();
    Ladder::generate(&sizes, &frames, &rates(), Duration::from_secs(seconds)).unwrap()
}

#[test]
fn a_ladder_has_the_papers_rates_and_the_films_segments() {
    let ladder = ladder(612);
    assert_eq!(ladder.segment_count(), 204);
    let names: Vec<_> = ladder
        .representations()
        .iter()
        .map(|it| (it.name(), it.rate()))
        .collect();
    assert_eq!(
        names,
        [
            ("480p", Bitrate::from_kbps(440)),
            ("720p", Bitrate::from_kbps(2_640)),
            ("1080p", Bitrate::from_kbps(4_820))
        ]
    );
    for representation in ladder.representations() {
        let title = representation.source().title();
        let segments = title.segments();
        assert_eq!(segments.len(), 204);
        assert!(
            segments
                .iter()
                .all(|segment| segment.duration == Duration::from_secs(3))
        );
        assert!(segments.iter().all(|segment| segment.frames.len() == 90));
        let bits = title.average_rate().as_bits_per_second();
        assert!(
            bits.abs_diff(representation.rate().as_bits_per_second()) < 8,
            "{bits}"
        );
        assert!(
            segments
                .windows(2)
                .all(|pair| pair[0].bytes.end == pair[1].bytes.start)
        );
    }
}

#[test]
fn segments_are_as_unequal_as_those_of_the_film() {
    let sizes: SegmentSizes = asset("ladders/bbb.csv").parse().unwrap();
    let scaled = sizes.at_rate(Bitrate::from_kbps(2_640), 199).unwrap();
    // The encode of 2,962 kbit/s is nearest; its first two segments have 1,262,132 and 1,008,495 bytes.
    let share = |part: u64| part as f64 / scaled.iter().sum::<u64>() as f64;
    let real = 1_262_132.0 / 1_008_495.0;
    assert!((share(scaled[0]) / share(scaled[1]) - real).abs() < 1e-4);
    // A film has quiet and busy segments: the busiest is well above the average one.
    let average = scaled.iter().sum::<u64>() / 199;
    assert!(scaled.iter().max().unwrap() > &(average * 3 / 2));
}

#[rstest]
#[case("encode_kbps,500\n0,100\n", "segment_duration_s")]
#[case("segment_duration_s,0\n", "no time in seconds")]
#[case("segment_duration_s,3\nencode_kbps,500\n", "no segment")]
#[case("segment_duration_s,3\nencode_kbps,500\n0,100,200\n", "line 3")]
#[case("segment_duration_s,3\nencode_kbps,500\n0,0\n", "above zero")]
#[case("segment_duration_s,3\nencode_kbps,500\nzero\n", "no comma")]
fn bad_segment_sizes_are_named(#[case] text: &str, #[case] words: &str) {
    let error = text.parse::<SegmentSizes>().unwrap_err();
    assert!(matches!(error, MediaError::Ladder { .. }));
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn what_cannot_be_a_ladder_is_refused() {
    let sizes: SegmentSizes = asset("ladders/bbb.csv").parse().unwrap();
    let frames: FrameTrace = asset("traces/film-1080p.csv").parse().unwrap();
    let time = Duration::from_secs(30);
    let refused = |rates: &[(&str, u64)]| {
        let rates: Vec<_> = rates
            .iter()
            .map(|(name, kbps)| ((*name).to_owned(), Bitrate::from_kbps(*kbps)))
            .collect();
        Ladder::generate(&sizes, &frames, &rates, time)
            .unwrap_err()
            .to_string()
    };
    assert!(refused(&[]).contains("no rates"));
    assert!(refused(&[("a", 500), ("b", 500)]).contains("differ"));
    // 90 frames in 3 s need at least 90 bytes.
    assert!(refused(&[("a", 0)]).contains("segment"));
}
