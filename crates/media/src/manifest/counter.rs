//! [`Counter`]: bounds on what a manifest makes of its bytes.
//!
//! A template or a base is written once and applies to thousands of segments, so a few megabytes of manifest can ask
//! for terabytes of names. Everything that is done more than once for a byte of the manifest is counted here.

use playrate_units::Bytes;

use super::location::Location;
use crate::error::MediaError;

/// Most segments that a manifest may name, over all representations.
const SEGMENTS: usize = 500_000;
/// Most representations of a manifest, over all periods.
const REPRESENTATIONS: usize = 100_000;
/// Most bytes of attributes, references and their bases, counted each time that one is read. A manifest with the
/// most segments allowed has 200 for each.
const TEXT: Bytes = Bytes::new(100_000_000);

/// Counts the segments, the representations and the text of one manifest.
#[derive(Debug, Default)]
pub(super) struct Counter {
    segments: usize,
    representations: usize,
    text: usize,
}

impl Counter {
    pub(super) fn one_more_segment(&mut self) -> Result<(), MediaError> {
        self.segments += 1;
        bounded(self.segments, SEGMENTS, "segments")
    }

    pub(super) fn one_more_representation(&mut self) -> Result<(), MediaError> {
        self.representations += 1;
        bounded(self.representations, REPRESENTATIONS, "representations")
    }

    /// Counts `length` bytes that are about to be read or written.
    pub(super) fn text(&mut self, length: usize) -> Result<(), MediaError> {
        self.text = self.text.saturating_add(length);
        let limit = usize::try_from(TEXT.as_u64()).unwrap_or(usize::MAX);
        bounded(self.text, limit, "bytes of names, repetitions included")
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
