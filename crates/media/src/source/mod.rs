//! [`MediaSource`]: the bytes of a title and their index, from any origin.

use std::fmt;
use std::io;

use bytes::Bytes;

use crate::title::Title;

mod memory;
mod trace;

pub use memory::MemorySource;
pub use trace::TraceSource;

/// The most bytes that one [`MediaSource::read_at`] returns: 256 KiB.
pub const MAX_READ: usize = 256 << 10;

/// A title to be served: bytes at offsets, and the title's index.
///
/// Reads are synchronous and bounded by [`MAX_READ`], so the caller controls the memory of a response. All connections
/// share the sources.
#[expect(
    clippy::len_without_is_empty,
    reason = "a source has a title with at least one frame, so it is never empty"
)]
pub trait MediaSource: Send + Sync + fmt::Debug {
    /// Length of the title in bytes.
    fn len(&self) -> u64;

    /// The bytes from `offset` on: at least one, and at most `max` and [`MAX_READ`]. Empty only if `offset` is at or
    /// past the end, or `max` is zero.
    ///
    /// # Errors
    /// If they cannot be read, or have changed since [`Self::title`] was read.
    fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes>;

    /// The index of the title: frames, average rate, segments.
    fn title(&self) -> &Title;

    /// A text that changes when the bytes do, fit for a strong `ETag`: ASCII letters, digits and `-`.
    fn identity(&self) -> &str;
}

/// Number of bytes that a read of at most `max` at `offset` returns, out of `len`.
fn readable(len: u64, offset: u64, max: usize) -> usize {
    let left = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
    left.min(max).min(MAX_READ)
}

/// The first 16 bytes of a digest, as hexadecimal digits.
fn hex(digest: &[u8]) -> String {
    let beginning = digest.first_chunk().copied().unwrap_or_default();
    format!("{:032x}", u128::from_be_bytes(beginning))
}
