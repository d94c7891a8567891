//! Files that are damaged or malicious: each gives a `MediaError` with the place, without panicking and with little
//! memory.

use std::io::Cursor;

use playrate_media::{BoxName, Limits, MediaError, StreamParser, Title};
use rstest::rstest;

use crate::common::{
    TITLES, assets, boxed, bytes_of, find, find_all, fixture, number_at, parse, parse_in_pieces,
};

/// The error for `bytes`, the same from a stream and from a file.
fn error_of(bytes: &[u8]) -> MediaError {
    let streamed = parse(bytes).expect_err("must be refused");
    let seeked = Title::read(Cursor::new(bytes)).expect_err("must be refused");
    assert_eq!(streamed, seeked);
    streamed
}

/// `name` with `bytes` written `at` bytes after the type of its first `inside` box.
fn patched(name: &str, inside: &[u8; 4], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = bytes_of(name);
    let start = find(&file, inside, 0).wrapping_add(at);
    file[start..start + bytes.len()].copy_from_slice(bytes);
    file
}

#[rstest]
#[case::empty(b"", "the file is empty")]
#[case::text(b"Hello, this is no video.\n", "it begins with `Hello, t`")]
#[case::short(b"abc", "it begins with `abc`")]
#[case::jpeg(b"\xff\xd8\xff\xe0\0\x10JFIF\0", "`\\xff\\xd8\\xff\\xe0\\x00\\x10JF`")]
fn what_is_no_mp4_is_named_with_its_first_bytes(#[case] bytes: &[u8], #[case] words: &str) {
    let error = error_of(bytes);
    assert!(matches!(error, MediaError::NotMp4 { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.starts_with("not an MP4: "), "{text}");
    assert!(text.contains(words) && text.contains("ffmpeg -i"), "{text}");
}

#[rstest]
#[case::tables("progressive-moov-last", b"moov")]
#[case::media("progressive-moov-first", b"mdat")]
fn a_truncated_box_is_named_with_its_offset_and_where_the_file_ends(
    #[case] file: &str,
    #[case] name: &[u8; 4],
) {
    let whole = bytes_of(file);
    let offset = find(&whole, name, 0) - 4;
    let (needed, end) = (offset + number_at(&whole, offset), whole.len() - 1_000);
    let error = error_of(&whole[..end]);
    let expected = MediaError::Truncated {
        name: BoxName(*name),
        offset: offset as u64,
        needed: needed as u64,
        end: end as u64,
    };
    assert_eq!(error, expected);
    let text = error.to_string();
    let place = format!("{} box at offset {offset} is truncated: ", BoxName(*name));
    assert!(text.starts_with(&place), "{text}");
    assert!(text.contains(&format!("the file ends at {end}")), "{text}");
}

#[test]
fn every_cut_of_a_file_is_refused() {
    for name in TITLES {
        let whole = bytes_of(name);
        // A fragmented file may end between fragments: a live one looks like that. Padding may follow any file.
        let fragments: Vec<usize> = find_all(&whole, b"moof").map(|at| at - 4).collect();
        let media = find_all(&whole, b"mdat").map(|at| at - 4);
        let ends: Vec<usize> = media.map(|at| at + number_at(&whole, at)).collect();
        for end in (0..whole.len()).step_by(97).chain(whole.len() - 9..whole.len()) {
            let index = whole.len().saturating_sub(end);
            let next = |at: usize| {
                fragments
                    .iter()
                    .copied()
                    .find(|&next| next >= at)
                    .unwrap_or(if fragments.is_empty() { at } else { whole.len() })
            };
            let is_whole = |&at: &usize| (at..next(at) + 8).contains(&end);
            if !ends.iter().any(is_whole) {
                assert!(parse(&whole[..end]).is_err(), "{name} cut by {index} bytes");
            }
        }
    }
}

#[test]
fn media_without_a_moov_box_says_that_the_recording_was_not_finished() {
    let whole = bytes_of("progressive-moov-last");
    let media = &whole[..find(&whole, b"moov", 0) - 4];
    let error = error_of(media);
    let end = media.len() as u64;
    assert_eq!(error, MediaError::NoMovie { end });
    assert!(error.to_string().contains("not finished"), "{error}");
}

#[test]
fn a_film_in_any_codec_is_a_title() {
    let title = Title::open(fixture("not-h264.mov")).unwrap();
    assert_eq!(title.info().codecs, "mp4v");
    assert_eq!(title.frames().len(), 9);
}

#[test]
fn an_error_is_given_again_and_no_frames_after_it() {
    let mut parser = StreamParser::new(Limits::default());
    let first = parser.push(b"not a box at all").unwrap_err();
    assert_eq!(parser.push(&bytes_of("fragmented")).unwrap_err(), first);
    assert_eq!(parser.finish().unwrap_err(), first);
    assert_eq!(parser.drain_frames().count(), 0);
    assert_eq!(parser.skippable(), 0);
}

/// Sample counts, chunk maps and times that contradict each other, each patched into a valid file.
#[rstest]
#[case::no_timescale(patched("progressive-moov-first", b"mdhd", 16, &[0; 4]), "mdhd", "timescale is 0")]
#[case::child_too_long(patched("progressive-moov-first", b"trak", usize::MAX - 3, &[0, 255, 255, 255]), "trak", "left")]
#[case::box_below_its_header(
    patched("progressive-moov-first", b"mdhd", usize::MAX - 3, &[0, 0, 0, 3]),
    "mdhd",
    "less than its own header"
)]
#[case::no_tables(
    patched("progressive-moov-first", b"stbl", 0, b"free"),
    "minf",
    "it holds no stbl box"
)]
#[case::data_before_the_file(patched("fragmented", b"trun", 12, &i32::MIN.to_be_bytes()), "trun", "outside any file")]
#[case::unreadable_type(
    [boxed(b"ftyp", b"isom"), boxed(&[1, 2, 3, 4], b"")].concat(),
    "\\x01\\x02\\x03\\x04",
    "not text"
)]
fn a_box_that_contradicts_its_neighbours_is_named(
    #[case] file: Vec<u8>,
    #[case] name: &str,
    #[case] words: &str,
) {
    let error = error_of(&file);
    let MediaError::Malformed {
        name: found, offset, ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert_eq!(found.to_string(), name);
    let place = *offset as usize + 4;
    assert_eq!(&file[place..place + 4], found.0, "the offset is the box's");
    assert!(error.to_string().contains(words), "{error}");
}

#[test]
fn a_frame_past_the_end_of_the_file_is_named() {
    let far = 1_000_000_u32.to_be_bytes();
    let file = patched("progressive-moov-first", b"stco", 12, &far);
    let error = error_of(&file);
    assert!(
        matches!(error, MediaError::FrameBeyondEnd { needed, end, .. } if needed > 1_000_000
            && end == file.len() as u64),
        "{error:?}"
    );
}

/// Boxes in boxes in boxes: 8 bytes per level, which overflow a recursive reader's stack.
#[rstest]
#[case::movies(b"moov", b"moov")]
#[case::tracks(b"moov", b"trak")]
#[case::metadata(b"moov", b"meta")]
#[case::fragments(b"moof", b"traf")]
fn boxes_nested_without_end_do_not_overflow_the_stack(#[case] outer: &[u8; 4], #[case] inner: &[u8; 4]) {
    let levels = 100_000_u32;
    let mut body = Vec::new();
    for level in (1..=levels).rev() {
        body.extend_from_slice(&(level * 8).to_be_bytes());
        body.extend_from_slice(inner);
    }
    let file = [boxed(b"ftyp", b"isom"), boxed(outer, &body)].concat();
    assert!(parse(&file).is_err());
    // The same in a place that mp4-atom decodes: as the description of a codec.
    let mut file = bytes_of("progressive-moov-first");
    let at = find(&file, b"avcC", 0) - 4;
    let room = file.len() - at;
    for (level, place) in (at..at + 48).step_by(8).enumerate() {
        let size = u32::try_from(room - level * 8).unwrap();
        file[place..place + 4].copy_from_slice(&size.to_be_bytes());
        file[place + 4..place + 8].copy_from_slice(inner);
    }
    let mut parser = StreamParser::new(Limits::default());
    parser.push(&file).unwrap();
    assert_eq!(parser.info().unwrap().codecs, "avc1, mp4a.40.2");
}

/// An `esds` descriptor in an `esds` descriptor in …: mp4-atom decodes them recursively, so only a limited part is
/// read.
#[test]
fn descriptors_nested_without_end_do_not_overflow_the_stack() {
    // Each level: tag 3, four bytes of length, an id and flags.
    let levels = 50_000_usize;
    let mut descriptors = Vec::new();
    for level in (0..levels).rev() {
        let length = level * 8 + 3;
        let group = |shift: usize| u8::try_from(length >> shift & 0x7f).unwrap();
        let length = [group(21) | 0x80, group(14) | 0x80, group(7) | 0x80, group(0)];
        descriptors.extend([&[3][..], &length, &[0, 1, 0]].concat());
    }
    let esds = boxed(b"esds", &[&[0; 4][..], &descriptors].concat());
    let entry = boxed(b"mp4a", &[&[0; 28][..], &esds].concat());
    let stsd = boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1][..], &entry].concat());
    let mut file = bytes_of("progressive-moov-first");
    // The audio track's table is replaced, and every box around it grows.
    let at = find(&file, b"stsd", 1) - 4;
    let old = number_at(&file, at);
    let grown = stsd.len() - old;
    file.splice(at..at + old, stsd);
    for (name, nth) in [
        (b"moov", 0),
        (b"trak", 1),
        (b"mdia", 1),
        (b"minf", 1),
        (b"stbl", 1),
    ] {
        let at = find(&file, name, nth) - 4;
        let size = u32::try_from(number_at(&file, at) + grown).unwrap();
        file[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    let mut parser = StreamParser::new(Limits::default());
    parser.push(&file).unwrap();
    assert_eq!(parser.info().unwrap().codecs, "avc1.64000b, mp4a");
}

/// A file with a run of four billion samples whose sizes and times are inherited.
fn inherited_samples() -> Vec<u8> {
    // The track, no flags but "offset present" (1), the count, the offset.
    let trun = boxed(b"trun", &[[0, 0, 0, 1], [255; 4], [0; 4]].concat());
    let tfhd = boxed(b"tfhd", &[[0, 2, 0, 0], [0, 0, 0, 1]].concat());
    let moof = boxed(b"moof", &boxed(b"traf", &[tfhd, trun].concat()));
    let head = bytes_of("fragmented");
    [&head[..find(&head, b"moof", 0) - 4], &moof].concat()
}

/// Declared sizes cost no memory; real ones cost little.
#[rstest]
#[case::a_huge_moov([boxed(b"ftyp", b"isom"), b"\x7f\xff\xff\xffmoov".to_vec()].concat(), "bytes in the moov box")]
#[case::a_huge_moof([boxed(b"ftyp", b"isom"), b"\x7f\xff\xff\xffmoof".to_vec()].concat(), "bytes in one moof box")]
#[case::a_moov_of_exabytes(
    [boxed(b"ftyp", b"isom"), b"\0\0\0\x01moov\x7f\xff\xff\xff\0\0\0\0".to_vec()].concat(),
    "bytes in the moov box"
)]
#[case::four_billion_equal_samples(
    patched("progressive-moov-first", b"stsz", 8, &[0, 0, 0, 1, 255, 255, 255, 255]),
    "samples"
)]
#[case::four_billion_inherited_samples(inherited_samples(), "samples")]
fn claims_beyond_the_limits_are_refused_without_paying_for_them(#[case] file: Vec<u8>, #[case] what: &str) {
    let mut error = None;
    let memory = allocation_counter::measure(|| error = parse(&file).err());
    let error = error.unwrap();
    assert!(
        matches!(&error, MediaError::BeyondLimit { what: found, .. } if *found == what),
        "{error:?}"
    );
    assert!(memory.bytes_max < 100_000, "{} bytes", memory.bytes_max);
}

/// `file` with the boxes `new` in place of its first box of the same name; the boxes `around` it grow.
fn with_boxes(mut file: Vec<u8>, new: &[u8], around: &[&[u8; 4]]) -> Vec<u8> {
    let name = new[4..8].try_into().unwrap();
    let at = find(&file, name, 0) - 4;
    let old = number_at(&file, at);
    for name in around {
        let at = find(&file, name, 0) - 4;
        let size = u32::try_from(number_at(&file, at) + new.len() - old).unwrap();
        file[at..at + 4].copy_from_slice(&size.to_be_bytes());
    }
    file.splice(at..at + old, new.iter().copied());
    file
}

/// `file` with `count` edits of its first track, each of a millisecond.
fn with_edits(file: Vec<u8>, count: u32) -> Vec<u8> {
    let edits = [[0, 0, 0, 1], [0, 0, 4, 0], [0, 1, 0, 0]].concat();
    let entries = edits.repeat(count as usize);
    let elst = boxed(b"elst", &[&[0; 4], &count.to_be_bytes()[..], &entries].concat());
    let at = find(&file, b"tkhd", 0) - 4;
    let tkhd = file[at..at + number_at(&file, at)].to_vec();
    with_boxes(file, &[tkhd, boxed(b"edts", &elst)].concat(), &[b"moov", b"trak"])
}

/// 30 edits, and a table of 50,000 keys before the first sample.
fn edits_and_tables() -> Vec<u8> {
    let keys = [&[0; 4][..], &50_000_u32.to_be_bytes(), &vec![0; 200_000]].concat();
    let around: [&[u8; 4]; 5] = [b"moov", b"trak", b"mdia", b"minf", b"stbl"];
    let file = with_boxes(bytes_of("progressive-moov-last"), &boxed(b"stss", &keys), &around);
    with_edits(file, 30)
}

/// 3,000 edits, and 1,000 parts of a fragment without samples.
fn edits_and_empty_fragments() -> Vec<u8> {
    let file = with_edits(bytes_of("fragmented"), 3_000);
    let tfhd = boxed(b"tfhd", &[[0, 2, 0, 0], [0, 0, 0, 1]].concat());
    let moof = boxed(b"moof", &boxed(b"traf", &tfhd).repeat(1_000));
    [&file[..find(&file, b"moof", 0) - 4], &moof].concat()
}

/// The time to read a file does not grow with the product of its edits and its tables.
#[rstest]
#[case(edits_and_tables())]
#[case(edits_and_empty_fragments())]
fn edits_of_large_tables_are_refused(#[case] file: Vec<u8>) {
    let mut limits = Limits::default();
    limits.samples = 10_000;
    let error = Title::read_within(Cursor::new(file), limits).unwrap_err();
    assert!(
        matches!(
            error,
            MediaError::BeyondLimit {
                what: "samples × edits",
                ..
            }
        ),
        "{error:?}"
    );
}

/// Samples of damaged fragments count: a run without values of its own declares any number of them in 16 bytes.
#[test]
fn samples_of_damaged_fragments_are_limited() {
    let file = bytes_of("fragmented");
    let tfhd = boxed(b"tfhd", &[[0, 2, 0, 0], [0, 0, 0, 1]].concat());
    let [usable, damaged] =
        [[0, 9_000_u32], [0x100, 9]].map(|run| boxed(b"trun", run.map(u32::to_be_bytes).as_flattened()));
    let runs = [usable, damaged].concat();
    let moof = boxed(b"moof", &boxed(b"traf", &[tfhd, runs].concat()));
    let mut limits = Limits::default();
    limits.samples = 20_000;
    let error = Title::read_within(Cursor::new([file, moof.repeat(3)].concat()), limits).unwrap_err();
    assert!(
        matches!(error, MediaError::BeyondLimit { what: "samples", .. }),
        "{error:?}"
    );
}

type Change = fn(&mut Limits);

#[test]
fn limits_hold_for_fragments_boxes_tracks_and_samples() {
    let bytes = bytes_of("fragmented");
    let cases: [(Change, &str); 6] = [
        (|limits| limits.fragments = 2, "fragments"),
        (|limits| limits.boxes = 3, "boxes"),
        (|limits| limits.tracks = 1, "tracks"),
        (|limits| limits.samples = 268, "samples"),
        (|limits| limits.movie_bytes = 1_000, "bytes in the moov box"),
        (|limits| limits.fragment_bytes = 1_000, "bytes in one moof box"),
    ];
    for (change, exceeded) in cases {
        let mut limits = Limits::default();
        change(&mut limits);
        match parse_in_pieces(&bytes, &[4_096], limits) {
            Err(MediaError::BeyondLimit { what, .. }) => assert_eq!(what, exceeded),
            other => panic!("{exceeded}: {other:?}"),
        }
    }
}

#[test]
fn media_is_not_kept() {
    let bytes = std::fs::read(assets().join("title-720p.mp4")).unwrap();
    let memory = allocation_counter::measure(|| {
        let frames = parse_in_pieces(&bytes, &[65_536], Limits::default()).unwrap();
        assert_eq!(frames.len(), 810);
    });
    // The moov box (31 kB) and its tables, and 810 frames, in buffers that double as they grow.
    let (most, all) = (memory.bytes_max, bytes.len());
    assert!(most < 500_000, "{most} bytes of {all}");
}
