//! Sources: bytes at offsets.

use std::fs;
use std::time::Duration;

use playrate_media::{
    Layout, Limits, MAX_READ, MediaError, MediaSource, MemorySource, StreamParser, Title, TraceSource,
};
use playrate_units::Bitrate;
use proptest::prelude::*;

use crate::common::{fixture, trace};

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
    let source = MemorySource::open(&path).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert_eq!(source.len(), bytes.len() as u64);
    assert_eq!(read_all(&source, 1_000), bytes);
    assert_eq!(source.title(), &Title::open(&path).unwrap());
}

#[test]
fn a_read_gives_no_more_than_the_bound_however_much_is_asked_for() {
    let source = MemorySource::open(&fixture("../title-720p.mp4")).unwrap();
    assert_eq!(source.read_at(0, usize::MAX).unwrap().len(), MAX_READ);
    assert_eq!(source.read_at(source.len() - 3, usize::MAX).unwrap().len(), 3);
    assert!(source.read_at(source.len(), 10).unwrap().is_empty());
    assert!(source.read_at(u64::MAX, 10).unwrap().is_empty());
    assert!(source.read_at(5, 0).unwrap().is_empty());
}

#[test]
fn identities_differ_when_the_bytes_do_and_fit_an_etag() {
    let bytes = fs::read(fixture("fragmented.mp4")).unwrap();
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    let memory = MemorySource::new(bytes.clone()).unwrap();
    assert_eq!(memory.identity(), MemorySource::new(bytes).unwrap().identity());
    assert_ne!(memory.identity(), MemorySource::new(changed).unwrap().identity());

    let traced = TraceSource::new(&trace());
    let scaled = TraceSource::new(&trace().scale_to_rate(Bitrate::from_mbps(1)).unwrap());
    assert_ne!(traced.identity(), scaled.identity());
    for identity in [memory.identity(), traced.identity()] {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        assert!(!identity.is_empty() && identity.bytes().all(fits), "{identity}");
    }
}

#[test]
fn a_missing_file_or_a_directory_is_named() {
    let error = MemorySource::open("no/such/title.mp4".as_ref()).unwrap_err();
    assert!(matches!(error.cause(), MediaError::Io { .. }));
    assert!(error.to_string().starts_with("no/such/title.mp4: "), "{error}");
    let error = MemorySource::open(env!("CARGO_MANIFEST_DIR").as_ref())
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
