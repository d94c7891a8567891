//! Chunks of files in memory.

use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use super::super::CacheTotals;
use super::*;
use crate::library::CHUNK;

/// [`CHUNK`] as a length.
const CHUNK_LENGTH: usize = 64 << 10;

/// Bytes that differ from chunk to chunk and within one.
fn pattern(length: usize, salt: usize) -> Vec<u8> {
    (0..length)
        .map(|at| u8::try_from((at * 31 + at / CHUNK_LENGTH + salt) % 251).unwrap())
        .collect()
}

/// Writes `bytes` to `path`, last modified long ago.
fn write_settled(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    settle(path, UNIX_EPOCH + Duration::from_secs(1_000_000_000));
}

fn settle(path: &Path, modified: SystemTime) {
    fs::File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(modified)
        .unwrap();
}

/// A directory with `clip.bin` of three and a half chunks, and its library.
fn clip() -> (Media, Library, Vec<u8>) {
    let directory = directory();
    let bytes = pattern(CHUNK_LENGTH * 7 / 2, 0);
    write_settled(&directory.path("clip.bin"), &bytes);
    let library = scan(&directory);
    (directory, library, bytes)
}

/// Everything in `resource`, read as responses do.
fn fetched(mut resource: Resource) -> Vec<u8> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < resource.info.length {
        bytes.extend_from_slice(&resource.read_at(bytes.len() as u64, CHUNK_LENGTH).unwrap());
    }
    bytes
}

fn counts(library: &Library) -> (u64, u64, u64) {
    let CacheTotals {
        hits, misses, size, ..
    } = library.cache_totals();
    (hits, misses, size.as_u64())
}

#[test]
fn a_file_is_kept_when_it_is_read_again_and_comes_from_memory_from_then_on() {
    let (_directory, library, bytes) = clip();
    let kept = bytes.len() as u64;
    for expected in [(0, 4, 0), (0, 8, kept), (4, 8, kept)] {
        assert_eq!(fetched(open(&library, "clip.bin")), bytes);
        assert_eq!(counts(&library), expected);
    }
}

#[test]
fn bytes_from_memory_are_those_of_the_file_wherever_a_range_begins_and_ends() {
    let (_directory, library, bytes) = clip();
    let mut resource = open(&library, "clip.bin");
    let places = [
        0,
        1,
        CHUNK_LENGTH - 1,
        CHUNK_LENGTH,
        CHUNK_LENGTH * 3 + 5,
        bytes.len() - 1,
    ];
    for _again in 0..3 {
        for begin in places {
            for most in [1, 2, 1_000, CHUNK_LENGTH, usize::MAX] {
                let read = resource.read_at(begin as u64, most).unwrap();
                assert!(!read.is_empty() && read.len() <= most);
                assert_eq!(read, bytes[begin..begin + read.len()]);
            }
        }
    }
    assert!(resource.read_at(bytes.len() as u64, 10).unwrap().is_empty());
    assert!(resource.read_at(0, 0).unwrap().is_empty());
}

#[test]
fn a_chunk_that_many_viewers_request_at_the_same_time_is_read_for_the_first_two() {
    let (_directory, library, bytes) = clip();
    thread::scope(|scope| {
        for _viewer in 0..16 {
            scope.spawn(|| assert_eq!(fetched(open(&library, "clip.bin")), bytes));
        }
    });
    let (hits, misses, _) = counts(&library);
    assert_eq!((hits, misses), (56, 8));
}

#[test]
fn a_file_in_place_of_another_of_the_same_length_and_time_is_not_taken_for_it() {
    let (directory, library, bytes) = clip();
    let path = directory.path("clip.bin");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    for salt in 1..20 {
        // The new file can reuse the inode of the deleted one.
        fs::remove_file(&path).unwrap();
        let other = pattern(bytes.len(), salt);
        fs::write(&path, &other).unwrap();
        settle(&path, modified);
        for _again in 0..3 {
            assert!(fetched(open(&library, "clip.bin")) == other, "{salt}");
        }
    }
}

#[test]
fn a_file_that_was_written_just_now_is_not_kept() {
    let (directory, library, _) = clip();
    let fresh = pattern(CHUNK_LENGTH, 5);
    directory.put("fresh.bin", &fresh);
    for _again in 0..3 {
        assert_eq!(fetched(open(&library, "fresh.bin")), fresh);
    }
    assert_eq!(counts(&library), (0, 0, 0));
}

#[test]
fn a_response_goes_on_with_what_it_began_while_chunks_are_dropped_for_others() {
    let (_directory, mut library, bytes) = clip();
    library.set_cache(ByteCount::new(2 * CHUNK.as_u64()));
    let reads = [(); 3].map(|()| open(&library, "clip.bin").read_at(0, CHUNK_LENGTH).unwrap());
    let held = &reads[2];
    assert_eq!(library.cache_totals().hits, 1);
    for _ in 0..10 {
        assert_eq!(fetched(open(&library, "clip.bin")), bytes);
        assert!(library.cache_totals().size <= ByteCount::new(2 * CHUNK.as_u64()));
    }
    assert_eq!(*held, bytes[..CHUNK_LENGTH]);
}

#[test]
fn without_room_nothing_is_kept() {
    let (_directory, mut library, bytes) = clip();
    library.set_cache(ByteCount::ZERO);
    for _again in 0..3 {
        assert_eq!(fetched(open(&library, "clip.bin")), bytes);
    }
    assert_eq!(counts(&library), (0, 0, 0));
}
