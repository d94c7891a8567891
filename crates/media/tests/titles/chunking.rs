//! However a file's bytes are cut, the parser finds the same frames, each as early as possible.

use playrate_media::{Limits, StreamParser};
use proptest::prelude::*;

use crate::common::{TITLES, bytes_of, find, parse, parse_in_pieces};

#[test]
fn bytes_pushed_one_by_one_give_the_same_frames() {
    for name in TITLES {
        let bytes = bytes_of(name);
        assert_eq!(
            parse_in_pieces(&bytes, &[1], Limits::default()),
            parse(&bytes),
            "{name}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_cutting_gives_the_same_frames(
        title in 0..TITLES.len(), pieces in prop::collection::vec(1..5000_usize, 1..20)
    ) {
        let bytes = bytes_of(TITLES[title]);
        prop_assert_eq!(parse_in_pieces(&bytes, &pieces, Limits::default()), parse(&bytes));
    }

    #[test]
    fn skipping_what_may_be_skipped_gives_the_same_frames(title in 0..TITLES.len(), most in 1..20_000_u64) {
        let bytes = bytes_of(TITLES[title]);
        let mut parser = StreamParser::new(Limits::default());
        let mut frames = Vec::new();
        while (parser.position() as usize) < bytes.len() {
            let at = parser.position() as usize;
            let left = (bytes.len() - at) as u64;
            if parser.skip(most.min(left)) == 0 {
                parser.push(&bytes[at..=at]).unwrap();
            }
            frames.extend(parser.drain_frames());
        }
        parser.finish().unwrap();
        prop_assert_eq!(Ok(frames), parse(&bytes));
    }
}

#[test]
fn a_progressive_file_tells_all_frames_with_its_moov_box() {
    let bytes = bytes_of("progressive-moov-first");
    let media = find(&bytes, b"mdat", 0) - 4;
    let mut parser = StreamParser::new(Limits::default());
    parser.push(&bytes[..media]).unwrap();
    let info = parser.info().unwrap();
    assert!(info.average_rate.is_some() && info.duration.is_some());
    assert_eq!(parser.drain_frames().count(), 268);
    parser.push(&bytes[media..]).unwrap();
    assert_eq!(parser.drain_frames().count(), 0);
}

#[test]
fn a_file_with_its_moov_box_last_tells_no_frame_before_it() {
    let bytes = bytes_of("progressive-moov-last");
    let moov = find(&bytes, b"moov", 0) - 4;
    let mut parser = StreamParser::new(Limits::default());
    parser.push(&bytes[..moov]).unwrap();
    assert!(parser.info().is_none());
    assert_eq!(parser.drain_frames().count(), 0);
    parser.push(&bytes[moov..]).unwrap();
    assert_eq!(parser.drain_frames().count(), 268);
}

#[test]
fn a_fragmented_file_tells_its_frames_fragment_by_fragment() {
    let bytes = bytes_of("fragmented");
    let mut parser = StreamParser::new(Limits::default());
    let mut from = 0;
    let mut counts = Vec::new();
    for fragment in 0..3 {
        let media = find(&bytes, b"mdat", fragment) - 4;
        parser.push(&bytes[from..media]).unwrap();
        counts.push(parser.drain_frames().count());
        from = media;
    }
    // Key frames at 0, 3 and 6 s of 30 frames/s.
    assert_eq!(counts, [90, 90, 88]);
    let info = parser.info().unwrap();
    assert_eq!((info.average_rate, info.duration), (None, None));
}
