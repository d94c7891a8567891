//! Compares frames, rates and segments of real files with ffprobe's.

use std::io::Cursor;
use std::time::Duration;

use playrate_media::{Frame, Layout, Title};
use playrate_units::{Bitrate, Bytes};
use rstest::rstest;

use crate::common::{TITLES, Truth, assets, bytes_of, close, find, parse, title, truth};

fn assert_same(ours: &[Frame], truth: &[Truth]) {
    assert_eq!(ours.len(), truth.len());
    for (at, (ours, truth)) in ours.iter().zip(truth).enumerate() {
        assert_eq!(ours.offset, truth.offset, "offset of frame {at}");
        assert_eq!(ours.size, Bytes::new(truth.size), "size of frame {at}");
        assert_eq!(ours.key, truth.key, "key flag of frame {at}");
        for (time, ours, truth) in [("pts", ours.pts, truth.pts_us), ("dts", ours.dts, truth.dts_us)] {
            assert!(
                close(ours, truth),
                "{time} of frame {at}: {ours:?}, ffprobe {truth} us"
            );
        }
    }
}

#[rstest]
#[case::progressive("progressive-moov-first", Layout::ProgressiveMoovFirst)]
#[case::tables_at_the_end("progressive-moov-last", Layout::ProgressiveMoovLast)]
#[case::base_is_moof("fragmented", Layout::Fragmented)]
#[case::base_is_an_offset("fragmented-base-offset", Layout::Fragmented)]
#[case::dash("fragmented-dash", Layout::Fragmented)]
fn frames_are_those_that_ffprobe_sees(#[case] name: &str, #[case] layout: Layout) {
    let title = title(name);
    assert_eq!(title.layout(), layout);
    assert_same(title.frames(), &truth(name));
    assert_eq!((title.info().width, title.info().height), (192, 108));
}

#[test]
fn a_stream_tells_the_same_frames_as_a_file_that_is_seeked_in() {
    for name in TITLES {
        let bytes = bytes_of(name);
        let title = Title::read(Cursor::new(&bytes)).unwrap();
        assert_eq!(parse(&bytes).unwrap(), title.frames(), "{name}");
    }
}

/// ISO/IEC 14496-12 §8.8.7.1: without either flag, the first track's data offset still counts from the moof box.
#[test]
fn a_first_track_without_a_base_is_placed_from_its_moof_box() {
    let mut bytes = bytes_of("fragmented");
    let flags = find(&bytes, b"tfhd", 0) + 5;
    assert_eq!(bytes[flags], 0x02, "default-base-is-moof");
    bytes[flags] = 0;
    assert_eq!(parse(&bytes), parse(&bytes_of("fragmented")));
}

#[test]
fn frames_of_the_embedded_title_are_those_that_ffprobe_sees() {
    let title = Title::open(assets().join("title-720p.mp4")).unwrap();
    assert_same(title.frames(), &truth("title-720p"));
}

#[rstest]
#[case("progressive-moov-first", "avc1.64000b, mp4a.40.2")]
#[case("fragmented", "avc1.64000b, mp4a.40.2")]
#[case("fragmented-dash", "avc1.64000b")]
fn codecs_are_written_as_rfc_6381_does(#[case] name: &str, #[case] codecs: &str) {
    let title = title(name);
    assert_eq!(title.info().codecs, codecs);
}

/// The file has only these two tracks, so the media bytes are the body of its 50,130-byte `mdat` box. ffprobe: video
/// plays 8.933333 s, audio (cut by its edit list) 8.93 s.
#[test]
fn the_average_rate_counts_video_and_audio_bytes_but_no_boxes() {
    let title = title("progressive-moov-first");
    assert_eq!(title.media_bytes(), Bytes::new(50_130 - 8));
    assert!(close(title.duration(), 8_933_333), "{:?}", title.duration());
    // 50,122 bytes in 8.933333 s.
    assert_eq!(title.average_rate(), Bitrate::from_bits_per_second(44_885));
    assert_eq!(title.info().average_rate, Some(title.average_rate()));
}

#[test]
fn the_peak_rate_falls_towards_the_average_as_the_window_grows() {
    let title = Title::open(assets().join("title-720p.mp4")).unwrap();
    let peaks: Vec<Bitrate> = [1, 3, 9, 26]
        .map(|seconds| title.peak_rate(Duration::from_secs(seconds)))
        .into();
    assert!(
        peaks.is_sorted_by(|shorter, longer| shorter > longer),
        "{peaks:?}"
    );
    assert!(peaks.iter().all(|&peak| peak > title.average_rate()), "{peaks:?}");
    assert_eq!(title.peak_rate(Duration::from_secs(60)), title.average_rate());
    // One frame's time contains at least the largest frame; 1 ms contains at most that frame and two audio frames.
    let largest = title.frames().iter().map(|frame| frame.size).max().unwrap();
    let least = largest.per(Duration::from_millis(1)).unwrap();
    assert!(title.peak_rate(Duration::from_millis(1)) >= least);
    assert_eq!(
        title.peak_rate(Duration::ZERO),
        title.peak_rate(Duration::from_millis(1))
    );
}

#[rstest]
#[case::progressive("progressive-moov-first")]
#[case::moov_last("progressive-moov-last")]
#[case::fragmented("fragmented")]
#[case::dash("fragmented-dash")]
fn segments_cover_every_frame_once_and_join_without_a_gap(#[case] name: &str) {
    let title = title(name);
    let segments = title.segments();
    assert_eq!(segments.len(), 3, "a key frame every 3 s of 9 s");
    assert_eq!(segments[0].frames.start, 0);
    assert_eq!(segments[2].frames.end, title.frames().len());
    for pair in segments.windows(2) {
        assert_eq!(pair[0].frames.end, pair[1].frames.start);
        assert_eq!(pair[0].bytes.end, pair[1].bytes.start);
        assert_eq!(pair[0].start + pair[0].duration, pair[1].start);
    }
    for segment in &segments {
        assert!(segment.starts_with_key);
        for frame in &title.frames()[segment.frames.clone()] {
            assert!(segment.bytes.start <= frame.offset && frame.end() <= segment.bytes.end);
            assert!(segment.start <= frame.pts && frame.pts < segment.start + segment.duration);
        }
    }
    assert!(close(segments[0].duration, 3_000_000));
    assert_eq!(segments[2].start + segments[2].duration, title.duration());
}

/// Sizes of the boxes in `fragmented-dash.mp4`: ftyp 28, moov 738, then three times sidx 52, moof, mdat; mfra 105.
#[test]
fn a_dash_segment_begins_at_its_sidx_box_and_the_last_ends_before_the_index() {
    let title = title("fragmented-dash");
    let segments = title.segments();
    assert_eq!(segments[0].bytes.start, 28 + 738);
    assert_eq!(segments[2].bytes.end, title.file_size().as_u64() - 105);
}
