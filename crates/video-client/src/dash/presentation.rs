//! [`Presentation`]: what a manifest says, as far as this player needs it.

use std::ops::Range;
use std::time::Duration;

use playrate_units::Bitrate;
use thiserror::Error;

/// A title in several representations, the lowest rate first, all cut at the same times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentation {
    representations: Vec<Representation>,
    duration: Duration,
}

/// One encode of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representation {
    /// What it is called, such as `720p`.
    pub name: String,
    /// The rate that the player goes by (`@bandwidth`).
    pub rate: Bitrate,
    /// What must be read before any of its segments, of real media: its boxes then say how many pictures a segment has.
    pub initialization: Option<Resource>,
    /// Its segments, in the order of playing.
    pub segments: Vec<MediaSegment>,
}

/// Something to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Path (with its query) at the server.
    pub path: String,
    /// The bytes of it that are wanted; `None` for all of them.
    pub bytes: Option<Range<u64>>,
}

/// What is fetched at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSegment {
    /// Path (with its query) at the server.
    pub path: String,
    /// The bytes of it that are the segment; all of them, if a segment has a path of its own.
    pub bytes: Option<Range<u64>>,
    /// Playing time.
    pub duration: Duration,
    /// Pictures in it, at least one; where there is an [initialisation segment](Representation::initialization), what comes says
    /// it better. Nothing of a segment is shown before all of it is in, so it does not matter where in it they are.
    pub pictures: u32,
}

/// A presentation that cannot be played.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PresentationError {
    /// There is nothing to choose from.
    #[error("a presentation needs at least one representation with at least one segment")]
    Empty,
    /// Two representations have one name.
    #[error("two representations are called `{0}`: give each a name of its own")]
    SameName(String),
    /// Representations are to be cut at the same times, so that the player can change between them.
    #[error("`{0}` and `{1}` are cut at different times: encode both with segments of the same length")]
    Unaligned(String, String),
    /// A segment that is never shown.
    #[error("segment {segment} of `{representation}` has no picture, no playing time or no bytes")]
    EmptySegment {
        /// Whose it is.
        representation: String,
        /// Which, from 0.
        segment: usize,
    },
    /// No representation has the name that was asked for.
    #[error("there is no representation `{name}`: write one of {}", .known.join(", "))]
    NoSuch {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

impl Presentation {
    /// A title of these representations, in any order.
    ///
    /// # Errors
    /// If there are none, or they do not fit together.
    pub fn new(mut representations: Vec<Representation>) -> Result<Self, PresentationError> {
        representations.sort_by_key(|representation| representation.rate);
        let first = representations.first().ok_or(PresentationError::Empty)?;
        if first.segments.is_empty() {
            return Err(PresentationError::Empty);
        }
        let duration = first.segments.iter().map(|segment| segment.duration).sum();
        for (at, one) in representations.iter().enumerate() {
            if representations
                .iter()
                .skip(at + 1)
                .any(|other| other.name == one.name)
            {
                return Err(PresentationError::SameName(one.name.clone()));
            }
            let cut = |it: &Representation| {
                it.segments
                    .iter()
                    .map(|segment| segment.duration)
                    .collect::<Vec<_>>()
            };
            if cut(one) != cut(first) {
                return Err(PresentationError::Unaligned(first.name.clone(), one.name.clone()));
            }
            let empty = |segment: &MediaSegment| {
                let no_bytes = segment.bytes.as_ref().is_some_and(Range::is_empty);
                segment.pictures == 0 || segment.duration.is_zero() || no_bytes
            };
            if let Some(segment) = one.segments.iter().position(empty) {
                return Err(PresentationError::EmptySegment {
                    representation: one.name.clone(),
                    segment,
                });
            }
        }
        Ok(Self {
            representations,
            duration,
        })
    }

    /// The representations, the lowest rate first.
    pub fn representations(&self) -> &[Representation] {
        &self.representations
    }

    /// Playing time.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// How many segments each representation has.
    pub fn segment_count(&self) -> usize {
        self.representations
            .first()
            .map_or(0, |representation| representation.segments.len())
    }

    /// The segment that plays at `time`, from 0, and when it begins; `None` from the title's end on.
    pub fn segment_at(&self, time: Duration) -> Option<(usize, Duration)> {
        let segments = &self.representations.first()?.segments;
        let mut begins = Duration::ZERO;
        for (at, segment) in segments.iter().enumerate() {
            let ends = begins.saturating_add(segment.duration);
            if time < ends {
                return Some((at, begins));
            }
            begins = ends;
        }
        None
    }

    /// Segment `segment` of representation `representation`, both from 0.
    pub fn segment(&self, representation: usize, segment: usize) -> Option<&MediaSegment> {
        self.representations.get(representation)?.segments.get(segment)
    }

    /// The representation called `name`.
    ///
    /// # Errors
    /// If there is none; the error names those that there are.
    pub fn named(&self, name: &str) -> Result<usize, PresentationError> {
        let found = self.representations.iter().position(|it| it.name == name);
        found.ok_or_else(|| PresentationError::NoSuch {
            name: name.to_owned(),
            known: self.representations.iter().map(|it| it.name.clone()).collect(),
        })
    }
}
