//! [`Counter`]: bounds on the work and memory that a manifest can cause.
//!
//! A template or a base is written once and applies to thousands of segments, so a few megabytes of manifest can expand
//! to terabytes of names. Everything done more than once per byte of the manifest is counted here.

use super::Result;
use super::location::Location;
use crate::error::MediaError;

/// Maximum number of segments of a manifest, over all representations.
pub const SEGMENT_LIMIT: usize = 500_000;
/// Maximum number of representations of a manifest, over all periods.
const REPRESENTATIONS: usize = 100_000;
/// Maximum number of bytes of attributes and of references with their bases, counted each time one is read or made. A
/// manifest with the maximum number of segments can use 200 per segment; one with ten representations of 7,200 segments
/// can use 1,300.
const TEXT: usize = 100_000_000;
/// Maximum number of tags, comments and the like in an MPD: four for each allowed segment.
pub(super) const TAGS: usize = 2_000_000;
/// Maximum number of node visits in the XML tree. A tag and the text after it are one node each, visited once;
/// the entries of a timeline are visited again for each representation.
const VISITS: usize = 2 * TAGS;

/// Counts the segments, the representations, the text and the visited nodes of one manifest.
#[derive(Debug, Default)]
pub(super) struct Counter {
    segments: usize,
    representations: usize,
    text: usize,
    visits: usize,
}

impl Counter {
    pub(super) fn one_more_segment(&mut self) -> Result<()> {
        self.segments += 1;
        bounded(self.segments, SEGMENT_LIMIT, "segments")
    }

    pub(super) fn one_more_representation(&mut self) -> Result<()> {
        self.representations += 1;
        bounded(self.representations, REPRESENTATIONS, "representations")
    }

    /// Counts `length` bytes that are about to be read or written.
    pub(super) fn text(&mut self, length: usize) -> Result<()> {
        self.text = self.text.saturating_add(length);
        bounded(self.text, TEXT, "bytes of names, repetitions included")
    }

    /// Counts a visit of a node of the XML tree.
    pub(super) fn one_more_visit(&mut self) -> Result<()> {
        self.visits += 1;
        bounded(self.visits, VISITS, "XML nodes, repetitions included")
    }

    /// The target of `reference` from `base`.
    pub(super) fn join(&mut self, base: &Location, reference: &str) -> Result<Location> {
        self.text(base.len().saturating_add(reference.len()))?;
        Ok(base.join(reference))
    }
}

/// An error if `count` is above `limit`.
pub(super) fn bounded(count: usize, limit: usize, what: &'static str) -> Result<()> {
    if count > limit {
        let limit = limit as u64;
        return Err(MediaError::ManifestTooLarge { what, limit });
    }
    Ok(())
}
