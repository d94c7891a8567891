//! MP4 files and segment indexes.

use std::io::{Cursor, Read, Result, Seek, SeekFrom};
use std::time::Duration;

use playrate_media::{Frame, Limits, MediaError, StreamParser, Title};

use super::within_memory;

/// Maximum number of samples accepted. A file of a few bytes may claim this many.
const SAMPLES: u64 = 20_000;
/// Memory for the frames of that many samples, twice, in buffers that double, plus the reader's buffer.
const MEMORY: u64 = 8_000_000;
/// Largest tables in memory, per byte of the file. A sample takes 4 bytes of the file and 24 in memory.
const MEMORY_PER_BYTE: u64 = 64;
/// Maximum length of a file made from an input.
const LONGEST: u64 = 1 << 30;

/// Reads the input as a file, at once and in pieces. The last box may be incomplete: it is padded with zeros, so that
/// inputs need no media.
pub(super) fn title(bytes: &[u8]) {
    let mut limits = Limits::default();
    limits.samples = SAMPLES;
    // If a box is padded with zeros, the zeros are held too.
    limits.movie_bytes = 256 << 10;
    limits.fragment_bytes = 64 << 10;
    let length = claimed_length(bytes);
    within_memory(MEMORY + MEMORY_PER_BYTE * bytes.len() as u64, || {
        let file = PaddedFile {
            bytes,
            length,
            position: 0,
        };
        let read = Title::read_within(file, limits);
        // Sizes of the pieces; prime, so that every box is cut somewhere.
        for piece in [bytes.len().max(1), 13] {
            let frames = parse_in_pieces(bytes, length, piece, limits);
            match (&read, frames) {
                (Ok(title), Ok(frames)) => {
                    assert!(frames == title.frames(), "pieces of {piece} give other frames");
                }
                (Err(error), Err(other)) => assert_eq!(*error, other, "in pieces of {piece}"),
                (read, frames) => panic!(
                    "whole {:?}, in pieces of {piece} {:?}",
                    read.as_ref().err(),
                    frames.err()
                ),
            }
        }
        if let Ok(title) = read {
            is_within_its_file(&title, length);
        }
    });
}

/// Offset where the last box ends according to its header, at most [`LONGEST`]; at least the length of `bytes`.
fn claimed_length(bytes: &[u8]) -> u64 {
    let length = bytes.len() as u64;
    let mut at = 0_u64;
    while let Some(rest) = usize::try_from(at).ok().and_then(|at| bytes.get(at..)) {
        let Some(&[a, b, c, d]) = rest.first_chunk() else {
            break;
        };
        let size = u64::from(u32::from_be_bytes([a, b, c, d]));
        if size < 8 {
            break;
        }
        at += size;
    }
    at.clamp(length, LONGEST.max(length))
}

/// A file whose bytes are followed by zeros.
struct PaddedFile<'a> {
    bytes: &'a [u8],
    length: u64,
    position: u64,
}

impl Read for PaddedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let left = usize::try_from(self.length.saturating_sub(self.position)).unwrap_or(usize::MAX);
        let count = left.min(buffer.len());
        let mut real = Cursor::new(self.bytes);
        real.set_position(self.position);
        let written = real.read(&mut buffer[..count])?;
        buffer[written..count].fill(0);
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for PaddedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
        };
        self.position = target.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

fn parse_in_pieces(
    bytes: &[u8],
    length: u64,
    piece: usize,
    limits: Limits,
) -> std::result::Result<Vec<Frame>, MediaError> {
    let mut parser = StreamParser::new(limits);
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        parser.push(piece)?;
        frames.extend(parser.drain_frames());
        assert!(
            parser.info().is_some() || frames.is_empty(),
            "frames before the moov box"
        );
    }
    // Missing data is skipped where the parser allows that, and pushed where it does not.
    while parser.position() < length {
        let left = length - parser.position();
        if parser.skip(left) == 0 {
            let zeros = [0; 4096];
            let count = left.min(zeros.len() as u64);
            parser.push(&zeros[..usize::try_from(count).unwrap_or(0)])?;
            frames.extend(parser.drain_frames());
        }
    }
    assert_eq!(parser.position(), length);
    parser.finish()?;
    // The tables may be in a box that runs to the end of the file.
    frames.extend(parser.drain_frames());
    Ok(frames)
}

fn is_within_its_file(title: &Title, length: u64) {
    assert_eq!(title.file_size().as_u64(), length);
    assert!(!title.frames().is_empty() && title.frames().len() as u64 <= SAMPLES);
    for frame in title.frames() {
        assert!(frame.end() <= length, "{frame:?} of {length} bytes");
    }
    let segments = title.segments();
    let mut next = 0;
    for segment in &segments {
        assert!(segment.bytes.start <= segment.bytes.end, "{segment:?}");
        assert!(segment.bytes.end <= length, "{segment:?}");
        assert_eq!(segment.frames.start, next, "segments hold every frame once");
        assert!(segment.frames.end > next, "a segment without frames");
        next = segment.frames.end;
        for frame in &title.frames()[segment.frames.clone()] {
            assert!(frame.end() <= segment.bytes.end, "{frame:?} in {segment:?}");
        }
    }
    assert_eq!(next, title.frames().len());
    for window in [Duration::ZERO, Duration::from_millis(40), Duration::from_secs(1)] {
        let peak = title.peak_rate(window);
        assert!(
            peak >= title.average_rate() || window < title.duration(),
            "{peak}"
        );
    }
    assert_eq!(
        title.info().average_rate.unwrap_or_default(),
        title.average_rate()
    );
}

/// Reads the input as the bytes of a file from an offset chosen by its first byte.
pub(super) fn segment_index(bytes: &[u8]) {
    let (&choice, bytes) = bytes.split_first().unwrap_or((&0, &[]));
    let offset = [0, 800, u64::from(u32::MAX), u64::MAX - 100][usize::from(choice % 4)];
    within_memory(MEMORY_PER_BYTE * bytes.len() as u64 + 4_096, || {
        let Ok(segments) = playrate_media::segment_index(bytes, offset) else {
            return;
        };
        assert!(
            segments.len() * 12 <= bytes.len(),
            "each segment takes 12 bytes of the index"
        );
        let mut end = offset;
        for (at, segment) in segments.iter().enumerate() {
            let follows = if at == 0 {
                segment.bytes.start >= end
            } else {
                segment.bytes.start == end
            };
            assert!(
                follows && segment.bytes.start < segment.bytes.end,
                "{segment:?} after byte {end}"
            );
            assert!(segment.duration > Duration::ZERO);
            end = segment.bytes.end;
        }
    });
}
