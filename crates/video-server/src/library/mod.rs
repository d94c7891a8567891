//! [`Library`]: what a server has to give.
//!
//! A directory is read once at the start: every `.mp4` and `.m4v` in it is opened and its index read, so that a bad one
//! is refused before anybody asks for it, and its average rate is known from then on. Of the index only a
//! [`TitleSummary`] is kept; the frames of a thousand films would not fit.
//!
//! A file is looked up and opened anew for each request, so what is added to the directory later is served at once.
//! DASH and HLS manifests are read as well: they say which files are segments of which representation, and so which rate a response
//! has. One that cannot be used is named in the log; its files are served like any others, without a rate.
//!
//! Titles are not indexed while serving: a title that is new, or has changed since the start, is served as it is, and
//! its rate is unknown until the next start (the log says so). A file that changes *while a response reads it* ends
//! that response early: titles are to be replaced by renaming complete files over them.

mod error;
mod file;
mod packaged;
mod scan;

use core::ops::Range;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use playrate_media::{Layout, MediaSource, Title};
use playrate_units::{Bitrate, Bytes as ByteCount};

pub use error::{BadTitle, LibraryError};
use file::OpenFile;
use packaged::{Known, Packaged};
pub use packaged::{PackagedTitle, RepresentationSummary};

use crate::http::answer::Representation;
use crate::http::content_type;
use crate::http::path::ResourceName;
use crate::http::validator::{EntityTag, Validators};

/// What is kept of a title's index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TitleSummary {
    /// Codecs as RFC 6381 writes them; empty for generated payload.
    pub codecs: String,
    /// Width of the picture in pixels; zero for generated payload.
    pub width: u32,
    /// Height of the picture in pixels; zero for generated payload.
    pub height: u32,
    /// Playing time.
    pub duration: Duration,
    /// Video and audio bytes over playing time.
    pub average_rate: Bitrate,
    /// The highest rate of any second of playing time.
    pub peak_rate: Bitrate,
    /// Size of the file.
    pub size: ByteCount,
    /// How the frames are laid out.
    pub layout: Layout,
}

impl TitleSummary {
    fn of(title: &Title) -> Self {
        let info = title.info();
        Self {
            codecs: info.codecs.clone(),
            width: info.width,
            height: info.height,
            duration: title.duration(),
            average_rate: title.average_rate(),
            peak_rate: title.peak_rate(Duration::from_secs(1)),
            size: title.file_size(),
            layout: title.layout(),
        }
    }
}

/// A title and the version of it that was indexed.
#[derive(Debug)]
struct Indexed {
    summary: TitleSummary,
    etag: EntityTag,
}

/// What a server has to give: a directory, titles from elsewhere, or both. A name that both have is the latter's.
#[derive(Debug, Default)]
pub struct Library {
    /// With all symbolic links resolved.
    directory: Option<PathBuf>,
    indexed: BTreeMap<ResourceName, Indexed>,
    sources: BTreeMap<ResourceName, Arc<dyn MediaSource>>,
    packaged: Packaged,
    /// Files of the directory that are no titles.
    other_files: usize,
}

impl Library {
    /// A library of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads `directory` and the index of every title in it.
    ///
    /// # Errors
    /// If it is no directory that can be read, holds more than can be taken in, or holds a title that cannot be
    /// played; the error names all such titles with what is wrong in them.
    pub fn scan(directory: &Path) -> Result<Self, LibraryError> {
        scan::scan(directory)
    }

    /// Adds a title from elsewhere, under `name` (`/` between segments, none in front).
    ///
    /// # Errors
    /// If no request could ever name it.
    pub fn with_source(mut self, name: &str, source: Arc<dyn MediaSource>) -> Result<Self, LibraryError> {
        let name = ResourceName::from_relative(Path::new(name)).ok_or_else(|| LibraryError::Name {
            name: name.to_owned(),
        })?;
        let indexed = Indexed {
            summary: TitleSummary::of(source.title()),
            etag: EntityTag::of_identity(source.identity()),
        };
        self.indexed.insert(name.clone(), indexed);
        self.sources.insert(name, source);
        Ok(self)
    }

    /// The titles that were indexed, by name.
    pub fn titles(&self) -> impl Iterator<Item = (&ResourceName, &TitleSummary)> {
        self.indexed
            .iter()
            .map(|(name, indexed)| (name, &indexed.summary))
    }

    /// The titles that DASH and HLS manifests of the directory name.
    pub fn packaged(&self) -> &[PackagedTitle] {
        &self.packaged.titles
    }

    /// The rates of those that may replace `representation` while playing, itself included, as players know them: what the
    /// manifest declares, or the average if that is more.
    pub fn alternatives(&self, representation: &RepresentationSummary) -> Vec<Bitrate> {
        let title = self
            .packaged
            .titles
            .iter()
            .find(|title| title.manifest == representation.title);
        let all = title
            .map(|title| title.representations.as_slice())
            .unwrap_or_default();
        let same_set = all.iter().filter(|other| other.set == representation.set);
        same_set
            .filter_map(|other| other.declared_rate.max(other.average_rate))
            .collect()
    }

    /// Manifests of the directory that cannot be used: file, line, problem and mend of each.
    pub fn bad_manifests(&self) -> &[String] {
        &self.packaged.bad
    }

    /// How many files that are no titles the directory held when it was read.
    pub fn other_files(&self) -> usize {
        self.other_files
    }

    /// Opens what is called `name`; `None` if there is no such thing, or it is no file, or a symbolic link leads out
    /// of the directory.
    ///
    /// # Errors
    /// If it is there and cannot be opened.
    pub fn open(&self, name: &ResourceName) -> io::Result<Option<Resource>> {
        let content = match self.sources.get(name) {
            Some(source) => Content::Source(Arc::clone(source)),
            None => match self.open_file(name)? {
                Some(file) => Content::File(file),
                None => return Ok(None),
            },
        };
        let (length, etag, modified) = match &content {
            Content::Source(source) => (
                source.len(),
                EntityTag::of_identity(source.identity()),
                source.modified(),
            ),
            Content::File(file) => (file.len(), file.etag(), file.modified()),
        };
        let pieces = self.packaged.files.get(name).map(Arc::clone);
        let packaged_rate = pieces
            .iter()
            .find_map(|pieces| pieces.first()?.representation.average_rate);
        let rate = self.indexed.get(name).and_then(|indexed| {
            let same = indexed.etag == etag;
            if !same {
                tracing::warn!(title = %name, "changed since it was indexed: its rate is unknown until a restart");
            }
            same.then_some(indexed.summary.average_rate)
        });
        Ok(Some(Resource {
            representation: Representation {
                length,
                content_type: content_type::of(name.as_str()),
                validators: Validators::new(etag, modified),
            },
            average_rate: packaged_rate.or(rate),
            pieces,
            content,
        }))
    }

    fn open_file(&self, name: &ResourceName) -> io::Result<Option<OpenFile>> {
        let Some(directory) = &self.directory else {
            return Ok(None);
        };
        let found = directory.join(name.as_str()).canonicalize();
        match found {
            // A link may lead elsewhere in the directory, but not out of it.
            Ok(path) if path.starts_with(directory) => OpenFile::open(&path),
            Ok(path) => {
                tracing::warn!(%name, leads_to = %path.display(), "not served: a link out of the media directory");
                Ok(None)
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
            Err(error) => {
                if !is_absence(&error) {
                    tracing::warn!(%name, %error, "not served: its path cannot be resolved");
                }
                Ok(None)
            }
        }
    }
}

/// Whether looking a path up failed because there is nothing there.
fn is_absence(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, InvalidInput, NotADirectory, NotFound};
    matches!(
        error.kind(),
        NotFound | NotADirectory | InvalidFilename | InvalidInput
    )
}

/// Something that a request named, opened.
#[derive(Debug)]
pub struct Resource {
    /// What HTTP says of it.
    pub representation: Representation,
    /// The average rate of the title or the representation that it is (a part of), where that is known and, of a title,
    /// the index is still true.
    pub average_rate: Option<Bitrate>,
    /// Its segments, if a manifest names it.
    pieces: Option<Arc<[Known]>>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Source(Arc<dyn MediaSource>),
    File(OpenFile),
}

impl Resource {
    /// The representation that it is (a part of), if a manifest names it.
    pub fn representation(&self) -> Option<&Arc<RepresentationSummary>> {
        Some(&self.pieces.as_ref()?.first()?.representation)
    }

    /// How long the segments play that lie within these of its bytes, where that is known.
    pub fn duration_of(&self, bytes: &Range<u64>) -> Option<Duration> {
        packaged::duration_of(self.pieces.as_ref()?, bytes)
    }

    /// The bytes from `offset` on: at least one and at most `max`, none only at the end or if `max` is zero. A file's
    /// blocks are read on the calling thread; they come from the page cache, or as fast as the disk has them.
    ///
    /// # Errors
    /// If they cannot be read, or the file is no longer what was opened.
    pub fn read_at(&self, offset: u64, max: usize) -> io::Result<Bytes> {
        match &self.content {
            Content::Source(source) => source.read_at(offset, max),
            Content::File(file) => file.read_at(offset, max),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
