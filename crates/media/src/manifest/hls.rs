//! HLS playlists (RFC 8216), main and media.

use std::time::Duration;

use m3u8_rs::{AlternativeMediaType, MasterPlaylist, MediaPlaylist, Playlist};
use playrate_units::Bitrate;

use super::location::Location;
use super::{Component, Counter, LONGEST, Manifest, ManifestRepresentation, Variant, line_at};
use crate::error::MediaError;

const FIX: &str = "write the playlist again with its packager (docs/media.md)";

/// Reads a playlist of either kind.
pub(super) fn read(content: &[u8], location: &Location) -> Result<Manifest, MediaError> {
    let text = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    if let Err(error) = std::str::from_utf8(text) {
        return Err(malformed(text, error.valid_up_to(), "it is not UTF-8"));
    }
    // RFC 8216 §4.3.1.1.
    if !text.starts_with(b"#EXTM3U") {
        return Err(malformed(text, 0, "a playlist begins with #EXTM3U"));
    }
    let Ok((rest, playlist)) = m3u8_rs::parse_playlist(text) else {
        return Err(malformed(
            text,
            0,
            "the text after #EXTM3U cannot be read as a playlist (RFC 8216)",
        ));
    };
    // The parser stops where it understands no more.
    let rest = rest.trim_ascii_start();
    if !rest.is_empty() {
        let line = String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or_default());
        let line: String = line.trim_end().chars().take(80).collect();
        let at = text.len() - rest.len();
        return Err(malformed(text, at, format!("`{line}` cannot be understood")));
    }
    match playlist {
        Playlist::MasterPlaylist(main) => variants(&main, text, location).map(Manifest::Main),
        Playlist::MediaPlaylist(media) => representation(&media, text, location).map(Manifest::Media),
    }
}

/// The error for the byte `at` of `text`.
fn malformed(text: &[u8], at: usize, problem: impl Into<String>) -> MediaError {
    MediaError::Manifest {
        line: line_at(text, at),
        problem: problem.into(),
        fix: FIX,
    }
}

/// Byte offset of `line` in `text`, for errors.
fn find(text: &[u8], line: &str) -> usize {
    let wanted = line.as_bytes();
    let found = text
        .split_inclusive(|&byte| byte == b'\n')
        .try_fold(0, |at, candidate| {
            if candidate.trim_ascii() == wanted {
                Err(at)
            } else {
                Ok(at + candidate.len())
            }
        });
    found.err().unwrap_or(0)
}

fn variants(main: &MasterPlaylist, text: &[u8], location: &Location) -> Result<Vec<Variant>, MediaError> {
    let mut counter = Counter::default();
    let mut groups: Vec<(AlternativeMediaType, &str)> = Vec::new();
    let mut found = Vec::new();
    // Streams of key frames alone are for seeking, not for watching.
    for stream in main.variants.iter().filter(|stream| !stream.is_i_frame) {
        counter.one_more()?;
        if stream.uri.trim().is_empty() {
            return Err(malformed(text, 0, "it names a stream without its playlist"));
        }
        let rate = stream.average_bandwidth.unwrap_or(stream.bandwidth);
        let resolution = stream.resolution.and_then(|resolution| {
            u32::try_from(resolution.width)
                .ok()
                .zip(u32::try_from(resolution.height).ok())
        });
        let is_video = resolution.is_some() || stream.codecs.as_deref().is_none_or(has_video);
        let component = if is_video {
            Component::Video
        } else {
            Component::Audio
        };
        let declared = ManifestRepresentation {
            component,
            codecs: stream.codecs.clone(),
            resolution,
            declared_rate: Some(Bitrate::from_bits_per_second(rate)).filter(|&rate| rate > Bitrate::ZERO),
            ..ManifestRepresentation::default()
        };
        found.push(variant(&location.join(&stream.uri), declared));
    }
    if found.is_empty() {
        return Err(malformed(text, 0, "it names no streams (#EXT-X-STREAM-INF)"));
    }
    for medium in &main.alternatives {
        // Without a playlist of its own it is part of the streams.
        let Some(uri) = &medium.uri else { continue };
        counter.one_more()?;
        let group = (medium.media_type.clone(), medium.group_id.as_str());
        let known = groups.iter().position(|known| *known == group);
        let set = known.unwrap_or_else(|| {
            groups.push(group);
            groups.len() - 1
        });
        let declared = ManifestRepresentation {
            set: set + 1,
            component: match medium.media_type {
                AlternativeMediaType::Audio => Component::Audio,
                AlternativeMediaType::Video => Component::Video,
                _ => Component::Other,
            },
            ..ManifestRepresentation::default()
        };
        found.push(variant(&location.join(uri), declared));
    }
    Ok(found)
}

/// The media playlist at `playlist`, described by `declared`.
fn variant(playlist: &Location, declared: ManifestRepresentation) -> Variant {
    Variant {
        file: playlist.file(),
        query: playlist.query(),
        representation: ManifestRepresentation {
            id: playlist.file_name(),
            ..declared
        },
    }
}

/// Returns true if a list of codecs has a video codec.
fn has_video(codecs: &str) -> bool {
    const VIDEO: [&str; 8] = ["avc1", "avc3", "hvc1", "hev1", "vp08", "vp09", "av01", "dvh1"];
    codecs
        .split(',')
        .any(|codec| VIDEO.iter().any(|known| codec.trim().starts_with(known)))
}

fn representation(
    media: &MediaPlaylist,
    text: &[u8],
    location: &Location,
) -> Result<ManifestRepresentation, MediaError> {
    let mut counter = Counter::default();
    let mut pieces = Vec::with_capacity(media.segments.len());
    // Where the last range of a file ended: one without an offset begins there (RFC 8216 §4.3.2.2).
    let mut ended: Option<(&str, u64)> = None;
    for segment in &media.segments {
        counter.one_more()?;
        let at = || find(text, &segment.uri);
        let duration = Duration::try_from_secs_f32(segment.duration).unwrap_or_default();
        if duration.is_zero() || duration > LONGEST {
            let problem = format!(
                "`{}` needs an #EXTINF with its duration, above 0 s and at most 366 days",
                segment.uri
            );
            return Err(malformed(text, at(), problem));
        }
        let bytes = match &segment.byte_range {
            None => None,
            Some(range) => {
                let follows = ended.filter(|(uri, _)| *uri == segment.uri).map(|(_, end)| end);
                let problem = "#EXT-X-BYTERANGE has no offset, and no range of its file precedes it: write \
                               LENGTH@OFFSET";
                let first = range.offset.or(follows);
                let first = first.ok_or_else(|| malformed(text, at(), problem))?;
                let end = first.saturating_add(range.length);
                ended = Some((&segment.uri, end));
                Some(first..end)
            }
        };
        pieces.push(location.join(&segment.uri).piece(bytes, Some(duration)));
    }
    if pieces.is_empty() && media.end_list {
        return Err(malformed(
            text,
            0,
            "the playlist has no segments: at least one #EXTINF with its file is needed",
        ));
    }
    // `EXT-X-MAP` holds for all segments that follow it (RFC 8216 §4.3.2.5).
    let map = media.segments.iter().find_map(|segment| segment.map.as_ref());
    let initialization = map.map(|map| {
        let bytes = map.byte_range.as_ref().map(|range| {
            let first = range.offset.unwrap_or(0);
            first..first.saturating_add(range.length)
        });
        location.join(&map.uri).piece(bytes, None)
    });
    Ok(ManifestRepresentation {
        id: location.file_name(),
        initialization,
        live: !media.end_list,
        pieces,
        ..ManifestRepresentation::default()
    })
}
