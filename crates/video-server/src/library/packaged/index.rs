//! [`PackagedIndex`]: the packaged titles of a library and the files that they name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use playrate_media::manifest::Component;
use playrate_media::{Segment, Title};
use playrate_units::{Bitrate, seconds};
use serde::{Serialize, Serializer};

use crate::http::path::ResourceName;
use crate::library::TitleSummary;

/// A title in representations, as one manifest names them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PackagedTitle {
    /// The manifest that players are given.
    #[serde(skip)]
    pub manifest: ResourceName,
    /// Representations to choose from.
    #[serde(serialize_with = "as_sequence")]
    pub representations: Vec<Arc<RepresentationSummary>>,
    /// Earlier manifest of the other format that names more than half of this one's files, if any.
    #[serde(skip)]
    pub same_as: Option<ResourceName>,
}

fn as_sequence<S: Serializer>(all: &[Arc<RepresentationSummary>], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(all.iter().map(|one| &**one))
}

/// Summary of a representation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RepresentationSummary {
    /// Name of its manifest.
    #[serde(skip)]
    pub title: ResourceName,
    /// Its `id` in the manifest.
    pub id: String,
    /// Number of its set; representations of one set can replace each other during playback.
    pub set: usize,
    /// Video, audio or another kind of content.
    #[serde(skip)]
    pub component: Component,
    /// True if its manifest may still grow.
    #[serde(skip)]
    pub live: bool,
    /// Codecs as RFC 6381 writes them, if the manifest has them.
    pub codecs: Option<String>,
    /// Width and height of the video in pixels, if the manifest has them.
    pub resolution: Option<(u32, u32)>,
    /// Bytes of its segments over their duration, if files and durations are known; otherwise the
    /// rate that the manifest declares.
    #[serde(rename = "average_rate_bps")]
    pub average_rate: Option<Bitrate>,
    /// The rate declared by the manifest, which is the one that players know.
    #[serde(rename = "declared_rate_bps")]
    pub declared_rate: Option<Bitrate>,
    /// Number of segments in the manifest.
    pub segments: usize,
    /// Sum of the known durations of its segments.
    #[serde(rename = "duration_s", with = "seconds")]
    pub duration: Duration,
    /// Duration of the longest segment.
    #[serde(rename = "longest_segment_s", with = "seconds")]
    pub longest_segment: Duration,
    /// Number of segments whose files do not exist.
    #[serde(rename = "missing_segments")]
    pub missing: usize,
}

/// A file that a manifest names.
#[derive(Debug)]
pub(in crate::library) struct PackagedFile {
    /// Representation of its first segment.
    pub(in crate::library) representation: Arc<RepresentationSummary>,
    pub(super) segments: Vec<Cut>,
}

impl PackagedFile {
    /// Bytes of the first segment from `end` on.
    #[cfg(feature = "object-store")]
    pub(in crate::library) fn segment_from(&self, end: u64) -> Option<Range<u64>> {
        let segments = self.segments.iter().filter_map(|cut| cut.bytes.clone());
        segments
            .filter(|bytes| bytes.start >= end)
            .min_by_key(|bytes| bytes.start)
    }

    /// Duration of the segments that lie within `part`.
    pub(in crate::library) fn duration_of(&self, part: &Range<u64>) -> Option<Duration> {
        let is_within = |bytes: &Range<u64>| part.start <= bytes.start && bytes.end <= part.end;
        let segments = self.segments.iter();
        segments
            .filter(|cut| cut.bytes.as_ref().is_none_or(is_within))
            .filter_map(|cut| cut.duration)
            .reduce(|sum, duration| sum + duration)
    }
}

/// Contents of the manifests of a directory.
#[derive(Debug, Default)]
pub(in crate::library) struct PackagedIndex {
    pub(in crate::library) titles: Vec<PackagedTitle>,
    pub(in crate::library) files: BTreeMap<ResourceName, Arc<PackagedFile>>,
    /// The next file of the representation after each one, for remote files.
    pub(in crate::library) next: BTreeMap<ResourceName, ResourceName>,
    /// Manifests that were read and cannot grow.
    pub(in crate::library) finished: BTreeSet<ResourceName>,
    /// Those of [`MediaFiles::parts`](super::MediaFiles::parts) that manifests name.
    pub(super) parts: BTreeSet<ResourceName>,
}

/// A segment in a file.
#[derive(Clone, Debug)]
pub(in crate::library) struct Cut {
    /// Its bytes; `None` if it is the whole file.
    pub(in crate::library) bytes: Option<Range<u64>>,
    /// Duration of the segment, if known.
    pub(in crate::library) duration: Option<Duration>,
}

/// Summary of a title, and the segments in its file.
pub(in crate::library) fn index_of(title: &Title) -> (TitleSummary, Vec<Cut>) {
    let cut = |segment: Segment| Cut {
        bytes: Some(segment.bytes),
        duration: Some(segment.duration),
    };
    let cuts = title.segments().into_iter().map(cut).collect();
    (TitleSummary::of(title), cuts)
}
