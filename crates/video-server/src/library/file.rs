//! [`OpenFile`]: a file in the version that a request opened.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::http::validator::EntityTag;

/// A file that one response reads. A file replaced by another goes on being read as it was; one that is
/// written to in place gives an error rather than a mix of two versions.
#[derive(Debug)]
pub(super) struct OpenFile {
    file: File,
    version: Version,
}

/// Properties that differ between versions of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    length: u64,
    modified: Option<SystemTime>,
    /// Inode number; 0 on systems without inodes.
    number: u64,
}

impl Version {
    fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        let number = std::os::unix::fs::MetadataExt::ino(metadata);
        #[cfg(not(unix))]
        let number = 0;
        Self {
            length: metadata.len(),
            modified: metadata.modified().ok(),
            number,
        }
    }

    fn etag(&self) -> EntityTag {
        EntityTag::of_file(self.length, self.modified.unwrap_or(UNIX_EPOCH), self.number)
    }
}

impl OpenFile {
    /// Opens the file at `path`. Anything else (a pipe, a device) is not opened, since that might block.
    pub(super) fn open(path: &Path) -> io::Result<Option<Self>> {
        match std::fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(_) => return Ok(None),
            Err(error) if super::is_absence(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if super::is_absence(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        let version = Version::of(&file.metadata()?);
        Ok(Some(Self { file, version }))
    }

    pub(super) fn len(&self) -> u64 {
        self.version.length
    }

    pub(super) fn modified(&self) -> Option<SystemTime> {
        self.version.modified
    }

    pub(super) fn etag(&self) -> EntityTag {
        self.version.etag()
    }

    pub(super) fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        let left = self.version.length.saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(max);
        let mut buffer = Vec::with_capacity(length);
        let read = read_exact_at(&self.file, &mut buffer, length, offset);
        // Looked at after reading: bytes of a file that changed meanwhile are not handed out.
        if read.is_err() || Version::of(&self.file.metadata()?) != self.version {
            read?;
            return Err(io::Error::other("the file was written to while it was read"));
        }
        Ok(Bytes::from(buffer))
    }
}

/// Fills `buffer`, which is empty and has room for them, with `length` bytes from `offset` on.
#[cfg(unix)]
fn read_exact_at(file: &File, buffer: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
    use rustix::buffer::spare_capacity;
    use rustix::io::{Errno, pread};

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

/// Fills `buffer`, which is empty and has room for them, with `length` bytes from `offset` on.
#[cfg(not(unix))]
fn read_exact_at(mut file: &File, buffer: &mut Vec<u8>, length: usize, offset: u64) -> io::Result<()> {
    use std::io::{Read as _, Seek as _, SeekFrom};

    // One response reads from a file, so no other reader moves the cursor.
    file.seek(SeekFrom::Start(offset))?;
    buffer.resize(length, 0);
    file.read_exact(buffer)
}
