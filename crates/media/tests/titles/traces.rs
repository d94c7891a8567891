//! Frame traces: reading, scaling and repeating.

use std::time::Duration;

use playrate_media::{Frame, FrameTrace, MediaError};
use playrate_units::Bitrate;
use proptest::prelude::*;
use rstest::rstest;

use crate::common::trace;

#[test]
fn a_trace_of_30_frames_a_second_plays_as_long_as_its_frames() {
    let trace = trace();
    assert_eq!(trace.frame_count(), 810);
    let apart = trace.duration().abs_diff(Duration::from_secs(27));
    assert!(apart < Duration::from_micros(2), "{apart:?}");
}

/// The title of the papers: 10 min 24 s at 5.24 Mbit/s, 409 MB.
#[test]
fn the_papers_title_can_be_made_of_a_short_trace() {
    let title = trace()
        .repeat_to(Duration::from_secs(624))
        .unwrap()
        .scale_to_rate("5.24Mbit/s".parse().unwrap())
        .unwrap();
    assert_eq!(title.frame_count(), 624 * 30);
    assert_eq!(title.duration(), Duration::from_secs(624));
    assert_eq!(title.average_rate(), "5.24Mbit/s".parse().unwrap());
    assert_eq!(title.media_bytes().as_u64(), 408_720_000);
    let frames = title.frames();
    // The shape is preserved: frame k of every repetition has the same share of the bytes, up to rounding.
    for at in 0..810 {
        let apart = frames[at].size.as_u64().abs_diff(frames[at + 810].size.as_u64());
        assert!(apart <= 1, "frame {at}");
    }
}

#[test]
fn no_frame_of_a_trace_is_decoded_after_it_is_shown_or_before_the_one_before_it() {
    let frames = trace().repeat_to(Duration::from_secs(60)).unwrap().frames();
    assert!(frames.iter().all(|frame| frame.dts <= frame.pts));
    assert!(frames.is_sorted_by_key(|frame| frame.dts));
    assert!(
        frames.iter().any(|frame| frame.pts > frame.dts),
        "it has B-frames"
    );
}

#[rstest]
#[case("0.0,100,K_\n0.04,abc,__\n", 2, "`abc` is not a number of bytes")]
#[case("# a comment\n\nsoon,100,K_\n", 3, "`soon` is not a time")]
#[case("0.0,100\n", 1, "fewer than three fields")]
#[case("-1.0,100,K_\n", 1, "`-1.0` is not a time")]
#[case("", 0, "at least two frames")]
#[case("0.0,100,K_\n", 1, "at least two frames")]
#[case("0.0,100,K_\n0.0,100,K_\n", 2, "at two times")]
fn a_bad_line_is_named_with_its_number(#[case] text: &str, #[case] line: usize, #[case] words: &str) {
    let error = FrameTrace::parse(text).unwrap_err();
    assert!(
        matches!(&error, MediaError::Trace { line: at, .. } if *at == line),
        "{error:?}"
    );
    assert!(error.to_string().contains(words), "{error}");
    assert!(error.to_string().contains("0.033333,3847,__"), "{error}");
}

#[test]
fn what_cannot_be_made_of_a_trace_is_refused() {
    let refused = |result: Result<FrameTrace, MediaError>| {
        let error = result.unwrap_err();
        assert!(matches!(error, MediaError::TraceLength { .. }), "{error:?}");
        error.to_string()
    };
    let text = refused(trace().scale_to_rate(Bitrate::from_bits_per_second(10)));
    assert!(text.contains("10bit/s"), "{text}");
    refused(trace().repeat_to(Duration::ZERO));
    let text = refused(trace().repeat_to(Duration::MAX));
    assert!(text.contains("1500000 frames"), "{text}");
    let empty = FrameTrace::parse("0,0,K_\n1,0,__\n").unwrap();
    refused(empty.scale_to_rate(Bitrate::from_mbps(1)));
}

/// Bytes of a title's frames per second of presentation time.
fn bytes_by_second(title: &FrameTrace) -> Vec<f64> {
    let mut seconds = vec![0.0; usize::try_from(title.duration().as_secs()).unwrap()];
    for frame in title.frames() {
        if let Some(bytes) = seconds.get_mut(usize::try_from(frame.pts.as_secs()).unwrap()) {
            *bytes += frame.size.as_u64() as f64;
        }
    }
    seconds
}

fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (squares / values.len() as f64).sqrt()
}

#[test]
fn variability_scales_the_deviation_of_seconds_and_keeps_the_bytes() {
    let trace = trace().repeat_to(Duration::from_secs(27)).unwrap();
    assert_eq!(trace.with_variability(1.0).unwrap(), trace);
    let before = deviation(&bytes_by_second(&trace));
    for (factor, tolerance) in [(0.0, 0.01), (0.5, 0.01), (1.2, 0.05)] {
        let varied = trace.with_variability(factor).unwrap();
        assert_eq!(varied.media_bytes(), trace.media_bytes());
        assert_eq!(varied.duration(), trace.duration());
        let ratio = deviation(&bytes_by_second(&varied)) / before;
        assert!((ratio - factor).abs() < tolerance, "{factor}: {ratio}");
    }
    let wild = trace.with_variability(10.0).unwrap();
    assert_eq!(wild.media_bytes(), trace.media_bytes());
    assert!(wild.frames().iter().all(|frame| frame.size.as_u64() > 0));
    for wrong in [-0.1, 10.5, f64::NAN] {
        let error = trace.with_variability(wrong).unwrap_err().to_string();
        assert!(error.contains("between 0 and 10"), "{error}");
    }
}

#[test]
fn a_rotated_trace_begins_at_a_key_frame_and_has_the_same_frames() {
    let trace = trace();
    let frames = trace.frames();
    let key = (1..frames.len()).find(|&at| frames[at].key).unwrap();
    assert_eq!(trace.rotated_to(key - 1), trace);
    for asked in [key, key + 1] {
        let rotated = trace.rotated_to(asked);
        assert_eq!(rotated.duration(), trace.duration());
        assert_eq!(rotated.media_bytes(), trace.media_bytes());
        let moved = rotated.frames();
        assert!(moved[0].key && moved[0].pts.is_zero() && moved[0].size == frames[key].size);
        let sizes = |frames: &[Frame]| frames.iter().map(|frame| frame.size).collect::<Vec<_>>();
        let (before, after) = frames.split_at(key);
        assert_eq!(sizes(&moved), [sizes(after), sizes(before)].concat());
        let mut times: Vec<_> = moved.iter().map(|frame| frame.pts).collect();
        times.sort();
        times.dedup();
        assert!(times.len() == frames.len() && times.iter().all(|time| *time < trace.duration()));
    }
}

#[test]
fn a_trace_without_key_frames_is_cut_where_all_earlier_frames_are_shown() {
    let trace: FrameTrace = "0.00,900,K\n0.08,300,_\n0.04,100,_\n0.12,200,_\n"
        .parse()
        .unwrap();
    let sizes = |at: usize| -> Vec<u64> {
        let frames = trace.rotated_to(at).frames();
        frames.iter().map(|frame| frame.size.as_u64()).collect()
    };
    assert_eq!(sizes(1), [300, 100, 200, 900]);
    // The third frame is shown before the second.
    assert_eq!(sizes(2), [300, 100, 200, 900]);
    assert_eq!(sizes(99), [200, 900, 300, 100]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn scaling_gives_the_rate_to_the_bit_and_no_empty_frame(
        sizes in prop::collection::vec(0..200_000_u32, 2..200),
        kbps in 100..100_000_u64,
    ) {
        prop_assume!(sizes.iter().any(|&size| size > 0));
        let line = |(at, size): (usize, &u32)| format!("{}.{:03},{size},__\n", at / 25, at % 25 * 40);
        let lines: Vec<String> = sizes.iter().enumerate().map(line).collect();
        let text = lines.concat();
        let rate = Bitrate::from_kbps(kbps);
        let scaled = FrameTrace::parse(&text).unwrap().scale_to_rate(rate).unwrap();
        // Rounding up to a whole byte adds at most 8 bits over the playing time.
        let over = scaled.average_rate().as_bits_per_second() - rate.as_bits_per_second();
        prop_assert!(over as f64 * scaled.duration().as_secs_f64() <= 8.0, "{over}");
        prop_assert!(scaled.frames().iter().all(|frame| frame.size.as_u64() > 0));
    }
}
