//! HLS playlists (RFC 8216), main and media, read line by line. Each line costs time and memory proportional to its own
//! length, regardless of the lines before it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use playrate_units::Bitrate;

use super::Result;
use super::counter::Counter;
use super::location::Location;
use super::values::excerpt;
use super::{Component, LONGEST, Manifest, ManifestRepresentation, Piece, Variables, Variant};
use crate::error::MediaError;

const FIX: &str = "write the playlist again with its packager (docs/media.md)";

/// Reads a playlist of either kind.
pub(super) fn read(text: &str, location: &Location, imported: &Variables) -> Result<Manifest> {
    // RFC 8216 §4.3.1.1.
    if !text.starts_with("#EXTM3U") {
        return Err(malformed(1, "a playlist begins with #EXTM3U"));
    }
    let playlist = PlaylistReader {
        text,
        location,
        counter: Counter::default(),
        variables: BTreeMap::new(),
        imported,
        has_imports: false,
    };
    let has = |tags: &[&str]| lines(text).any(|(_, line)| tags.iter().any(|tag| line.starts_with(tag)));
    let is_media = has(&["#EXTINF", "#EXT-X-TARGETDURATION"]);
    if !is_media && has(&["#EXT-X-STREAM-INF", "#EXT-X-MEDIA:", "#EXT-X-I-FRAME-STREAM-INF"]) {
        playlist.variants().map(Manifest::Main)
    } else if !is_media && lines(text).all(|(_, line)| line.starts_with('#')) {
        Err(malformed(
            1,
            "it has neither segments (#EXTINF) nor streams (#EXT-X-STREAM-INF)",
        ))
    } else {
        playlist.representation().map(Box::new).map(Manifest::Media)
    }
}

/// The error for a line, counted from 1.
fn malformed(line: usize, problem: impl Into<String>) -> MediaError {
    MediaError::manifest(line, problem, FIX)
}

/// The non-empty lines with their numbers, counted from 1.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty())
}

/// The attributes of a tag (RFC 8216 §4.2): names and values, without the quotes.
fn attributes(mut list: &str) -> impl Iterator<Item = (&str, &str)> {
    std::iter::from_fn(move || {
        let (name, value) = list.split_once('=')?;
        let (value, rest) = match value.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => value.split_at(value.find(',').unwrap_or(value.len())),
        };
        list = rest.trim_start().trim_start_matches(',');
        Some((name.trim(), value))
    })
}

/// The value of the attribute `name` of a tag.
fn attribute<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    attributes(list)
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

/// The reference in the attribute `URI`; `None` if it is empty, which is equivalent to missing.
fn reference(list: &str) -> Option<&str> {
    attribute(list, "URI").filter(|uri| !uri.trim().is_empty())
}

fn number(at: usize, name: &str, value: &str) -> Result<u64> {
    let wrong = |_| malformed(at, format!("{name} `{}` is not a number", excerpt(value)));
    value.trim().parse().map_err(wrong)
}

struct PlaylistReader<'a> {
    text: &'a str,
    location: &'a Location,
    counter: Counter,
    /// Values of `#EXT-X-DEFINE` by name.
    variables: BTreeMap<&'a str, Cow<'a, str>>,
    /// The variables of the main playlist.
    imported: &'a Variables,
    has_imports: bool,
}

impl<'a> PlaylistReader<'a> {
    /// `line` with the values of its variables (RFC 8216bis §4.3). A definition or a comment has none.
    fn substituted(&mut self, at: usize, line: &'a str) -> Result<Cow<'a, str>> {
        if let Some(list) = line.strip_prefix("#EXT-X-DEFINE:") {
            self.define(at, list)?;
            return Ok("".into());
        }
        let mut parts = line.split("{$");
        let first = parts.next().unwrap_or_default();
        if first.len() == line.len() || (line.starts_with('#') && !line.starts_with("#EXT-X-")) {
            return Ok(line.into());
        }
        let mut whole = first.to_owned();
        for part in parts {
            let Some((name, rest)) = part.split_once('}') else {
                whole.extend(["{$", part]);
                continue;
            };
            let problem = || format!("the variable `{}` is not defined (#EXT-X-DEFINE)", excerpt(name));
            let value = self.variables.get(name).ok_or_else(|| malformed(at, problem()))?;
            self.counter.text(value.len())?;
            whole.extend([value, rest]);
        }
        Ok(whole.into())
    }

    /// Takes the variable of an `#EXT-X-DEFINE` (RFC 8216bis §4.4.2.3).
    fn define(&mut self, at: usize, list: &'a str) -> Result<()> {
        let [name, parameter, import] = ["NAME", "QUERYPARAM", "IMPORT"].map(|known| attribute(list, known));
        let value = if name.is_some() {
            attribute(list, "VALUE").map(Cow::from)
        } else if let Some(parameter) = parameter {
            self.counter.text(self.location.len())?;
            self.location
                .unknown()
                .or_else(|| self.location.parameter(parameter))
        } else {
            self.has_imports = true;
            let imported = import.and_then(|name| self.imported.get(name));
            imported.map(Into::into).or_else(|| self.location.unknown())
        };
        let problem = "#EXT-X-DEFINE needs a NAME with a VALUE, a QUERYPARAM of the playlist's URL, or an IMPORT from \
                       the main playlist";
        let name = name.or(parameter).or(import).zip(value);
        let (name, value) = name.ok_or_else(|| malformed(at, problem))?;
        let problem = || {
            format!(
                "the variable `{}` is defined twice (#EXT-X-DEFINE)",
                excerpt(name)
            )
        };
        let earlier = self.variables.insert(name, value);
        earlier.map_or(Ok(()), |_| Err(malformed(at, problem())))
    }

    fn variants(mut self) -> Result<Vec<Variant>> {
        let mut groups = BTreeMap::new();
        let mut streams = Vec::new();
        let mut media = Vec::new();
        // A stream and its line; its playlist is the next line that is not a tag.
        let mut stream: Option<(usize, ManifestRepresentation)> = None;
        let no_playlist = |at| malformed(at, "it names a stream without its playlist");
        for (at, line) in lines(self.text) {
            let line = self.substituted(at, line)?;
            if let Some(list) = line.strip_prefix("#EXT-X-STREAM-INF:") {
                if let Some((at, _)) = stream.replace((at, declared_stream(at, list)?)) {
                    return Err(no_playlist(at));
                }
            } else if let Some(list) = line.strip_prefix("#EXT-X-MEDIA:") {
                // A rendition without its own playlist is part of the streams.
                let Some(uri) = reference(list) else { continue };
                let [kind, group] =
                    ["TYPE", "GROUP-ID"].map(|name| attribute(list, name).unwrap_or_default());
                self.counter.one_more_representation()?;
                let next = groups.len() + 1;
                let declared = ManifestRepresentation {
                    set: *groups.entry((kind.to_owned(), group.to_owned())).or_insert(next),
                    component: match kind {
                        "AUDIO" => Component::Audio,
                        "VIDEO" => Component::Video,
                        "SUBTITLES" => Component::Text,
                        _ => Component::Other,
                    },
                    ..ManifestRepresentation::default()
                };
                media.push(variant(&self.counter.join(self.location, uri)?, declared));
            } else if !line.is_empty()
                && !line.starts_with('#')
                && let Some((_, declared)) = stream.take()
            {
                self.counter.one_more_representation()?;
                streams.push(variant(&self.counter.join(self.location, &line)?, declared));
            }
        }
        if let Some((at, _)) = stream {
            return Err(no_playlist(at));
        }
        if streams.is_empty() {
            return Err(malformed(1, "it names no streams (#EXT-X-STREAM-INF)"));
        }
        streams.append(&mut media);
        let variables = self.variables.iter();
        let variables = variables.map(|(&name, value)| (name.to_owned(), value.to_string()));
        let variables = Arc::new(variables.collect());
        for stream in &mut streams {
            stream.variables = Arc::clone(&variables);
        }
        Ok(streams)
    }

    fn representation(mut self) -> Result<ManifestRepresentation> {
        let mut found = ManifestRepresentation {
            id: self.location.file_name(),
            live: true,
            ..ManifestRepresentation::default()
        };
        let mut target = Duration::ZERO;
        let mut duration = None;
        let mut is_gap = false;
        let mut range = None;
        // End of the last range in a file: a range without an offset begins there (RFC 8216 §4.3.2.2).
        let mut ended: Option<(Cow<'_, str>, u64)> = None;
        for (at, line) in lines(self.text) {
            let line = self.substituted(at, line)?;
            let (tag, value) = line.split_once(':').unwrap_or((&line, ""));
            match tag {
                "#EXTINF" => duration = playing_time(value),
                "#EXT-X-BYTERANGE" => range = Some(byte_range(at, value)?),
                "#EXT-X-MAP" => {
                    let map = (found.pieces.len(), self.segment_map(at, value)?);
                    // It applies to all segments after it (RFC 8216 §4.3.2.5).
                    found.initializations.pop_if(|(first, _)| *first == map.0);
                    if found
                        .initializations
                        .last()
                        .is_none_or(|(_, last)| *last != map.1)
                    {
                        found.initializations.push(map);
                    }
                }
                "#EXT-X-GAP" => is_gap = true,
                "#EXT-X-TARGETDURATION" => target = Duration::from_secs(number(at, tag, value)?.min(86_400)),
                "#EXT-X-ENDLIST" => found.live = false,
                // It cannot change (RFC 8216 §4.3.3.5).
                "#EXT-X-PLAYLIST-TYPE" if value.trim() == "VOD" => found.live = false,
                "#EXT-X-I-FRAMES-ONLY" => found.component = Component::Other,
                "#EXT-X-SKIP" => return Err(malformed(at, "#EXT-X-SKIP: delta updates are not supported")),
                "#EXT-X-KEY" => {
                    let method = attribute(value, "METHOD").filter(|&method| method != "NONE");
                    found.encryption = found.encryption.or(method.map(str::to_owned));
                }
                _ if line.is_empty() || line.starts_with('#') => {}
                _ => {
                    self.counter.one_more_segment()?;
                    let duration: Duration = duration.take().ok_or_else(|| {
                        let name = excerpt(&line);
                        let problem =
                            format!("`{name}` needs an #EXTINF with its duration, from 0 s to 366 days");
                        malformed(at, problem)
                    })?;
                    let bytes = match range.take() {
                        None => None,
                        Some((length, offset)) => {
                            let follows = ended.filter(|(uri, _)| *uri == line).map(|(_, end)| end);
                            let problem = "#EXT-X-BYTERANGE has no offset, and no range of its file precedes it: \
                                           write LENGTH@OFFSET";
                            let first = offset.or(follows).ok_or_else(|| malformed(at, problem))?;
                            let bytes = starting_at(first, length);
                            ended = Some((line.clone(), bytes.end));
                            Some(bytes)
                        }
                    };
                    let mut piece = self
                        .counter
                        .join(self.location, &line)?
                        .piece(bytes, Some(duration));
                    piece.is_gap = std::mem::take(&mut is_gap);
                    // A segment of no duration shows nothing.
                    if !duration.is_zero() {
                        found.pieces.push(piece);
                    }
                }
            }
        }
        if found.pieces.is_empty() && !found.live {
            return Err(malformed(
                1,
                "the playlist has no segments: at least one #EXTINF with its file is needed",
            ));
        }
        found.has_imports = self.has_imports;
        found.warnings.extend(shorten(&mut found.pieces, target));
        Ok(found)
    }

    /// The initialisation segment named by `#EXT-X-MAP` in line `at`.
    fn segment_map(&mut self, at: usize, list: &str) -> Result<Piece> {
        let uri = reference(list).ok_or_else(|| malformed(at, "#EXT-X-MAP has no URI"))?;
        let range = attribute(list, "BYTERANGE").map(|text| byte_range(at, text));
        let range = range.transpose()?;
        let bytes = range.map(|(length, offset)| starting_at(offset.unwrap_or(0), length));
        Ok(self.counter.join(self.location, uri)?.piece(bytes, None))
    }
}

/// Times the usual duration of a segment above which a duration is taken to be wrong.
const PLAUSIBLE: u32 = 4;

/// Gives implausibly long pieces the usual duration, which is the median or `#EXT-X-TARGETDURATION`; returns a warning.
fn shorten(pieces: &mut [Piece], target: Duration) -> Option<String> {
    let mut durations: Vec<_> = pieces.iter().filter_map(|piece| piece.duration).collect();
    durations.sort_unstable();
    let median = durations.get(durations.len().saturating_sub(1) / 2);
    // A single piece is compared with the target only.
    let usual = median
        .filter(|_| pieces.len() > 1)
        .map_or(target, |&median| median.max(target));
    let longest = *durations
        .last()
        .filter(|&&longest| !usual.is_zero() && longest > usual * PLAUSIBLE)?;
    for piece in pieces {
        piece.duration = piece
            .duration
            .map(|it| if it > usual * PLAUSIBLE { usual } else { it });
    }
    Some(format!(
        "a duration of {longest:?} (#EXTINF) is implausible among segments of {usual:?}, which it is taken to be"
    ))
}

/// The stream described by `#EXT-X-STREAM-INF` in line `at`.
fn declared_stream(at: usize, list: &str) -> Result<ManifestRepresentation> {
    let rate = |name| attribute(list, name).map(|value| number(at, name, value));
    let (peak, average) = (
        rate("BANDWIDTH").transpose()?,
        rate("AVERAGE-BANDWIDTH").transpose()?,
    );
    let size = attribute(list, "RESOLUTION").and_then(|size| size.split_once(['x', 'X']));
    let resolution = size.and_then(|(width, height)| width.parse().ok().zip(height.parse().ok()));
    let codecs = attribute(list, "CODECS").map(str::to_owned);
    let peak = peak.ok_or_else(|| malformed(at, "#EXT-X-STREAM-INF has no BANDWIDTH"))?;
    let is_video = resolution.is_some() || codecs.as_deref().is_none_or(has_video);
    Ok(ManifestRepresentation {
        component: if is_video {
            Component::Video
        } else {
            Component::Audio
        },
        codecs,
        resolution,
        declared_rate: Some(Bitrate::from_bits_per_second(average.unwrap_or(peak)))
            .filter(|&rate| rate > Bitrate::ZERO),
        ..ManifestRepresentation::default()
    })
}

/// The media playlist at `playlist`, described by `declared`.
fn variant(playlist: &Location, declared: ManifestRepresentation) -> Variant {
    Variant {
        playlist: playlist.piece(None, None),
        representation: ManifestRepresentation {
            id: playlist.file_name(),
            ..declared
        },
        variables: Arc::default(),
    }
}

/// Returns true if a list of codecs has a video codec.
fn has_video(codecs: &str) -> bool {
    const VIDEO: [&str; 8] = ["avc1", "avc3", "hvc1", "hev1", "vp08", "vp09", "av01", "dvh1"];
    codecs
        .split(',')
        .any(|codec| VIDEO.iter().any(|known| codec.trim().starts_with(known)))
}

/// The duration in `#EXTINF:DURATION,TITLE`; `None` unless it is a number from 0 s to 366 days. Some
/// packagers write the title without the comma.
fn playing_time(text: &str) -> Option<Duration> {
    let text = text.trim_start();
    let end = text.find(|digit: char| !digit.is_ascii_digit() && digit != '.');
    let seconds = text.get(..end.unwrap_or(text.len()))?.parse().ok()?;
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    (duration <= LONGEST).then_some(duration)
}

/// `LENGTH@OFFSET` (RFC 8216 §4.3.2.2); the offset may be missing.
fn byte_range(at: usize, text: &str) -> Result<(u64, Option<u64>)> {
    let (length, offset) = match text.split_once('@') {
        Some((length, offset)) => (length, Some(number(at, "BYTERANGE", offset)?)),
        None => (text, None),
    };
    Ok((number(at, "BYTERANGE", length)?, offset))
}

/// The byte range of this `length` that starts at `first`.
fn starting_at(first: u64, length: u64) -> Range<u64> {
    first..first.saturating_add(length)
}
