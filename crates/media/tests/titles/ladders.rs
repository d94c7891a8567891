//! Ladders of representations, from the sizes of real encodes.

use std::time::Duration;

use playrate_media::{FrameTrace, Ladder, MediaError, Segment, SegmentSizes};
use playrate_units::Bitrate;
use rstest::rstest;

use crate::common::assets;

fn film() -> SegmentSizes {
    let text = std::fs::read_to_string(assets().join("ladders/bbb.csv")).unwrap();
    text.parse().unwrap()
}

/// The film in encodes of these names and rates in kbit/s.
fn ladder(rates: &[(&str, u64)], seconds: u64) -> Result<Ladder, MediaError> {
    let frames = FrameTrace::open(assets().join("traces/film-1080p.csv")).unwrap();
    let rates = rates
        .iter()
        .map(|(name, kbps)| ((*name).to_owned(), Bitrate::from_kbps(*kbps)));
    let rates: Vec<_> = rates.collect();
    Ladder::generate(&film(), &frames, &rates, Duration::from_secs(seconds))
}

#[test]
fn a_ladder_has_the_papers_rates_and_the_films_segments() {
    let ladder = ladder(&[("1080p", 4_820), ("480p", 440), ("720p", 2_640)], 612).unwrap();
    assert_eq!(ladder.segment_count(), 204);
    let all = ladder.representations().iter();
    let names: Vec<_> = all.map(|it| format!("{} {}", it.name, it.rate)).collect();
    assert_eq!(names, ["480p 440kbit/s", "720p 2.64Mbit/s", "1080p 4.82Mbit/s"]);
    for representation in ladder.representations() {
        let title = representation.source.title();
        let segments = title.segments();
        assert_eq!(segments.len(), 204);
        for segment in &segments {
            assert_eq!(segment.duration, Duration::from_secs(3));
            assert_eq!(segment.frames.len(), 90);
        }
        let [real, declared] = [title.average_rate(), representation.rate].map(Bitrate::as_bits_per_second);
        assert!(real.abs_diff(declared) < 8, "{real}");
        let joined = |pair: &[Segment]| pair[0].bytes.end == pair[1].bytes.start;
        assert!(segments.windows(2).all(joined));
    }
}

#[test]
fn segments_are_as_unequal_as_those_of_the_film() {
    let scaled = film().at_rate(Bitrate::from_kbps(2_640), 199).unwrap();
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
#[case("segment_duration_s,3\nencode_kbps,500\n", "at least one segment")]
#[case("segment_duration_s,3\nencode_kbps,500\n0,100,200\n", "line 3")]
#[case("segment_duration_s,3\nencode_kbps,500\n0,0\n", "above zero")]
#[case("segment_duration_s,3\nencode_kbps,500\nzero\n", "comma is missing")]
fn bad_segment_sizes_are_named(#[case] text: &str, #[case] words: &str) {
    let error = text.parse::<SegmentSizes>().unwrap_err();
    assert!(matches!(error, MediaError::Ladder { .. }));
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn what_cannot_be_a_ladder_is_refused() {
    let refused = |rates| ladder(rates, 30).unwrap_err().to_string();
    assert!(refused(&[]).contains("no rates"));
    assert!(refused(&[("a", 500), ("b", 500)]).contains("differ"));
    // 90 frames in 3 s need at least 90 bytes.
    assert!(refused(&[("a", 0)]).contains("segment"));
}

#[test]
fn a_rotated_ladder_has_the_same_segments_from_another_on() {
    let ladder = ladder(&[("low", 440), ("high", 4_820)], 30).unwrap();
    let sizes = |ladder: &Ladder| -> Vec<Vec<u64>> {
        let of = |segments: Vec<Segment>| {
            let sizes = segments.iter().map(|it| it.bytes.end - it.bytes.start);
            sizes.collect::<Vec<u64>>()
        };
        let all = ladder.representations().iter();
        all.map(|it| of(it.source.title().segments())).collect()
    };
    let mut expected = sizes(&ladder);
    for sizes in &mut expected {
        sizes.rotate_left(4);
    }
    assert_eq!(sizes(&ladder.rotated_to(4)), expected);
    assert_eq!(sizes(&ladder.rotated_to(0)), sizes(&ladder));
}

#[test]
fn segments_of_centuries_are_refused_instead_of_overflowing() {
    let text = "segment_duration_s,6553565535\nencode_kbps,500\n0,190000\n";
    let sizes: SegmentSizes = text.parse().unwrap();
    let error = sizes.at_rate(Bitrate::MAX, 4).unwrap_err();
    assert!(error.to_string().contains("too large"), "{error}");
}
