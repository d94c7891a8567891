//! Fixtures and their ffprobe output.

use std::path::PathBuf;
use std::time::Duration;

use playrate_media::{Frame, FrameTrace, Limits, MediaError, StreamParser, Title};

/// The small titles; each has an `.ffprobe.csv` in the same directory.
pub(crate) const TITLES: [&str; 5] = [
    "progressive-moov-first",
    "progressive-moov-last",
    "fragmented",
    "fragmented-base-offset",
    "fragmented-dash",
];

pub(crate) fn assets() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../assets")
}

pub(crate) fn fixture(name: &str) -> PathBuf {
    assets().join("fixtures").join(name)
}

pub(crate) fn bytes_of(name: &str) -> Vec<u8> {
    let path = fixture(&format!("{name}.mp4"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The index of the fixture `name`.
pub(crate) fn title(name: &str) -> Title {
    Title::open(fixture(&format!("{name}.mp4"))).unwrap()
}

/// The frames of the embedded title, without their payload.
pub(crate) fn trace() -> FrameTrace {
    FrameTrace::open(fixture("title-720p.trace.csv")).unwrap()
}

/// One frame as ffprobe prints it: times in microseconds.
#[derive(Debug, PartialEq)]
pub(crate) struct Truth {
    pub(crate) pts_us: i64,
    pub(crate) dts_us: i64,
    pub(crate) size: u64,
    pub(crate) offset: u64,
    pub(crate) key: bool,
}

/// The frames of `name` according to ffprobe. Times before the movie's start are zero.
pub(crate) fn truth(name: &str) -> Vec<Truth> {
    let text = std::fs::read_to_string(fixture(&format!("{name}.ffprobe.csv"))).unwrap();
    let micros = |field: &str| (field.parse::<f64>().unwrap() * 1e6).round() as i64;
    text.lines()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            Truth {
                pts_us: micros(fields[0]),
                dts_us: micros(fields[1]).max(0),
                size: fields[2].parse().unwrap(),
                offset: fields[3].parse().unwrap(),
                key: fields[4].starts_with('K'),
            }
        })
        .collect()
}

/// Parses `bytes` pushed in pieces, cycling through the sizes in `pieces`.
pub(crate) fn parse_in_pieces(
    bytes: &[u8],
    pieces: &[usize],
    limits: Limits,
) -> Result<Vec<Frame>, MediaError> {
    let mut parser = StreamParser::new(limits);
    let mut frames = Vec::new();
    let mut sizes = pieces.iter().cycle();
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = (*sizes.next().unwrap()).clamp(1, rest.len());
        let (piece, after) = rest.split_at(size);
        parser.push(piece)?;
        frames.extend(parser.drain_frames());
        rest = after;
    }
    parser.finish()?;
    Ok(frames)
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Vec<Frame>, MediaError> {
    parse_in_pieces(bytes, &[bytes.len().max(1)], Limits::default())
}

/// A box: its size, its type, its body.
pub(crate) fn boxed(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let mut out = u32::try_from(body.len() + 8).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(name);
    out.extend_from_slice(body);
    out
}

/// Offset of the type of the `nth` box called `name` in `bytes` (its size field is 4 bytes before).
pub(crate) fn find(bytes: &[u8], name: &[u8; 4], nth: usize) -> usize {
    find_all(bytes, name)
        .nth(nth)
        .unwrap_or_else(|| panic!("no {name:?} box"))
}

/// Offsets of the types of all boxes called `name`.
pub(crate) fn find_all(bytes: &[u8], name: &[u8; 4]) -> impl Iterator<Item = usize> {
    let windows = bytes.windows(4).enumerate();
    windows
        .filter(move |(_, window)| window == name)
        .map(|(at, _)| at)
}

/// The big-endian number of four bytes at `at`.
pub(crate) fn number_at(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

pub(crate) fn close(ours: Duration, micros: i64) -> bool {
    // ffprobe prints whole microseconds.
    (i64::try_from(ours.as_micros()).unwrap() - micros).abs() <= 1
}
