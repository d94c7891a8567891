//! [`DiskCache`]: chunks in one file that outlives the process.
//!
//! The file `chunks` has slots of [`CHUNK`] bytes; the file `index` has a record for each: key, length, checksum. As in
//! memory, `quick_cache` decides which chunks stay. Nothing is synchronized: the checksum covers the key and the bytes
//! in the slot. So a slot counts as missing if it was partially written, or if it holds a different chunk from the one
//! in its record.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use bytes::Bytes;
use crc_fast::{CrcAlgorithm, Digest};
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, UnitWeighter};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};

use crate::totals::Counters;
use crate::{CHUNK, ChunkKey};

/// Size of a record in the index: key 16 bytes, chunk number 8, length 4, unused 4, checksum 8.
const RECORD: usize = 40;
/// Maximum number of chunks waiting to be written; further ones are not written.
const QUEUE: usize = 256;
/// Extra slots beyond those of kept chunks, so that each new chunk finds a free one.
const SPARE: usize = 64;
/// Number of processes that may use one directory at a time: one serves, another takes over from it.
const PLACES: usize = 2;

/// Place of a chunk in the file.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u32,
    length: u32,
    checksum: u64,
}

/// Slots that hold no chunk.
#[derive(Clone, Debug, Default)]
struct FreeSlots(Arc<Mutex<Vec<u32>>>);

impl Lifecycle<ChunkKey, Slot> for FreeSlots {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), _: ChunkKey, slot: Slot) {
        self.0.lock().push(slot.number);
    }
}

type Index = Cache<ChunkKey, Slot, UnitWeighter, DefaultHashBuilder, FreeSlots>;

#[derive(Debug)]
struct Files {
    chunks: File,
    /// Locked while it is open.
    index: File,
    slots: Index,
    free: FreeSlots,
    counters: Arc<Counters>,
}

/// Chunks on disk. The calling thread reads, a thread of the cache writes.
#[derive(Debug)]
pub(crate) struct DiskCache {
    files: Arc<Files>,
    writes: SyncSender<(ChunkKey, Bytes)>,
}

impl DiskCache {
    /// Opens the cache of at most `size` bytes in `directory`, creating that if necessary. Reuses chunks that an
    /// earlier process has left there. `None` if two processes already use the directory.
    ///
    /// # Errors
    /// The directory cannot be written to, or something in it is a symbolic link.
    pub(crate) fn open(directory: &Path, size: u64, counters: Arc<Counters>) -> io::Result<Option<Self>> {
        let Some((place, index)) = Self::lock_place(directory)? else {
            return Ok(None);
        };
        let chunks = open_file(&place, "chunks")?;
        let capacity = usize::try_from(size / CHUNK as u64).unwrap_or(usize::MAX).max(1);
        let free = FreeSlots::default();
        let slots = Index::with(
            capacity,
            capacity as u64,
            UnitWeighter,
            DefaultHashBuilder::default(),
            free.clone(),
        );
        // The shards of the cache may together hold slightly more than requested.
        let kept = slots.shard_capacity().saturating_mul(slots.num_shards() as u64);
        let count = usize::try_from(kept).unwrap_or(usize::MAX).saturating_add(SPARE);
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let files = Files {
            chunks,
            index,
            slots,
            free,
            counters,
        };
        files.load(count)?;
        let files = Arc::new(files);
        let (writes, queue) = sync_channel(QUEUE);
        let writing = Arc::clone(&files);
        std::thread::Builder::new()
            .name("media-cache".to_owned())
            .spawn(move || writing.write_all(&queue))?;
        Ok(Some(Self { files, writes }))
    }

    /// The first place in `directory` that is free, with its locked index; `None` if there is none.
    fn lock_place(directory: &Path) -> io::Result<Option<(OwnedFd, File)>> {
        for number in 0..PLACES {
            let place = directory.join(number.to_string());
            fs::create_dir_all(&place)?;
            let place = rustix::fs::open(&place, OFlags::DIRECTORY | NO_LINK, Mode::empty())?;
            let index = open_file(&place, "index")?;
            match flock(&index, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some((place, index))),
                Err(rustix::io::Errno::WOULDBLOCK) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }

    /// Size of the chunks in bytes, counting each as a full chunk.
    pub(crate) fn size(&self) -> u64 {
        self.files.slots.len() as u64 * CHUNK as u64
    }

    pub(crate) fn contains(&self, key: &ChunkKey) -> bool {
        self.files.slots.contains_key(key)
    }

    pub(crate) fn get(&self, key: &ChunkKey) -> Option<Bytes> {
        let slot = self.files.slots.get(key)?;
        let read = self.files.read(key, slot);
        // Frees the slot for the next chunk, unless it already belongs to another one.
        if read.is_none()
            && let Some((_, slot)) = self
                .files
                .slots
                .remove_if(key, |found| found.number == slot.number)
        {
            self.files.free.0.lock().push(slot.number);
        }
        read
    }

    /// Queues `chunk` for writing; returns false if too many others wait.
    pub(crate) fn put(&self, key: ChunkKey, chunk: &Bytes) -> bool {
        self.contains(&key) || self.writes.try_send((key, chunk.clone())).is_ok()
    }
}

/// Symbolic links are not followed: they could lead to files that others own.
const NO_LINK: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);

/// Opens the file `name` in `place`, creating it if necessary.
fn open_file(place: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::CREATE | NO_LINK;
    let file = rustix::fs::openat(place, name, flags, Mode::from_raw_mode(0o666))?;
    Ok(file.into())
}

impl Files {
    /// Reads the records of `count` slots.
    fn load(&self, count: u32) -> io::Result<()> {
        self.index.set_len(u64::from(count) * RECORD as u64)?;
        self.chunks.set_len(u64::from(count) * CHUNK as u64)?;
        let mut records = io::BufReader::with_capacity(RECORD << 10, &self.index);
        let mut record = [0; RECORD];
        for number in 0..count {
            records.read_exact(&mut record)?;
            match read_record(&record) {
                Some((key, length, checksum)) if !self.slots.contains_key(&key) => {
                    let slot = Slot {
                        number,
                        length,
                        checksum,
                    };
                    self.slots.insert(key, slot);
                }
                _ => self.free.0.lock().push(number),
            }
        }
        Ok(())
    }

    fn read(&self, key: &ChunkKey, slot: Slot) -> Option<Bytes> {
        let mut bytes = vec![0; slot.length as usize];
        let read = self.chunks.read_exact_at(&mut bytes, offset(slot.number));
        (read.is_ok() && sum(key, &bytes) == slot.checksum).then(|| Bytes::from(bytes))
    }

    /// Writes queued chunks until the queue is closed.
    fn write_all(&self, queue: &Receiver<(ChunkKey, Bytes)>) {
        let mut is_failing = false;
        while let Ok((key, chunk)) = queue.recv() {
            if self.slots.contains_key(&key) {
                continue;
            }
            let Some(number) = self.free.0.lock().pop() else {
                self.counters.lock().disk_skipped += 1;
                continue;
            };
            match self.write(number, &key, &chunk) {
                Ok(slot) => {
                    self.slots.insert(key, slot);
                    is_failing = false;
                }
                Err(error) => {
                    self.free.0.lock().push(number);
                    if !is_failing {
                        tracing::warn!(%error, "the cache on disk cannot be written to");
                    }
                    is_failing = true;
                }
            }
        }
    }

    fn write(&self, number: u32, key: &ChunkKey, chunk: &Bytes) -> io::Result<Slot> {
        let slot = Slot {
            number,
            length: u32::try_from(chunk.len()).map_err(io::Error::other)?,
            checksum: sum(key, chunk),
        };
        self.chunks.write_all_at(chunk, offset(number))?;
        let record = record(key, slot);
        self.index
            .write_all_at(&record, u64::from(number) * RECORD as u64)?;
        Ok(slot)
    }
}

fn offset(slot: u32) -> u64 {
    u64::from(slot) * CHUNK as u64
}

/// Checksum of a chunk and its key, so that another chunk's bytes count as damaged.
fn sum(key: &ChunkKey, bytes: &[u8]) -> u64 {
    let (object, chunk) = key;
    let mut digest = Digest::new(CrcAlgorithm::Crc64Nvme);
    digest.update(&object.to_le_bytes());
    digest.update(&chunk.to_le_bytes());
    digest.update(bytes);
    digest.finalize()
}

fn record(key: &ChunkKey, slot: Slot) -> Vec<u8> {
    let (object, chunk) = key;
    let mut record = Vec::with_capacity(RECORD);
    record.extend(object.to_le_bytes());
    record.extend(chunk.to_le_bytes());
    record.extend(slot.length.to_le_bytes());
    record.extend([0; 4]);
    record.extend(slot.checksum.to_le_bytes());
    record
}

/// Key, length and checksum of a record; `None` if its slot is free.
fn read_record(record: &[u8; RECORD]) -> Option<(ChunkKey, u32, u64)> {
    let (object, rest) = record.split_first_chunk()?;
    let (chunk, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (_, rest) = rest.split_at_checked(4)?;
    let (checksum, _) = rest.split_first_chunk()?;
    let length = u32::from_le_bytes(*length);
    let key = (u128::from_le_bytes(*object), u64::from_le_bytes(*chunk));
    let is_used = length > 0 && length as usize <= CHUNK;
    is_used.then_some((key, length, u64::from_le_bytes(*checksum)))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    fn chunk(number: u64) -> Bytes {
        let mut bytes = vec![number.to_le_bytes()[0]; CHUNK];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        bytes.into()
    }

    fn open(directory: &Path, size: u64) -> DiskCache {
        DiskCache::open(directory, size, Arc::default()).unwrap().unwrap()
    }

    fn put(cache: &DiskCache, key: ChunkKey, chunk: &Bytes) {
        let begun = Instant::now();
        while !(cache.put(key, chunk) && cache.contains(&key)) {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "{key:?} is not written"
            );
            std::thread::yield_now();
        }
    }

    #[test]
    fn chunks_are_found_again_by_the_next_process() {
        let directory = tempfile::tempdir().unwrap();
        let cache = open(directory.path(), 8 << 20);
        for number in 0..20 {
            put(&cache, (7, number), &chunk(number));
        }
        put(
            &cache,
            (8, 0),
            &Bytes::from_static(b"the last chunk of an object is shorter"),
        );
        drop(cache);
        let again = loop {
            // The writing thread closes the files when it ends.
            match DiskCache::open(directory.path(), 8 << 20, Arc::default()) {
                Ok(Some(again)) if again.contains(&(7, 0)) => break again,
                _ => std::thread::yield_now(),
            }
        };
        for number in 0..20 {
            assert_eq!(again.get(&(7, number)), Some(chunk(number)));
        }
        assert_eq!(again.get(&(8, 0)).unwrap().len(), 38);
        assert_eq!(again.get(&(7, 20)), None);
        assert_eq!(again.size(), 21 * CHUNK as u64);
    }

    #[test]
    fn a_symbolic_link_in_the_directory_is_refused_and_its_target_stays_as_it_is() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("index"), "of another program").unwrap();
        for link in ["0", "0/index", "0/chunks"] {
            let directory = tempfile::tempdir().unwrap();
            let target = if link == "0" {
                outside.path().to_owned()
            } else {
                fs::create_dir(directory.path().join("0")).unwrap();
                outside.path().join("index")
            };
            std::os::unix::fs::symlink(target, directory.path().join(link)).unwrap();
            DiskCache::open(directory.path(), 8 << 20, Arc::default()).unwrap_err();
            let kept = fs::read_to_string(outside.path().join("index")).unwrap();
            assert_eq!(kept, "of another program", "{link}");
            assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1, "{link}");
        }
        // The directory itself is the operator's choice.
        let link = outside.path().join("cache");
        let directory = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(directory.path(), &link).unwrap();
        open(&link, 8 << 20);
    }

    #[test]
    fn a_damaged_chunk_is_not_there_and_the_others_are() {
        let directory = tempfile::tempdir().unwrap();
        let cache = open(directory.path(), 8 << 20);
        put(&cache, (1, 0), &chunk(3));
        put(&cache, (1, 1), &chunk(4));
        let slot = cache.files.slots.get(&(1, 0)).unwrap();
        cache
            .files
            .chunks
            .write_all_at(b"x", offset(slot.number) + 1_000)
            .unwrap();
        assert_eq!(cache.get(&(1, 0)), None);
        assert!(!cache.contains(&(1, 0)));
        assert_eq!(cache.get(&(1, 1)), Some(chunk(4)));
    }

    #[test]
    fn a_key_over_the_bytes_of_another_chunk_is_not_there() {
        let directory = tempfile::tempdir().unwrap();
        let cache = open(directory.path(), 8 << 20);
        put(&cache, (1, 0), &chunk(3));
        let slot = cache.files.slots.get(&(1, 0)).unwrap();
        // Half of a record reached the disk: the new key with the old checksum.
        for key in [(2, 0), (1, 1)] {
            cache.files.slots.insert(key, slot);
            assert_eq!(cache.get(&key), None, "{key:?}");
        }
        assert_eq!(cache.get(&(1, 0)), Some(chunk(3)));
    }

    #[test]
    fn the_slots_of_damaged_chunks_are_used_again() {
        let directory = tempfile::tempdir().unwrap();
        let cache = open(directory.path(), 2 << 20);
        let count = cache.files.free.0.lock().len();
        for number in 0..4 * SPARE as u64 {
            let (key, files) = ((1, number), &cache.files);
            let free = files.free.0.lock().pop().expect("a free slot");
            let slot = files.write(free, &key, &chunk(number)).unwrap();
            files.slots.insert(key, slot);
            files.chunks.write_all_at(b"damage", offset(slot.number)).unwrap();
            assert_eq!(cache.get(&key), None);
            assert_eq!(files.free.0.lock().len(), count);
        }
    }

    #[test]
    fn a_chunk_without_a_free_slot_is_counted_as_skipped() {
        let directory = tempfile::tempdir().unwrap();
        let cache = open(directory.path(), 1 << 20);
        cache.files.free.0.lock().clear();
        assert!(cache.put((1, 0), &chunk(0)));
        let begun = Instant::now();
        while cache.files.counters.lock().disk_skipped == 0 {
            assert!(begun.elapsed() < Duration::from_secs(10), "it is not counted");
            std::thread::yield_now();
        }
        assert!(!cache.contains(&(1, 0)));
    }

    #[test]
    fn more_chunks_than_have_room_replace_others_and_the_files_stay_within_their_size() {
        let directory = tempfile::tempdir().unwrap();
        let size = 2 << 20;
        let cache = open(directory.path(), size);
        for number in 0..1_000 {
            put(&cache, (1, number), &chunk(number));
        }
        let found = (0..1_000).filter_map(|number| Some((number, cache.get(&(1, number))?)));
        let found: Vec<_> = found.collect();
        assert!(found.len() >= 8, "{}", found.len());
        assert!(found.iter().all(|(number, bytes)| *bytes == chunk(*number)));
        let length = directory.path().join("0/chunks").metadata().unwrap().len();
        assert!(length <= 2 * size + (SPARE * CHUNK) as u64, "{length}");
    }

    #[test]
    fn a_second_process_has_a_place_of_its_own_and_a_third_has_none() {
        let directory = tempfile::tempdir().unwrap();
        let first = open(directory.path(), 1 << 20);
        let second = open(directory.path(), 1 << 20);
        put(&first, (1, 0), &chunk(0));
        assert!(!second.contains(&(1, 0)));
        let third = DiskCache::open(directory.path(), 1 << 20, Arc::default()).unwrap();
        assert!(third.is_none());
    }
}
