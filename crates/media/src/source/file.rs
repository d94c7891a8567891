//! [`FileSource`]: a title in a file, read at the requested offsets.

use std::fmt::Write as _;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use super::{MediaSource, readable};
use crate::error::MediaError;
use crate::title::Title;

/// An MP4 file, opened once. Reads are positional, so connections share the handle; only the index is kept in memory.
/// Each read checks that the file still has the length and modification time that it had when indexed: if a file is
/// overwritten while it is served, reads fail instead of mixing two titles. (If a file is *replaced* by renaming
/// another over it, the old one continues to be served.)
#[derive(Debug)]
pub struct FileSource {
    path: PathBuf,
    file: File,
    title: Title,
    stamp: Stamp,
    identity: String,
}

/// Properties that differ if the file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl FileSource {
    /// Opens the MP4 file at `path` and reads its index.
    ///
    /// # Errors
    /// As [`Title::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediaError> {
        let path = path.as_ref();
        let title = Title::open(path)?;
        Self::with_title(path, title).map_err(|error| MediaError::from(error).in_file(path))
    }

    fn with_title(path: &Path, title: Title) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let stamp = Stamp::of(&metadata);
        if stamp.len != title.file_size().as_u64() {
            return Err(changed(path, title.file_size().as_u64(), stamp.len));
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            title,
            stamp,
            identity: identity(&metadata),
        })
    }

    /// The file's path as it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Length, modification time and, if available, inode, from which web servers make entity tags without reading the
/// file.
fn identity(metadata: &Metadata) -> String {
    let modified = metadata
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
        .map_or(0, |time| time.as_nanos());
    let mut text = format!("{:x}-{modified:x}", metadata.len());
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Writing to a String cannot fail.
        let _ = write!(text, "-{:x}", metadata.ino());
    }
    text
}

fn changed(path: &Path, was: u64, is: u64) -> io::Error {
    io::Error::other(format!(
        "{}: the file changed while it was served (it had {was} bytes and now has {is}); \
         replace titles by renaming a complete file over them, then restart",
        path.display()
    ))
}

#[cfg(unix)]
fn pread(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, buffer, offset)
}

#[cfg(windows)]
fn pread(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, buffer, offset)
}

impl MediaSource for FileSource {
    fn len(&self) -> u64 {
        self.stamp.len
    }

    fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        let mut buffer = vec![0; readable(self.stamp.len, offset, max)];
        let mut filled = 0;
        while let Some(rest) = buffer.get_mut(filled..)
            && !rest.is_empty()
        {
            match pread(&self.file, rest, offset.saturating_add(filled as u64)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Checked after reading, so that bytes of a file that changed in between are not returned.
        let now = Stamp::of(&self.file.metadata()?);
        if now != self.stamp || filled < buffer.len() {
            return Err(changed(&self.path, self.stamp.len, now.len));
        }
        Ok(Bytes::from(buffer))
    }

    fn title(&self) -> &Title {
        &self.title
    }

    fn modified(&self) -> Option<SystemTime> {
        self.stamp.modified
    }

    fn identity(&self) -> &str {
        &self.identity
    }
}
