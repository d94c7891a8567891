//! Converts the representations of a manifest to a [`Presentation`]: selection, segments and rates. Pure functions.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use playrate_media::MediaError;
use playrate_media::manifest::{Component, ManifestRepresentation as Declared, Piece, SEGMENT_LIMIT};
use playrate_units::{Bitrate, Bytes};

use super::presentation::{MediaSegment, Presentation, Representation, Resource};
use crate::error::{PresentationError, TitleError};

/// Maximum difference between the starts of a segment in two aligned representations.
const SAME_TIME: Duration = Duration::from_millis(100);
/// Maximum number of segments, periods and each [`NAME`] bytes of paths, repeated for every representation.
const COPIES: usize = 2 * SEGMENT_LIMIT;
/// Bytes of paths that count as one segment.
const NAME: usize = 200;

/// The representations to play, and notes on omitted ones.
pub(super) fn choose(mut all: Vec<Declared>) -> Result<(Vec<Declared>, Vec<String>), TitleError> {
    if all.iter().any(|it| it.live) {
        return Err(TitleError::Live);
    }
    // Of each period, the first set that is preferred and can be played, if possible one in the main role; other sets
    // are other angles or codecs. In a period with video, sound does not replace it.
    let key = |it: &Declared| {
        let role = (it.is_main == Some(false), it.is_main.is_none());
        preference(it).map(|rank| (rank == SOUND, obstacle(it).is_some(), role, rank, it.set))
    };
    let mut sets = BTreeMap::new();
    for (period, key) in all.iter().filter_map(|it| Some((it.period, key(it)?))) {
        let best = sets.entry(period).or_insert(key);
        *best = key.min(*best);
    }
    sets.retain(|_, (_, has_obstacle, ..)| !*has_obstacle);
    // A period without segments plays nothing.
    let plays_nothing = |it: &Declared| it.pieces.is_empty() && !sets.is_empty();
    let lacks = |it: &&Declared| !sets.contains_key(&it.period) && !plays_nothing(it);
    let unplayed: Vec<_> = all.iter().filter(lacks).collect();
    if !unplayed.is_empty() {
        let obstacles = unplayed
            .iter()
            .filter_map(|it| Some((preference(it)?, obstacle(it)?)));
        if let Some((_, obstacle)) = obstacles.min_by_key(|(rank, _)| *rank) {
            return Err(obstacle);
        }
        let names: BTreeSet<_> = unplayed.into_iter().map(media_name).collect();
        return Err(TitleError::NoMedia(Vec::from_iter(names).join(", ")));
    }
    let warnings = all.iter_mut().flat_map(|it| std::mem::take(&mut it.warnings));
    let mut notes: Vec<_> = warnings.collect();
    let is_other = |it: &mut Declared| key(it).is_none_or(|key| sets.get(&it.period) != Some(&key));
    let mut left_out: BTreeMap<String, usize> = BTreeMap::new();
    for it in all.extract_if(.., is_other) {
        *left_out.entry(media_name(&it)).or_default() += 1;
    }
    notes.extend(left_out.into_iter().map(|(name, count)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("not fetched: {count} representation{plural} of {name}")
    }));
    Ok((all, notes))
}

/// The reason why a readable representation cannot be fetched, if any.
pub(super) fn obstacle(it: &Declared) -> Option<TitleError> {
    let name = it.id.clone();
    let initializations = it.initializations.iter().map(|(_, piece)| piece);
    let mut pieces = it.pieces.iter().chain(initializations);
    if let Some(method) = &it.encryption {
        return Some(TitleError::Encrypted(name, method.clone()));
    }
    if it.pieces.is_empty() {
        return Some(TitleError::NoSegments(name));
    }
    let is_foreign = pieces.any(|piece| piece.is_foreign);
    is_foreign.then_some(TitleError::Elsewhere(name))
}

/// Preference of sound, after all video.
pub(super) const SOUND: u8 = 2;

/// Order of preference: H.264 video, other video, sound. `None` for other data.
pub(super) fn preference(it: &Declared) -> Option<u8> {
    let mut codecs = it.codecs.as_deref().unwrap_or("avc1").split(',');
    match it.component {
        Component::Other | Component::Text => None,
        Component::Audio => Some(SOUND),
        _ => Some(u8::from(!codecs.any(|codec| codec.trim().starts_with("avc")))),
    }
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

/// The presentation of these representations, one period after the other. Their pieces must have known durations; see
/// [`needs_index`].
pub(super) fn presentation(all: Vec<Declared>) -> Result<Presentation, TitleError> {
    let mut periods: BTreeMap<usize, Vec<Declared>> = BTreeMap::new();
    for one in all {
        periods.entry(one.period).or_default().push(one);
    }
    let read = |mut period: Vec<Declared>| {
        name_apart(&mut period);
        let period = period.into_iter().map(representation);
        let mut period = period.collect::<Result<Vec<_>, _>>()?;
        period.sort_by_key(|it| it.rate);
        align(&mut period);
        Ok(period)
    };
    let mut periods = periods
        .into_values()
        .map(read)
        .collect::<Result<Vec<_>, TitleError>>()?;
    if periods.len() == 1 {
        return Ok(Presentation::new(periods.remove(0))?);
    }
    // The player chooses among the representations of the longest period. In others, it plays those nearest below.
    let length = |period: &[Representation]| -> Duration {
        let segments = period.iter().take(1).flat_map(|first| &first.segments);
        segments.map(|segment| segment.duration).sum()
    };
    let longest = (0..periods.len())
        .rev()
        .max_by_key(|&at| periods.get(at).map(|it| length(it)));
    let longest = longest.unwrap_or_default();
    let mut joined = periods.get(longest).cloned().unwrap_or_default();
    // Every representation receives the segments of all periods, so a short manifest can expand to terabytes.
    let mut copied = 0_usize;
    for (number, one) in joined.iter_mut().enumerate() {
        one.segments.clear();
        one.initializations.clear();
        for (at, period) in periods.iter().enumerate() {
            let below = period.partition_point(|it| it.rate <= one.rate).saturating_sub(1);
            let Some(part) = period.get(if at == longest { number } else { below }) else {
                continue;
            };
            let paths = part.segments.iter().map(|it| &it.path);
            let paths = paths.chain(part.initializations.iter().map(|(_, it)| &it.path));
            copied += 1 + part.segments.len() + paths.map(String::len).sum::<usize>() / NAME;
            if copied > COPIES {
                let (what, limit) = ("segments, repeated for each representation", COPIES as u64);
                return Err(MediaError::ManifestTooLarge { what, limit }.into());
            }
            let first = one.segments.len();
            let moved = part
                .initializations
                .iter()
                .map(|(at, it)| (first + at, it.clone()));
            one.initializations.extend(moved);
            one.segments.extend_from_slice(&part.segments);
        }
    }
    Ok(Presentation::new(joined)?)
}

/// The segment index to read for a representation in one file; `None` if not needed.
pub(super) fn needs_index(it: &Declared) -> Result<Option<Resource>, TitleError> {
    let [piece @ Piece { bytes: None, .. }] = &it.pieces[..] else {
        return Ok(None);
    };
    if it.index.is_some() {
        if it.initializations.is_empty() {
            return Err(TitleError::NoInitialization(it.id.clone()));
        }
        let mut index = resource(piece, &it.id)?;
        index.bytes.clone_from(&it.index);
        return Ok(Some(index));
    }
    let initialized_by = it.initializations.first().and_then(|(_, it)| it.file.as_ref());
    if initialized_by.is_some() && initialized_by == piece.file.as_ref() {
        return Err(TitleError::NoIndex(it.id.clone()));
    }
    Ok(None)
}

/// The request for a piece of the representation `name`.
fn resource(piece: &Piece, name: &str) -> Result<Resource, TitleError> {
    let path = piece.own_path().map(str::to_owned);
    Ok(Resource {
        path: path.ok_or_else(|| TitleError::Elsewhere(name.to_owned()))?,
        bytes: piece.bytes.clone(),
    })
}

fn representation(declared: Declared) -> Result<Representation, TitleError> {
    let name = declared.id;
    let initializations = declared.initializations.iter();
    let initializations = initializations.map(|(first, piece)| Ok((*first, resource(piece, &name)?)));
    let initializations = initializations.collect::<Result<_, TitleError>>()?;
    let measured = measured_rate(&declared.pieces);
    let mut segments = Vec::with_capacity(declared.pieces.len());
    for (segment, piece) in declared.pieces.into_iter().enumerate() {
        let Resource { path, bytes } = resource(&piece, &name)?;
        segments.push(MediaSegment {
            path,
            bytes,
            duration: piece.duration.ok_or_else(|| PresentationError::EmptySegment {
                representation: name.clone(),
                segment,
            })?,
            hidden: piece.hidden,
            frames: 1,
            is_gap: piece.is_gap,
        });
    }
    let rate = declared.declared_rate.or(measured);
    Ok(Representation {
        rate: rate.ok_or_else(|| TitleError::NoRate(name.clone()))?,
        name,
        initializations,
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
