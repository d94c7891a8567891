//! [`ChunkCache`]: chunks of files in memory, shared by the responses that read the same file.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytes::Bytes;
use playrate_units::Bytes as ByteCount;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use super::file::FileIdentity;
use crate::site::CHUNK;

/// Default capacity: seven minutes of video at 5 Mbit/s.
pub(super) const DEFAULT_CAPACITY: ByteCount = ByteCount::new(256_000_000);

/// Number of requested chunks that are remembered for each that has room.
const REMEMBERED: usize = 4;

/// A version of a file, and the chunk's number in it.
type ChunkKey = (FileIdentity, u64);

/// Chunks of [`CHUNK`] bytes, of which those stay that are read often. A chunk is kept from its second request on: to
/// keep one that nothing requests again costs more than to read it. Several responses that lack it at the same time
/// read it once.
#[derive(Debug)]
pub(super) struct ChunkCache {
    chunks: Cache<ChunkKey, Bytes, ByLength>,
    /// Chunks that were requested before.
    requested: Cache<ChunkKey, ()>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Counts of the chunks that were found in memory, and of those that were read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheTotals {
    /// Reads that found their chunk in memory.
    pub hits: u64,
    /// Reads that took their chunk from the file.
    pub misses: u64,
    /// Size of the chunks that are kept now.
    pub size: ByteCount,
}

#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<ChunkKey, Bytes> for ByLength {
    fn weight(&self, _: &ChunkKey, chunk: &Bytes) -> u64 {
        chunk.len() as u64
    }
}

impl ChunkCache {
    /// A cache of at most `capacity`; with none it keeps nothing.
    pub(super) fn new(capacity: ByteCount) -> Self {
        let chunks = capacity.as_u64() / CHUNK.as_u64();
        let chunks = usize::try_from(chunks).unwrap_or(usize::MAX).max(1);
        Self {
            chunks: Cache::with_weighter(chunks, capacity.as_u64(), ByLength),
            requested: Cache::new(chunks.saturating_mul(REMEMBERED)),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns true if it can keep a whole chunk.
    pub(super) fn is_enabled(&self) -> bool {
        self.chunks.capacity() >= CHUNK.as_u64()
    }

    /// The chunk `number` of `file`, by `read` if it is not there.
    pub(super) fn get(
        &self,
        file: FileIdentity,
        number: u64,
        read: impl FnOnce() -> io::Result<Bytes>,
    ) -> io::Result<Bytes> {
        let key = (file, number);
        if let Some(chunk) = self.chunks.get(&key) {
            self.hits.fetch_add(1, Relaxed);
            return Ok(chunk);
        }
        let mut is_first = false;
        self.requested.get_or_insert_with(&key, || {
            is_first = true;
            io::Result::Ok(())
        })?;
        let counted = || {
            self.misses.fetch_add(1, Relaxed);
            read()
        };
        if is_first {
            return counted();
        }
        let mut was_read = false;
        let chunk = self.chunks.get_or_insert_with(&key, || {
            was_read = true;
            counted()
        });
        if !was_read {
            self.hits.fetch_add(1, Relaxed);
        }
        chunk
    }

    pub(super) fn totals(&self) -> CacheTotals {
        CacheTotals {
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            size: ByteCount::new(self.chunks.weight()),
        }
    }
}
