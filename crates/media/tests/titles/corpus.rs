//! Every reader on files of many muxers, compared with ffprobe's values. `tests/corpus/make.py` makes both.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use playrate_media::{Layout, Limits, MediaSource, MemorySource, StreamParser, Title, segment_index};
use serde_json::Value;

use crate::common::{find_all, parse_in_pieces};

/// Files with ffprobe's values: those of the repository, or those in the directory `PLAYRATE_CORPUS`.
fn files() -> Vec<(PathBuf, Value)> {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/files");
    let directory = std::env::var_os("PLAYRATE_CORPUS").map_or(kept, PathBuf::from);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|name| name == "json") {
            let values = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            found.push((path.with_extension(""), values));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(found.len() > 20, "{} files", found.len());
    found
}

/// Microseconds, which ffprobe rounds to.
fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap()
}

/// Names of ffprobe, and the beginning of our codec strings.
const CODECS: [(&str, &[&str]); 14] = [
    ("h264", &["avc1", "avc3"]),
    ("hevc", &["hvc1", "hev1"]),
    ("av1", &["av01"]),
    ("vp9", &["vp09"]),
    ("mpeg4", &["mp4v"]),
    ("mjpeg", &["jpeg", "mp4v"]),
    ("aac", &["mp4a.40", "mp4a.6"]),
    ("opus", &["opus"]),
    ("mp3", &["mp4a.6", ".mp3"]),
    ("flac", &["flac"]),
    ("ac3", &["ac-3"]),
    ("eac3", &["ec-3"]),
    ("alac", &["alac"]),
    ("pcm", &["sowt"]),
];

/// VLC's fragments mark every frame as a key frame. ffprobe reads key frames from the bitstream.
const MARKS_ALL: &str = "vlc-fragments.mp4";

/// Differences between `title` and ffprobe's `values`, in words. Key frames do not count if the file marks all frames.
fn differences(title: &Title, values: &Value, marks_all: bool) -> Vec<String> {
    let truth = values["frames"].as_array().unwrap();
    let frames = title.frames();
    let mut found = Vec::new();
    if frames.len() != truth.len() {
        return vec![format!("{} frames, ffprobe {}", frames.len(), truth.len())];
    }
    let field = |at: usize, field: usize| truth[at][field].as_i64().unwrap();
    // Fragments begin at zero, whatever their decode time is.
    let ahead = match title.layout() {
        Layout::Fragmented => (field(0, 0) - micros(frames[0].pts)).max(0),
        _ => 0,
    };
    let last = title
        .frames()
        .iter()
        .map(|frame| micros(frame.pts))
        .max()
        .unwrap();
    let first = (0..truth.len()).map(|at| field(at, 0)).min().unwrap();
    // The time of a frame.
    let frame = (last - first).max(40_000) / i64::try_from(truth.len()).unwrap();
    // ffprobe lets a title begin with its first frame, although an edit may begin a little earlier.
    let early = frames.iter().map(|frame| micros(frame.pts)).min().unwrap() - first + ahead;
    if early.abs() > frame {
        found.push(format!("begins {early} us later than in ffprobe"));
    }
    for (at, ours) in frames.iter().enumerate() {
        let pts = field(at, 0) - ahead + early;
        if (micros(ours.pts) - pts).abs() > 2 {
            found.push(format!("frame {at} at {:?}, ffprobe {pts} us", ours.pts));
        }
        let key = if marks_all {
            field(at, 3)
        } else {
            i64::from(ours.key)
        };
        let place = (ours.size.as_u64().cast_signed(), ours.offset.cast_signed(), key);
        let expected = (field(at, 1), field(at, 2), field(at, 3));
        if place != expected {
            found.push(format!(
                "frame {at}: size, offset and key flag {place:?}, ffprobe {expected:?}"
            ));
        }
    }
    let end = values["end"].as_i64().unwrap() - ahead;
    if (micros(title.duration()) - end).abs() > frame {
        found.push(format!("ends at {:?}, ffprobe {end} us", title.duration()));
    }
    let codecs: Vec<&str> = values["codecs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|name| name.as_str().unwrap())
        .collect();
    let ours: Vec<&str> = title.info().codecs.split(", ").collect();
    let is_same = |(ours, name): (&&str, &&str)| {
        let names = CODECS.iter().find(|(known, _)| known == name);
        names.is_some_and(|(_, begins)| begins.iter().any(|begin| ours.starts_with(begin)))
    };
    if ours.len() != codecs.len() || !ours.iter().zip(&codecs).all(is_same) {
        found.push(format!("{ours:?}, ffprobe {codecs:?}"));
    }
    found.truncate(4);
    found
}

/// Reads with every reader; they must agree.
fn read(path: &Path) -> Result<Title, String> {
    let title = Title::open(path).map_err(|error| error.to_string())?;
    let bytes = fs::read(path).unwrap();
    for pieces in [&[usize::MAX][..], &[1], &[13, 5_000]] {
        let frames = parse_in_pieces(&bytes, pieces, Limits::default()).map_err(|error| error.to_string())?;
        if frames != title.frames() {
            return Err(format!("pieces of {pieces:?} bytes give other frames"));
        }
    }
    let mut parser = StreamParser::new(Limits::default());
    parser.push(&bytes).unwrap();
    parser.finish().unwrap();
    assert_eq!(
        (parser.playing_time(), parser.notes()),
        (title.duration(), title.notes()),
        "{}",
        path.display()
    );
    let served = MemorySource::open(path).unwrap();
    assert_eq!(served.len(), title.file_size().as_u64());
    assert_eq!(served.title(), &title);
    indexed(&bytes, &title)?;
    Ok(title)
}

/// The segments of the `sidx` boxes that precede fragments begin and end with fragments.
fn indexed(bytes: &[u8], title: &Title) -> Result<(), String> {
    let segments = title.segments();
    for at in find_all(bytes, b"sidx") {
        let index = segment_index(&bytes[at - 4..], at as u64 - 4).map_err(|error| error.to_string())?;
        let own = |segment: &&playrate_media::IndexedSegment| segment.bytes.end <= title.file_size().as_u64();
        if index.iter().filter(own).count() != index.len() {
            return Err(format!("the index at {at} names bytes beyond the end"));
        }
        let sum: Duration = index.iter().map(|segment| segment.duration).sum();
        let held: Duration = segments
            .iter()
            .filter(|held| {
                index
                    .iter()
                    .any(|segment| segment.bytes.contains(&(held.bytes.end - 1)))
            })
            .map(|segment| segment.duration)
            .sum();
        if sum.abs_diff(held) > Duration::from_millis(200) && title.info().has_video {
            return Err(format!("the index at {at} lasts {sum:?}, its segments {held:?}"));
        }
    }
    Ok(())
}

#[test]
fn every_reader_finds_in_files_of_many_muxers_what_ffprobe_finds() {
    let mut wrong = Vec::new();
    for (path, values) in files() {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let found = match read(&path) {
            Ok(title) => differences(&title, &values, name == MARKS_ALL),
            Err(error) => vec![error],
        };
        wrong.extend(found.into_iter().map(|problem| format!("{name}: {problem}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
