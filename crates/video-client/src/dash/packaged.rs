//! From what a manifest says to a [`Presentation`]: which of its representations this player plays, and how they are cut. Pure.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use playrate_media::manifest::{Component, Piece, Representation as Said};
use playrate_units::{Bitrate, Bytes};
use thiserror::Error;

use super::presentation::{MediaSegment, Presentation, PresentationError, Representation, Resource};

/// How far apart two representations may begin a segment for the cut to count as one.
const SAME_TIME: Duration = Duration::from_millis(100);

/// Why a manifest that can be read cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TitleError {
    /// It is still being written.
    #[error("it is live, and this player plays titles that are complete: play its recording")]
    Live,
    /// The title comes in parts that are encoded apart from each other.
    #[error("it has {0} periods, and this player plays one: package the title as one period")]
    Periods(usize),
    /// There are no pictures that this player can read.
    #[error("it has no H.264 video, only {0}: add a representation made with `ffmpeg -c:v libx264`")]
    NoVideo(String),
    /// Media at another server.
    #[error("`{representation}` has segments at another host: put them beside the manifest")]
    Elsewhere {
        /// Whose they are.
        representation: String,
    },
    /// The boxes that say how to read the segments are missing.
    #[error(
        "`{representation}` has no initialisation segment (it is MPEG-TS, or a plain file): package it as fMP4 \
         (`ffmpeg -f hls -hls_segment_type fmp4`, or -f dash)"
    )]
    NoInitialization {
        /// Whose it is.
        representation: String,
    },
    /// One file, and nothing says how it is cut.
    #[error(
        "`{representation}` is one file, and the manifest does not say where its segments are: \
         package it with SegmentBase@indexRange, or with a file for each segment"
    )]
    NoIndex {
        /// Whose it is.
        representation: String,
    },
    /// A segment without a time.
    #[error("nothing says how long segment {segment} of `{representation}` plays: write the manifest again")]
    NoDuration {
        /// Whose it is.
        representation: String,
        /// Which, from 0.
        segment: usize,
    },
    /// The rates are what a player chooses by.
    #[error("`{representation}` has no rate: write the manifest again with @bandwidth")]
    NoRate {
        /// Whose it is.
        representation: String,
    },
    /// A main playlist of too many playlists.
    #[error("it names {0} playlists with pictures: a title of more than 64 is not played")]
    Playlists(usize),
    /// Its representations do not fit together.
    #[error(transparent)]
    Presentation(#[from] PresentationError),
}

/// The representations to play, and what is left out, in words.
pub(super) fn choose(mut all: Vec<Said>) -> Result<(Vec<Said>, Vec<String>), TitleError> {
    if all.iter().any(|it| it.live) {
        return Err(TitleError::Live);
    }
    let periods: BTreeSet<_> = all.iter().map(|it| it.period).collect();
    if periods.len() > 1 {
        return Err(TitleError::Periods(periods.len()));
    }
    // The first set with pictures that can be read; others are other angles, or other codecs.
    let Some(set) = all.iter().find(|it| is_readable(it)).map(|it| it.set) else {
        let codecs: BTreeSet<_> = all.iter().map(what).collect();
        return Err(TitleError::NoVideo(
            codecs.into_iter().collect::<Vec<_>>().join(", "),
        ));
    };
    let others = all.extract_if(.., |it| it.set != set || !is_readable(it));
    let mut left_out: Vec<(String, usize)> = Vec::new();
    for other in others {
        let what = what(&other);
        match left_out.iter_mut().find(|(known, _)| *known == what) {
            Some((_, count)) => *count += 1,
            None => left_out.push((what, 1)),
        }
    }
    let notes = left_out.into_iter().map(|(what, count)| {
        let plural = if count == 1 { "" } else { "s" };
        format!("not fetched: {count} representation{plural} of {what}")
    });
    let notes = notes.collect();
    Ok((all, notes))
}

/// Whether it is, or may be, video that this player reads.
pub(super) fn is_readable(it: &Said) -> bool {
    let video = matches!(it.component, Component::Video | Component::Unknown);
    video
        && it.codecs.as_deref().is_none_or(|codecs| {
            let mut codecs = codecs.split(',').map(str::trim);
            codecs.any(|codec| codec.starts_with("avc1") || codec.starts_with("avc3"))
        })
}

fn what(it: &Said) -> String {
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

/// Gives representations that are called the same (playlists in directories of their own) the paths of their first pieces' directories.
fn name_apart(all: &mut [Said]) {
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

/// What is played of them. They have pieces of known length; see [`needs_index`] for those that have not.
pub(super) fn presentation(mut all: Vec<Said>) -> Result<Presentation, TitleError> {
    name_apart(&mut all);
    let mut representations = all
        .into_iter()
        .map(representation)
        .collect::<Result<Vec<_>, _>>()?;
    align(&mut representations);
    Ok(Presentation::new(representations)?)
}

/// Whether a representation is one file whose segment index must be read, and where that is.
pub(super) fn needs_index(it: &Said) -> Result<Option<Resource>, TitleError> {
    match &it.pieces[..] {
        [
            Piece {
                bytes: None,
                file,
                query,
                ..
            },
        ] if it.index.is_some() => Ok(Some(Resource {
            path: url_path(file.as_deref(), query.as_deref()).ok_or_else(|| TitleError::Elsewhere {
                representation: it.id.clone(),
            })?,
            bytes: it.index.clone(),
        })),
        [
            Piece {
                bytes: None, file, ..
            },
        ] if it
            .initialization
            .as_ref()
            .is_some_and(|it| it.file.is_some() && it.file == *file) =>
        {
            Err(TitleError::NoIndex {
                representation: it.id.clone(),
            })
        }
        _ => Ok(None),
    }
}

fn representation(said: Said) -> Result<Representation, TitleError> {
    let name = said.id;
    let elsewhere = || TitleError::Elsewhere {
        representation: name.clone(),
    };
    let initialization = said.initialization.ok_or_else(|| TitleError::NoInitialization {
        representation: name.clone(),
    })?;
    let initialization = Resource {
        path: url_path(initialization.file.as_deref(), initialization.query.as_deref())
            .ok_or_else(elsewhere)?,
        bytes: initialization.bytes,
    };
    let measured = measured_rate(&said.pieces);
    let mut segments = Vec::with_capacity(said.pieces.len());
    for (segment, piece) in said.pieces.into_iter().enumerate() {
        segments.push(MediaSegment {
            path: url_path(piece.file.as_deref(), piece.query.as_deref()).ok_or_else(elsewhere)?,
            bytes: piece.bytes,
            duration: piece.duration.ok_or_else(|| TitleError::NoDuration {
                representation: name.clone(),
                segment,
            })?,
            pictures: 1,
        });
    }
    Ok(Representation {
        rate: said
            .declared_rate
            .or(measured)
            .ok_or_else(|| TitleError::NoRate {
                representation: name.clone(),
            })?,
        name,
        initialization: Some(initialization),
        segments,
    })
}

/// The rate of pieces whose sizes and playing times are known.
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

/// Gives all the cut of the first where theirs differs by rounding alone.
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

/// The path to ask for, of a file's path below the root, with its query; `None` if it lies elsewhere.
pub(super) fn url_path(file: Option<&str>, query: Option<&str>) -> Option<String> {
    let mut url = url::Url::parse("https://site.invalid/").ok()?;
    url.set_path(&file?.replace('%', "%25"));
    let path = url.path();
    Some(query.map_or_else(|| path.to_owned(), |query| format!("{path}?{query}")))
}

/// A file's path below the root, of the path that was asked for.
pub(super) fn file_of(path: &str) -> String {
    let path = path.split('?').next().unwrap_or_default();
    let decoded = percent_encoding::percent_decode_str(path.trim_start_matches('/')).decode_utf8_lossy();
    decoded.into_owned()
}
