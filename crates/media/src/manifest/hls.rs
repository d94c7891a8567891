//! HLS playlists.

use std::time::Duration;

use m3u8_rs::{AlternativeMediaType, MasterPlaylist, MediaPlaylist, Playlist};
use playrate_units::Bitrate;

use super::location::Location;
use super::{Component, Counter, LONGEST, Manifest, ManifestError, Representation, Variant};

const MEND: &str = "write the playlist again with its packager (docs/media.md)";

/// Reads a playlist of either kind.
pub(super) fn read(content: &[u8], location: &Location) -> Result<Manifest, ManifestError> {
    let text = content.strip_prefix(b"\xef\xbb\xbf").unwrap_or(content);
    if let Err(error) = std::str::from_utf8(text) {
        return Err(malformed(text, error.valid_up_to(), "it is not UTF-8".to_owned()));
    }
    // RFC 8216 §4.3.1.1.
    if !text.starts_with(b"#EXTM3U") {
        return Err(malformed(text, 0, "a playlist begins with #EXTM3U".to_owned()));
    }
    let Ok((rest, playlist)) = m3u8_rs::parse_playlist(text) else {
        return Err(malformed(text, 0, "it is no playlist".to_owned()));
    };
    // The parser stops where it understands no more.
    let rest = rest.trim_ascii_start();
    if !rest.is_empty() {
        let line = String::from_utf8_lossy(rest.split(|&byte| byte == b'\n').next().unwrap_or_default());
        let line: String = line.trim_end().chars().take(80).collect();
        return Err(malformed(
            text,
            text.len() - rest.len(),
            format!("`{line}` cannot be understood"),
        ));
    }
    match playlist {
        Playlist::MasterPlaylist(main) => variants(&main, text, location).map(Manifest::Main),
        Playlist::MediaPlaylist(media) => representation(&media, text, location).map(Manifest::Media),
    }
}

/// Something is wrong at the byte `at` of `text`.
fn malformed(text: &[u8], at: usize, problem: String) -> ManifestError {
    let before = text.get(..at).unwrap_or_default();
    ManifestError::Malformed {
        line: before.split(|&byte| byte == b'\n').count(),
        problem,
        mend: MEND,
    }
}

/// Where `line` stands in `text`, for errors.
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

fn variants(main: &MasterPlaylist, text: &[u8], location: &Location) -> Result<Vec<Variant>, ManifestError> {
    let mut counter = Counter::default();
    let mut groups: Vec<(AlternativeMediaType, &str)> = Vec::new();
    let mut found = Vec::new();
    // Streams of key frames alone are for seeking, not for watching.
    for stream in main.variants.iter().filter(|stream| !stream.is_i_frame) {
        counter.one_more()?;
        if stream.uri.trim().is_empty() {
            return Err(malformed(
                text,
                0,
                "it names a stream without its playlist".to_owned(),
            ));
        }
        let playlist = location.join(&stream.uri);
        let rate = stream.average_bandwidth.unwrap_or(stream.bandwidth);
        let picture = stream.resolution.and_then(|picture| {
            u32::try_from(picture.width)
                .ok()
                .zip(u32::try_from(picture.height).ok())
        });
        let has_picture = picture.is_some() || stream.codecs.as_deref().is_none_or(has_picture);
        found.push(Variant {
            file: playlist.file(),
            query: playlist.query(),
            representation: Representation {
                id: playlist.file_name(),
                set: 0,
                component: if has_picture {
                    Component::Video
                } else {
                    Component::Audio
                },
                codecs: stream.codecs.clone(),
                picture,
                declared_rate: Some(Bitrate::from_bits_per_second(rate)).filter(|&rate| rate > Bitrate::ZERO),
                ..Representation::default()
            },
        });
    }
    if found.is_empty() {
        return Err(malformed(
            text,
            0,
            "it names no streams (#EXT-X-STREAM-INF)".to_owned(),
        ));
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
        let playlist = location.join(uri);
        found.push(Variant {
            file: playlist.file(),
            query: playlist.query(),
            representation: Representation {
                id: playlist.file_name(),
                set: set + 1,
                component: match medium.media_type {
                    AlternativeMediaType::Audio => Component::Audio,
                    AlternativeMediaType::Video => Component::Video,
                    _ => Component::Other,
                },
                ..Representation::default()
            },
        });
    }
    Ok(found)
}

/// Whether a list of codecs has one for pictures.
fn has_picture(codecs: &str) -> bool {
    const PICTURES: [&str; 8] = ["avc1", "avc3", "hvc1", "hev1", "vp08", "vp09", "av01", "dvh1"];
    codecs
        .split(',')
        .any(|codec| PICTURES.iter().any(|known| codec.trim().starts_with(known)))
}

fn representation(
    media: &MediaPlaylist,
    text: &[u8],
    location: &Location,
) -> Result<Representation, ManifestError> {
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
                "nothing says believably how long `{}` plays (#EXTINF)",
                segment.uri
            );
            return Err(malformed(text, at(), problem));
        }
        let bytes = match &segment.byte_range {
            None => None,
            Some(range) => {
                let follows = ended.filter(|(uri, _)| *uri == segment.uri).map(|(_, end)| end);
                let first = range.offset.or(follows).ok_or_else(|| {
                    malformed(
                        text,
                        at(),
                        "its #EXT-X-BYTERANGE has no offset, and none before it in this file".to_owned(),
                    )
                })?;
                let end = first.saturating_add(range.length);
                ended = Some((&segment.uri, end));
                Some(first..end)
            }
        };
        pieces.push(location.join(&segment.uri).piece(bytes, Some(duration)));
    }
    if pieces.is_empty() && media.end_list {
        return Err(malformed(text, 0, "there are no segments in it".to_owned()));
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
    Ok(Representation {
        id: location.file_name(),
        initialization,
        live: !media.end_list,
        pieces,
        ..Representation::default()
    })
}
