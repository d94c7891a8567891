//! [`ChunkCache`]: chunks of objects, in memory and on disk.

use std::sync::Arc;

use bytes::Bytes;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::disk::DiskCache;
use crate::totals::Counters;
use crate::{CHUNK, ChunkKey};

#[derive(Clone, Debug)]
struct ByLength;

impl Weighter<ChunkKey, Bytes> for ByLength {
    fn weight(&self, _: &ChunkKey, chunk: &Bytes) -> u64 {
        chunk.len() as u64
    }
}

/// Cache of chunks that are read often. Each is kept from its first read on, because fetching it again costs more than
/// keeping it.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    memory: Cache<ChunkKey, Bytes, ByLength>,
    disk: Option<DiskCache>,
    counters: Arc<Counters>,
}

impl ChunkCache {
    /// A cache of at most `capacity` bytes in memory, backed by `disk`.
    pub(crate) fn new(capacity: u64, disk: Option<DiskCache>, counters: Arc<Counters>) -> Self {
        let chunks = usize::try_from(capacity / CHUNK as u64).unwrap_or(usize::MAX);
        Self {
            memory: Cache::with_weighter(chunks.max(1), capacity, ByLength),
            disk,
            counters,
        }
    }

    /// Maximum size in memory in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.memory.capacity()
    }

    /// Size of the chunks in memory and of those on disk, in bytes.
    pub(crate) fn sizes(&self) -> (u64, u64) {
        let disk = self.disk.as_ref().map_or(0, DiskCache::size);
        (self.memory.weight(), disk)
    }

    /// The chunk from memory, or from the disk, read on the calling thread.
    pub(crate) fn get(&self, key: &ChunkKey) -> Option<Bytes> {
        if let Some(chunk) = self.memory.get(key) {
            self.counters.lock().memory_hits += 1;
            return Some(chunk);
        }
        let chunk = self.disk.as_ref()?.get(key)?;
        self.counters.lock().disk_hits += 1;
        self.memory.insert(*key, chunk.clone());
        Some(chunk)
    }

    /// Returns true if the chunk is in memory or on disk.
    pub(crate) fn contains(&self, key: &ChunkKey) -> bool {
        self.memory.contains_key(key) || self.disk.as_ref().is_some_and(|disk| disk.contains(key))
    }

    /// Stores a fetched chunk.
    pub(crate) fn insert(&self, key: ChunkKey, chunk: &Bytes) {
        self.memory.insert(key, chunk.clone());
        if let Some(disk) = &self.disk
            && !disk.put(key, chunk)
        {
            self.counters.lock().disk_skipped += 1;
        }
    }
}
