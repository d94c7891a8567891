//! [`IndexReader`]: reads the index of a media file, wherever it is in the file.

use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;

use crate::error::OriginError;
use crate::object::Object;

/// Number of bytes per fetch at first.
const FIRST: u64 = 64 << 10;
/// Number of bytes per fetch in a long sequence of reads.
const LONGEST: u64 = 2 << 20;

/// Reads an object on the calling thread, bypassing the cache: the index of a title is read once. Bytes skipped by
/// [`seek`](Seek::seek) are not fetched. Sequential reads fetch ever larger pieces.
#[derive(Debug)]
pub struct IndexReader {
    object: Object,
    position: u64,
    /// Bytes from `held_at` on.
    held: Bytes,
    held_at: u64,
    /// Size of the next piece.
    next: u64,
}

impl IndexReader {
    /// A reader at the start of `object`.
    pub fn new(object: Object) -> Self {
        Self {
            object,
            position: 0,
            held: Bytes::new(),
            held_at: 0,
            next: FIRST,
        }
    }

    /// Reads the whole object, if it has at most `most` bytes.
    ///
    /// # Errors
    /// It has more bytes ([`FileTooLarge`](io::ErrorKind::FileTooLarge)); the store refuses them
    /// ([`PermissionDenied`](io::ErrorKind::PermissionDenied)) or cannot deliver them now
    /// ([`Other`](io::ErrorKind::Other)). Reads of an index fail in the same way.
    pub fn read_whole(object: &Object, most: u64) -> io::Result<Bytes> {
        if object.len() > most {
            let message = format!("it has {} bytes; at most {most} are read", object.len());
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        fetch(object, 0..object.len())
    }

    /// The held bytes from the position on.
    fn rest(&self) -> Option<&[u8]> {
        let from = usize::try_from(self.position.checked_sub(self.held_at)?).ok()?;
        self.held.get(from..).filter(|rest| !rest.is_empty())
    }
}

fn fetch(object: &Object, bytes: std::ops::Range<u64>) -> io::Result<Bytes> {
    if bytes.is_empty() {
        return Ok(Bytes::new());
    }
    object.read_past_the_cache(bytes).map_err(|error| match error {
        OriginError::Refused { .. } => io::Error::new(io::ErrorKind::PermissionDenied, error),
        error => io::Error::other(error),
    })
}

impl Read for IndexReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest().is_none() {
            let is_sequence = self.position == self.held_at + self.held.len() as u64;
            self.next = if is_sequence && !self.held.is_empty() {
                (self.next * 2).min(LONGEST)
            } else {
                FIRST
            };
            let end = self.position.saturating_add(self.next).min(self.object.len());
            self.held = fetch(&self.object, self.position.min(end)..end)?;
            self.held_at = self.position;
        }
        let rest = self.rest().unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for IndexReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.object.len().checked_add_signed(by),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
