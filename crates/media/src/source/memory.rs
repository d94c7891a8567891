//! [`MemorySource`]: a title held in memory.

use std::fmt;
use std::io::{self, Cursor};
use std::path::Path;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::{MediaSource, hex, readable};
use crate::error::MediaError;
use crate::title::Title;

/// An MP4 file held in memory, such as the embedded title. Reads share its memory.
pub struct MemorySource {
    bytes: Bytes,
    title: Title,
    identity: String,
}

impl MemorySource {
    /// Reads the MP4 file at `path` into memory.
    ///
    /// # Errors
    /// If the file cannot be read, and as [`Title::read`]; the error names the file.
    pub fn open(path: &Path) -> Result<Self, MediaError> {
        let bytes = std::fs::read(path).map_err(MediaError::from);
        bytes.and_then(Self::new).map_err(|error| error.in_file(path))
    }

    /// Reads the index of the MP4 file in `bytes`.
    ///
    /// # Errors
    /// As [`Title::read`].
    pub fn new(bytes: impl Into<Bytes>) -> Result<Self, MediaError> {
        let bytes = bytes.into();
        let title = Title::read(Cursor::new(&bytes))?;
        let digest = Sha256::digest(&bytes);
        let identity = hex(&digest);
        Ok(Self {
            bytes,
            title,
            identity,
        })
    }
}

impl MediaSource for MemorySource {
    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        let count = readable(self.len(), offset, max);
        if count == 0 {
            return Ok(Bytes::new());
        }
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        Ok(self.bytes.slice(start..start + count))
    }

    fn title(&self) -> &Title {
        &self.title
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}

impl fmt::Debug for MemorySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemorySource")
            .field("len", &self.bytes.len())
            .field("info", self.title.info())
            .field("identity", &self.identity)
            .finish()
    }
}
