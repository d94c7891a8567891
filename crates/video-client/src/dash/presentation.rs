//! [`Presentation`]: the representations and segments of a title, as this player needs them.

use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;

use playrate_units::Bitrate;

use crate::error::PresentationError;

/// A title in several representations, the lowest rate first, all cut at the same times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentation {
    representations: Vec<Representation>,
    duration: Duration,
}

/// One encode of a title.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Representation {
    /// Name, such as `720p`; unique within a presentation.
    pub name: String,
    /// Declared rate, by which the player chooses (`@bandwidth`).
    pub rate: Bitrate,
    /// Initialisation segments of real media, each with the index of the first segment that needs it. With them, frames
    /// are counted in the boxes of each segment.
    pub initializations: Vec<(usize, Resource)>,
    /// Segments in playing order.
    pub segments: Vec<MediaSegment>,
}

/// A file, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Path (with its query) at the server.
    pub path: String,
    /// Byte range; `None` for the whole file.
    pub bytes: Option<Range<u64>>,
}

/// A segment: the unit that is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaSegment {
    /// Path (with its query) at the server.
    pub path: String,
    /// Byte range; `None` if the segment is a file of its own.
    pub bytes: Option<Range<u64>>,
    /// Playing time of the part that is shown.
    pub duration: Duration,
    /// Part of its media that lies outside its period and is not shown.
    pub hidden: Duration,
    /// Number of frames, at least one. With an [initialisation segment](Representation::initializations), the number in
    /// the boxes is used instead. A segment is shown once it has arrived completely, so the positions of its frames do
    /// not matter.
    pub frames: u32,
    /// True if the segment is declared absent. It is passed over without a request.
    pub is_gap: bool,
}

impl Representation {
    /// Number of the initialisation segment that `segment` needs, and that initialisation segment.
    pub(super) fn initialization(&self, segment: usize) -> Option<(usize, &Resource)> {
        let begun = self
            .initializations
            .partition_point(|(first, _)| *first <= segment);
        let number = begun.checked_sub(1)?;
        Some((number, &self.initializations.get(number)?.1))
    }

    fn durations(&self) -> impl Iterator<Item = Duration> {
        self.segments.iter().map(|segment| segment.duration)
    }
}

impl Presentation {
    /// A presentation with these representations, given in any order.
    ///
    /// # Errors
    /// If there are none, or their segments are not aligned or empty.
    pub fn new(mut representations: Vec<Representation>) -> Result<Self, PresentationError> {
        representations.sort_by_key(|representation| representation.rate);
        let first = representations.first().ok_or(PresentationError::Empty)?;
        if first.segments.is_empty() {
            return Err(PresentationError::Empty);
        }
        let duration = first.segments.iter().map(|segment| segment.duration).sum();
        let mut names = BTreeSet::new();
        for one in &representations {
            if !names.insert(one.name.as_str()) {
                return Err(PresentationError::SameName(one.name.clone()));
            }
            if !one.durations().eq(first.durations()) {
                return Err(PresentationError::Unaligned(first.name.clone(), one.name.clone()));
            }
            let empty = |segment: &MediaSegment| {
                let no_bytes = segment.bytes.as_ref().is_some_and(Range::is_empty);
                segment.frames == 0 || segment.duration.is_zero() || no_bytes
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

    /// Playing time of the whole.
    pub fn duration(&self) -> Duration {
        self.duration
    }

    /// Number of segments of each representation.
    pub fn segment_count(&self) -> usize {
        let first = self.representations.first();
        first.map_or(0, |first| first.segments.len())
    }

    /// Index and start of the segment that plays at `time`; `None` from the title's end on.
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

    /// Segment `segment` of representation `representation`, both counted from 0.
    pub fn segment(&self, representation: usize, segment: usize) -> Option<&MediaSegment> {
        self.representations.get(representation)?.segments.get(segment)
    }

    /// The representation called `name`.
    ///
    /// # Errors
    /// If there is none; the error lists the existing names.
    pub fn named(&self, name: &str) -> Result<usize, PresentationError> {
        let found = self.representations.iter().position(|it| it.name == name);
        found.ok_or_else(|| PresentationError::Unknown {
            name: name.to_owned(),
            known: self.representations.iter().map(|it| it.name.clone()).collect(),
        })
    }
}
