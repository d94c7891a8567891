//! Kinds of files that real muxers and recorders write, each built here from a fixture: what plays in them, for how
//! long, and what is said about them.

use std::io::Cursor;
use std::time::Duration;

use playrate_media::{Frame, Limits, MediaError, StreamParser, Title};
use rstest::rstest;

use crate::common::{boxed, bytes_of, find, find_all, number_at};

/// The progressive fixture with its tables last, so that boxes may grow: 268 frames of 30 per second, 8.934 s.
const PROGRESSIVE: &str = "progressive-moov-last";

/// `bytes` with the `nth` box `name` replaced by `new`; the boxes around it, which are all in `moov`, grow.
fn replaced(mut bytes: Vec<u8>, name: &[u8; 4], nth: usize, new: &[u8]) -> Vec<u8> {
    let at = find(&bytes, name, nth) - 4;
    let old = number_at(&bytes, at);
    let around: Vec<usize> = [b"moov", b"trak", b"mdia", b"minf", b"stbl", b"edts"]
        .iter()
        .flat_map(|around| find_all(&bytes, around).map(|at| at - 4).collect::<Vec<_>>())
        .filter(|&start| start < at && at < start + number_at(&bytes, start))
        .collect();
    for start in around {
        let size = number_at(&bytes, start) + new.len() - old;
        bytes[start..start + 4].copy_from_slice(&u32::try_from(size).unwrap().to_be_bytes());
    }
    bytes.splice(at..at + old, new.iter().copied());
    bytes
}

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_be_bytes()).collect()
}

const EMPTY: u32 = u32::MAX;

/// An edit list: duration in milliseconds, media time in ticks, rate.
fn elst(edits: &[(u32, u32, u32)]) -> Vec<u8> {
    let entries = edits
        .iter()
        .flat_map(|&(duration, start, rate)| words(&[duration, start, rate << 16]));
    let count = u32::try_from(edits.len()).unwrap();
    boxed(b"elst", &[words(&[0, count]), entries.collect()].concat())
}

/// The progressive fixture with this edit list of its `track` (0 is the video).
fn edited(track: usize, edits: &[(u32, u32, u32)]) -> Vec<u8> {
    replaced(bytes_of(PROGRESSIVE), b"elst", track, &elst(edits))
}

/// The fixture `name` with `bytes` written `at` bytes after the type of the `nth` box `inside`.
fn patched(name: &str, (inside, nth): (&[u8; 4], usize), at: isize, bytes: &[u8]) -> Vec<u8> {
    let mut file = bytes_of(name);
    let start = find(&file, inside, nth).checked_add_signed(at).unwrap();
    file[start..start + bytes.len()].copy_from_slice(bytes);
    file
}

/// ISO/IEC 14496-12 §8.8.3.1: a sample that depends on others cannot be a key frame, whatever its other flags say.
#[test]
fn a_frame_of_a_fragment_that_depends_on_others_is_no_key_frame() {
    let bytes = bytes_of("fragmented");
    let mut patched = bytes.clone();
    for place in find_all(&bytes, &[1, 1, 0, 0]) {
        patched[place + 1] = 0;
    }
    assert_ne!(patched, bytes);
    assert_eq!(read(&patched).frames(), read(&bytes).frames());
}

/// Titles as a file and as a stream, which must agree.
fn read(bytes: &[u8]) -> Title {
    let title = Title::read(Cursor::new(bytes)).unwrap();
    let mut parser = StreamParser::new(Limits::default());
    parser.push(bytes).unwrap();
    parser.finish().unwrap();
    let streamed: Vec<Frame> = parser.drain_frames().collect();
    assert_eq!(streamed, title.frames());
    assert_eq!(parser.notes(), title.notes());
    assert_eq!(parser.playing_time(), title.duration());
    title
}

/// Ticks per second of the video; its media is shown from tick 1,024 on.
const SECONDS: u32 = 15_360;

/// ISO/IEC 14496-12 §8.6.6: frames, playing time in milliseconds, first presentation time in milliseconds.
#[rstest]
#[case::trim_both(edited(0, &[(3_000, 1_024 + 2 * SECONDS, 1)]), 90, 8_930, 0)]
#[case::begins_between_frames(edited(0, &[(3_000, 1_024 + 2 * SECONDS + 100, 1)]), 90, 8_930, 26)]
#[case::empty_first(edited(0, &[(2_000, EMPTY, 1), (8_933, 1_024, 1)]), 268, 10_933, 2_000)]
#[case::empty_sound(edited(1, &[(2_500, EMPTY, 1), (8_930, 1_024, 1)]), 268, 11_430, 0)]
#[case::repeat(edited(0, &[(2_000, 1_024, 1), (2_000, 1_024, 1), (2_000, 1_024, 1)]), 180, 8_930, 0)]
#[case::cut_in_the_middle(edited(0, &[(2_000, 1_024, 1), (2_000, 1_024 + 4 * SECONDS, 1)]), 120, 8_930, 0)]
#[case::dwell(edited(0, &[(3_000, 1_024, 0), (8_933, 1_024, 1)]), 269, 11_933, 0)]
#[case::nothing_shown(edited(0, &[(3_000, 1_024 + 900 * SECONDS, 1)]), 268, 9_000, 66)]
#[case::no_edits(edited(0, &[]), 268, 9_000, 66)]
fn an_edit_list_decides_what_is_shown_and_when(
    #[case] file: Vec<u8>,
    #[case] frames: usize,
    #[case] millis: u64,
    #[case] first: u128,
) {
    let title = read(&file);
    assert_eq!(title.frames().len(), frames);
    let expected = Duration::from_millis(millis);
    assert!(
        title.duration().abs_diff(expected) <= Duration::from_millis(1),
        "{:?}",
        title.duration()
    );
    let begin = title.frames().iter().map(|frame| frame.pts).min().unwrap();
    assert_eq!(begin.as_millis(), first);
    let segments = title.segments();
    assert_eq!(segments.last().unwrap().frames.end, frames);
    assert!(
        segments
            .iter()
            .all(|segment| segment.bytes.end <= title.file_size().as_u64())
    );
    let plain = read(&bytes_of(PROGRESSIVE)).average_rate().as_mbps();
    let rate = title.sending_rate().as_mbps();
    assert!(
        (0.5 * plain..1.5 * plain).contains(&rate),
        "{rate} of {plain} Mbit/s"
    );
}

/// A still picture: many writers leave the duration of the only sample out of the tables.
#[rstest]
#[case::none(0)]
#[case::one_tick(1)]
#[case::of_a_frame_rate(512)]
#[case::right(137_216)]
fn the_only_frame_lasts_as_long_as_the_headers_agree(#[case] delta: u32) {
    let tables = [
        (b"stts", words(&[0, 1, 1, delta])),
        (b"stsz", words(&[0, 1_000, 1])),
    ];
    let file = tables.iter().fold(bytes_of(PROGRESSIVE), |file, (name, table)| {
        replaced(file, name, 0, &boxed(name, table))
    });
    let sound = find(&file, b"trak", 1);
    let title = read(&[&file[..sound], b"free", &file[sound + 4..]].concat());
    assert_eq!(title.frames().len(), 1);
    let off = title.duration().abs_diff(Duration::from_millis(8_934));
    assert!(off < Duration::from_millis(70), "{:?}", title.duration());
}

/// The fragmented fixture with `ticks` added to the decode times of video and sound from the fragment `first` on.
fn delayed(ticks: [i64; 2], first: usize) -> Vec<u8> {
    let mut bytes = bytes_of("fragmented");
    let times: Vec<usize> = find_all(&bytes, b"tfdt").collect();
    for (at, place) in times.into_iter().enumerate().skip(2 * first) {
        let time = i64::from_be_bytes(bytes[place + 8..place + 16].try_into().unwrap());
        let later = (time + ticks[at % 2]).max(0);
        bytes[place + 8..place + 16].copy_from_slice(&later.to_be_bytes());
    }
    bytes
}

/// The fragmented fixture with `seconds` added to the decode times from the fragment `first` on.
fn jumping(seconds: i64, first: usize) -> Vec<u8> {
    delayed([seconds * 15_360, seconds * 24_000], first)
}

/// Each of these says what contradicts it, and plays for the time that most of it agrees on.
#[rstest]
#[case::clock_set_forward(jumping(9 * 3_600, 1), 9_000, "decode times jump")]
#[case::clock_set_back(jumping(-6, 1), 9_000, "decode times jump")]
#[case::last_duration_negative(
    replaced(bytes_of(PROGRESSIVE), b"stts", 0, &boxed(b"stts", &words(&[0, 2, 267, 512, 1, EMPTY]))),
    8_933,
    "sample durations"
)]
#[case::last_duration_absurd(
    replaced(bytes_of(PROGRESSIVE), b"stts", 0, &boxed(b"stts", &words(&[0, 2, 267, 512, 1, 1 << 30]))),
    8_933,
    "sample durations"
)]
#[case::composition_absurd(
    patched("fragmented", (b"trun", 2), 24, &words(&[0x7000_0000])),
    9_000,
    "composition offsets"
)]
#[case::header_absurd(patched(PROGRESSIVE, (b"mvhd", 0), 20, &words(&[99_000_000])), 8_933, "the header declares")]
fn a_time_that_cannot_be_right_is_named_and_not_used(
    #[case] file: Vec<u8>,
    #[case] millis: u64,
    #[case] note: &str,
) {
    let title = read(&file);
    assert_eq!(title.frames().len(), 268);
    let expected = Duration::from_millis(millis);
    assert!(
        title.duration().abs_diff(expected) <= Duration::from_millis(70),
        "{:?}",
        title.duration()
    );
    assert!(
        title.notes().iter().any(|found| found.contains(note)),
        "{:?}",
        title.notes()
    );
}

/// The first or the last fragment with a negative duration of its last frame.
#[rstest]
fn a_negative_duration_in_a_fragment_is_named_and_not_used(#[values(0, 2)] fragment: usize) {
    // All samples of the fixture's runs have sizes and composition offsets, and most have the default duration.
    let mut bytes = bytes_of("fragmented");
    let run = find(&bytes, b"trun", 2 * fragment) - 4;
    let size = number_at(&bytes, run);
    let (count, mut at) = (number_at(&bytes, run + 12), run + 24);
    let mut entries = Vec::new();
    for entry in 0..count {
        let duration = if entry + 1 == count { EMPTY } else { 512 };
        entries.extend(words(&[duration]));
        entries.extend_from_slice(&bytes[at..at + 8]);
        at += 8;
    }
    assert_eq!(at, run + size, "flags 0xa05");
    let mut trun = bytes[run + 8..run + 24].to_vec();
    trun[2] |= 1;
    let new = boxed(b"trun", &[trun, entries].concat());
    let grown = new.len() - size;
    let moof = find(&bytes, b"moof", fragment) - 4;
    for start in [moof, find(&bytes, b"traf", 2 * fragment) - 4] {
        let grown = u32::try_from(number_at(&bytes, start) + grown).unwrap();
        bytes[start..start + 4].copy_from_slice(&grown.to_be_bytes());
    }
    for nth in [0, 1] {
        let offset = find(&bytes, b"trun", 2 * fragment + nth) + 12;
        let moved = u32::try_from(number_at(&bytes, offset) + grown).unwrap();
        bytes[offset..offset + 4].copy_from_slice(&moved.to_be_bytes());
    }
    let run = find(&bytes, b"trun", 2 * fragment) - 4;
    let moved = words(&[u32::try_from(number_at(&bytes, run + 16)).unwrap()]);
    bytes.splice(run..run + size, new);
    bytes[run + 16..run + 20].copy_from_slice(&moved);
    let title = read(&bytes);
    assert_eq!(title.frames().len(), 268);
    assert!(
        title.duration().abs_diff(Duration::from_secs(9)) < Duration::from_millis(70),
        "{:?}",
        title.duration()
    );
    assert!(
        title.notes()[0].contains("negative durations"),
        "{:?}",
        title.notes()
    );
}

/// ISO/IEC 14496-12 §8.2.2.3: all ones stand for a duration that is not known.
#[test]
fn an_unknown_duration_in_the_header_contradicts_nothing() {
    let title = read(&patched(PROGRESSIVE, (b"mvhd", 0), 20, &words(&[EMPTY])));
    assert_eq!(title.notes(), &[] as &[String]);
}

/// The fragment in the middle is damaged; the others are played at their times.
#[rstest]
#[case::header_short(patched("fragmented", (b"tfhd", 2), -4, &words(&[10])))]
#[case::run_too_long(patched("fragmented", (b"trun", 2), -4, &words(&[99_999])))]
#[case::no_header(patched("fragmented", (b"tfhd", 2), 0, b"free"))]
fn a_damaged_fragment_is_passed_over(#[case] file: Vec<u8>) {
    let title = read(&file);
    assert_eq!(title.frames().len(), 268 - 90);
    assert!(
        title.duration().abs_diff(Duration::from_secs(9)) < Duration::from_millis(70),
        "{:?}",
        title.duration()
    );
    assert!(
        title.notes()[0].contains("a fragment is passed over"),
        "{:?}",
        title.notes()
    );
}

/// The sound of the fragment in the middle is damaged; all video is played.
#[test]
fn a_damaged_track_of_a_fragment_leaves_the_others() {
    let title = read(&patched("fragmented", (b"trun", 3), -4, &words(&[99_999])));
    assert_eq!(title.frames().len(), 268);
    assert!(title.notes()[0].contains("a fragment is passed over"));
}

/// A default duration that is negative is not used.
#[test]
fn a_negative_default_duration_is_named_and_not_used() {
    let file = bytes_of("fragmented");
    // Flags 0x020038: duration, size and flags of samples.
    let header = find(&file, b"tfhd", 2);
    assert_eq!(number_at(&file, header + 4) & 0x3f, 0x38);
    let title = read(&patched("fragmented", (b"tfhd", 2), 12, &words(&[EMPTY - 99])));
    assert!(
        title.duration() < Duration::from_secs(20),
        "{:?}",
        title.duration()
    );
    assert!(
        title.notes()[0].contains("negative durations"),
        "{:?}",
        title.notes()
    );
}

/// Decode times that begin late, as in a live recording, and gaps that a camera leaves are no contradiction.
#[rstest]
#[case::gap_of_3_s(jumping(3, 1), 12_000)]
#[case::begins_late(jumping(9 * 3_600, 0), 9_000)]
#[case::video_begins_after_sound(delayed([2 * 15_360, 0], 0), 11_000)]
#[case::sound_begins_after_video(delayed([0, 3 * 24_000], 0), 11_997)]
#[case::run_without_samples(
    replaced(bytes_of(PROGRESSIVE), b"stts", 0, &boxed(b"stts", &words(&[0, 2, 0, EMPTY, 268, 512]))),
    8_933
)]
fn a_time_that_may_be_right_is_used(#[case] file: Vec<u8>, #[case] millis: u64) {
    let title = read(&file);
    assert_eq!(title.notes(), &[] as &[String]);
    let late = title.duration().abs_diff(Duration::from_millis(millis));
    assert!(late < Duration::from_millis(2), "{:?}", title.duration());
}

/// The first fragment begins at zero. An edit list may refer to its decode time, or to that of an earlier fragment.
#[rstest]
#[case::at_zero(0, 1_024)]
#[case::a_second_and_a_tick(15_361, 1_024)]
#[case::a_second(15_360, 15_360 + 1_024)]
#[case::an_hour(3_600 * 15_360, 1_024)]
#[case::an_hour_in_the_edit_list(3_600 * 15_360, 3_600 * 15_360 + 1_024)]
fn every_frame_is_shown_from_zero_on(#[case] time: i64, #[case] start: u32) {
    let title = |time: i64, start| {
        let delayed = delayed([time, time * 24_000 / 15_360 + 1], 0);
        let title = read(&with_first_edit(delayed, &[(0, start, 1)]));
        assert_eq!(title.frames()[0].pts, Duration::ZERO);
        let times = title.frames().iter().map(|frame| (frame.dts, frame.pts));
        times.collect::<Vec<_>>()
    };
    assert_eq!(title(time, start), title(0, 1_024));
}

/// `file` with an edit list in front of any that its first track has.
fn with_first_edit(file: Vec<u8>, edits: &[(u32, u32, u32)]) -> Vec<u8> {
    let at = find(&file, b"tkhd", 0) - 4;
    let tkhd = &file[at..at + number_at(&file, at)];
    let new = [tkhd, &boxed(b"edts", &elst(edits))].concat();
    replaced(file, b"tkhd", 0, &new)
}

/// Segments of a packaged title are read one by one, each with the edit list for all.
#[rstest]
fn an_edit_list_hides_no_later_segment(#[values(2, 20)] start: u32) {
    let later = jumping(3_600, 0);
    let title = read(&with_first_edit(later, &[(0, start * SECONDS, 1)]));
    assert_eq!(title.frames().len(), 268);
}

/// Edits count the samples that they show, not all samples of the track.
#[rstest]
#[case::pieces(&[(3_000, 1_024, 1), (3_000, 1_024 + 3 * SECONDS, 1), (2_900, 1_024 + 6 * SECONDS, 1)], true)]
#[case::repeated(&[(3_000, 1_024, 1); 5], false)]
fn the_limit_of_samples_holds_for_those_shown(#[case] edits: &[(u32, u32, u32)], #[case] is_read: bool) {
    let mut limits = Limits::default();
    limits.samples = 500;
    let read = Title::read_within(Cursor::new(edited(0, edits)), limits);
    match read {
        Err(MediaError::BeyondLimit { what, .. }) => assert!(!is_read && what == "shown samples"),
        read => assert!(is_read && read.unwrap().frames().len() == 267),
    }
}

/// Composition offsets that are negative in boxes of version 0: all 1,024 ticks earlier than in the fixture.
#[rstest]
#[case::tables(PROGRESSIVE, b"ctts")]
#[case::fragments("fragmented", b"trun")]
fn negative_offsets_in_version_0_are_read_as_such(#[case] name: &str, #[case] inside: &[u8; 4]) {
    let mut bytes = bytes_of(name);
    for at in find_all(&bytes.clone(), inside).collect::<Vec<_>>() {
        let (flags, count) = (number_at(&bytes, at + 4) & 0xff_ffff, number_at(&bytes, at + 8));
        // Entries of `trun` follow an offset and flags of the first sample; the composition offset is their last field.
        let optional = [1, 4].iter().filter(|&&flag| flags & flag > 0).count();
        let fields = [0x100, 0x200, 0x400, 0x800]
            .iter()
            .filter(|&&flag| flags & flag > 0)
            .count();
        let (start, size) = if inside == b"trun" {
            (at + 12 + 4 * optional, 4 * fields)
        } else {
            (at + 12, 8)
        };
        if inside == b"trun" && flags & 0x800 == 0 {
            continue;
        }
        bytes[at + 4] = 0;
        for entry in 0..count {
            let place = start + (entry + 1) * size - 4;
            let offset = (number_at(&bytes, place) as u32).wrapping_sub(1_024);
            bytes[place..place + 4].copy_from_slice(&offset.to_be_bytes());
        }
    }
    let bytes = if inside == b"ctts" {
        replaced(bytes, b"elst", 0, &elst(&[]))
    } else {
        bytes
    };
    let title = read(&bytes);
    assert_eq!(title.frames().len(), 268);
    assert!(
        title
            .frames()
            .iter()
            .all(|frame| frame.pts < Duration::from_secs(9))
    );
    assert!(
        title.duration() < Duration::from_millis(9_001),
        "{:?}",
        title.duration()
    );
}

/// Defects in what is not played, or that leave all or most of it playable.
#[rstest]
#[case::trailing_bytes([bytes_of(PROGRESSIVE), vec![0; 4]].concat(), 268)]
#[case::trailing_zeros([bytes_of(PROGRESSIVE), vec![0; 4_096]].concat(), 268)]
#[case::trailing_zeros_of_fragments([bytes_of("fragmented"), vec![0; 4_096]].concat(), 268)]
#[case::trailing_tag([bytes_of(PROGRESSIVE), b"TAGtitle and artist".to_vec()].concat(), 268)]
#[case::truncated_padding([bytes_of("progressive-moov-first"), b"\0\x01\0\0free".to_vec()].concat(), 268)]
#[case::unknown_first_box([boxed(b"abcd", b"12345678"), bytes_of("fragmented")].concat(), 268)]
#[case::empty_boxes(
    [bytes_of(PROGRESSIVE), boxed(b"free", b""), boxed(b"mdat", b""), boxed(b"moof", b"")].concat(),
    268
)]
#[case::movie_repeated(movie_repeated(), 268)]
#[case::movie_to_the_end(movie_to_the_end(), 268)]
#[case::joined_recordings([bytes_of("fragmented"), bytes_of("fragmented")].concat(), 536)]
#[case::composition_short(replaced(bytes_of(PROGRESSIVE), b"ctts", 0, &boxed(b"ctts", &words(&[0, 1, 9, 1_024]))), 268)]
#[case::times_short(replaced(bytes_of(PROGRESSIVE), b"stts", 0, &boxed(b"stts", &words(&[0, 1, 9, 512]))), 268)]
#[case::composition_cut(patched(PROGRESSIVE, (b"ctts", 0), 8, &words(&[99_999])), 268)]
#[case::sizes_cut(patched(PROGRESSIVE, (b"stsz", 0), 12, &words(&[99_999])), 268)]
#[case::edits_cut(patched(PROGRESSIVE, (b"elst", 0), 8, &words(&[99])), 268)]
#[case::metadata_too_long(with_metadata(99), 268)]
#[case::metadata_too_short(with_metadata(4), 268)]
#[case::fragments_not_announced(patched("fragmented", (b"mvex", 0), 0, b"free"), 268)]
#[case::edits_unreadable(patched(PROGRESSIVE, (b"elst", 0), 16, &words(&[EMPTY - 8])), 268)]
#[case::subtitles_on_a_clock_of_their_own(subtitles(), 268)]
#[case::subtitles_outside_of_the_file(
    {
        let mut bytes = subtitles();
        let run = find(&bytes, b"trun", 1);
        bytes[run + 12..run + 16].copy_from_slice(&i32::MIN.to_be_bytes());
        bytes
    },
    268
)]
#[case::sound_without_tables(replaced(bytes_of(PROGRESSIVE), b"stbl", 1, &boxed(b"free", b"")), 268)]
#[case::fragments_of_an_unknown_track(patched("fragmented", (b"tfhd", 1), 8, &words(&[77])), 268)]
fn a_defect_that_leaves_it_playable_does_not_condemn_a_file(#[case] file: Vec<u8>, #[case] frames: usize) {
    let title = read(&file);
    assert_eq!(title.frames().len(), frames);
    let most = Duration::from_secs(frames as u64 / 268 * 9);
    assert!(
        title.duration() <= most && title.duration() + Duration::from_millis(200) > most,
        "{:?}",
        title.duration()
    );
}

#[test]
fn sound_beyond_the_end_of_the_file_extends_no_segment() {
    let title = read(&patched(
        "progressive-moov-first",
        (b"stco", 1),
        12,
        &words(&[1_000_000]),
    ));
    assert_eq!(title.frames().len(), 268);
    let ends = title.segments().into_iter().map(|segment| segment.bytes.end);
    assert_eq!(ends.max(), Some(title.file_size().as_u64()));
}

/// A last box in `moov` that claims `size` bytes.
fn with_metadata(size: u32) -> Vec<u8> {
    let track = find(&bytes_of(PROGRESSIVE), b"udta", 0) - 4;
    let mut bytes = bytes_of(PROGRESSIVE);
    bytes[track..track + 4].copy_from_slice(&size.to_be_bytes());
    bytes
}

/// The second track is of another kind, and its fragments are far ahead of the video's.
fn subtitles() -> Vec<u8> {
    let mut bytes = patched("fragmented", (b"soun", 0), 0, b"text");
    for place in find_all(&bytes.clone(), b"tfdt").skip(1).step_by(2) {
        bytes[place + 8] = 1;
    }
    bytes
}

/// `ftyp` and `moov` again before the last fragment, as in recordings joined from segments.
fn movie_repeated() -> Vec<u8> {
    let bytes = bytes_of("fragmented");
    let (first, last) = (find(&bytes, b"moof", 0) - 4, find(&bytes, b"moof", 2) - 4);
    [&bytes[..last], &bytes[..first], &bytes[last..]].concat()
}

fn movie_to_the_end() -> Vec<u8> {
    let at = find(&bytes_of(PROGRESSIVE), b"moov", 0) - 4;
    let mut bytes = bytes_of(PROGRESSIVE);
    bytes[at..at + 4].fill(0);
    bytes
}

/// Sizes in half bytes, bytes and words (§8.7.3.3).
#[rstest]
#[case(8, (0..=255).chain(0..12).collect(), 255)]
#[case(16, (0..268_u16).flat_map(u16::to_be_bytes).collect(), 267)]
#[case(4, (0..134).map(|at| (at % 16) << 4 | 7).collect(), 15)]
fn compact_sizes_are_read(#[case] bits: u32, #[case] sizes: Vec<u8>, #[case] largest: u64) {
    let stz2 = boxed(b"stz2", &[words(&[0, bits, 268]), sizes].concat());
    let title = read(&replaced(bytes_of(PROGRESSIVE), b"stsz", 0, &stz2));
    let sizes = title.frames().iter().map(|frame| frame.size.as_u64());
    assert_eq!(sizes.max(), Some(largest));
}

/// A visual sample entry of this type with these boxes.
fn visual(name: &[u8; 4], boxes: &[u8]) -> Vec<u8> {
    let mut fields = vec![0; 78];
    fields[24..28].copy_from_slice(&[0, 192, 0, 108]);
    boxed(name, &[&fields, boxes].concat())
}

const HVCC: &[u8] = &[
    1, 1, 0x60, 0, 0, 0, 0xb0, 0, 0, 0, 0, 0, 93, 0xf0, 0, 0xfc, 0xfd, 0xf8, 0xf8, 0, 0, 0x0f, 0,
];

/// RFC 6381 §3.3, ISO/IEC 14496-15 annex E.3, AV1-ISOBMFF §5, VP-ISOBMFF §3; and ISO/IEC 14496-12 §8.12.
#[rstest]
#[case::hevc(visual(b"hvc1", &boxed(b"hvcC", HVCC)), "hvc1.1.6.L93.b0", None)]
#[case::av1(visual(b"av01", &boxed(b"av1C", &[0x81, 0x04, 0x0c, 0])), "av01.0.04M.08", None)]
#[case::vp9(visual(b"vp09", &boxed(b"vpcC", &[1, 0, 0, 0, 0, 31, 0x80, 1, 1, 1, 0, 0])), "vp09.00.31.08", None)]
#[case::unknown(visual(b"xvid", b""), "xvid", None)]
#[case::configuration_missing(visual(b"avc1", b""), "avc1", None)]
#[case::configuration_empty(visual(b"av01", &boxed(b"av1C", b"")), "av01", None)]
#[case::configuration_of_a_draft(visual(b"av01", &boxed(b"av1C", &[0; 5])), "av01", None)]
#[case::encrypted(
    visual(b"encv", &[
        boxed(b"hvcC", HVCC),
        boxed(b"sinf", &[boxed(b"frma", b"hvc1"), boxed(b"schm", b"\0\0\0\0cbcs\0\x01\0\0")].concat()),
    ].concat()),
    "hvc1.1.6.L93.b0",
    Some("cbcs")
)]
#[case::encrypted_without_its_format(visual(b"encv", b""), "encv", Some("unknown"))]
#[case::fairplay(
    visual(b"drmi", &boxed(b"sinf", &[boxed(b"frma", b"avc1"), boxed(b"schm", b"\0\0\0\0itun")].concat())),
    "avc1",
    Some("itun")
)]
fn a_title_in_any_codec_is_described(
    #[case] entry: Vec<u8>,
    #[case] codec: &str,
    #[case] encryption: Option<&str>,
) {
    let stsd = boxed(b"stsd", &[words(&[0, 1]), entry].concat());
    let title = read(&replaced(bytes_of(PROGRESSIVE), b"stsd", 0, &stsd));
    assert_eq!(title.info().codecs, format!("{codec}, mp4a.40.2"));
    assert_eq!((title.info().width, title.info().height), (192, 108));
    assert_eq!(title.info().encryption.as_deref(), encryption);
    assert_eq!(title.frames().len(), 268);
    assert_eq!(title.average_rate(), read(&bytes_of(PROGRESSIVE)).average_rate());
}

#[test]
fn a_title_of_sound_only_is_rated_by_it() {
    let mut bytes = bytes_of(PROGRESSIVE);
    let video = find(&bytes, b"trak", 0);
    bytes[video..video + 4].copy_from_slice(b"free");
    let title = read(&bytes);
    assert_eq!(title.info().codecs, "mp4a.40.2");
    assert!(!title.info().has_video && title.average_rate().as_mbps() > 0.01);
}

/// A damaged video track is not replaced by the sound of the file.
#[test]
fn damage_of_what_is_played_is_refused() {
    let bytes = replaced(bytes_of(PROGRESSIVE), b"stbl", 0, &boxed(b"free", b""));
    let error = Title::read(Cursor::new(&bytes)).unwrap_err();
    assert!(
        matches!(&error, MediaError::Malformed { name, .. } if name.to_string() == "minf"),
        "{error:?}"
    );
}
