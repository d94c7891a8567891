//! Sources: bytes at offsets, and errors when a file has changed.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use playrate_media::{
    FileSource, Layout, Limits, MAX_READ, MediaError, MediaSource, MemorySource, StreamParser, Title,
    TraceSource,
};
use playrate_units::Bitrate;
use proptest::prelude::*;
use tempfile::TempDir;

use crate::common::{fixture, trace};

fn copied(name: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(name);
    fs::copy(fixture(name), &path).unwrap();
    (directory, path)
}

fn read_all(source: &dyn MediaSource, max: usize) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let piece = source.read_at(all.len() as u64, max).unwrap();
        assert!(piece.len() <= max.min(MAX_READ));
        if piece.is_empty() {
            return all;
        }
        all.extend_from_slice(&piece);
    }
}

#[test]
fn a_file_reads_back_byte_for_byte_in_pieces() {
    let path = fixture("progressive-moov-first.mp4");
    let source = FileSource::open(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(source.len(), bytes.len() as u64);
    assert_eq!(read_all(&source, 1_000), bytes);
    assert_eq!(read_all(&MemorySource::new(bytes.clone()).unwrap(), 4_096), bytes);
    assert_eq!(source.title(), &Title::open(&path).unwrap());
    assert!(source.modified().is_some());
}

#[test]
fn a_read_gives_no_more_than_the_bound_however_much_is_asked_for() {
    let source = FileSource::open(fixture("../title-720p.mp4")).unwrap();
    assert_eq!(source.read_at(0, usize::MAX).unwrap().len(), MAX_READ);
    assert_eq!(source.read_at(source.len() - 3, usize::MAX).unwrap().len(), 3);
    assert!(source.read_at(source.len(), 10).unwrap().is_empty());
    assert!(source.read_at(u64::MAX, 10).unwrap().is_empty());
    assert!(source.read_at(5, 0).unwrap().is_empty());
}

#[test]
fn a_file_truncated_while_it_is_served_gives_an_error_that_says_so() {
    let (_directory, path) = copied("progressive-moov-first.mp4");
    let source = FileSource::open(&path).unwrap();
    let was = source.len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(20_000).unwrap();
    let error = source.read_at(30_000, 100).unwrap_err().to_string();
    assert!(error.contains("changed while it was served"), "{error}");
    assert!(error.contains(&was.to_string()), "{error}");
    assert!(error.contains("20000"), "{error}");
    assert!(source.read_at(0, 100).is_err(), "even where bytes are left");
}

#[test]
fn a_file_overwritten_in_place_gives_an_error_and_a_replaced_one_stays_as_it_was() {
    let (directory, path) = copied("progressive-moov-first.mp4");
    let source = FileSource::open(&path).unwrap();
    let before = read_all(&source, 10_000);
    let other = directory.path().join("other.mp4");
    fs::copy(fixture("fragmented.mp4"), &other).unwrap();
    fs::rename(&other, &path).unwrap();
    assert_eq!(read_all(&source, 10_000), before);

    let source = FileSource::open(&path).unwrap();
    let mut file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all(b"scribble").unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
        .unwrap();
    assert!(source.read_at(0, 100).is_err());
}

#[test]
fn identities_differ_when_the_bytes_do_and_fit_an_etag() {
    let bytes = fs::read(fixture("fragmented.mp4")).unwrap();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    let memory = MemorySource::new(bytes.clone()).unwrap();
    assert_eq!(memory.identity(), MemorySource::new(bytes).unwrap().identity());
    assert_ne!(memory.identity(), MemorySource::new(changed).unwrap().identity());

    let (_directory, path) = copied("fragmented.mp4");
    let first = FileSource::open(&path).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1))
        .unwrap();
    let second = FileSource::open(&path).unwrap();
    assert_ne!(first.identity(), second.identity());

    let traced = TraceSource::new(&trace());
    let scaled = TraceSource::new(&trace().scale_to_rate(Bitrate::from_mbps(1)).unwrap());
    assert_ne!(traced.identity(), scaled.identity());
    for identity in [memory.identity(), first.identity(), traced.identity()] {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        assert!(!identity.is_empty() && identity.bytes().all(fits), "{identity}");
    }
}

#[test]
fn a_missing_file_or_a_directory_is_named() {
    let error = FileSource::open("no/such/title.mp4").unwrap_err();
    assert!(matches!(error.cause(), MediaError::Io { .. }));
    assert!(error.to_string().starts_with("no/such/title.mp4: "), "{error}");
    let error = FileSource::open(env!("CARGO_MANIFEST_DIR"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("directory"), "{error}");
}

#[test]
fn a_trace_is_served_with_the_frames_of_the_encode_and_says_that_it_is_no_mp4() {
    let source = TraceSource::new(&trace());
    let encode = Title::open(fixture("../title-720p.mp4")).unwrap();
    assert_eq!(source.title().layout(), Layout::Trace);
    assert_eq!(source.title().frames().len(), encode.frames().len());
    let mut offset = 0;
    for (ours, theirs) in source.title().frames().iter().zip(encode.frames()) {
        assert_eq!(ours.size, theirs.size);
        assert_eq!(ours.key, theirs.key);
        assert_eq!(ours.offset, offset);
        // The trace's times are in microseconds, the file's in 1/15360 s.
        let apart = ours.pts.abs_diff(theirs.pts).max(ours.dts.abs_diff(theirs.dts));
        assert!(apart < Duration::from_micros(3), "{apart:?}");
        offset = ours.end();
    }
    assert_eq!(source.len(), offset);
    assert_eq!(source.title().segments().len(), encode.segments().len());
    let mut parser = StreamParser::new(Limits::default());
    assert!(parser.push(&source.read_at(0, 100).unwrap()).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn generated_payload_depends_on_its_offset_alone(
        offset in 0..2_000_000_u64, max in 1..3_000_usize, cut in 0..3_000_u64
    ) {
        let source = TraceSource::new(&trace());
        let whole = source.read_at(offset, max).unwrap();
        let cut = cut.min(whole.len() as u64);
        let tail = source.read_at(offset + cut, max - cut as usize).unwrap();
        prop_assert_eq!(&whole[cut as usize..], &tail[..]);
    }
}

#[test]
fn a_period_of_generated_payload_does_not_compress() {
    // Longer than the window of deflate, which compressing proxies use.
    let period = 65_521;
    let source = TraceSource::new(&trace());
    let bytes = source.read_at(0, period).unwrap();
    let mut counts = [0_u32; 256];
    for &byte in &bytes {
        counts[usize::from(byte)] += 1;
    }
    // 256 of each value are expected; 96 is six standard deviations.
    assert!(
        counts.iter().all(|&count| (160..352).contains(&count)),
        "{counts:?}"
    );
}
