//! [`Counter`]: bounds on what a manifest makes of its bytes.
//!
//! A template or a base is written once and applies to thousands of segments, so a few megabytes of manifest can ask
//! for terabytes of names. Everything that is done more than once for a byte of the manifest is counted here.

use super::location::Location;
use super::xml;
use crate::error::MediaError;

/// Most segments of a manifest, over all representations.
pub const SEGMENT_LIMIT: usize = 500_000;
/// Most representations of a manifest, over all periods.
const REPRESENTATIONS: usize = 100_000;
/// Most bytes of attributes, and of references with their bases, counted each time that one is read or made. A manifest
/// with the most segments allowed has 200 for each; one of ten representations of 7,200 segments has 1,300.
const TEXT: usize = 100_000_000;
/// Most visits of nodes in the XML tree. A tag and the text behind it are a node each, visited once.
const VISITS: usize = 2 * xml::TAGS;

/// Counts the segments, the representations, the text and the visited nodes of one manifest.
#[derive(Debug, Default)]
pub(super) struct Counter {
    segments: usize,
    representations: usize,
    text: usize,
    visits: usize,
}

impl Counter {
    pub(super) fn one_more_segment(&mut self) -> Result<(), MediaError> {
        self.segments += 1;
        bounded(self.segments, SEGMENT_LIMIT, "segments")
    }

    pub(super) fn one_more_representation(&mut self) -> Result<(), MediaError> {
        self.representations += 1;
        bounded(self.representations, REPRESENTATIONS, "representations")
    }

    /// Counts `length` bytes that are about to be read or written.
    pub(super) fn text(&mut self, length: usize) -> Result<(), MediaError> {
        self.text = self.text.saturating_add(length);
        bounded(self.text, TEXT, "bytes of names, repetitions included")
    }

    /// Counts a visit of a node of the XML tree.
    pub(super) fn one_more_visit(&mut self) -> Result<(), MediaError> {
        self.visits += 1;
        bounded(self.visits, VISITS, "XML nodes, repetitions included")
    }

    /// The target of `reference` from `base`.
    pub(super) fn join(&mut self, base: &Location, reference: &str) -> Result<Location, MediaError> {
        self.text(base.len().saturating_add(reference.len()))?;
        Ok(base.join(reference))
    }
}

fn bounded(count: usize, limit: usize, what: &'static str) -> Result<(), MediaError> {
    if count > limit {
        let limit = limit as u64;
        return Err(MediaError::ManifestTooLarge { what, limit });
    }
    Ok(())
}
