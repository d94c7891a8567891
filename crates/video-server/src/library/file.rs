//! [`OpenFiles`]: the files that responses read, each opened once, with their chunks in memory. [`OpenFile`]: one of
//! these files, in the version that a request opened.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use playrate_units::Bytes as ByteCount;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, pread};

use super::CHUNK;
use crate::http::validator::EntityTag;

/// Time without a change before a file's chunks are kept. A file system's clock is coarse: two versions written within
/// one of its ticks have the same time.
const SETTLED: Duration = Duration::from_secs(2);

/// Default capacity: seven minutes of video at 5 Mbit/s.
const DEFAULT_CAPACITY: ByteCount = ByteCount::new(256_000_000);

/// Number of requested chunks to remember for each chunk that the cache can hold.
const REMEMBERED: usize = 4;

/// A file that responses read; it is closed when the last of them has ended. If the file is replaced, responses go on
/// reading the old one. If it is written to in place, they fail rather than mix two versions.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    identity: FileIdentity,
    cache: Arc<ChunkCache>,
}

/// A version of a file, unique among all files that the machine has or had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileIdentity {
    version: Version,
    /// Time of the inode's last change in seconds and nanoseconds; no program can set it. Needed because inodes of
    /// deleted files are reused.
    changed: (i64, i64),
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        Self {
            version: Version::of(metadata),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// Properties that differ between versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Version {
    length: u64,
    modified: Option<SystemTime>,
    /// Number of the device.
    device: u64,
    /// Inode number. It is unique while this file is open.
    number: u64,
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            device: metadata.dev(),
            number: metadata.ino(),
        }
    }

    fn etag(&self) -> EntityTag {
        EntityTag::of_file(self.length, self.modified.unwrap_or(UNIX_EPOCH), self.number)
    }
}

/// Open files by path. Responses of one version of a file share its descriptor, so a client that requests a file many
/// times and reads nothing uses only one.
#[derive(Debug)]
pub(super) struct OpenFiles {
    by_path: Mutex<HashMap<PathBuf, Weak<OpenFile>>>,
    pub(super) cache: Arc<ChunkCache>,
}

impl Default for OpenFiles {
    fn default() -> Self {
        Self::with_cache(DEFAULT_CAPACITY)
    }
}

/// Minimum number of entries that are added before entries of closed files are removed.
const CROWD: usize = 32;

impl OpenFiles {
    /// Creates an empty map, with a cache of at most `capacity` for the files' chunks.
    pub(super) fn with_cache(capacity: ByteCount) -> Self {
        Self {
            by_path: Mutex::default(),
            cache: Arc::new(ChunkCache::new(capacity)),
        }
    }

    /// The file at `path` in its present version. Anything but a regular file is not opened: opening a pipe or a device
    /// may block the server.
    pub(super) fn open(&self, path: &Path) -> io::Result<Option<Arc<OpenFile>>> {
        let Some(version) = OpenFile::version_at(path)? else {
            return Ok(None);
        };
        let find = |files: &HashMap<PathBuf, Weak<OpenFile>>, version: Version| {
            let file = files.get(path)?.upgrade()?;
            (file.identity.version == version).then_some(file)
        };
        if let Some(file) = find(&self.by_path.lock(), version) {
            return Ok(Some(file));
        }
        // Not under the lock: opening may take long on a slow disk.
        let Some(opened) = OpenFile::open(path, &self.cache)? else {
            return Ok(None);
        };
        let mut files = self.by_path.lock();
        // Another request may have been faster, and the file may have been replaced since the first lookup.
        if let Some(file) = find(&files, opened.identity.version) {
            return Ok(Some(file));
        }
        if files.len() == files.capacity() {
            files.retain(|_, file| file.strong_count() > 0);
            // Leaves room for as many further entries, so that removals are rare.
            let open = files.len();
            let room = open.max(CROWD);
            files.shrink_to(open + room);
            files.reserve(room);
        }
        let file = Arc::new(opened);
        // Responses go on reading an older version.
        files.insert(path.to_owned(), Arc::downgrade(&file));
        Ok(Some(file))
    }

    /// Number of entries, including those of closed files.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_path.lock().len()
    }
}

impl OpenFile {
    /// Opens the file at `path`; `None` if there is none.
    fn open(path: &Path, cache: &Arc<ChunkCache>) -> io::Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if super::is_absence(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let identity = FileIdentity::of(&file.metadata()?);
        Ok(Some(Self {
            file,
            identity,
            cache: Arc::clone(cache),
        }))
    }

    /// The version of the file at `path`; `None` if there is none.
    fn version_at(path: &Path) -> io::Result<Option<Version>> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(Version::of(&metadata))),
            Ok(_) => Ok(None),
            Err(error) if super::is_absence(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Entity tag of the file at `path`, without opening it; `None` if there is none.
    pub(super) fn etag_at(path: &Path) -> io::Result<Option<EntityTag>> {
        Ok(Self::version_at(path)?.map(|version| version.etag()))
    }

    pub(super) fn len(&self) -> u64 {
        self.identity.version.length
    }

    pub(super) fn modified(&self) -> Option<SystemTime> {
        self.identity.version.modified
    }

    pub(super) fn etag(&self) -> EntityTag {
        self.identity.version.etag()
    }

    /// Bytes from `offset` on, at most `max`, and not beyond the end of their chunk.
    pub(super) fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        if !self.is_cached() || offset >= self.len() {
            return self.read_from_disk(offset, max);
        }
        let size = CHUNK.as_u64();
        let number = offset / size;
        let chunk = self.cache.get(self.identity, number, || {
            self.read_from_disk(number * size, CHUNK.as_usize())
        })?;
        // Less than a chunk.
        let begin = usize::try_from(offset % size)
            .unwrap_or(usize::MAX)
            .min(chunk.len());
        let end = begin.saturating_add(max).min(chunk.len());
        Ok(chunk.slice(begin..end))
    }

    /// Returns true if the file's chunks may be cached. This uses the machine's clock even in virtual time: the files
    /// are real, and their bytes are the same either way.
    fn is_cached(&self) -> bool {
        let age = self
            .identity
            .version
            .modified
            .and_then(|modified| modified.elapsed().ok());
        self.cache.is_enabled() && age.is_some_and(|age| age >= SETTLED)
    }

    fn read_from_disk(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        let left = self.identity.version.length.saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        let mut buffer = Vec::with_capacity(length);
        let read = read_exact_at(&self.file, &mut buffer, length, offset);
        // Checked after reading, so that bytes of a file that changed meanwhile are not returned.
        if read.is_err() || Version::of(&self.file.metadata()?) != self.identity.version {
            read?;
            return Err(io::Error::other("the file was written to while it was read"));
        }
        Ok(Bytes::from(buffer))
    }
}

/// Fills `buffer`, which is empty and has room for them, with `length` bytes from `offset` on.
fn read_exact_at(file: &File, buffer: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
    while buffer.len() < length {
        let at = offset + buffer.len() as u64;
        match pread(file, spare_capacity(buffer), at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // The buffer may have more capacity than requested.
    buffer.truncate(length);
    Ok(())
}

/// A version of a file, and the chunk's number in it.
type ChunkKey = (FileIdentity, u64);

/// Cache of chunks of [`CHUNK`] bytes that are read often. A chunk is kept from its second request on: keeping a chunk
/// that is never requested again costs more than reading it. Several responses that miss it at the same time read it
/// once.
#[derive(Debug)]
pub(super) struct ChunkCache {
    chunks: Cache<ChunkKey, Bytes, ByLength>,
    /// Chunks that were requested before.
    requested: Cache<ChunkKey, ()>,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// Numbers of chunks found in memory and of chunks read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheTotals {
    /// Reads that found their chunk in memory.
    pub hits: u64,
    /// Reads that took their chunk from the file.
    pub misses: u64,
    /// Size of the chunks cached now.
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
    /// Creates a cache of at most `capacity`; it keeps nothing if that is zero.
    fn new(capacity: ByteCount) -> Self {
        let chunks = capacity.as_u64() / CHUNK.as_u64();
        let chunks = usize::try_from(chunks).unwrap_or(usize::MAX).max(1);
        Self {
            chunks: Cache::with_weighter(chunks, capacity.as_u64(), ByLength),
            requested: Cache::new(chunks.saturating_mul(REMEMBERED)),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Returns true if the cache has room for a whole chunk.
    fn is_enabled(&self) -> bool {
        self.chunks.capacity() >= CHUNK.as_u64()
    }

    /// The chunk `number` of `file`, read by `read` if it is not cached.
    fn get(
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
