//! Converts the representations of a manifest to a [`Presentation`]: selection, segments and rates. Pure functions.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use playrate_media::manifest::{Component, ManifestRepresentation as Declared, Piece};
use playrate_units::{Bitrate, Bytes};

use super::presentation::{MediaSegment, Presentation, Representation, Resource};
use crate::error::TitleError;

/// Maximum difference between the starts of a segment in two aligned representations.
const SAME_TIME: Duration = Duration::from_millis(100);

/// The representations to play, and notes on omitted ones.
pub(super) fn choose(mut all: Vec<Declared>) -> Result<(Vec<Declared>, Vec<String>), TitleError> {
    if all.iter().any(|it| it.live) {
        return Err(TitleError::Live);
    }
    let periods: BTreeSet<_> = all.iter().map(|it| it.period).collect();
    if periods.len() > 1 {
        return Err(TitleError::Periods(periods.len()));
    }
    // The first set with readable video; other sets are other angles or codecs.
    let Some(set) = all.iter().find(|it| is_readable(it)).map(|it| it.set) else {
        let codecs: BTreeSet<_> = all.iter().map(media_name).collect();
        return Err(TitleError::NoVideo(
            codecs.into_iter().collect::<Vec<_>>().join(", "),
        ));
    };
    let others = all.extract_if(.., |it| it.set != set || !is_readable(it));
    let mut left_out: Vec<(String, usize)> = Vec::new();
    for name in others.map(|it| media_name(&it)) {
        match left_out.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => left_out.push((name, 1)),
        }
    }
    let notes = left_out.into_iter().map(|(name, count)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("not fetched: {count} representation{plural} of {name}")
    });
    let notes = notes.collect();
    Ok((all, notes))
}

/// Returns true if it is, or may be, video that this player can read.
pub(super) fn is_readable(it: &Declared) -> bool {
    let video = matches!(it.component, Component::Video | Component::Unknown);
    video
        && it.codecs.as_deref().is_none_or(|codecs| {
            let mut codecs = codecs.split(',').map(str::trim);
            codecs.any(|codec| codec.starts_with("avc1") || codec.starts_with("avc3"))
        })
}

fn media_name(it: &Declared) -> String {
    let component = match it.component {
        Component::Video => "video",
        Component::Audio => "sound",
        _ => "other data",
    };
    match &it.codecs {
        Some(codecs) => format!("{component} ({codecs})"),
        None => component.to_owned(),
    }
}

/// Prefixes the name of each representation with the directory of its first piece if names are not unique. This happens
/// when playlists are in separate directories.
fn name_apart(all: &mut [Declared]) {
    let names: BTreeSet<_> = all.iter().map(|it| it.id.clone()).collect();
    if names.len() == all.len() {
        return;
    }
    for it in all {
        let file = it.pieces.first().and_then(|piece| piece.file.as_deref());
        if let Some((directory, _)) = file.and_then(|file| file.rsplit_once('/')) {
            it.id = format!("{directory}/{}", it.id);
        }
    }
}

/// The presentation of these representations. Their pieces must have known durations; see [`needs_index`].
pub(super) fn presentation(mut all: Vec<Declared>) -> Result<Presentation, TitleError> {
    name_apart(&mut all);
    let mut representations = all
        .into_iter()
        .map(representation)
        .collect::<Result<Vec<_>, _>>()?;
    align(&mut representations);
    Ok(Presentation::new(representations)?)
}

/// The segment index to read for a representation in one file; `None` if not needed.
pub(super) fn needs_index(it: &Declared) -> Result<Option<Resource>, TitleError> {
    let [piece @ Piece { bytes: None, .. }] = &it.pieces[..] else {
        return Ok(None);
    };
    if it.index.is_some() {
        let path = url_path(piece.file.as_deref(), piece.query.as_deref());
        return Ok(Some(Resource {
            path: path.ok_or_else(|| TitleError::Elsewhere(it.id.clone()))?,
            bytes: it.index.clone(),
        }));
    }
    let initialized_by = it.initialization.as_ref().and_then(|it| it.file.as_ref());
    if initialized_by.is_some() && initialized_by == piece.file.as_ref() {
        return Err(TitleError::NoIndex(it.id.clone()));
    }
    Ok(None)
}

fn representation(declared: Declared) -> Result<Representation, TitleError> {
    let name = declared.id;
    let elsewhere = || TitleError::Elsewhere(name.clone());
    let no_initialization = || TitleError::NoInitialization(name.clone());
    let initialization = declared.initialization.ok_or_else(no_initialization)?;
    let initialization = Resource {
        path: url_path(initialization.file.as_deref(), initialization.query.as_deref())
            .ok_or_else(elsewhere)?,
        bytes: initialization.bytes,
    };
    let measured = measured_rate(&declared.pieces);
    let mut segments = Vec::with_capacity(declared.pieces.len());
    for (segment, piece) in declared.pieces.into_iter().enumerate() {
        segments.push(MediaSegment {
            path: url_path(piece.file.as_deref(), piece.query.as_deref()).ok_or_else(elsewhere)?,
            bytes: piece.bytes,
            duration: piece.duration.ok_or_else(|| TitleError::NoDuration {
                representation: name.clone(),
                segment,
            })?,
            frames: 1,
        });
    }
    let rate = declared.declared_rate.or(measured);
    Ok(Representation {
        rate: rate.ok_or_else(|| TitleError::NoRate(name.clone()))?,
        name,
        initialization: Some(initialization),
        segments,
    })
}

/// The mean rate of pieces; `None` unless all sizes and durations are known.
fn measured_rate(pieces: &[Piece]) -> Option<Bitrate> {
    let mut bytes = Bytes::ZERO;
    let mut time = Duration::ZERO;
    for piece in pieces {
        let Range { start, end } = piece.bytes.clone()?;
        bytes += Bytes::new(end.saturating_sub(start));
        time = time.saturating_add(piece.duration?);
    }
    bytes.per(time).filter(|&rate| rate > Bitrate::ZERO)
}

/// Gives all representations the segment durations of the first, if theirs differ only by rounding.
fn align(representations: &mut [Representation]) {
    let Some((first, others)) = representations.split_first_mut() else {
        return;
    };
    for other in others {
        if other.segments.len() != first.segments.len() {
            continue;
        }
        let (mut ours, mut theirs) = (Duration::ZERO, Duration::ZERO);
        let together = first.segments.iter().zip(&other.segments).all(|(one, two)| {
            ours = ours.saturating_add(one.duration);
            theirs = theirs.saturating_add(two.duration);
            ours.abs_diff(theirs) <= SAME_TIME
        });
        if together {
            for (one, two) in first.segments.iter().zip(&mut other.segments) {
                two.duration = one.duration;
            }
        }
    }
}

/// The URL path of a file below the root, with its query; `None` if it is on another host.
pub(super) fn url_path(file: Option<&str>, query: Option<&str>) -> Option<String> {
    let mut url = url::Url::parse("https://site.invalid/").ok()?;
    url.set_path(&file?.replace('%', "%25"));
    let path = url.path();
    Some(query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")))
}

/// The path below the root of the file at a URL path.
pub(super) fn file_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(path.trim_start_matches('/')).decode_utf8_lossy();
    decoded.into_owned()
}
